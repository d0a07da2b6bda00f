/** What a snapshot shows: generations of the overlay, newest first, above one checkpoint, which is one state of LMDB's file. */
import type { Transaction } from 'lmdb';
import { type Key, keyAfter, type Range } from '../keys.ts';
import { readPage } from '../pages.ts';
import type { Instant, PagedSnapshot, Row, ScanOptions, Timestamp } from '../partition.ts';
import type { CurrentRows } from '../validate.ts';
import { decodeVersion, type RowsDatabase } from './files.ts';
import { type EmptyRanges, Entry, type Generation, mergedKeys, REMOVED_MIN } from './overlay.ts';

/** One checkpoint, by a read transaction of LMDB that is open as long as a snapshot uses it. */
export class CheckpointState {
  readonly transaction: Transaction;
  private readonly rows: RowsDatabase;
  private users = 1;

  constructor(rows: RowsDatabase) {
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
export class LayeredView implements CurrentRows {
  readonly group: number;
  private readonly generations: readonly Generation[];
  private readonly checkpoint: CheckpointState;
  private readonly emptyRanges: EmptyRanges | undefined;

  /** @param emptyRanges what scans have learned; undefined: this view may show what comes to nothing, and leaves nothing there */
  constructor(
    generations: readonly Generation[],
    checkpoint: CheckpointState,
    group: number,
    emptyRanges?: EmptyRanges,
  ) {
    this.generations = generations;
    this.checkpoint = checkpoint;
    this.group = group;
    this.emptyRanges = emptyRanges;
  }

  get(key: Key): Row | undefined {
    const entry = this.entryAt(key);
    if (entry) return rowFrom(entry);
    const stored = this.checkpoint.peek(key);
    if (!stored) return undefined;
    // A copy from the pool costs less than one with memory of its own.
    const value = Buffer.allocUnsafe(this.checkpoint.size - 8);
    stored.copy(value, 0, 8, this.checkpoint.size);
    return { key, version: decodeVersion(stored), value };
  }

  versionOf(key: Key): Timestamp | undefined {
    const entry = this.entryAt(key);
    if (entry) return entry.version;
    const stored = this.checkpoint.peek(key);
    return stored && decodeVersion(stored);
  }

  bytesOf(key: Key): number | undefined {
    const entry = this.entryAt(key);
    if (entry) return entry.valueBytes;
    return this.checkpoint.peek(key) && this.checkpoint.size - 8;
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
    return reverse || !this.emptyRanges?.overlaps(range)
      ? this.merge(range, reverse)
      : this.walkOutside(range, this.emptyRanges);
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
    const rows = this.checkpoint.rowsIn(range, reverse);
    if (used.length === 0) return rows;
    const keys = used.map((each) => each.keysIn(range, reverse)).reduce((a, b) => mergedKeys(a, b, reverse));
    return this.recordEmptyRanges(range, reverse, this.mergeOverlay(keys, rows, reverse));
  }

  /** What the overlay has under a key stands for what the base has there. Where no row is to be seen, its newest entry is given. */
  private *mergeOverlay(keys: Iterable<Key>, below: Iterable<Row>, reverse: boolean): Iterable<Row | Entry> {
    const rows = below[Symbol.iterator]();
    try {
      let under = rows.next();
      for (const key of keys) {
        for (; !under.done && (reverse ? under.value.key > key : under.value.key < key); under = rows.next()) {
          yield under.value;
        }
        const entry = this.entryAt(key);
        if (entry && !under.done && under.value.key === key) under = rows.next();
        yield (entry && rowFrom(entry)) ?? this.newestAt(key);
      }
      for (; !under.done; under = rows.next()) yield under.value;
    } finally {
      // LMDB's cursor ends with it.
      rows.return?.();
    }
  }

  /** The rows; where many removed ones lie between two of them, the next scan need not walk there. */
  private *recordEmptyRanges({ from, to }: Range, reverse: boolean, found: Iterable<Row | Entry>): Iterable<Row> {
    const empty = reverse ? undefined : this.emptyRanges;
    let since = this.group;
    let removed = 0;
    for (const each of found) {
      if (each instanceof Entry && each.valueBytes === undefined) {
        removed++;
        since = Math.max(since, each.group);
        continue;
      }
      if (removed >= REMOVED_MIN) empty?.add(from, each.key, since);
      from = keyAfter(each.key);
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

function rowFrom({ key, version, value }: Entry): Row | undefined {
  return value && { key, version: version!, value };
}

export type LmdbSnapshot = PagedSnapshot & { readonly group: number; end(): void };

export function makeSnapshot(view: LayeredView, now: Instant, end: () => void): LmdbSnapshot {
  return {
    now,
    group: view.group,
    get: async (key) => view.get(key),
    getMany: async (keys) => keys.map((key) => view.get(key)),
    scan: async (range, options) => view.scan(range, options),
    page: async (range, options) => readPage((rest) => view.walk(rest), range, options),
    end,
  };
}
