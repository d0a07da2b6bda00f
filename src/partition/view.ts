import { plus } from './counters.ts';
import { after, type Key, type Range } from './keys.ts';
import type { Check, Instant, RangeCheck, Row, ScanOptions, Snapshot, Stamp, Transaction } from './partition.ts';
import { bufferOf, counterOf, stoppedEarly } from './partition.ts';

/** A write that is not committed yet; no value: a removal, or what is added to a row that nobody looked at. */
export interface Held {
  readonly value?: Uint8Array;
  readonly added?: bigint;
  readonly stamp: Stamp;
}

/** What one body sees: its own writes, those of the bodies before it, and the snapshot, which alone is checked. */
export class BodyView implements Transaction {
  readonly writes = new Map<Key, Held>();
  readonly checks = new Map<Key, Check>();
  readonly ranges: RangeCheck[] = [];
  deadline: Instant | undefined;
  /** It saw a write of a body before it, so its answer waits for that one's commit. */
  readHeld = false;
  readonly #snapshot: Snapshot;
  readonly #before: ReadonlyMap<Key, Held>;
  readonly #propose: (now: Instant) => Stamp;
  #stamp: Stamp | undefined;

  constructor(snapshot: Snapshot, before: ReadonlyMap<Key, Held>, propose: (now: Instant) => Stamp) {
    this.#snapshot = snapshot;
    this.#before = before;
    this.#propose = propose;
  }

  /** Proposed when it is wanted: a store may tell its time with the first rows, and no stamp lies before that. */
  get stamp(): Stamp {
    this.#stamp ??= this.#propose(this.#snapshot.now);
    return this.#stamp;
  }

  get now(): Instant {
    return this.stamp;
  }

  async get(key: Key): Promise<Row | undefined> {
    const held = this.#held(key);
    if (held) return rowOf(key, held);
    const row = await this.#snapshot.get(key);
    this.#check(key, row);
    return row;
  }

  async getMany(keys: readonly Key[]): Promise<(Row | undefined)[]> {
    // Asked once: while the rows are on their way the body may write.
    const held = keys.map((key) => this.#held(key));
    const unheld = keys.filter((_, i) => !held[i]);
    const rows = await this.#snapshot.getMany(unheld);
    unheld.forEach((key, i) => {
      this.#check(key, rows[i]);
    });
    let next = 0;
    return keys.map((key, i) => (held[i] ? rowOf(key, held[i]) : rows[next++]));
  }

  async scan(range: Range, options: ScanOptions): Promise<Row[]> {
    const held = this.#heldIn(range, options.reverse);
    for (const [, write] of held) refuseAdded(write);
    const { rows, seen } = await this.#merge(range, options, held);
    const last = rows.at(-1)?.key;
    const looked = last !== undefined && stoppedEarly(rows, options) ? upTo(range, last, options.reverse) : range;
    this.ranges.push({
      range: looked,
      rows: seen
        .filter(({ key }) => key >= looked.from && key < looked.to)
        .map(({ key, version }) => ({ key, version })),
    });
    return rows;
  }

  async glance(range: Range, options: ScanOptions): Promise<Row[]> {
    const held = this.#heldIn(range, options.reverse);
    const known = held.filter(([, { added }]) => added === undefined);
    return (await this.#merge(range, options, known)).rows;
  }

  put(key: Key, value: Uint8Array): void {
    this.writes.set(key, { value, stamp: this.stamp });
  }

  remove(key: Key): void {
    this.writes.set(key, { stamp: this.stamp });
  }

  add(key: Key, n: bigint): void {
    if (BigInt.asIntN(64, n) !== n) throw new RangeError(`not a signed 64-bit number: ${n}`);
    const earlier = this.writes.get(key);
    const held = earlier ?? this.#before.get(key);
    // To add to a row that is no counter is a mistake, found here or at the commit.
    if (held?.value) counterOf({ value: bufferOf(held.value) });
    this.writes.set(key, addedTo(earlier, n, this.stamp));
  }

  before(instant: Instant): void {
    if (this.deadline === undefined || instant < this.deadline) this.deadline = instant;
  }

  #held(key: Key): Held | undefined {
    const own = this.writes.get(key);
    if (own) return refuseAdded(own);
    const earlier = this.#before.get(key);
    if (!earlier) return undefined;
    this.readHeld = true;
    return refuseAdded(earlier);
  }

  #check(key: Key, row: Row | undefined): void {
    this.checks.set(key, row ? { key, version: row.version } : { key });
  }

  /** Rows of the snapshot and held writes in one order; `seen` are the snapshot's rows, in the order of their keys. */
  async #merge(
    range: Range,
    { limit, bytesMax = Infinity, reverse = false }: ScanOptions,
    held: [Key, Held][],
  ): Promise<{ rows: Row[]; seen: Row[] }> {
    const rows: Row[] = [];
    const seen: Row[] = [];
    let bytes = 0;
    let left = range;
    for (;;) {
      const bounds = { limit: limit - rows.length, bytesMax: bytesMax - bytes, reverse };
      const page = await this.#snapshot.scan(left, bounds);
      seen.push(...page);
      const end = stoppedEarly(page, bounds) ? page.at(-1)?.key : undefined;
      for (const row of interleave(page, held, end, reverse)) {
        rows.push(row);
        bytes += row.value.length;
        if (rows.length >= limit || bytes >= bytesMax) return { rows, seen: reverse ? seen.reverse() : seen };
      }
      if (end === undefined) return { rows, seen: reverse ? seen.reverse() : seen };
      left = reverse ? { from: range.from, to: end } : { from: after(end), to: range.to };
    }
  }

  #heldIn({ from, to }: Range, reverse = false): [Key, Held][] {
    const found = new Map<Key, Held>();
    for (const writes of [this.#before, this.writes]) {
      for (const [key, held] of writes) {
        if (key < from || key >= to) continue;
        found.set(key, held);
        if (writes === this.#before) this.readHeld = true;
      }
    }
    const sign = reverse ? -1 : 1;
    return [...found].sort(([a], [b]) => (a < b ? -sign : sign));
  }
}

/** What a key holds once `n` is added to it. */
export function addedTo(earlier: Held | undefined, n: bigint, stamp: Stamp): Held {
  if (!earlier) return { added: n, stamp };
  if (earlier.added !== undefined) return { added: BigInt.asIntN(64, earlier.added + n), stamp };
  const value = plus(earlier.value, n);
  return value ? { value, stamp } : { stamp };
}

function refuseAdded(held: Held): Held {
  if (held.added !== undefined) throw new Error('a counter is not read in a body');
  return held;
}

/** Takes from `held` what lies in the page's stretch; a held write stands for the row that it replaces. */
function* interleave(page: readonly Row[], held: [Key, Held][], end: Key | undefined, reverse: boolean): Iterable<Row> {
  const precedes = (a: Key, b: Key) => (reverse ? a > b : a < b);
  for (const row of page) {
    while (held.length > 0 && precedes(held[0]![0], row.key)) yield* present(held.shift()!);
    if (held[0]?.[0] === row.key) yield* present(held.shift()!);
    else yield row;
  }
  while (held.length > 0 && (end === undefined || !precedes(end, held[0]![0]))) yield* present(held.shift()!);
}

function* present([key, held]: [Key, Held]): Iterable<Row> {
  const row = rowOf(key, held);
  if (row) yield row;
}

function rowOf(key: Key, { value, stamp }: Held): Row | undefined {
  return value && { key, value: bufferOf(value), version: stamp };
}

function upTo(range: Range, last: Key, reverse = false): Range {
  return reverse ? { from: last, to: range.to } : { from: range.from, to: after(last) };
}
