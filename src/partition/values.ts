/**
 * Row values: a format byte, then JSON, text or bytes. Commutative counters: a row of eight bytes, signed, big-endian; adds conflict with
 * nothing, and a counter at zero has no row.
 */

import type { Key } from './keys.ts';
import type { Commit, Row, ScanOptions, Timestamp, Write } from './partition.ts';

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

/** The counter's value after the add; undefined: zero, so no row. */
export function addToCounter(value: Uint8Array | undefined, n: bigint): Buffer | undefined {
  // Overflow wraps: an error in the middle of a commit would be worse.
  const sum = BigInt.asIntN(64, (value ? decodeCounter({ value: asBuffer(value) }) : 0n) + n);
  if (sum === 0n) return undefined;
  const counter = Buffer.allocUnsafe(COUNTER_BYTES);
  counter.writeBigInt64BE(sum);
  return counter;
}

/** An add may commit after one with a later timestamp; still every change of a row needs a new version. */
export function versionAfterAdd(timestamp: Timestamp, replaced: Timestamp | undefined): Timestamp {
  return replaced === undefined || replaced < timestamp ? timestamp : replaced + 1n;
}

/** Adds of several transactions to one row become one add in the last of them: no transaction depends on the sums in between. */
export function mergeAdds(writeSets: Commit['writeSets']): Commit['writeSets'] {
  if (writeSets.length < 2) return writeSets;
  const adds = new Map<Key, { readonly kind: 'add'; readonly key: Key; n: bigint }>();
  const merged = writeSets.toReversed().map(({ timestamp, writes }) => {
    const kept: Write[] = [];
    for (const write of writes) {
      const { key, kind } = write;
      const later = adds.get(key);
      if (kind !== 'add') {
        adds.delete(key);
        kept.push(write);
      } else if (later) later.n = BigInt.asIntN(64, later.n + write.n);
      else {
        const add = { kind, key, n: write.n };
        adds.set(key, add);
        kept.push(add);
      }
    }
    return { timestamp, writes: kept };
  });
  return merged.reverse();
}

/** The same bytes, not a copy. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}

export const COUNTER_BYTES = 8;

/** The sum in a counter's row, from -2^63 to 2^63 - 1; a counter at zero has no row. */
export function decodeCounter(row: Pick<Row, 'value'> | undefined): bigint {
  if (!row) return 0n;
  if (row.value.length !== COUNTER_BYTES) throw new RangeError(`a counter of ${row.value.length} bytes`);
  return row.value.readBigInt64BE();
}

/** Whether a scan stopped at its limits, so that more rows may follow. */
export function stoppedEarly(rows: readonly Row[], { limit, bytesMax = Infinity }: ScanOptions): boolean {
  return rows.length >= limit || rows.reduce((sum, row) => sum + row.value.length, 0) >= bytesMax;
}
