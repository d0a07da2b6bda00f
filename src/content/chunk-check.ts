/** Verifies that chunks can be read, while a server may move and remove them. */
import { type ChunkLocation, CorruptChunk, type Extents } from '../extents/extents.ts';
import type { Partition } from '../partition/partition.ts';
import { type Chunk, type ChunkId, chunkKey, chunkName, decodeChunk } from './rows.ts';

export interface ChunkChecker {
  /** The fault of a chunk, if it has one. A chunk that was removed meanwhile has none. */
  check(account: bigint, id: ChunkId, chunk: Chunk): Promise<ChunkFault | undefined>;
}

export interface ChunkFault {
  /** In plain words. */
  readonly message: string;
  /** Whether the bytes of the chunk can be read in spite of the fault. */
  readonly isReadable: boolean;
}

const READ_BYTES = 1 << 20;

/** @param takeReported returns and forgets the last corruption that the extents reported, which a read may have survived */
export function createChunkChecker(
  partition: Pick<Partition, 'read'>,
  extents: Pick<Extents, 'read'>,
  takeReported: () => Error | undefined = () => undefined,
): ChunkChecker {
  async function faultAt(account: bigint, id: ChunkId, place: ChunkLocation): Promise<ChunkFault | undefined> {
    try {
      takeReported();
      for (let from = 0; from < place.length; from += READ_BYTES) {
        const to = Math.min(from + READ_BYTES, place.length);
        await extents.read(chunkName(account, id), place, from, to);
      }
      const reported = takeReported();
      return reported && { message: reported.message, isReadable: true };
    } catch (error) {
      if (error instanceof CorruptChunk) return { message: error.message, isReadable: false };
      throw error;
    }
  }

  async function currentLocation(account: bigint, id: ChunkId): Promise<ChunkLocation | undefined> {
    const row = await partition.read((at) => at.get(chunkKey(account, id)));
    return row && decodeChunk(row).place;
  }

  return {
    async check(account, id, chunk) {
      for (let place: ChunkLocation | undefined = chunk.place; place; ) {
        const fault = await faultAt(account, id, place);
        if (!fault) return undefined;
        const current = await currentLocation(account, id);
        if (current?.extent === place.extent && current.offset === place.offset) return fault;
        place = current;
      }
      return undefined;
    },
  };
}
