/**
 * Commits on their way to the writer's thread, packed flat into one piece of bytes: stamps, counts, keys, values. To clone a tree of
 * small objects costs more than to judge it.
 */
import type { Key } from './keys.ts';
import type { Check, Commit, RangeCheck, Stamp, Write } from './partition.ts';

/** What the writer looks at. */
export type Judged = Omit<Commit, 'id' | 'anchors'>;

/** How many stamps, counts and characters of keys there are. */
const HEAD_BYTES = 16;
const REMOVE = 0;
const ADD = 0xffff_ffff;

/** @param room gives so many bytes, which begin at a multiple of eight */
export function pack(commits: readonly Judged[], room: (length: number) => Uint8Array): Uint8Array {
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
  return join(keys, stamps, counts, values, room);
}

function join(
  keys: string,
  stamps: readonly Stamp[],
  counts: readonly number[],
  values: readonly Uint8Array[],
  room: (length: number) => Uint8Array,
): Uint8Array {
  let valueAt = HEAD_BYTES + 8 * stamps.length + 4 * counts.length + keys.length;
  const bytes = room(values.reduce((length, value) => length + value.length, valueAt));
  headOf(bytes).set([stamps.length, counts.length, keys.length]);
  const parts = partsIn(bytes);
  parts.stamps.set(stamps);
  parts.counts.set(counts);
  parts.keys.write(keys, 'latin1');
  for (const value of values) {
    bytes.set(value, valueAt);
    valueAt += value.length;
  }
  return bytes;
}

function headOf({ buffer, byteOffset }: Uint8Array): Uint32Array {
  return new Uint32Array(buffer, byteOffset, HEAD_BYTES / 4);
}

function partsIn(bytes: Uint8Array): { stamps: BigUint64Array; counts: Uint32Array; keys: Buffer } {
  const { buffer, byteOffset } = bytes;
  const [stampCount, countCount, keyBytes] = headOf(bytes);
  const stamps = new BigUint64Array(buffer, byteOffset + HEAD_BYTES, stampCount);
  const counts = new Uint32Array(buffer, stamps.byteOffset + stamps.byteLength, countCount);
  const keys = Buffer.from(buffer as ArrayBuffer, counts.byteOffset + counts.byteLength, keyBytes);
  return { stamps, counts, keys };
}

export function unpack(bytes: Uint8Array): Judged[] {
  const { stamps, counts, keys: keyBytes } = partsIn(bytes);
  const keys = keyBytes.toString('latin1');
  let [keyAt, stampAt, countAt] = [0, 0, 0];
  let valueAt = keyBytes.byteOffset - bytes.byteOffset + keyBytes.length;
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
