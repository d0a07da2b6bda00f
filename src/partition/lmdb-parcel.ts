/**
 * Commits on their way to the writer's thread, packed flat: to clone a tree of small objects costs more than to judge it,
 * and a small Buffer would drag the whole pool it lies in along.
 */
import type { Key } from './keys.ts';
import type { Check, Commit, RangeCheck, Stamp, Write } from './partition.ts';

/** What the writer looks at. */
export type Judged = Omit<Commit, 'id' | 'anchors'>;

export interface Parcel {
  /** All keys, one behind the other. */
  readonly keys: string;
  /** And what is added to counters. */
  readonly stamps: BigUint64Array;
  /** Lengths and counts, in the order in which they are read again. */
  readonly counts: Uint32Array;
  readonly values: Uint8Array;
}

const REMOVE = 0;
const ADD = 0xffff_ffff;

export function pack(commits: readonly Judged[]): Parcel {
  let keys = '';
  const stamps: Stamp[] = [];
  const counts: number[] = [commits.length];
  const values: Uint8Array[] = [];
  const addKey = (key: Key): void => {
    keys += key;
    counts.push(key.length);
  };
  const addStamp = (stamp: Stamp | undefined): void => {
    counts.push(stamp === undefined ? 0 : 1);
    if (stamp !== undefined) stamps.push(stamp);
  };

  for (const { before, checks, ranges, bodies } of commits) {
    addStamp(before);
    counts.push(checks.length);
    for (const { key, version } of checks) {
      addKey(key);
      addStamp(version);
    }
    counts.push(ranges.length);
    for (const { range, rows } of ranges) {
      addKey(range.from);
      addKey(range.to);
      counts.push(rows.length);
      for (const { key, version } of rows) {
        addKey(key);
        addStamp(version);
      }
    }
    counts.push(bodies.length);
    for (const { stamp, writes } of bodies) {
      addStamp(stamp);
      counts.push(writes.length);
      for (const write of writes) {
        addKey(write.key);
        // The kind, or of a put one more than its length.
        counts.push(write.kind === 'put' ? write.value.length + 1 : write.kind === 'add' ? ADD : REMOVE);
        if (write.kind === 'put') values.push(write.value);
        else if (write.kind === 'add') stamps.push(BigInt.asUintN(64, write.n));
      }
    }
  }
  return { keys, stamps: BigUint64Array.from(stamps), counts: Uint32Array.from(counts), values: join(values) };
}

/** The buffers that can be handed over instead of being copied. */
export function buffersOf({ stamps, counts, values }: Parcel): ArrayBuffer[] {
  return [stamps.buffer, counts.buffer, values.buffer] as ArrayBuffer[];
}

export function unpack({ keys, stamps, counts, values }: Parcel): Judged[] {
  const at = { key: 0, stamp: 0, count: 0, value: 0 };
  const count = (): number => counts[at.count++]!;
  const times = <T>(make: () => T): T[] => Array.from({ length: count() }, make);
  const key = (): Key => {
    const from = at.key;
    at.key += count();
    return keys.slice(from, at.key) as Key;
  };
  const stamp = (): Stamp | undefined => (count() === 0 ? undefined : stamps[at.stamp++]);
  const bytes = (length: number): Uint8Array => {
    at.value += length;
    return values.subarray(at.value - length, at.value);
  };

  const check = (): Check => withVersion(key(), stamp());
  const row = (): RangeCheck['rows'][number] => ({ key: key(), version: stamp()! });
  const range = (): RangeCheck => ({ range: { from: key(), to: key() }, rows: times(row) });
  const write = (): Write => {
    const written = key();
    const length = count();
    if (length === REMOVE) return { kind: 'remove', key: written };
    if (length === ADD) return { kind: 'add', key: written, n: BigInt.asIntN(64, stamps[at.stamp++]!) };
    return { kind: 'put', key: written, value: bytes(length - 1) };
  };
  const body = (): Commit['bodies'][number] => ({ stamp: stamp()!, writes: times(write) });
  return times(() => {
    const before = stamp();
    const judged = { checks: times(check), ranges: times(range), bodies: times(body) };
    return before === undefined ? judged : { ...judged, before };
  });
}

function withVersion(key: Key, version: Stamp | undefined): Check {
  return version === undefined ? { key } : { key, version };
}

function join(pieces: readonly Uint8Array[]): Uint8Array {
  let length = 0;
  for (const piece of pieces) length += piece.length;
  const joined = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    joined.set(piece, at);
    at += piece.length;
  }
  return joined;
}
