/** Reads chunks only to see whether they can be read; a server may move and remove them meanwhile. */
import { Damaged, type Extents, type Place } from '../extents/extents.ts';
import type { Partition } from '../partition/partition.ts';
import { type Chunk, type ChunkId, chunkKey, chunkNameOf, decodeChunk } from './rows.ts';

export interface ChunkChecker {
  /** What is wrong with the bytes of a chunk, in plain words. A chunk that is gone by now has nothing wrong. */
  check(account: bigint, id: ChunkId, chunk: Chunk): Promise<string | undefined>;
}

const PIECE_BYTES = 1 << 20;

export function createChunkChecker(partition: Pick<Partition, 'read'>, extents: Pick<Extents, 'read'>): ChunkChecker {
  async function damageAt(account: bigint, id: ChunkId, place: Place): Promise<Damaged | undefined> {
    try {
      for (let from = 0; from < place.length; from += PIECE_BYTES) {
        const to = Math.min(from + PIECE_BYTES, place.length);
        await extents.read(chunkNameOf(account, id), place, from, to);
      }
      return undefined;
    } catch (error) {
      if (error instanceof Damaged) return error;
      throw error;
    }
  }

  async function placeOf(account: bigint, id: ChunkId): Promise<Place | undefined> {
    const row = await partition.read((at) => at.get(chunkKey(account, id)));
    return row && decodeChunk(row).place;
  }

  return {
    async check(account, id, chunk) {
      for (let place: Place | undefined = chunk.place; place; ) {
        const damage = await damageAt(account, id, place);
        if (!damage) return undefined;
        const now = await placeOf(account, id);
        if (now?.extent === place.extent && now.offset === place.offset) return damage.message;
        place = now;
      }
      return undefined;
    },
  };
}
