/** Reads chunks only to see whether they can be read; a server may move and remove them meanwhile. */
import { type ChunkLocation, CorruptChunk, type Extents } from '../extents/extents.ts';
import type { Partition } from '../partition/partition.ts';
import { type Chunk, type ChunkId, chunkKey, chunkName, decodeChunk } from './rows.ts';

export interface ChunkChecker {
  /** What is wrong with a chunk. A chunk that is gone by now has nothing wrong. */
  check(account: bigint, id: ChunkId, chunk: Chunk): Promise<ChunkFault | undefined>;
}

export interface ChunkFault {
  /** In plain words. */
  readonly message: string;
  /** Whether its bytes can be read all the same. */
  readonly isReadable: boolean;
}

const READ_BYTES = 1 << 20;

/** @param takeReported the last damage that the extents told of, whether a read failed of it or not; asked again, there is none */
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
        const now = await currentLocation(account, id);
        if (now?.extent === place.extent && now.offset === place.offset) return fault;
        place = now;
      }
      return undefined;
    },
  };
}
