/**
 * One record of the write-ahead log: the rows of one commit group as a checkpoint stores them, so that to apply a record twice is to
 * apply it once. Records are chained: each has the checksum of the one before it.
 */
import { crc32 } from 'node:zlib';
import type { Key } from '../keys.ts';
import type { Instant } from '../partition.ts';
import type { Entry } from './overlay.ts';

export type Change =
  | { readonly kind: 'put'; readonly key: Key; readonly stored: Buffer }
  | { readonly kind: 'remove'; readonly key: Key }
  | { readonly kind: 'highWater'; readonly until: Instant };

/** Where a record lies: its checksum covers this, so that what an earlier use of the file left behind is no record. */
export interface WalPosition {
  readonly segment: number;
  readonly position: number;
  /** The checksum of the record before it; of the first record in a segment, that segment's mark. */
  readonly previous: number;
  readonly salt: number;
}

/** Length, checksum, checksum of the record before, mark of the segment. */
export const HEADER_BYTES = 16;
const SALT_AT = 12;

const PUT = 1;
const REMOVE = 2;
const HIGH_WATER = 3;
/** Kind, length of the key, length of what is stored. */
const CHANGE_BYTES = 7;
const VERSION_BYTES = 8;
/** A longer value is written from where it lies: to copy it would hold up the event loop. */
const COPIED_MAX = 64 << 10;

/** The record of these entries in pieces, with its header left open. Short values lie in it from now on. */
export function encodeRecord(entries: Iterable<Entry>, until: Instant | undefined): Buffer[] {
  let length = HEADER_BYTES + (until === undefined ? 0 : CHANGE_BYTES + 8);
  for (const { key, valueBytes } of entries) {
    length += CHANGE_BYTES + key.length;
    if (valueBytes !== undefined) length += VERSION_BYTES + (valueBytes > COPIED_MAX ? 0 : valueBytes);
  }
  const bytes = Buffer.allocUnsafeSlow(length);
  const pieces: Buffer[] = [];
  let begun = 0;
  let at = HEADER_BYTES;
  const begin = (kind: number, key: string, storedBytes: number): void => {
    bytes[at] = kind;
    bytes.writeUInt16BE(key.length, at + 1);
    bytes.writeUInt32BE(storedBytes, at + 3);
    bytes.write(key, at + CHANGE_BYTES, 'latin1');
    at += CHANGE_BYTES + key.length;
  };
  for (const entry of entries) {
    const { key, valueBytes } = entry;
    if (valueBytes === undefined) {
      begin(REMOVE, key, 0);
      continue;
    }
    begin(PUT, key, VERSION_BYTES + valueBytes);
    bytes.writeBigUInt64BE(entry.version!, at);
    at += VERSION_BYTES;
    if (valueBytes > COPIED_MAX) {
      pieces.push(bytes.subarray(begun, at), entry.value!);
      begun = at;
    } else {
      entry.moveTo(bytes, at);
      at += valueBytes;
    }
  }
  if (until !== undefined) {
    begin(HIGH_WATER, '', 8);
    bytes.writeBigUInt64BE(until, at);
    at += 8;
  }
  if (at > begun) pieces.push(bytes.subarray(begun, at));
  return pieces;
}

/** Fills in the header; the checksum, which the next record carries. */
export function sealRecord(pieces: readonly Buffer[], walPosition: WalPosition): number {
  const head = pieces[0]!;
  const length = pieces.reduce((sum, piece) => sum + piece.length, -HEADER_BYTES);
  let checksum = crc32(head.subarray(HEADER_BYTES), positionChecksum(walPosition, length));
  for (let i = 1; i < pieces.length; i++) checksum = crc32(pieces[i]!, checksum);
  head.writeUInt32BE(length, 0);
  head.writeUInt32BE(checksum, 4);
  head.writeUInt32BE(walPosition.previous, 8);
  head.writeUInt32BE(walPosition.salt, SALT_AT);
  return checksum;
}

export interface FoundRecord {
  readonly changes: Buffer;
  readonly checksum: number;
  readonly previous: number;
  readonly end: number;
}

/** The whole record that lies here, whatever came before it; undefined: there is none. */
export function decodeRecord(bytes: Buffer, segment: number, position: number): FoundRecord | undefined {
  const from = position + HEADER_BYTES;
  if (position < 0 || from > bytes.length) return undefined;
  const length = bytes.readUInt32BE(position);
  const end = from + length;
  if (length === 0 || end > bytes.length) return undefined;
  const previous = bytes.readUInt32BE(position + 8);
  const mark = bytes.readUInt32BE(position + SALT_AT);
  const changes = bytes.subarray(from, end);
  const checksum = crc32(changes, positionChecksum({ segment, position, previous, salt: mark }, length));
  return bytes.readUInt32BE(position + 4) === checksum ? { changes, checksum, previous, end } : undefined;
}

/** Where the next record may begin, at this position or after it; -1: nowhere. */
export function findRecord(bytes: Buffer, mark: number, position: number): number {
  const wanted = Buffer.alloc(4);
  wanted.writeUInt32BE(mark);
  const found = bytes.indexOf(wanted, position + SALT_AT);
  return found < 0 ? -1 : found - SALT_AT;
}

export function* decodeChanges(record: Buffer): Iterable<Change> {
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

const positionBytes = Buffer.alloc(24);

function positionChecksum({ segment, position, previous, salt }: WalPosition, length: number): number {
  positionBytes.writeUIntBE(segment, 0, 6);
  positionBytes.writeUIntBE(position, 6, 6);
  positionBytes.writeUInt32BE(length, 12);
  positionBytes.writeUInt32BE(previous, 16);
  positionBytes.writeUInt32BE(salt, 20);
  return crc32(positionBytes);
}
