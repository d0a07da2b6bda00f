/**
 * The memory overlay (MVCC): rows that are in the write-ahead log and not yet in LMDB's file, in versions. A version has the number of the
 * commit group that wrote it, and a snapshot is a number, too: it shows the groups up to it. Ranges of removed keys are remembered:
 * otherwise a dequeue would scan all messages dequeued since the last checkpoint.
 */
import { type Key, keyAfter, type Range } from '../keys.ts';
import type { Timestamp } from '../partition.ts';
import { SortedKeys } from '../sorted-keys.ts';
import { asBuffer } from '../values.ts';
import { SizeEstimate } from './disk-space.ts';

/** One version of a row. One object per version: the garbage collector copies every object that lives as long as a generation. */
export class Entry {
  readonly key: Key;
  readonly group: number;
  /** The version before this one, kept only while an open snapshot may show it. */
  older: Entry | undefined;
  /** Holds the value at `from`; undefined: the row was removed. Without `timestamp`, it is a log record, with the version before the value. */
  private bytes: Buffer | undefined = undefined;
  private from = 0;
  private to = 0;
  private timestamp: Timestamp | undefined = undefined;

  constructor(key: Key, group: number, older: Entry | undefined) {
    this.key = key;
    this.group = group;
    this.older = older;
  }

  /** @param value undefined: the row is removed */
  set(version: Timestamp, value: Uint8Array | undefined): void {
    this.timestamp = version;
    this.bytes = value && asBuffer(value);
    this.from = 0;
    this.to = value?.length ?? 0;
  }

  /** Copies the value into a log record, which has the version before it already, and releases the caller's buffer. */
  moveTo(record: Buffer, at: number): void {
    record.set(this.bytes!, at);
    this.bytes = record;
    this.from = at;
    this.to += at;
    this.timestamp = undefined;
  }

  get value(): Buffer | undefined {
    return this.bytes?.subarray(this.from, this.to);
  }

  get version(): Timestamp | undefined {
    return this.bytes && (this.timestamp ?? this.bytes.readBigUInt64BE(this.from - 8));
  }

  get valueBytes(): number | undefined {
    return this.bytes && this.to - this.from;
  }
}

/** The rows of one segment of the log (a memtable). Released as a whole, once it is checkpointed and no snapshot uses it. */
export class Generation {
  /** The newest version of each key. */
  readonly entries = new Map<Key, Entry>();
  /** The last group that wrote here. */
  lastGroup = 0;
  private group = 0;
  /** The entries of the last group, one per key. */
  written: Entry[] = [];
  private oldest = 0;
  private readonly keys = new SortedKeys();
  readonly sizeEstimate = new SizeEstimate();

  /** The version that a snapshot of this group sees. */
  at(key: Key, group: number): Entry | undefined {
    let entry = this.entries.get(key);
    while (entry !== undefined && entry.group > group) entry = entry.older;
    return entry;
  }

  /** @param oldest the group of the oldest open snapshot: versions replaced before it are released */
  beginGroup(group: number, oldest: number): void {
    this.group = group;
    this.oldest = oldest;
    this.written = [];
  }

  /** @param value undefined: the row is removed */
  write(key: Key, version: Timestamp, value: Uint8Array | undefined): void {
    this.lastGroup = this.group;
    const found = this.entries.get(key);
    if (found?.group === this.group) {
      found.set(version, value);
      return;
    }
    if (found === undefined) this.keys.add(key);
    else if (found.group <= this.oldest) found.older = undefined;
    const entry = new Entry(key, this.group, found);
    entry.set(version, value);
    this.entries.set(key, entry);
    this.written.push(entry);
  }

  endGroup(): void {
    for (const { key, older, valueBytes } of this.written) {
      if (older === undefined || (valueBytes ?? 0) > (older.valueBytes ?? 0))
        this.sizeEstimate.add(key.length, valueBytes);
    }
  }

  /** The last group could not be logged. */
  undoGroup(): void {
    for (const { key, older } of this.written) {
      if (older) this.entries.set(key, older);
      else {
        this.entries.delete(key);
        this.keys.delete(key);
      }
    }
  }

  /** The newest version, if a later group wrote it. */
  changeSince(group: number, key: Key): Entry | undefined {
    if (this.lastGroup <= group) return undefined;
    const entry = this.entries.get(key);
    return entry !== undefined && entry.group > group ? entry : undefined;
  }

  hasChangeSince(group: number, range: Range): boolean {
    if (this.lastGroup <= group) return false;
    for (const key of this.keysIn(range)) if (this.entries.get(key)!.group > group) return true;
    return false;
  }

  hasAny(range: Range): boolean {
    if (this.entries.size > 0) for (const _ of this.keysIn(range)) return true;
    return false;
  }

  keysIn(range: Range, reverse = false): Iterable<Key> {
    return this.keys.in(range, reverse);
  }
}

/** Each key once, in order. */
export function* mergedKeys(one: Iterable<Key>, other: Iterable<Key>, reverse: boolean): Iterable<Key> {
  const rest = other[Symbol.iterator]();
  let next = rest.next();
  for (const key of one) {
    for (; !next.done && (reverse ? next.value > key : next.value < key); next = rest.next()) yield next.value;
    if (!next.done && next.value === key) next = rest.next();
    yield key;
  }
  for (; !next.done; next = rest.next()) yield next.value;
}

interface EmptyRange extends Range {
  /** Empty for snapshots of this group and later ones. */
  readonly since: number;
}

const RANGES_MAX = 32;
/** Skipping fewer removed keys would cost more than scanning them. */
export const REMOVED_MIN = 32;

export class EmptyRanges {
  /** Unordered; they may overlap. */
  private ranges: EmptyRange[] = [];

  add(from: Key, to: Key, since: number): void {
    const adjacent = this.ranges.find((range) => range.from <= from && from <= range.to);
    const added = { from: adjacent?.from ?? from, to, since: Math.max(since, adjacent?.since ?? 0) };
    this.ranges = this.ranges.filter((range) => range.from < added.from || range.to > added.to).slice(1 - RANGES_MAX);
    this.ranges.push(added);
  }

  /** Called for every put, so that the row is found. */
  excludeKey(key: Key): void {
    if (this.ranges.length === 0) return;
    const holdsKey = ({ from, to }: Range) => from <= key && key < to;
    if (!this.ranges.some(holdsKey)) return;
    const others = this.ranges.filter((range) => !holdsKey(range));
    const parts = this.ranges.filter(holdsKey).flatMap((range) => [
      { ...range, to: key },
      { ...range, from: keyAfter(key) },
    ]);
    // A range that would become too many is forgotten: the next scan finds again what of it is worth skipping.
    const hasRoom = others.length + parts.length <= RANGES_MAX;
    this.ranges = hasRoom ? [...others, ...parts.filter(({ from, to }) => from < to)] : others;
  }

  clear(): void {
    this.ranges = [];
  }

  overlaps({ from, to }: Range): boolean {
    return this.ranges.length > 0 && this.ranges.some((range) => range.to > from && range.from < to);
  }

  /** The parts of the range that a snapshot of this group has to scan, in order. */
  *outside({ from, to }: Range, group: number): Iterable<Range> {
    let next = from;
    for (const range of this.ranges.toSorted((a, b) => (a.from < b.from ? -1 : 1))) {
      if (range.since > group || range.to <= next || range.from >= to) continue;
      if (range.from > next) yield { from: next, to: range.from };
      next = range.to;
    }
    if (next < to) yield { from: next, to };
  }
}
