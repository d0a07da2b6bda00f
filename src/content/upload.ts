/** Streams into extents. A body costs what lies between two writes: a slow one next to nothing. */

import { CHUNK_BYTES_MAX, type ChunkLocation, type ChunkWriter, type Extents } from '../extents/extents.ts';
import type { HashPool } from '../hashing/hash-pool.ts';
import { batchWrites } from './batched-writes.ts';
import type { ContentStore, Source } from './content.ts';
import { type ChunkRef, chunkName, type Id } from './rows.ts';

export interface Uploader {
  readonly upload: ContentStore['upload'];
  readonly pinnedExtents: () => ReadonlySet<string>;
}

/** How much of a body waits for the write before it. */
const BATCH_BYTES_MAX = 512 << 10;
/** Chunks of one body that are written before the disk has to have them. Together they cost few syncs. */
const UNSYNCED_CHUNKS_MAX = 8;

export function createUploader(extents: Extents, hashers: HashPool, newId: () => Id): Uploader {
  const pinCounts = new Map<string, number>();

  function pin(extent: string, by: number): void {
    const count = (pinCounts.get(extent) ?? 0) + by;
    if (count > 0) pinCounts.set(extent, count);
    else pinCounts.delete(extent);
  }

  async function upload(
    account: bigint,
    source: Source,
    length: number,
    wants: { readonly md5: boolean },
  ): ReturnType<ContentStore['upload']> {
    const hash = hashers.begin({ ...wants, length });
    const chunks = beginChunks(extents, newId, account, length, (extent) => pin(extent, 1));
    let received = 0;
    let released = false;
    function release(): void {
      if (released) return;
      released = true;
      for (const { extent } of chunks.locations) pin(extent, -1);
    }
    try {
      await batchWrites(source, BATCH_BYTES_MAX, async (batch, bytes) => {
        received += bytes;
        if (received > length) throw new Error(`more than the ${length} bytes that were announced`);
        await bothSettled(hash.update(batch), chunks.write(batch));
      });
      if (received < length) throw new Error(`${received} bytes instead of the ${length} that were announced`);
      const [{ md5, crc64 }] = await bothSettled(hash.digest(), chunks.finish());
      return { length, md5, crc64, chunkRefs: chunks.chunkRefs, locations: chunks.locations, release };
    } catch (error) {
      hash.abandon();
      chunks.abandon();
      release();
      throw error;
    }
  }

  return { upload, pinnedExtents: () => new Set(pinCounts.keys()) };
}

interface ChunkSequence {
  readonly chunkRefs: readonly ChunkRef[];
  readonly locations: readonly ChunkLocation[];
  write(bytes: readonly Uint8Array[]): Promise<void>;
  finish(): Promise<void>;
  abandon(): void;
}

/** `length` bytes as chunks, one after another. */
function beginChunks(
  extents: Extents,
  newId: () => Id,
  account: bigint,
  length: number,
  onBegin: (extent: string) => void,
): ChunkSequence {
  const chunkRefs: ChunkRef[] = [];
  const locations: ChunkLocation[] = [];
  let left = length;
  let writer: ChunkWriter | undefined;
  let room = 0;
  const written: ChunkWriter[] = [];
  let syncing: Promise<unknown> = Promise.resolve();

  async function begin(): Promise<ChunkWriter> {
    const chunk = newId();
    room = Math.min(left, CHUNK_BYTES_MAX);
    const begun = await extents.begin(chunkName(account, chunk), room);
    onBegin(begun.place.extent);
    chunkRefs.push({ chunk, length: room });
    locations.push(begun.place);
    left -= room;
    return begun;
  }

  function sync(): void {
    syncing = Promise.all(written.splice(0).map((done) => done.finish()));
    // Who waits for it hears of a failure; until then it is nobody's.
    syncing.catch(() => {});
  }

  return {
    chunkRefs,
    locations,
    async write(bytes) {
      for (let rest = bytes; rest.length > 0; ) {
        writer ??= await begin();
        const [now, later, size] = splitAt(rest, room);
        await writer.write(now);
        room -= size;
        rest = later;
        if (room > 0) continue;
        written.push(writer);
        writer = undefined;
        if (written.length < UNSYNCED_CHUNKS_MAX) continue;
        await syncing;
        sync();
      }
    },
    async finish() {
      const before = syncing;
      sync();
      await bothSettled(before, syncing);
    },
    abandon() {
      writer?.abandon();
      for (const done of written) done.abandon();
    },
  };
}

/** Both have ended, whatever came of them: who cleans up after a failure finds nothing running. */
async function bothSettled<A, B>(one: Promise<A>, other: Promise<B>): Promise<[A, B]> {
  await Promise.allSettled([one, other]);
  return [await one, await other];
}

/** The first `size` bytes, or all there are, and the rest. */
function splitAt(
  pieces: readonly Uint8Array[],
  size: number,
): [now: readonly Uint8Array[], later: readonly Uint8Array[], bytes: number] {
  let bytes = 0;
  for (const [i, piece] of pieces.entries()) {
    if (bytes + piece.length > size) {
      const cut = size - bytes;
      const first = cut > 0 ? [piece.subarray(0, cut)] : [];
      return [[...pieces.slice(0, i), ...first], [piece.subarray(cut), ...pieces.slice(i + 1)], size];
    }
    bytes += piece.length;
  }
  return [pieces, [], bytes];
}
