/** What a snapshot shows: generations of the overlay, newest first, above one checkpoint, which is one state of LMDB's file. */
import type { Transaction } from 'lmdb';
import { after, type Key, type Range } from '../keys.ts';
import { pageOf } from '../pages.ts';
import type { Instant, Page, PageOptions, Reading, Row, ScanOptions, Stamp } from '../partition.ts';
import type { Versions } from '../verify.ts';
import { type EmptyRanges, REMOVED_MIN } from './empty-ranges.ts';
import { type Rows, versionIn } from './files.ts';
import { type Entry, type Generation, mergedKeys } from './overlay.ts';

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

  retain(): this {
    this.users++;
    return this;
  }

  release(): void {
    if (--this.users === 0) this.transaction.done();
  }

  get(key: Key): Row | undefined {
    const shared = this.shared(key);
    if (!shared) return undefined;
    // lmdb reads into one buffer again and again. A copy from the pool costs less than one with memory of its own.
    const value = Buffer.allocUnsafe(this.rows.lastSize - 8);
    shared.copy(value, 0, 8, this.rows.lastSize);
    return { key, version: versionIn(shared), value };
  }

  versionOf(key: Key): Stamp | undefined {
    const shared = this.shared(key);
    return shared && versionIn(shared);
  }

  bytesOf(key: Key): number | undefined {
    return this.shared(key) && this.rows.lastSize - 8;
  }

  *rowsIn({ from, to }: Range, reverse: boolean): Iterable<Row> {
    const bounds = reverse
      ? { start: to, exclusiveStart: true, end: from, inclusiveEnd: true }
      : { start: from, end: to };
    for (const { key, value } of this.rows.getRange({ ...bounds, reverse, transaction: this.transaction })) {
      yield { key, version: value.version, value: value.value };
    }
  }

  private shared(key: Key): Buffer | undefined {
    return this.rows.getBinaryFast(key, { transaction: this.transaction });
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
    return entry ? rowOf(entry) : this.base.get(key);
  }

  versionOf(key: Key): Stamp | undefined {
    const entry = this.entryAt(key);
    return entry ? entry.version : this.base.versionOf(key);
  }

  bytesOf(key: Key): number | undefined {
    const entry = this.entryAt(key);
    return entry ? entry.valueBytes : this.base.bytesOf(key);
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
    const run = this.empty && !reverse ? new RemovedRun(this.empty, range.from, this.group) : undefined;
    return this.overlaid(keys, rows, range, reverse, run);
  }

  /** What the overlay has under a key stands for what the base has there. */
  private *overlaid(
    keys: Iterable<Key>,
    below: Iterable<Row>,
    range: Range,
    reverse: boolean,
    run: RemovedRun | undefined,
  ): Iterable<Row> {
    const rows = below[Symbol.iterator]();
    try {
      let under = rows.next();
      for (const key of keys) {
        for (; !under.done && (reverse ? under.value.key > key : under.value.key < key); under = rows.next()) {
          run?.endBefore(under.value.key);
          yield under.value;
        }
        const entry = this.entryAt(key);
        run?.pass(this.newestAt(key), entry);
        if (!entry) continue;
        if (!under.done && under.value.key === key) under = rows.next();
        const row = rowOf(entry);
        if (!row) continue;
        run?.endBefore(key);
        yield row;
      }
      for (; !under.done; under = rows.next()) {
        run?.endBefore(under.value.key);
        yield under.value;
      }
      run?.endAt(range.to);
    } finally {
      // LMDB's cursor ends with it.
      rows.return?.();
    }
  }

  private newestAt(key: Key): Entry {
    for (const { entries } of this.generations) {
      const entry = entries.get(key);
      if (entry) return entry;
    }
    throw new RangeError('a key of no generation');
  }
}

/** Removed rows that a scan walks over, one after another: where they are many, the next scan need not. */
class RemovedRun {
  private readonly empty: EmptyRanges;
  private readonly group: number;
  private from: Key;
  private removed = 0;
  private since: number;
  /** A later group has put a row there. */
  private isFilled = false;

  constructor(empty: EmptyRanges, from: Key, group: number) {
    this.empty = empty;
    this.from = from;
    this.group = group;
    this.since = group;
  }

  pass(newest: Entry, seen: Entry | undefined): void {
    if (newest.group > this.group && newest.value) this.isFilled = true;
    if (newest.group > this.since) this.since = newest.group;
    if (seen && !seen.value) this.removed++;
  }

  /** The row of this key is there. */
  endBefore(key: Key): void {
    this.endAt(key);
    this.from = after(key);
    this.removed = 0;
    this.since = this.group;
    this.isFilled = false;
  }

  endAt(to: Key): void {
    if (this.removed >= REMOVED_MIN && !this.isFilled) this.empty.add(this.from, to, this.since);
  }
}

function rowOf({ key, version, value }: Entry): Row | undefined {
  return value && { key, version: version!, value };
}

/** A view for who reads, with its time. */
export class LmdbSnapshot implements Reading {
  readonly now: Instant;
  private readonly view: View;
  private readonly onEnd: () => void;

  constructor(view: View, now: Instant, onEnd: () => void) {
    this.view = view;
    this.now = now;
    this.onEnd = onEnd;
  }

  get group(): number {
    return this.view.group;
  }

  async get(key: Key): Promise<Row | undefined> {
    return this.view.get(key);
  }

  async getMany(keys: readonly Key[]): Promise<(Row | undefined)[]> {
    return keys.map((key) => this.view.get(key));
  }

  async scan(range: Range, options: ScanOptions): Promise<Row[]> {
    return this.view.scan(range, options);
  }

  async page(range: Range, options: PageOptions): Promise<Page> {
    return pageOf((rest) => this.view.walk(rest), range, options);
  }

  end(): void {
    this.onEnd();
  }
}
