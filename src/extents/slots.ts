/**
 * On-disk format of an extent: a header with a random id, then slots. A slot is header | data | checksums, and starts at a multiple
 * of 64 bytes, so that the next slot can be found after a missing header. Every header has the extent's id, which no client knows:
 * uploaded bytes are never taken for a header.
 */
import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { CHECKSUM_BLOCK_BYTES, CHUNK_BYTES_MAX, type ChunkName } from './extents.ts';

export const HEADER_BYTES = 64;
const ALIGNMENT = 64;
const EXTENT_MAGIC = 0x48465845;
const SLOT_MAGIC = 0x4846534c;
const FORMAT = 1;
const ID_BYTES = 16;
const SUM_BYTES = 4;
const SUM_AT = HEADER_BYTES - SUM_BYTES;

export interface Slot {
  readonly id: Buffer;
  readonly name: ChunkName;
  readonly length: number;
}

export const newExtentId = (): Buffer => randomBytes(ID_BYTES);

export const blocksIn = (length: number): number => Math.ceil(length / CHECKSUM_BLOCK_BYTES);
/** The offset of a block's checksum from the first byte of the data; for the block after the last, the end of the checksums. */
export const checksumOffset = (length: number, block: number): number => length + block * SUM_BYTES;
export const slotBytes = (length: number): number =>
  Math.ceil((HEADER_BYTES + checksumOffset(length, blocksIn(length))) / ALIGNMENT) * ALIGNMENT;
export const nextSlotAt = (offset: number): number => offset + ALIGNMENT;

export const encodeExtentHeader = (id: Buffer): Buffer => withChecksum(makeHeader(EXTENT_MAGIC, id));

/** The id of the extent; undefined: the header is not valid. */
export const decodeExtentHeader = (bytes: Buffer): Buffer | undefined =>
  isValidHeader(bytes, EXTENT_MAGIC) ? extentIdIn(bytes) : undefined;

export function encodeSlotHeader({ id, name, length }: Slot): Buffer {
  const bytes = makeHeader(SLOT_MAGIC, id);
  encodeName(name).copy(bytes, 24);
  bytes.writeUInt32BE(length, 48);
  return withChecksum(bytes);
}

/** Undefined: the header is not valid. */
export function decodeSlotHeader(bytes: Buffer): Slot | undefined {
  if (!isValidHeader(bytes, SLOT_MAGIC)) return undefined;
  const length = bytes.readUInt32BE(48);
  if (length < 1 || length > CHUNK_BYTES_MAX) return undefined;
  const name = {
    account: bytes.readBigUInt64BE(24),
    epoch: bytes.readBigUInt64BE(32),
    number: bytes.readBigUInt64BE(40),
  };
  return { id: extentIdIn(bytes), name, length };
}

export function encodeName({ account, epoch, number }: ChunkName): Buffer {
  const bytes = Buffer.alloc(24);
  bytes.writeBigUInt64BE(account, 0);
  bytes.writeBigUInt64BE(epoch, 8);
  bytes.writeBigUInt64BE(number, 16);
  return bytes;
}

export const isSameName = (one: ChunkName, other: ChunkName): boolean =>
  one.account === other.account && one.epoch === other.epoch && one.number === other.number;

function makeHeader(magic: number, id: Buffer): Buffer {
  const bytes = Buffer.alloc(HEADER_BYTES);
  bytes.writeUInt32BE(magic, 0);
  bytes.writeUInt32BE(FORMAT, 4);
  id.copy(bytes, 8);
  return bytes;
}

function withChecksum(bytes: Buffer): Buffer {
  bytes.writeUInt32BE(crc32(bytes.subarray(0, SUM_AT)), SUM_AT);
  return bytes;
}

const isValidHeader = (bytes: Buffer, magic: number): boolean =>
  bytes.length >= HEADER_BYTES &&
  bytes.readUInt32BE(0) === magic &&
  bytes.readUInt32BE(4) === FORMAT &&
  bytes.readUInt32BE(SUM_AT) === crc32(bytes.subarray(0, SUM_AT));

const extentIdIn = (bytes: Buffer): Buffer => Buffer.from(bytes.subarray(8, 8 + ID_BYTES));
