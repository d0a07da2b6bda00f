/** In-memory engine with multi-version rows (MVCC): versions that no open snapshot sees are pruned. */
import { type ClockOptions, startClock } from '../clock.ts';
import type { Key, Range } from '../keys.ts';
import { readPage } from '../pages.ts';
import type { Commit, Engine, Outcome, PagedSnapshot, Row, ScanOptions, Timestamp, Write } from '../partition.ts';
import { SortedKeys } from '../sorted-keys.ts';
import { type CurrentRows, changesAgainst, validateCommit } from '../validate.ts';
import { applyCommutative, asBuffer, leavesUnchanged, versionAfterCommutative } from '../values.ts';

export interface MemoryOptions extends ClockOptions {
  /** Faults for tests: the outcome to answer instead of committing. An unknown outcome may still have happened. */
  inject?: (commit: Commit) => Outcome | undefined;
}

/** While snapshots overlap without a gap, versions are pruned after this many of them. */
const PRUNE_EVERY = 1_000;

/** The row of a key since a commit; no row: the key was removed. */
interface RowVersion {
  readonly since: number;
  readonly row?: Row;
}

export function openMemory({ inject, ...clockOptions }: MemoryOptions = {}): Engine {
  const clock = startClock(clockOptions);
  const keys = new SortedKeys();
  /** Ascending by `since`; no list is empty. */
  const versions = new Map<Key, RowVersion[]>();
  /** Keys that may have versions besides the latest row: only these are pruned. */
  const multiVersioned = new Set<Key>();
  /** By the commit that a snapshot shows: how many snapshots show it. */
  const openSnapshots = new Map<number, number>();
  let commits = 0;
  let ended = 0;

  function rowAt(key: Key, moment: number): Row | undefined {
    return versions.get(key)?.findLast(({ since }) => since <= moment)?.row;
  }

  function* rowsIn(range: Range, moment: number, reverse?: boolean): Iterable<Row> {
    for (const key of keys.in(range, reverse)) {
      const row = rowAt(key, moment);
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

  const current: CurrentRows = {
    versionOf: (key) => rowAt(key, commits)?.version,
    rowsIn: (range, limit) => scan(range, { limit }, commits),
    bytesOf: (key) => rowAt(key, commits)?.value.length,
  };

  /** The row after the write. */
  function rowAfter(written: Write, timestamp: Timestamp): Row | undefined {
    const { key } = written;
    if (written.kind === 'put') return { key, value: asBuffer(written.value), version: timestamp };
    if (written.kind === 'remove') return undefined;
    const found = rowAt(key, commits);
    if (leavesUnchanged(found?.value, written)) return found;
    const value = applyCommutative(found?.value, written);
    return value && { key, value, version: versionAfterCommutative(timestamp, found?.version) };
  }

  function write(key: Key, row: Row | undefined): void {
    const existing = versions.get(key);
    const latest: RowVersion = row ? { since: commits, row } : { since: commits };
    if (existing) existing.push(latest);
    else {
      versions.set(key, [latest]);
      keys.add(key);
    }
    multiVersioned.add(key);
  }

  /** Removes versions that no open snapshot can see. */
  function pruneVersions(): void {
    const oldest = Math.min(commits, ...openSnapshots.keys());
    for (const key of multiVersioned) {
      const kept = versions.get(key)!;
      kept.splice(
        0,
        kept.findLastIndex(({ since }) => since <= oldest),
      );
      if (kept.length > 1) continue;
      multiVersioned.delete(key);
      if (kept[0]!.row || kept[0]!.since > oldest) continue;
      versions.delete(key);
      keys.delete(key);
    }
  }

  return {
    clock,
    snapshot(): PagedSnapshot & { end(): void } {
      const moment = commits;
      openSnapshots.set(moment, (openSnapshots.get(moment) ?? 0) + 1);
      return {
        now: clock.now(),
        get: (key) => rowAt(key, moment),
        getMany: (wanted) => wanted.map((key) => rowAt(key, moment)),
        scan: async (range, options) => scan(range, options, moment),
        page: async (range, options) => readPage((within) => rowsIn(within, moment), range, options),
        end() {
          const others = (openSnapshots.get(moment) ?? 1) - 1;
          if (others > 0) openSnapshots.set(moment, others);
          else openSnapshots.delete(moment);
          if (openSnapshots.size === 0 || ++ended % PRUNE_EVERY === 0) pruneVersions();
        },
      };
    },
    async commit(data): Promise<Outcome> {
      const injected = inject?.(data);
      if (injected) return injected;
      const verdict = validateCommit(data, changesAgainst(current), clock.now());
      if (typeof verdict === 'object' && 'invalid' in verdict) throw new Error(verdict.invalid);
      if (verdict !== 'valid') return 'conflict';
      commits++;
      for (const { timestamp, writes } of data.writeSets)
        for (const each of writes) write(each.key, rowAfter(each, timestamp));
      return 'committed';
    },
    async close() {},
  };
}
