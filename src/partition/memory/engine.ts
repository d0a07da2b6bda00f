/** Rows in memory, for tests and for servers that shall forget. */
import { type ClockOptions, startClock } from '../clock.ts';
import { plus, versionOfAdd } from '../counters.ts';
import type { Key, Range } from '../keys.ts';
import { pageOf } from '../pages.ts';
import {
  bufferOf,
  type Commit,
  type Engine,
  type Outcome,
  type Reading,
  type Row,
  type ScanOptions,
  type Stamp,
  type Write,
} from '../partition.ts';
import { SortedKeys } from '../sorted-keys.ts';
import { changesIn, holds, type Versions } from '../validate.ts';

export interface MemoryOptions extends ClockOptions {
  /** Faults for tests: the outcome to answer instead of committing. An unknown outcome may still have happened. */
  inject?: (commit: Commit) => Outcome | undefined;
}

/** Snapshots that may overlap without an end: what they no longer see goes after so many of them. */
const FORGET_EVERY = 1_000;

/** What a key held since a commit; no row: it was removed. */
interface Past {
  readonly since: number;
  readonly row?: Row;
}

export function openMemory({ inject, ...clockOptions }: MemoryOptions = {}): Engine {
  const clock = startClock(clockOptions);
  const keys = new SortedKeys();
  const pasts = new Map<Key, Past[]>();
  /** Keys that hold more than their latest row, for snapshots that are still open. */
  const stale = new Set<Key>();
  const open = new Map<number, number>();
  let commits = 0;
  let ended = 0;

  function at(key: Key, moment: number): Row | undefined {
    return pasts.get(key)?.findLast(({ since }) => since <= moment)?.row;
  }

  function* rowsIn(range: Range, moment: number, reverse?: boolean): Iterable<Row> {
    for (const key of keys.in(range, reverse)) {
      const row = at(key, moment);
      if (row) yield row;
    }
  }

  function scan(range: Range, { limit, bytesMax = Infinity, reverse }: ScanOptions, moment: number): Row[] {
    const rows: Row[] = [];
    let bytes = 0;
    for (const row of rowsIn(range, moment, reverse)) {
      if (rows.length >= limit || bytes >= bytesMax) break;
      rows.push(row);
      bytes += row.value.length;
    }
    return rows;
  }

  const latest: Versions = {
    versionOf: (key) => at(key, commits)?.version,
    rowsIn: (range, limit) => scan(range, { limit }, commits),
    bytesOf: (key) => at(key, commits)?.value.length,
  };

  /** The row that a write leaves. */
  function after(written: Write, stamp: Stamp): Row | undefined {
    const { key } = written;
    if (written.kind === 'put') return { key, value: bufferOf(written.value), version: stamp };
    if (written.kind === 'remove') return undefined;
    const found = at(key, commits);
    const value = plus(found?.value, written.n);
    return value && { key, value, version: versionOfAdd(stamp, found?.version) };
  }

  function write(key: Key, row: Row | undefined): void {
    const past = pasts.get(key);
    const present: Past = row ? { since: commits, row } : { since: commits };
    if (past) past.push(present);
    else pasts.set(key, [present]);
    keys.add(key);
    stale.add(key);
  }

  /** Lets go of what no open snapshot can see. */
  function forget(): void {
    const oldest = Math.min(commits, ...open.keys());
    for (const key of stale) {
      const past = pasts.get(key)!;
      past.splice(
        0,
        past.findLastIndex(({ since }) => since <= oldest),
      );
      if (past.length > 1) continue;
      stale.delete(key);
      if (past[0]!.row || past[0]!.since > oldest) continue;
      pasts.delete(key);
      keys.delete(key);
    }
  }

  return {
    clock,
    snapshot(): Reading & { end(): void } {
      const moment = commits;
      open.set(moment, (open.get(moment) ?? 0) + 1);
      return {
        now: clock.now(),
        get: async (key) => at(key, moment),
        getMany: async (wanted) => wanted.map((key) => at(key, moment)),
        scan: async (range, options) => scan(range, options, moment),
        page: async (range, options) => pageOf((stretch) => rowsIn(stretch, moment), range, options),
        end() {
          const others = (open.get(moment) ?? 1) - 1;
          if (others > 0) open.set(moment, others);
          else open.delete(moment);
          if (open.size === 0 || ++ended % FORGET_EVERY === 0) forget();
        },
      };
    },
    async commit(data): Promise<Outcome> {
      const injected = inject?.(data);
      if (injected) return injected;
      const verdict = holds(data, changesIn(latest), clock.now());
      if (typeof verdict === 'object' && 'mistake' in verdict) throw new Error(verdict.mistake);
      if (verdict !== 'holds') return 'conflict';
      commits++;
      for (const { stamp, writes } of data.bodies) for (const each of writes) write(each.key, after(each, stamp));
      return 'committed';
    },
    async close() {},
  };
}
