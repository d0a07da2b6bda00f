/**
 * The record format of the write-ahead log: the rows of one commit group as a checkpoint stores them, so that replay is idempotent.
 * Records are chained: each has the checksum of the one before it.
 */
import { crc32 } from 'node:zlib';
import type { Key } from '../keys.ts';
import type { Instant } from '../partition.ts';
import type { Entry } from './overlay.ts';

/** The end of a segment's records. The next record's checksum covers all of it, so that records of an earlier segment in the file are invalid. */
export interface SegmentEnd {
  readonly number: number;
  /** In the header of every record of the segment, so that records can be searched for; random, so that no client can put it into a value. */
  readonly salt: number;
  readonly position: number;
  /** The checksum of the last record; the salt, if there is none. */
  readonly checksum: number;
}

/** Length, checksum, checksum of the record before, salt of the segment. */
export const HEADER_BYTES = 16;
const SALT_AT = 12;

const PUT = 1;
const REMOVE = 2;
const HIGH_WATER = 3;
/** Kind, length of the key, length of the stored row. */
const CHANGE_BYTES = 7;
const VERSION_BYTES = 8;
/** A longer value is written from its own buffer: a copy would block the event loop. */
const COPIED_MAX = 64 << 10;

/** The record in pieces, with an empty header. Entries with short values refer to the record's buffer from now on. */
export function encodeRecord(entries: readonly Entry[], until: Instant | undefined): Buffer[] {
  let length = HEADER_BYTES + (until === undefined ? 0 : CHANGE_BYTES + 8);
  for (const { key, valueBytes } of entries) {
    length += CHANGE_BYTES + key.length;
    if (valueBytes !== undefined) length += VERSION_BYTES + (valueBytes > COPIED_MAX ? 0 : valueBytes);
  }
  const bytes = Buffer.allocUnsafeSlow(length);
  // The JIT inlines DataView, and it allocates nothing for a bigint.
  const numbers = new DataView(bytes.buffer);
  const pieces: Buffer[] = [];
  let pieceStart = 0;
  let at = HEADER_BYTES;
  const writeHeader = (kind: number, key: string, storedBytes: number): void => {
    bytes[at] = kind;
    numbers.setUint16(at + 1, key.length);
    numbers.setUint32(at + 3, storedBytes);
    bytes.write(key, at + CHANGE_BYTES, 'latin1');
    at += CHANGE_BYTES + key.length;
  };
  for (const entry of entries) {
    const { key, valueBytes } = entry;
    if (valueBytes === undefined) {
      writeHeader(REMOVE, key, 0);
      continue;
    }
    writeHeader(PUT, key, VERSION_BYTES + valueBytes);
    numbers.setBigUint64(at, entry.version!);
    at += VERSION_BYTES;
    if (valueBytes > COPIED_MAX) {
      pieces.push(bytes.subarray(pieceStart, at), entry.value!);
      pieceStart = at;
    } else {
      entry.moveTo(bytes, at);
      at += valueBytes;
    }
  }
  if (until !== undefined) {
    writeHeader(HIGH_WATER, '', 8);
    numbers.setBigUint64(at, until);
    at += 8;
  }
  if (at > pieceStart) pieces.push(bytes.subarray(pieceStart, at));
  return pieces;
}

/** Fills in the header and returns the checksum. */
export function sealRecord(pieces: readonly Buffer[], end: SegmentEnd): number {
  const head = pieces[0]!;
  const length = pieces.reduce((sum, piece) => sum + piece.length, -HEADER_BYTES);
  let checksum = crc32(head.subarray(HEADER_BYTES), positionChecksum(end, length));
  for (let i = 1; i < pieces.length; i++) checksum = crc32(pieces[i]!, checksum);
  head.writeUInt32BE(length, 0);
  head.writeUInt32BE(checksum, 4);
  head.writeUInt32BE(end.checksum, 8);
  head.writeUInt32BE(end.salt, SALT_AT);
  return checksum;
}

export interface FoundRecord {
  readonly changes: Buffer;
  readonly checksum: number;
  readonly previous: number;
  readonly end: number;
}

/** undefined: no complete record begins here. Whether it follows the record before is for the caller to verify (`previous`). */
export function decodeRecord(bytes: Buffer, number: number, position: number): FoundRecord | undefined {
  const from = position + HEADER_BYTES;
  if (position < 0 || from > bytes.length) return undefined;
  const length = bytes.readUInt32BE(position);
  const end = from + length;
  if (length === 0 || end > bytes.length) return undefined;
  const previous = bytes.readUInt32BE(position + 8);
  const salt = bytes.readUInt32BE(position + SALT_AT);
  const changes = bytes.subarray(from, end);
  const checksum = crc32(changes, positionChecksum({ number, position, checksum: previous, salt }, length));
  return bytes.readUInt32BE(position + 4) === checksum ? { changes, checksum, previous, end } : undefined;
}

/** The first position from here on where the segment's salt stands as in a record's header; -1: none. */
export function findRecord(bytes: Buffer, salt: number, position: number): number {
  const saltBytes = Buffer.alloc(4);
  saltBytes.writeUInt32BE(salt);
  const found = bytes.indexOf(saltBytes, position + SALT_AT);
  return found < 0 ? -1 : found - SALT_AT;
}

/** The last write of each key: version and value as they are stored, or undefined if removed. */
export interface LoggedRows {
  readonly rows: Map<Key, Buffer | undefined>;
  /** The high-water mark of the clock. */
  readonly until: Instant;
}

/** @param records without their headers, in their order */
export function replayRecords(records: readonly Buffer[]): LoggedRows {
  const rows = new Map<Key, Buffer | undefined>();
  let until = 0n;
  for (const record of records) {
    for (let at = 0; at < record.length; ) {
      const kind = record[at];
      const keyEnd = at + CHANGE_BYTES + record.readUInt16BE(at + 1);
      const end = keyEnd + record.readUInt32BE(at + 3);
      if (kind === HIGH_WATER) until = record.readBigUInt64BE(keyEnd);
      else if (kind !== PUT && kind !== REMOVE) throw new Error(`a change of kind ${kind} in the log`);
      else {
        const key = record.toString('latin1', at + CHANGE_BYTES, keyEnd) as Key;
        rows.set(key, kind === PUT ? record.subarray(keyEnd, end) : undefined);
      }
      at = end;
    }
  }
  return { rows, until };
}

const positionBytes = Buffer.alloc(24);

function positionChecksum({ number, position, checksum, salt }: SegmentEnd, length: number): number {
  positionBytes.writeUIntBE(number, 0, 6);
  positionBytes.writeUIntBE(position, 6, 6);
  positionBytes.writeUInt32BE(length, 12);
  positionBytes.writeUInt32BE(checksum, 16);
  positionBytes.writeUInt32BE(salt, 20);
  return crc32(positionBytes);
}
