/**
 * Commits on their way to the writer's thread, packed flat: to clone a tree of small objects costs more than to judge it,
 * and a small Buffer would drag the whole pool it lies in along. All bytes lie in one piece: each more costs as much.
 */
import type { Key } from './keys.ts';
import type { Check, Commit, RangeCheck, Stamp, Write } from './partition.ts';

/** What the writer looks at. */
export type Judged = Omit<Commit, 'id' | 'anchors'>;

export interface Parcel {
  /** All keys, one behind the other. */
  readonly keys: string;
  /** Stamps, then counts, then the values of puts. */
  readonly bytes: Uint8Array;
  /** And what is added to counters. */
  readonly stamps: number;
  /** Lengths and counts, in the order in which they are read again. */
  readonly counts: number;
}

const REMOVE = 0;
const ADD = 0xffff_ffff;
/** What is smaller is copied sooner than handed over. */
const HANDED_OVER_BYTES = 64 << 10;

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
  return { keys, bytes: join(stamps, counts, values), stamps: stamps.length, counts: counts.length };
}

/** The buffers that are handed over instead of being copied. */
export function buffersOf({ bytes }: Parcel): ArrayBuffer[] {
  return bytes.length < HANDED_OVER_BYTES ? [] : [bytes.buffer as ArrayBuffer];
}

export function unpack(parcel: Parcel): Judged[] {
  const { keys, bytes } = parcel;
  const stamps = new BigUint64Array(bytes.buffer, 0, parcel.stamps);
  const counts = new Uint32Array(bytes.buffer, stamps.byteLength, parcel.counts);
  let [keyAt, stampAt, countAt, valueAt] = [0, 0, 0, stamps.byteLength + counts.byteLength];
  const count = (): number => counts[countAt++]!;
  const key = (): Key => {
    const from = keyAt;
    keyAt += count();
    return keys.slice(from, keyAt) as Key;
  };
  const stamp = (): Stamp | undefined => (count() === 0 ? undefined : stamps[stampAt++]);
  const times = <T>(make: () => T): T[] => {
    const made: T[] = [];
    for (let left = count(); left > 0; left--) made.push(make());
    return made;
  };

  const check = (): Check => withVersion(key(), stamp());
  const row = (): RangeCheck['rows'][number] => ({ key: key(), version: stamp()! });
  const range = (): RangeCheck => ({ range: { from: key(), to: key() }, rows: times(row) });
  const write = (): Write => {
    const written = key();
    const length = count();
    if (length === REMOVE) return { kind: 'remove', key: written };
    if (length === ADD) return { kind: 'add', key: written, n: BigInt.asIntN(64, stamps[stampAt++]!) };
    valueAt += length - 1;
    return { kind: 'put', key: written, value: bytes.subarray(valueAt - length + 1, valueAt) };
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

function join(stamps: readonly Stamp[], counts: readonly number[], values: readonly Uint8Array[]): Uint8Array {
  const [stampBytes, countBytes] = [8 * stamps.length, 4 * counts.length];
  let length = stampBytes + countBytes;
  for (const value of values) length += value.length;
  const bytes = new Uint8Array(length);
  new BigUint64Array(bytes.buffer, 0, stamps.length).set(stamps);
  new Uint32Array(bytes.buffer, stampBytes, counts.length).set(counts);
  let at = stampBytes + countBytes;
  for (const value of values) {
    bytes.set(value, at);
    at += value.length;
  }
  return bytes;
}
