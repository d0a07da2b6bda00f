/**
 * The memory overlay: rows that are in the write-ahead log and not yet in LMDB's file, in versions. A version knows the commit group
 * that wrote it, so that a snapshot is a number: it sees what groups up to that number have written. Ranges in which scans have found
 * removed rows only are remembered: the head of a queue would otherwise be scanned over all messages dequeued since the last checkpoint.
 */
import { type Key, keyAfter, type Range } from '../keys.ts';
import type { Timestamp } from '../partition.ts';
import { SortedKeys } from '../sorted-keys.ts';
import { asBuffer } from '../values.ts';
import { SizeEstimate } from './disk-space.ts';

/** What a key holds since a group. One object a row, for what lives as long as a generation is copied by the garbage collector. */
export class Entry {
  readonly key: Key;
  readonly group: number;
  /** The version before this one, kept only while an open snapshot may see it. */
  older: Entry | undefined;
  /** The value lies here; undefined: the row was removed. Once the entry is in a record, its version lies before its value. */
  private bytes: Buffer | undefined = undefined;
  private from = 0;
  private to = 0;
  private timestamp: Timestamp | undefined = undefined;

  constructor(key: Key, group: number, older: Entry | undefined) {
    this.key = key;
    this.group = group;
    this.older = older;
  }

  /** No value: the row is removed. */
  set(version: Timestamp, value: Uint8Array | undefined): void {
    this.timestamp = version;
    this.bytes = value && asBuffer(value);
    this.from = 0;
    this.to = value?.length ?? 0;
  }

  /** Copies the value, which is not in a record yet, to this place in one; its version stands before it. */
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

const UNSORTED_MAX = 256;

/** What one segment of the log holds. It dies as a whole, once LMDB's file has it and no snapshot reads it. */
export class Generation {
  /** The newest version of each key. */
  readonly entries = new Map<Key, Entry>();
  /** The last group that wrote here, and its entries, one of each key. */
  lastGroup = 0;
  written: Entry[] = [];
  private oldest = 0;
  private readonly sorted = new SortedKeys();
  /** New keys that no scan has asked for yet: to sort some at once costs less. */
  private readonly unsorted: Key[] = [];
  readonly sizeEstimate = new SizeEstimate();

  /** The version that a snapshot of this group sees. */
  at(key: Key, group: number): Entry | undefined {
    let entry = this.entries.get(key);
    while (entry !== undefined && entry.group > group) entry = entry.older;
    return entry;
  }

  /** @param oldest the earliest group that an open snapshot shows: what was replaced before it is let go */
  beginGroup(group: number, oldest: number): void {
    this.lastGroup = group;
    this.oldest = oldest;
    this.written = [];
  }

  /** No value: the row is removed. */
  write(key: Key, version: Timestamp, value: Uint8Array | undefined): void {
    const found = this.entries.get(key);
    if (found?.group === this.lastGroup) {
      found.set(version, value);
      return;
    }
    if (found === undefined) this.unsorted.push(key);
    else if (found.group <= this.oldest) found.older = undefined;
    const entry = new Entry(key, this.lastGroup, found);
    entry.set(version, value);
    this.entries.set(key, entry);
    this.written.push(entry);
  }

  /** How much the group may take is counted. */
  endGroup(): void {
    for (const { key, older, valueBytes } of this.written) {
      if (older === undefined || (valueBytes ?? 0) > (older.valueBytes ?? 0))
        this.sizeEstimate.add(key.length, valueBytes);
    }
    if (this.unsorted.length > UNSORTED_MAX) this.sort();
  }

  /** Nothing came of the last group. */
  undoGroup(): void {
    this.sort();
    for (const { key, older } of this.written) {
      if (older) this.entries.set(key, older);
      else {
        this.entries.delete(key);
        this.sorted.delete(key);
      }
    }
  }

  /** The version that was written there after this group; undefined: none was. */
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
    this.sort();
    return this.sorted.in(range, reverse);
  }

  private sort(): void {
    if (this.unsorted.length === 0) return;
    for (const key of this.unsorted.sort()) this.sorted.add(key);
    this.unsorted.length = 0;
  }
}

/** The keys of both in one order, each once. */
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
  /** Empty for snapshots of this group and of later ones. */
  readonly since: number;
}

const RANGES_MAX = 32;
/** Fewer removed rows are walked over faster than they are remembered. */
export const REMOVED_MIN = 32;

export class EmptyRanges {
  /** In no order, and they may overlap. */
  private ranges: EmptyRange[] = [];

  add(from: Key, to: Key, since: number): void {
    // One that ends where this one begins goes on with it.
    const before = this.ranges.find((range) => range.from <= from && from <= range.to);
    const added = { from: before?.from ?? from, to, since: Math.max(since, before?.since ?? 0) };
    this.ranges = this.ranges.filter((range) => range.from < added.from || range.to > added.to).slice(1 - RANGES_MAX);
    this.ranges.push(added);
  }

  /** A row is put. */
  excludeKey(key: Key): void {
    if (!this.ranges.some(({ from, to }) => from <= key && key < to)) return;
    this.ranges = this.ranges.flatMap((range) => {
      if (key < range.from || key >= range.to) return [range];
      const parts = [
        { ...range, to: key },
        { ...range, from: keyAfter(key) },
      ];
      return parts.filter(({ from, to }) => from < to);
    });
  }

  clear(): void {
    this.ranges = [];
  }

  overlaps({ from, to }: Range): boolean {
    return this.ranges.length > 0 && this.ranges.some((range) => range.to > from && range.from < to);
  }

  /** What is left of the range for a snapshot of this group, in order. */
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
