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

/** Bytes between two that are wanted which are rather read too than skipped by a second read. */
export const GAP_BYTES_MAX = 64 << 10;

/** Told of a header that is wrong: the bytes are right all the same, but `walk` does not find the chunk. */
type OnCorruptHeader = (error: CorruptChunk) => void;

/** Reads whole blocks and holds them against their checksums. */
export async function readVerified(
  files: Pick<ExtentFiles, 'read'>,
  name: ChunkName,
  place: ChunkLocation,
  from: number,
  to: number,
  onHeader: OnCorruptHeader,
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

  const near = !sums && sumsFrom - dataTo <= GAP_BYTES_MAX;

  async function readSums(): Promise<Buffer | undefined> {
    if (near) return undefined;
    if (!sums) return read(sumsFrom, sumsTo);
    const all = Math.ceil(length / CHECKSUM_BLOCK_BYTES);
    sums.table ??= await read(checksumOffset(length, 0), checksumOffset(length, all));
    return sums.table.subarray(sumsFrom - checksumOffset(length, 0), sumsTo - checksumOffset(length, 0));
  }

  const [bytes, apart] = await Promise.all([read(start, near ? sumsTo : dataTo, into), readSums()]);
  return verifyBlocks(name, place, from, to, onHeader, bytes, apart ?? bytes.subarray(sumsFrom - start));
}

/** The same of bytes that were read already, from the beginning of the chunk's slot on. */
export function verifySlot(
  slot: Buffer,
  name: ChunkName,
  place: ChunkLocation,
  from: number,
  to: number,
  onHeader: OnCorruptHeader,
): Buffer {
  const { start, sumsFrom, sumsTo } = blocksAround(place, from, to);
  const bytes = slot.subarray(HEADER_BYTES + start, HEADER_BYTES + sumsTo);
  assertComplete(name, place, bytes, start, sumsTo);
  return verifyBlocks(name, place, from, to, onHeader, bytes, bytes.subarray(sumsFrom - start));
}

/** What belongs to these bytes, counted from the first one of the chunk. */
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
    /** With the header, if it is next to them. */
    start: first === 0 ? -HEADER_BYTES : dataFrom,
  };
}

/** @param bytes begin at the `start` of the blocks around these, `table` with their checksums. */
function verifyBlocks(
  name: ChunkName,
  place: ChunkLocation,
  from: number,
  to: number,
  onHeader: OnCorruptHeader,
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
      onHeader(corruptChunk(name, place, 'its header is not what was written, its bytes are'));
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
