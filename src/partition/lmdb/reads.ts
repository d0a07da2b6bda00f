/** Snapshots: a merging view of the overlay's generations, newest first, over one checkpoint of LMDB's file; after them the volatile rows. */
import type { Transaction } from 'lmdb';
import { isVolatile, type Key, keyAfter, prefixEnd, type Range, splitAtVolatile } from '../keys.ts';
import { readPage } from '../pages.ts';
import type { Instant, PagedSnapshot, Row, ScanOptions, Timestamp } from '../partition.ts';
import type { CurrentRows } from '../validate.ts';
import { decodeRow, type RowsDatabase } from './files.ts';
import { type EmptyRanges, Entry, type Generation, mergedKeys, REMOVED_MIN } from './overlay.ts';
import type { VolatileRows } from './volatile-rows.ts';

const AFTER_ALL_KEYS = prefixEnd('' as Key);

/** Of the rows that LMDB is asked for, each 8th is kept, so that those remain which many operations read, such as a container's name. */
const KEPT_ROWS_EVERY = 8;
const KEPT_ROWS_MAX = 256;
const KEPT_ROW_BYTES_MAX = 1 << 10;
const NO_ROW = Symbol('no row');

/** One checkpoint: a read transaction of LMDB, reference-counted. */
export class CheckpointState {
  readonly transaction: Transaction;
  private readonly rows: RowsDatabase;
  private users = 1;
  /**
   * No row is between these keys: the last one that was found. A cursor takes ten times as long as a get, and scans that find nothing mostly come
   * in series, such as for the snapshots of blobs that are deleted.
   */
  private gap: Range = { from: AFTER_ALL_KEYS, to: AFTER_ALL_KEYS };
  private readonly kept = new Map<Key, Row | typeof NO_ROW>();
  private lookups = 0;

  constructor(rows: RowsDatabase) {
    this.rows = rows;
    // Without the reset, lmdb reuses this thread's last read transaction, of an older state.
    rows.resetReadTxn();
    this.transaction = rows.useReadTransaction();
  }

  retain(): void {
    this.users++;
  }

  release(): void {
    if (--this.users === 0) this.transaction.done();
  }

  get(key: Key): Row | undefined {
    const kept = this.kept.get(key);
    if (kept) return kept === NO_ROW ? undefined : kept;
    const row = this.lookUp(key);
    if (++this.lookups % KEPT_ROWS_EVERY === 0 && (row?.value.length ?? 0) <= KEPT_ROW_BYTES_MAX) {
      if (this.kept.size >= KEPT_ROWS_MAX) this.kept.clear();
      this.kept.set(key, row ?? NO_ROW);
    }
    return row;
  }

  private lookUp(key: Key): Row | undefined {
    const stored = this.rows.getBinaryFast(key, { transaction: this.transaction });
    if (!stored) return undefined;
    const { version, value } = decodeRow(stored, this.rows.lastSize);
    return { key, version, value };
  }

  rowsIn(range: Range, reverse: boolean): Iterable<Row> {
    if (this.gap.from <= range.from && range.to <= this.gap.to) return [];
    return reverse ? this.backward(range) : this.forward(range);
  }

  /** Without an end, as that is how the width of a gap is found. */
  private *forward({ from, to }: Range): Iterable<Row> {
    let isEmpty = true;
    for (const { key, value } of this.rows.getRange({ start: from, transaction: this.transaction })) {
      if (key >= to) {
        if (isEmpty) this.recordGap(from, key);
        return;
      }
      isEmpty = false;
      yield { key, version: value.version, value: value.value };
    }
    if (isEmpty) this.recordGap(from, AFTER_ALL_KEYS);
  }

  private *backward({ from, to }: Range): Iterable<Row> {
    const ends = { start: to, exclusiveStart: true, end: from, inclusiveEnd: true };
    for (const { key, value } of this.rows.getRange({ ...ends, reverse: true, transaction: this.transaction })) {
      yield { key, version: value.version, value: value.value };
    }
  }

  private recordGap(from: Key, to: Key): void {
    this.gap = this.gap.to === to && this.gap.from < from ? this.gap : { from, to };
  }
}

const NEIGHBOURS_MIN = 8;

/** The rows as groups up to `group` left them. */
export class LayeredView implements CurrentRows {
  readonly group: number;
  readonly generations: readonly Generation[];
  private readonly checkpoint: CheckpointState;
  private readonly volatile: VolatileRows;
  private readonly emptyRanges: EmptyRanges | undefined;

  /** @param emptyRanges undefined for a view of a group that may be undone: its scans must not be remembered */
  constructor(
    generations: readonly Generation[],
    checkpoint: CheckpointState,
    volatile: VolatileRows,
    group: number,
    emptyRanges?: EmptyRanges,
  ) {
    this.generations = generations;
    this.checkpoint = checkpoint;
    this.volatile = volatile;
    this.group = group;
    this.emptyRanges = emptyRanges;
  }

  get(key: Key): Row | undefined {
    if (isVolatile(key)) return this.volatile.get(key, this.group);
    const entry = this.entryAt(key);
    return entry ? rowFrom(entry) : this.checkpoint.get(key);
  }

  /** Many keys whose first one is new are mostly those of new neighbours: then one look at their range answers for all. */
  getMany(keys: readonly Key[]): (Row | undefined)[] {
    const isNew = keys.length >= NEIGHBOURS_MIN && !this.get(keys[0]!) && this.isEmpty(rangeAround(keys));
    return keys.map((key) => (isNew ? undefined : this.get(key)));
  }

  release(): void {
    this.checkpoint.release();
  }

  versionOf(key: Key): Timestamp | undefined {
    if (isVolatile(key)) return this.volatile.versionOf(key, this.group);
    const entry = this.entryAt(key);
    return entry ? entry.version : this.checkpoint.get(key)?.version;
  }

  bytesOf(key: Key): number | undefined {
    if (isVolatile(key)) return this.volatile.get(key, this.group)?.value.length;
    const entry = this.entryAt(key);
    return entry ? entry.valueBytes : this.checkpoint.get(key)?.value.length;
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

  /** Volatile keys come after all others. */
  walk(range: Range, reverse = false): Iterable<Row> {
    const parts = splitAtVolatile(range);
    if (parts.length < 2) return parts[0] ? this.walkPart(parts[0], reverse) : [];
    return this.walkParts(reverse ? parts.reverse() : parts, reverse);
  }

  private *walkParts(parts: readonly Range[], reverse: boolean): Iterable<Row> {
    for (const part of parts) yield* this.walkPart(part, reverse);
  }

  private walkPart(range: Range, reverse: boolean): Iterable<Row> {
    if (isVolatile(range.from)) return this.volatile.rowsIn(range, this.group, reverse);
    return reverse || !this.emptyRanges?.overlaps(range)
      ? this.merge(range, reverse)
      : this.walkOutside(range, this.emptyRanges);
  }

  private *walkOutside(range: Range, empty: EmptyRanges): Iterable<Row> {
    for (const part of empty.outside(range, this.group)) yield* this.merge(part, false);
  }

  /** False also for rows of later groups. */
  private isEmpty(range: Range): boolean {
    if (this.generations.some((generation) => generation.hasAny(range)) || this.volatile.hasAny(range)) return false;
    for (const _ of this.checkpoint.rowsIn(range, false)) return false;
    return true;
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

  /** The overlay's entry for a key hides the checkpoint's row. Where this view shows no row, the newest entry stands for the key. */
  private *mergeOverlay(keys: Iterable<Key>, below: Iterable<Row>, reverse: boolean): Iterable<Row | Entry> {
    const rows = below[Symbol.iterator]();
    try {
      let next = rows.next();
      for (const key of keys) {
        for (; !next.done && (reverse ? next.value.key > key : next.value.key < key); next = rows.next()) {
          yield next.value;
        }
        const entry = this.entryAt(key);
        if (entry && !next.done && next.value.key === key) next = rows.next();
        yield (entry && rowFrom(entry)) ?? this.newestAt(key);
      }
      for (; !next.done; next = rows.next()) yield next.value;
    } finally {
      // Ends LMDB's cursor.
      rows.return?.();
    }
  }

  /** The rows; ranges of many removed keys between them are remembered, so that the next scan skips them. */
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
      // An entry with a value is a row of a later group.
      if (!(each instanceof Entry)) yield each;
    }
    if (removed >= REMOVED_MIN) empty?.add(from, to, since);
  }

  private newestAt(key: Key): Entry {
    return this.generations.map(({ entries }) => entries.get(key)).find((entry) => entry !== undefined)!;
  }
}

function rangeAround(keys: readonly Key[]): Range {
  let first = keys[0]!;
  let last = first;
  for (const key of keys) {
    if (key < first) first = key;
    else if (key > last) last = key;
  }
  return { from: first, to: keyAfter(last) };
}

function rowFrom({ key, version, value }: Entry): Row | undefined {
  return value && { key, version: version!, value };
}

export type LmdbSnapshot = PagedSnapshot & { readonly group: number; end(): void };

export function makeSnapshot(view: LayeredView, now: Instant, onEnd = () => {}): LmdbSnapshot {
  return {
    now,
    group: view.group,
    get: (key) => view.get(key),
    getMany: (keys) => view.getMany(keys),
    scan: async (range, options) => view.scan(range, options),
    page: async (range, options) => readPage((rest) => view.walk(rest), range, options),
    end() {
      view.release();
      onEnd();
    },
  };
}
