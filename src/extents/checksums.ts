/** Block checksums: one CRC32 for every 64 KiB of a chunk, seeded with the chunk's name and the block's number, so that a misplaced block is found. */
import { crc32 } from '../hashing/crc32.ts';
import { CHECKSUM_BLOCK_BYTES, type ChunkName } from './extents.ts';
import { blocksIn, checksumOffset, encodeName } from './slots.ts';

/**
 * The lowest 24 bits of the chunk's number and the eight of the block's are adjacent: seeds that differ only in those are never
 * equal, since a CRC32 finds every difference within 32 bits.
 */
function blockSeeds(name: ChunkName): (block: number) => number {
  const named = crc32(encodeName(name));
  return (block) => crc32(Buffer.of(block), named);
}

export interface ChecksumBuilder {
  add(bytes: Uint8Array): void;
  /** The checksums of all blocks; complete once all bytes were added. */
  table(): Buffer;
}

export function makeChecksumBuilder(name: ChunkName, length: number): ChecksumBuilder {
  const seed = blockSeeds(name);
  const table = Buffer.alloc(checksumOffset(0, blocksIn(length)));
  let at = 0;
  let sum = 0;
  return {
    add(bytes) {
      for (let from = 0; from < bytes.length; ) {
        const block = Math.floor(at / CHECKSUM_BLOCK_BYTES);
        const size = Math.min(bytes.length - from, (block + 1) * CHECKSUM_BLOCK_BYTES - at);
        sum = crc32(bytes.subarray(from, from + size), at % CHECKSUM_BLOCK_BYTES === 0 ? seed(block) : sum);
        table.writeUInt32BE(sum, checksumOffset(0, block));
        from += size;
        at += size;
      }
    },
    table: () => table,
  };
}

/** The first block that does not match; `data` starts with block `first`, `table` with its checksum. */
export function firstCorruptBlock(name: ChunkName, first: number, data: Buffer, table: Buffer): number | undefined {
  const seed = blockSeeds(name);
  for (let block = 0; block < blocksIn(data.length); block++) {
    const bytes = data.subarray(block * CHECKSUM_BLOCK_BYTES, (block + 1) * CHECKSUM_BLOCK_BYTES);
    if (crc32(bytes, seed(first + block)) !== table.readUInt32BE(checksumOffset(0, block))) return first + block;
  }
  return undefined;
}
