/**
 * Row values: a format byte, then JSON, text or bytes. Rows of commutative writes: a number of eight bytes, signed, big-endian. Adds and
 * max conflict with nothing, and a number of zero has no row.
 */

import type { Key } from './keys.ts';
import type { Commit, CommutativeWrite, Row, ScanOptions, Timestamp, Write } from './partition.ts';

const FORMAT = 1;

export class UnknownFormat extends Error {
  override readonly name = 'UnknownFormat';
}

export function encodeValue(value: object): Buffer {
  return encodeText(JSON.stringify(value));
}

export function decodeValue<T>(row: Pick<Row, 'value'>): T {
  return JSON.parse(decodeText(row)) as T;
}

export function encodeText(text: string): Buffer {
  return Buffer.from(String.fromCharCode(FORMAT) + text);
}

export function decodeText({ value }: Pick<Row, 'value'>): string {
  checkFormat(value);
  return value.toString('utf8', 1);
}

/** Bytes after the format byte; `more` after them. */
export function encodeBytes(bytes: Uint8Array, more?: Uint8Array): Buffer {
  const value = Buffer.allocUnsafe(1 + bytes.length + (more?.length ?? 0));
  value[0] = FORMAT;
  value.set(bytes, 1);
  if (more) value.set(more, 1 + bytes.length);
  return value;
}

export function decodeBytes({ value }: Pick<Row, 'value'>): Buffer {
  checkFormat(value);
  return value.subarray(1);
}

function checkFormat(value: Uint8Array): void {
  if (value[0] !== FORMAT) throw new UnknownFormat(`a row of format ${value[0]}, which this version does not know`);
}

export const isCommutative = (write: Write): write is CommutativeWrite => write.kind === 'add' || write.kind === 'max';

/** One write that has the effect of two of a kind. */
function combine(kind: CommutativeWrite['kind'], one: bigint, other: bigint): bigint {
  if (kind === 'max') return one > other ? one : other;
  // Overflow wraps: an error in the middle of a commit would be worse.
  return BigInt.asIntN(64, one + other);
}

export function mergeCommutative(earlier: CommutativeWrite, { kind, key, n }: CommutativeWrite): CommutativeWrite {
  if (earlier.kind !== kind) throw new Error('a row has adds or max, not both');
  return { kind, key, n: combine(kind, earlier.n, n) };
}

/** The value after the write; undefined: zero, so no row. */
export function applyCommutative(
  value: Uint8Array | undefined,
  { kind, n }: Pick<CommutativeWrite, 'kind' | 'n'>,
): Buffer | undefined {
  const result = combine(kind, value ? decodeCounter({ value: asBuffer(value) }) : 0n, n);
  if (result === 0n) return undefined;
  const number = Buffer.allocUnsafe(COUNTER_BYTES);
  number.writeBigInt64BE(result);
  return number;
}

/** Whether the row is as it was before the write. */
export function leavesUnchanged(
  value: Uint8Array | undefined,
  { kind, n }: Pick<CommutativeWrite, 'kind' | 'n'>,
): boolean {
  return kind === 'max' && value !== undefined && decodeCounter({ value: asBuffer(value) }) >= n;
}

/** Such a write may commit after one with a later timestamp; still every change of a row needs a new version. */
export function versionAfterCommutative(timestamp: Timestamp, replaced: Timestamp | undefined): Timestamp {
  return replaced === undefined || replaced < timestamp ? timestamp : replaced + 1n;
}

/**
 * Commutative writes of several transactions to one row become one: no transaction depends on those in between. The last add has the sum;
 * of several max the first of the greatest is left, which is the one that raises the row.
 */
export function mergeCommutativeSets(writeSets: Commit['writeSets']): Commit['writeSets'] {
  if (writeSets.length < 2) return writeSets;
  const later = new Map<Key, { readonly kind: CommutativeWrite['kind']; readonly key: Key; n: bigint }>();
  const dropped = new Set<Write>();
  const merged = writeSets.toReversed().map(({ timestamp, writes }) => {
    const kept: Write[] = [];
    for (const write of writes) {
      const { key } = write;
      const found = later.get(key);
      if (!isCommutative(write)) {
        later.delete(key);
        kept.push(write);
      } else if (found?.kind === 'add' || (found && found.n > write.n)) found.n = mergeCommutative(found, write).n;
      else {
        if (found) dropped.add(found);
        const last = { kind: write.kind, key, n: write.n };
        later.set(key, last);
        kept.push(last);
      }
    }
    return { timestamp, writes: kept };
  });
  if (dropped.size === 0) return merged.reverse();
  return merged
    .reverse()
    .map(({ timestamp, writes }) => ({ timestamp, writes: writes.filter((write) => !dropped.has(write)) }));
}

/** The same bytes, not a copy. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}

export const COUNTER_BYTES = 8;

/** The number in the row of commutative writes, from -2^63 to 2^63 - 1; zero has no row. */
export function decodeCounter(row: Pick<Row, 'value'> | undefined): bigint {
  if (!row) return 0n;
  if (row.value.length !== COUNTER_BYTES) throw new RangeError(`a counter of ${row.value.length} bytes`);
  return row.value.readBigInt64BE();
}

/** Whether a scan stopped at its limits, so that more rows may follow. */
export function stoppedEarly(rows: readonly Row[], { limit, bytesMax = Infinity }: ScanOptions): boolean {
  return rows.length >= limit || rows.reduce((sum, row) => sum + row.value.length, 0) >= bytesMax;
}
