/** One group of commits as the log has it: rows as they lie in the store once it is applied, so that it can be applied again. */
import { crc32 } from 'node:zlib';
import type { Key } from './keys.ts';
import type { Instant, Stamp } from './partition.ts';

export type Change =
  | { readonly kind: 'put'; readonly key: Key; readonly stored: Buffer }
  | { readonly kind: 'remove'; readonly key: Key }
  | { readonly kind: 'highWater'; readonly until: Instant };

export interface RecordWriter {
  /** What the store is to keep: the version, then the value. It is good until the next change. */
  put(key: Key, version: Stamp, value: Uint8Array): Buffer;
  remove(key: Key): void;
  highWater(until: Instant): void;
  clear(): void;
  isEmpty(): boolean;
  /** The whole record, sealed for this place, good until the next change. */
  sealed(place: Place): Buffer;
}

/** A segment's files are used again and again: what an earlier one left behind is no record of this one. */
export interface Place {
  readonly segment: number;
  readonly position: number;
}

/** Length and check sum. */
export const HEAD_BYTES = 8;

const PUT = 1;
const REMOVE = 2;
const HIGH_WATER = 3;
/** Kind, length of the key, length of what is stored. */
const CHANGE_BYTES = 7;
const KEPT_BYTES = 1 << 20;

export function createRecord(): RecordWriter {
  let bytes = Buffer.allocUnsafe(64 << 10);
  let end = HEAD_BYTES;

  function begin(kind: number, key: string, storedBytes: number): void {
    const needed = end + CHANGE_BYTES + key.length + storedBytes;
    if (needed > bytes.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, 2 * bytes.length));
      bytes.copy(larger, 0, 0, end);
      bytes = larger;
    }
    bytes[end] = kind;
    bytes.writeUInt16BE(key.length, end + 1);
    bytes.writeUInt32BE(storedBytes, end + 3);
    bytes.write(key, end + CHANGE_BYTES, 'latin1');
    end += CHANGE_BYTES + key.length;
  }

  return {
    put(key, version, value) {
      begin(PUT, key, 8 + value.length);
      bytes.writeBigUInt64BE(version, end);
      bytes.set(value, end + 8);
      end += 8 + value.length;
      return bytes.subarray(end - 8 - value.length, end);
    },
    remove: (key) => begin(REMOVE, key, 0),
    highWater(until) {
      begin(HIGH_WATER, '', 8);
      bytes.writeBigUInt64BE(until, end);
      end += 8;
    },
    clear() {
      end = HEAD_BYTES;
      if (bytes.length > KEPT_BYTES) bytes = Buffer.allocUnsafe(KEPT_BYTES);
    },
    isEmpty: () => end === HEAD_BYTES,
    sealed(place) {
      bytes.writeUInt32BE(end - HEAD_BYTES, 0);
      bytes.writeUInt32BE(sumOf(bytes.subarray(HEAD_BYTES, end), place), 4);
      return bytes.subarray(0, end);
    },
  };
}

/** The record that lies here, without its head; undefined: it was never written, or not to its end. */
export function recordAt(segment: Buffer, place: Place): Buffer | undefined {
  const { position } = place;
  if (position + HEAD_BYTES > segment.length) return undefined;
  const length = segment.readUInt32BE(position);
  const from = position + HEAD_BYTES;
  if (length === 0 || from + length > segment.length) return undefined;
  const changes = segment.subarray(from, from + length);
  return segment.readUInt32BE(position + 4) === sumOf(changes, place) ? changes : undefined;
}

export function* changesIn(record: Buffer): Iterable<Change> {
  for (let at = 0; at < record.length; ) {
    const kind = record[at];
    const keyEnd = at + CHANGE_BYTES + record.readUInt16BE(at + 1);
    const end = keyEnd + record.readUInt32BE(at + 3);
    const key = record.toString('latin1', at + CHANGE_BYTES, keyEnd) as Key;
    if (kind === PUT) yield { kind: 'put', key, stored: record.subarray(keyEnd, end) };
    else if (kind === REMOVE) yield { kind: 'remove', key };
    else if (kind === HIGH_WATER) yield { kind: 'highWater', until: record.readBigUInt64BE(keyEnd) };
    else throw new Error(`a change of kind ${kind} in the log`);
    at = end;
  }
}

function sumOf(changes: Buffer, { segment, position }: Place): number {
  return crc32(changes, crc32(`${segment} ${position} ${changes.length}`));
}
