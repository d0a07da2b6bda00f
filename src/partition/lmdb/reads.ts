/** What a snapshot shows: generations of the overlay, newest first, above one checkpoint, which is one state of LMDB's file. */
import type { Transaction } from 'lmdb';
import { after, type Key, type Range } from '../keys.ts';
import { pageOf } from '../pages.ts';
import type { Instant, Reading, Row, ScanOptions, Stamp } from '../partition.ts';
import type { Versions } from '../validate.ts';
import { type EmptyRanges, REMOVED_MIN } from './empty-ranges.ts';
import { type Rows, versionIn } from './files.ts';
import { Entry, type Generation, mergedKeys } from './overlay.ts';

/** One checkpoint, by a read transaction of LMDB that is open as long as a snapshot uses it. */
export class Base {
  readonly transaction: Transaction;
  private readonly rows: Rows;
  private users = 1;

  constructor(rows: Rows) {
    this.rows = rows;
    // Without the reset it would be the state that this thread saw last, not the newest.
    rows.resetReadTxn();
    this.transaction = rows.useReadTransaction();
  }

  retain(): void {
    this.users++;
  }

  release(): void {
    if (--this.users === 0) this.transaction.done();
  }

  /** Version and value; they are good until the next call, and `size` says where they end. */
  peek(key: Key): Buffer | undefined {
    return this.rows.getBinaryFast(key, { transaction: this.transaction });
  }

  get size(): number {
    return this.rows.lastSize;
  }

  *rowsIn({ from, to }: Range, reverse: boolean): Iterable<Row> {
    const ends = reverse
      ? { start: to, exclusiveStart: true, end: from, inclusiveEnd: true }
      : { start: from, end: to };
    for (const { key, value } of this.rows.getRange({ ...ends, reverse, transaction: this.transaction })) {
      yield { key, version: value.version, value: value.value };
    }
  }
}

/** All that groups up to `group` have committed. */
export class View implements Versions {
  readonly group: number;
  private readonly generations: readonly Generation[];
  private readonly base: Base;
  private readonly empty: EmptyRanges | undefined;

  /** @param empty what scans have learned; undefined: this view may show what comes to nothing, and leaves nothing there */
  constructor(generations: readonly Generation[], base: Base, group: number, empty?: EmptyRanges) {
    this.generations = generations;
    this.base = base;
    this.group = group;
    this.empty = empty;
  }

  get(key: Key): Row | undefined {
    const entry = this.entryAt(key);
    if (entry) return rowOf(entry);
    const stored = this.base.peek(key);
    if (!stored) return undefined;
    // A copy from the pool costs less than one with memory of its own.
    const value = Buffer.allocUnsafe(this.base.size - 8);
    stored.copy(value, 0, 8, this.base.size);
    return { key, version: versionIn(stored), value };
  }

  versionOf(key: Key): Stamp | undefined {
    const entry = this.entryAt(key);
    if (entry) return entry.version;
    const stored = this.base.peek(key);
    return stored && versionIn(stored);
  }

  bytesOf(key: Key): number | undefined {
    const entry = this.entryAt(key);
    if (entry) return entry.valueBytes;
    return this.base.peek(key) && this.base.size - 8;
  }

  rowsIn(range: Range, limit: number): Row[] {
    return this.scan(range, { limit });
  }

  scan(range: Range, { limit, bytesMax = Infinity, reverse = false }: ScanOptions): Row[] {
    const found: Row[] = [];
    if (limit <= 0 || bytesMax <= 0) return found;
    let bytes = 0;
    for (const row of this.walk(range, reverse)) {
      found.push(row);
      bytes += row.value.length;
      if (found.length >= limit || bytes >= bytesMax) break;
    }
    return found;
  }

  walk(range: Range, reverse = false): Iterable<Row> {
    if (range.from >= range.to) return [];
    return reverse || !this.empty?.touches(range) ? this.merge(range, reverse) : this.walkOutside(range, this.empty);
  }

  private *walkOutside(range: Range, empty: EmptyRanges): Iterable<Row> {
    for (const part of empty.outside(range, this.group)) yield* this.merge(part, false);
  }

  private entryAt(key: Key): Entry | undefined {
    for (const generation of this.generations) {
      const entry = generation.at(key, this.group);
      if (entry) return entry;
    }
    return undefined;
  }

  private merge(range: Range, reverse: boolean): Iterable<Row> {
    const used = this.generations.filter((generation) => generation.hasAny(range));
    const rows = this.base.rowsIn(range, reverse);
    if (used.length === 0) return rows;
    const keys = used.map((each) => each.keysIn(range, reverse)).reduce((a, b) => mergedKeys(a, b, reverse));
    return this.learning(range, reverse, this.overlaid(keys, rows, reverse));
  }

  /** What the overlay has under a key stands for what the base has there. Where no row is to be seen, its newest entry is given. */
  private *overlaid(keys: Iterable<Key>, below: Iterable<Row>, reverse: boolean): Iterable<Row | Entry> {
    const rows = below[Symbol.iterator]();
    try {
      let under = rows.next();
      for (const key of keys) {
        for (; !under.done && (reverse ? under.value.key > key : under.value.key < key); under = rows.next()) {
          yield under.value;
        }
        const entry = this.entryAt(key);
        if (entry && !under.done && under.value.key === key) under = rows.next();
        yield (entry && rowOf(entry)) ?? this.newestAt(key);
      }
      for (; !under.done; under = rows.next()) yield under.value;
    } finally {
      // LMDB's cursor ends with it.
      rows.return?.();
    }
  }

  /** The rows; where many removed ones lie between two of them, the next scan need not walk there. */
  private *learning({ from, to }: Range, reverse: boolean, found: Iterable<Row | Entry>): Iterable<Row> {
    const empty = reverse ? undefined : this.empty;
    let since = this.group;
    let removed = 0;
    for (const each of found) {
      if (each instanceof Entry && each.valueBytes === undefined) {
        removed++;
        since = Math.max(since, each.group);
        continue;
      }
      if (removed >= REMOVED_MIN) empty?.add(from, each.key, since);
      from = after(each.key);
      since = this.group;
      removed = 0;
      // Otherwise a later group has put a row there.
      if (!(each instanceof Entry)) yield each;
    }
    if (removed >= REMOVED_MIN) empty?.add(from, to, since);
  }

  private newestAt(key: Key): Entry {
    return this.generations.map(({ entries }) => entries.get(key)).find((entry) => entry !== undefined)!;
  }
}

function rowOf({ key, version, value }: Entry): Row | undefined {
  return value && { key, version: version!, value };
}

export type LmdbSnapshot = Reading & { readonly group: number; end(): void };

export function snapshotOf(view: View, now: Instant, end: () => void): LmdbSnapshot {
  return {
    now,
    group: view.group,
    get: async (key) => view.get(key),
    getMany: async (keys) => keys.map((key) => view.get(key)),
    scan: async (range, options) => view.scan(range, options),
    page: async (range, options) => pageOf((rest) => view.walk(rest), range, options),
    end,
  };
}
