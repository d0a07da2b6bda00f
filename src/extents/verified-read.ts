/** Verified reads: whole blocks are read and compared with their checksums. */
import { firstCorruptBlock } from './checksums.ts';
import type { ExtentFiles } from './extent-files.ts';
import {
  CHECKSUM_BLOCK_BYTES,
  type ChecksumCache,
  type ChunkLocation,
  type ChunkName,
  CorruptChunk,
} from './extents.ts';
import { checksumOffset, decodeSlotHeader, HEADER_BYTES, isSameName } from './slots.ts';

/** A gap of up to this length is read along: a second read costs more. */
export const GAP_BYTES_MAX = 64 << 10;

/** Called with a corrupt header: the bytes are valid all the same, but `walk` does not find the chunk. */
type OnCorruptHeader = (error: CorruptChunk) => void;

export async function readVerified(
  files: Pick<ExtentFiles, 'read'>,
  name: ChunkName,
  place: ChunkLocation,
  from: number,
  to: number,
  onCorruptHeader: OnCorruptHeader,
  into?: Buffer,
  sums?: ChecksumCache,
): Promise<Buffer> {
  const { extent, offset, length } = place;
  const { start, dataTo, sumsFrom, sumsTo } = blocksAround(place, from, to);
  if (from === to) return Buffer.alloc(0);

  async function read(begin: number, end: number, memory?: Buffer): Promise<Buffer> {
    const bytes = await files.read(extent, offset + HEADER_BYTES + begin, end - begin, memory);
    assertComplete(name, place, bytes, begin, end);
    return bytes;
  }

  const isAdjacent = !sums && sumsFrom - dataTo <= GAP_BYTES_MAX;

  async function readSums(): Promise<Buffer | undefined> {
    if (isAdjacent) return undefined;
    if (!sums) return read(sumsFrom, sumsTo);
    const all = Math.ceil(length / CHECKSUM_BLOCK_BYTES);
    sums.table ??= await read(checksumOffset(length, 0), checksumOffset(length, all));
    return sums.table.subarray(sumsFrom - checksumOffset(length, 0), sumsTo - checksumOffset(length, 0));
  }

  const [bytes, separateSums] = await Promise.all([read(start, isAdjacent ? sumsTo : dataTo, into), readSums()]);
  return verifyBlocks(name, place, from, to, onCorruptHeader, bytes, separateSums ?? bytes.subarray(sumsFrom - start));
}

/** As `readVerified`, for bytes that were read already, from the start of the slot on. */
export function verifySlot(
  slot: Buffer,
  name: ChunkName,
  place: ChunkLocation,
  from: number,
  to: number,
  onCorruptHeader: OnCorruptHeader,
): Buffer {
  const { start, sumsFrom, sumsTo } = blocksAround(place, from, to);
  const bytes = slot.subarray(HEADER_BYTES + start, HEADER_BYTES + sumsTo);
  assertComplete(name, place, bytes, start, sumsTo);
  return verifyBlocks(name, place, from, to, onCorruptHeader, bytes, bytes.subarray(sumsFrom - start));
}

/** The blocks of these bytes and their checksums, as offsets from the first byte of the chunk. */
function blocksAround({ length }: ChunkLocation, from: number, to: number) {
  if (!(from >= 0 && from <= to && to <= length))
    throw new RangeError(`Bytes ${from} to ${to} of a chunk of ${length}.`);
  const first = Math.floor(from / CHECKSUM_BLOCK_BYTES);
  const end = Math.ceil(to / CHECKSUM_BLOCK_BYTES);
  const dataFrom = first * CHECKSUM_BLOCK_BYTES;
  return {
    first,
    dataFrom,
    dataTo: Math.min(end * CHECKSUM_BLOCK_BYTES, length),
    sumsFrom: checksumOffset(length, first),
    sumsTo: checksumOffset(length, end),
    /** With the header, if it is adjacent. */
    start: first === 0 ? -HEADER_BYTES : dataFrom,
  };
}

/** @param bytes start at `start` of `blocksAround`; `table` starts with the checksum of the first block */
function verifyBlocks(
  name: ChunkName,
  place: ChunkLocation,
  from: number,
  to: number,
  onCorruptHeader: OnCorruptHeader,
  bytes: Buffer,
  table: Buffer,
): Buffer {
  const { length } = place;
  const { first, dataFrom, dataTo, start } = blocksAround(place, from, to);
  const data = bytes.subarray(dataFrom - start, dataTo - start);
  const wrong = firstCorruptBlock(name, first, data, table);
  if (wrong !== undefined) {
    const wrongFrom = wrong * CHECKSUM_BLOCK_BYTES;
    const wrongTo = Math.min(wrongFrom + CHECKSUM_BLOCK_BYTES, length);
    throw corruptChunk(name, place, `its bytes ${wrongFrom} to ${wrongTo} are not what was written`);
  }
  if (first === 0) {
    const header = decodeSlotHeader(bytes);
    if (!header || header.length !== length || !isSameName(header.name, name)) {
      onCorruptHeader(corruptChunk(name, place, 'its header is not what was written, its bytes are'));
    }
  }
  return data.subarray(from - dataFrom, to - dataFrom);
}

function assertComplete(name: ChunkName, place: ChunkLocation, bytes: Buffer, begin: number, end: number): void {
  if (bytes.length === end - begin) return;
  throw corruptChunk(
    name,
    place,
    `the extent ends at ${place.offset + HEADER_BYTES + begin + bytes.length}, before its end`,
  );
}

function corruptChunk(
  { account, epoch, number }: ChunkName,
  { extent, offset }: ChunkLocation,
  what: string,
): CorruptChunk {
  return new CorruptChunk(
    `Damaged: chunk ${epoch}-${number} of account ${account} in extent ${extent} at ${offset}: ${what}.`,
  );
}
