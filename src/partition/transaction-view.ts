import { plus } from './counters.ts';
import { after, type Key, type Range } from './keys.ts';
import type { Check, Instant, RangeCheck, Row, ScanOptions, Snapshot, Stamp, Transaction, Write } from './partition.ts';
import { bufferOf, counterOf, stoppedEarly } from './partition.ts';

/** A write that is not committed yet. */
export type Held = Write & { readonly stamp: Stamp };

/** What one body sees: its own writes, those of the bodies before it, and the snapshot, which alone is checked. */
export class BodyView implements Transaction {
  readonly writes = new Map<Key, Held>();
  /** A key that was asked for twice is here twice. */
  readonly checks: Check[] = [];
  readonly ranges: RangeCheck[] = [];
  deadline: Instant | undefined;
  /** It saw a write of a body before it, so its answer waits for that one's commit. */
  readHeld = false;
  // Not #private: Node 20 takes longer to make such fields than to read a row.
  private readonly snapshot: Snapshot;
  private readonly earlier: ReadonlyMap<Key, Held>;
  private readonly propose: (now: Instant) => Stamp;
  private proposed: Stamp | undefined;

  constructor(snapshot: Snapshot, earlier: ReadonlyMap<Key, Held>, propose: (now: Instant) => Stamp) {
    this.snapshot = snapshot;
    this.earlier = earlier;
    this.propose = propose;
  }

  /** Proposed when it is wanted: a store may tell its time with the first rows, and no stamp lies before that. */
  get stamp(): Stamp {
    this.proposed ??= this.propose(this.snapshot.now);
    return this.proposed;
  }

  get now(): Instant {
    return this.stamp;
  }

  async get(key: Key): Promise<Row | undefined> {
    const held = this.held(key);
    if (held) return rowOf(held);
    const row = await this.snapshot.get(key);
    this.check(key, row);
    return row;
  }

  async getMany(keys: readonly Key[]): Promise<(Row | undefined)[]> {
    // Asked once: while the rows are on their way the body may write.
    const held = keys.map((key) => this.held(key));
    const unheld = keys.filter((_, i) => !held[i]);
    const rows = await this.snapshot.getMany(unheld);
    unheld.forEach((key, i) => {
      this.check(key, rows[i]);
    });
    let next = 0;
    return keys.map((_, i) => (held[i] ? rowOf(held[i]) : rows[next++]));
  }

  async scan(range: Range, options: ScanOptions): Promise<Row[]> {
    const held = this.heldIn(range, options.reverse);
    for (const write of held) refuseAdded(write);
    const { rows, seen } = await this.merge(range, options, held);
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
    const held = this.heldIn(range, options.reverse);
    const known = held.filter(({ kind }) => kind !== 'add');
    return (await this.merge(range, options, known)).rows;
  }

  restOn({ key, version }: Pick<Row, 'key' | 'version'>): void {
    if (!this.held(key)) this.checks.push({ key, version });
  }

  put(key: Key, value: Uint8Array): void {
    this.writes.set(key, { kind: 'put', key, value, stamp: this.stamp });
  }

  remove(key: Key): void {
    this.writes.set(key, { kind: 'remove', key, stamp: this.stamp });
  }

  add(key: Key, n: bigint): void {
    if (BigInt.asIntN(64, n) !== n) throw new RangeError(`not a signed 64-bit number: ${n}`);
    const own = this.writes.get(key);
    const held = own ?? this.earlier.get(key);
    // To add to a row that is no counter is a mistake, found here or at the commit.
    if (held?.kind === 'put') counterOf({ value: bufferOf(held.value) });
    this.writes.set(key, heldAfter(own, { kind: 'add', key, n, stamp: this.stamp }));
  }

  before(instant: Instant): void {
    if (this.deadline === undefined || instant < this.deadline) this.deadline = instant;
  }

  private held(key: Key): Held | undefined {
    const own = this.writes.get(key);
    if (own) return refuseAdded(own);
    const earlier = this.earlier.get(key);
    if (!earlier) return undefined;
    this.readHeld = true;
    return refuseAdded(earlier);
  }

  private check(key: Key, row: Row | undefined): void {
    this.checks.push(row ? { key, version: row.version } : { key });
  }

  /** Rows of the snapshot and held writes in one order; `seen` are the snapshot's rows, in the order of their keys. */
  private async merge(
    range: Range,
    { limit, bytesMax = Infinity, reverse = false }: ScanOptions,
    held: Held[],
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
      for (const row of interleave(page, held, end, reverse)) {
        rows.push(row);
        bytes += row.value.length;
        if (rows.length >= limit || bytes >= bytesMax) return { rows, seen: reverse ? seen.reverse() : seen };
      }
      if (end === undefined) return { rows, seen: reverse ? seen.reverse() : seen };
      left = reverse ? { from: range.from, to: end } : { from: after(end), to: range.to };
    }
  }

  private heldIn({ from, to }: Range, reverse = false): Held[] {
    const found = new Map<Key, Held>();
    for (const writes of [this.earlier, this.writes]) {
      for (const [key, held] of writes) {
        if (key < from || key >= to) continue;
        found.set(key, held);
        if (writes === this.earlier) this.readHeld = true;
      }
    }
    const sign = reverse ? -1 : 1;
    return [...found.values()].sort((a, b) => (a.key < b.key ? -sign : sign));
  }
}

/** What a key holds once this is written, too. */
export function heldAfter(earlier: Held | undefined, write: Held): Held {
  if (!earlier || write.kind !== 'add') return write;
  const { key, n, stamp } = write;
  if (earlier.kind === 'add') return { kind: 'add', key, n: BigInt.asIntN(64, earlier.n + n), stamp };
  const value = plus(earlier.kind === 'put' ? earlier.value : undefined, n);
  return value ? { kind: 'put', key, value, stamp } : { kind: 'remove', key, stamp };
}

function refuseAdded(held: Held): Held {
  if (held.kind === 'add') throw new Error('a counter is not read in a body');
  return held;
}

/** Takes from `held` what lies in the page's stretch; a held write stands for the row that it replaces. */
function* interleave(page: readonly Row[], held: Held[], end: Key | undefined, reverse: boolean): Iterable<Row> {
  const precedes = (a: Key, b: Key) => (reverse ? a > b : a < b);
  for (const row of page) {
    while (held.length > 0 && precedes(held[0]!.key, row.key)) yield* present(held.shift()!);
    if (held[0]?.key === row.key) yield* present(held.shift()!);
    else yield row;
  }
  while (held.length > 0 && (end === undefined || !precedes(end, held[0]!.key))) yield* present(held.shift()!);
}

function* present(held: Held): Iterable<Row> {
  const row = rowOf(held);
  if (row) yield row;
}

function rowOf(held: Held): Row | undefined {
  return held.kind === 'put' ? { key: held.key, value: bufferOf(held.value), version: held.stamp } : undefined;
}

function upTo(range: Range, last: Key, reverse = false): Range {
  return reverse ? { from: last, to: range.to } : { from: range.from, to: after(last) };
}
