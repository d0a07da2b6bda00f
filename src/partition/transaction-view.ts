/** A transaction's view: its writes, over the writes of its batch, over a snapshot. Only reads of the snapshot enter the read set. */

import { type Key, keyAfter, type Range } from './keys.ts';
import type {
  CommutativeWrite,
  Instant,
  MaybePromise,
  RangeCheck,
  ReadCheck,
  Row,
  ScanOptions,
  Snapshot,
  Timestamp,
  Transaction,
  Write,
} from './partition.ts';
import { applyCommutative, asBuffer, decodeCounter, isCommutative, mergeCommutative, stoppedEarly } from './values.ts';

/** A write that is not committed yet. */
export type BufferedWrite = Write & { readonly timestamp: Timestamp };

export class TransactionView implements Transaction {
  readonly writes = new Map<Key, BufferedWrite>();
  /** A key that was read twice is here twice. */
  readonly checks: ReadCheck[] = [];
  readonly ranges: RangeCheck[] = [];
  deadline: Instant | undefined;
  /** The function read a write of an earlier transaction of the batch, so its result waits for the commit. */
  readUncommitted = false;
  // Not #private: Node 20 takes longer to make such fields than to read a row.
  private readonly snapshot: Snapshot;
  /** Writes of the earlier transactions of the batch; changes only between two functions. */
  private readonly batchWrites: ReadonlyMap<Key, BufferedWrite>;
  private readonly propose: (now: Instant) => Timestamp;
  private proposed: Timestamp | undefined;

  constructor(snapshot: Snapshot, batchWrites: ReadonlyMap<Key, BufferedWrite>, propose: (now: Instant) => Timestamp) {
    this.snapshot = snapshot;
    this.batchWrites = batchWrites;
    this.propose = propose;
  }

  /** Proposed at first use: a store may send its time with the first rows, and no timestamp may be earlier. */
  get timestamp(): Timestamp {
    this.proposed ??= this.propose(this.snapshot.now);
    return this.proposed;
  }

  get now(): Instant {
    return this.timestamp;
  }

  get state(): object {
    return this.snapshot;
  }

  nextTimestamp(): Timestamp {
    // A later transaction of the batch would read a version that the commit does not write.
    if (this.writes.size > 0) throw new Error('a transaction that has written keeps its timestamp');
    this.proposed = this.propose(this.snapshot.now);
    return this.proposed;
  }

  get(key: Key): MaybePromise<Row | undefined> {
    const buffered = this.bufferedAt(key);
    if (buffered) return rowFrom(buffered);
    const found = this.snapshot.get(key);
    return found instanceof Promise ? found.then((row) => this.checked(key, row)) : this.checked(key, found);
  }

  getMany(keys: readonly Key[]): MaybePromise<(Row | undefined)[]> {
    if (this.hasNoBuffered()) return this.readMany(keys);
    // Looked up before the rows are read: the function may write meanwhile.
    const buffered = keys.map((key) => this.bufferedAt(key));
    const found = this.readMany(keys.filter((_, i) => !buffered[i]));
    const merge = (rows: (Row | undefined)[]): (Row | undefined)[] => {
      let next = 0;
      return buffered.map((write) => (write ? rowFrom(write) : rows[next++]));
    };
    return found instanceof Promise ? found.then(merge) : merge(found);
  }

  private readMany(keys: readonly Key[]): MaybePromise<(Row | undefined)[]> {
    const found = this.snapshot.getMany(keys);
    return found instanceof Promise
      ? found.then((rows) => this.checkedMany(keys, rows))
      : this.checkedMany(keys, found);
  }

  async scan(range: Range, options: ScanOptions): Promise<Row[]> {
    const buffered = this.bufferedIn(range, options.reverse);
    for (const write of buffered) checkReadable(write);
    const { rows, seen } = await this.merge(range, options, buffered);
    const last = rows.at(-1)?.key;
    const covered = last !== undefined && stoppedEarly(rows, options) ? rangeUpTo(range, last, options.reverse) : range;
    this.ranges.push({
      range: covered,
      rows: seen
        .filter(({ key }) => key >= covered.from && key < covered.to)
        .map(({ key, version }) => ({ key, version })),
    });
    return rows;
  }

  async scanUnchecked(range: Range, options: ScanOptions): Promise<Row[]> {
    const buffered = this.bufferedIn(range, options.reverse);
    const known = buffered.filter((write) => !isCommutative(write));
    return (await this.merge(range, options, known)).rows;
  }

  async getUnchecked(keys: readonly Key[]): Promise<(Row | undefined)[]> {
    const buffered = keys.map((key) => {
      const write = this.writes.get(key) ?? this.batchWrites.get(key);
      return write && isCommutative(write) ? undefined : write && this.bufferedAt(key);
    });
    const rows = await this.snapshot.getMany(keys);
    return rows.map((row, i) => (buffered[i] ? rowFrom(buffered[i]) : row));
  }

  addReadCheck({ key, version }: Pick<Row, 'key' | 'version'>): void {
    if (!this.bufferedAt(key)) this.checks.push({ key, version });
  }

  put(key: Key, value: Uint8Array): void {
    this.writes.set(key, { kind: 'put', key, value, timestamp: this.timestamp });
  }

  remove(key: Key): void {
    this.writes.set(key, { kind: 'remove', key, timestamp: this.timestamp });
  }

  add(key: Key, n: bigint): void {
    if (BigInt.asIntN(64, n) !== n) throw new RangeError(`not a signed 64-bit number: ${n}`);
    this.writeCommutative({ kind: 'add', key, n });
  }

  max(key: Key, n: bigint): void {
    if (n <= 0n || BigInt.asIntN(64, n) !== n) throw new RangeError(`not a number from 1 to 2^63 - 1: ${n}`);
    this.writeCommutative({ kind: 'max', key, n });
  }

  private writeCommutative(write: CommutativeWrite): void {
    const own = this.writes.get(write.key);
    const buffered = own ?? this.batchWrites.get(write.key);
    // To a row that is no number, or that has writes of the other kind, it is an error, here or at the commit.
    if (buffered?.kind === 'put') decodeCounter({ value: asBuffer(buffered.value) });
    if (buffered && isCommutative(buffered)) mergeCommutative(buffered, write);
    this.writes.set(write.key, mergeWrite(own, stamped(write, this.timestamp)));
  }

  commitBefore(instant: Instant): void {
    if (this.deadline === undefined || instant < this.deadline) this.deadline = instant;
  }

  /** Most transactions read before they write, and a lookup in an empty map hashes the key all the same. */
  private hasNoBuffered(): boolean {
    return this.writes.size === 0 && this.batchWrites.size === 0;
  }

  private bufferedAt(key: Key): BufferedWrite | undefined {
    if (this.hasNoBuffered()) return undefined;
    const own = this.writes.get(key);
    if (own) return checkReadable(own);
    const earlier = this.batchWrites.get(key);
    if (!earlier) return undefined;
    this.readUncommitted = true;
    return checkReadable(earlier);
  }

  private checked(key: Key, row: Row | undefined): Row | undefined {
    this.checks.push({ key, version: row?.version });
    return row;
  }

  private checkedMany(keys: readonly Key[], rows: (Row | undefined)[]): (Row | undefined)[] {
    for (let i = 0; i < keys.length; i++) this.checked(keys[i]!, rows[i]);
    return rows;
  }

  /** Merges rows of the snapshot with buffered writes; `seen` are the snapshot's rows, in the order of their keys. */
  private async merge(
    range: Range,
    { limit, bytesMax = Infinity, reverse = false }: ScanOptions,
    buffered: BufferedWrite[],
  ): Promise<{ rows: Row[]; seen: Row[] }> {
    const rows: Row[] = [];
    const seen: Row[] = [];
    let bytes = 0;
    let left = range;
    for (;;) {
      const bounds = { limit: limit - rows.length, bytesMax: bytesMax - bytes, reverse };
      const page = await this.snapshot.scan(left, bounds);
      seen.push(...page);
      const end = stoppedEarly(page, bounds) ? page.at(-1)?.key : undefined;
      for (const row of interleave(page, buffered, end, reverse)) {
        rows.push(row);
        bytes += row.value.length;
        if (rows.length >= limit || bytes >= bytesMax) return { rows, seen: reverse ? seen.reverse() : seen };
      }
      if (end === undefined) return { rows, seen: reverse ? seen.reverse() : seen };
      left = reverse ? { from: range.from, to: end } : { from: keyAfter(end), to: range.to };
    }
  }

  private bufferedIn({ from, to }: Range, reverse = false): BufferedWrite[] {
    const found = new Map<Key, BufferedWrite>();
    for (const writes of [this.batchWrites, this.writes]) {
      for (const [key, buffered] of writes) {
        if (key < from || key >= to) continue;
        found.set(key, buffered);
        if (writes === this.batchWrites) this.readUncommitted = true;
      }
    }
    const sign = reverse ? -1 : 1;
    return [...found.values()].sort((a, b) => (a.key < b.key ? -sign : sign));
  }
}

/** The write that has the effect of both. */
export function mergeWrite(earlier: BufferedWrite | undefined, write: BufferedWrite): BufferedWrite {
  if (!earlier || !isCommutative(write)) return write;
  const { key, timestamp } = write;
  if (isCommutative(earlier)) return stamped(mergeCommutative(earlier, write), timestamp);
  const value = applyCommutative(earlier.kind === 'put' ? earlier.value : undefined, write);
  return value ? { kind: 'put', key, value, timestamp } : { kind: 'remove', key, timestamp };
}

// Field by field: a property after a spread costs as much as ten others.
function stamped({ kind, key, n }: CommutativeWrite, timestamp: Timestamp): BufferedWrite {
  return { kind, key, n, timestamp };
}

function checkReadable(write: BufferedWrite): BufferedWrite {
  if (isCommutative(write)) throw new Error('a counter is not read in a transaction');
  return write;
}

/** Consumes the buffered writes within the page's range; a buffered write stands for the row that it replaces. */
function* interleave(
  page: readonly Row[],
  buffered: BufferedWrite[],
  end: Key | undefined,
  reverse: boolean,
): Iterable<Row> {
  const precedes = (a: Key, b: Key) => (reverse ? a > b : a < b);
  for (const row of page) {
    while (buffered.length > 0 && precedes(buffered[0]!.key, row.key)) yield* visibleRow(buffered.shift()!);
    if (buffered[0]?.key === row.key) yield* visibleRow(buffered.shift()!);
    else yield row;
  }
  while (buffered.length > 0 && (end === undefined || !precedes(end, buffered[0]!.key)))
    yield* visibleRow(buffered.shift()!);
}

function* visibleRow(write: BufferedWrite): Iterable<Row> {
  const row = rowFrom(write);
  if (row) yield row;
}

function rowFrom(write: BufferedWrite): Row | undefined {
  return write.kind === 'put' ? { key: write.key, value: asBuffer(write.value), version: write.timestamp } : undefined;
}

function rangeUpTo(range: Range, last: Key, reverse = false): Range {
  return reverse ? { from: last, to: range.to } : { from: range.from, to: keyAfter(last) };
}
