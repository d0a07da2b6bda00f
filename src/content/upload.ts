/** Uploads: streams bytes into chunks with back-pressure, and one sync for several chunks. A slow body costs next to no memory. */

import { CHUNK_BYTES_MAX, type ChunkLocation, type ChunkWriter, type Extents } from '../extents/extents.ts';
import type { HashPool } from '../hashing/hash-pool.ts';
import { batchWrites } from './batched-writes.ts';
import type { ContentStore, Source, WantedUpload } from './content.ts';
import { MAP_PAGE_BYTES } from './ranges/map-page.ts';
import { type ChunkRef, chunkName, type Id } from './rows.ts';

export interface Uploader {
  readonly upload: ContentStore['upload'];
  readonly pinnedExtents: () => ReadonlySet<string>;
}

/** Bytes of a body that wait for the write before. */
const BATCH_BYTES_MAX = 512 << 10;
/** Chunks of one body that are written before a sync: several chunks together need few syncs. */
const UNSYNCED_CHUNKS_MAX = 8;

export function createUploader(extents: Extents, hashers: HashPool, newId: () => Id): Uploader {
  /**
   * Chunks of uploads per extent. Raised before the extent gets the first byte of a chunk, lowered when the upload is released: after
   * its commit is decided, and never if the outcome of the commit is unknown.
   */
  const pinCounts = new Map<string, number>();

  function pin(extent: string, by: 1 | -1): void {
    const count = (pinCounts.get(extent) ?? 0) + by;
    if (count > 0) pinCounts.set(extent, count);
    else pinCounts.delete(extent);
  }

  async function upload(
    account: bigint,
    source: Source,
    length: number,
    { md5: wantsMd5, mapOffset }: WantedUpload,
  ): ReturnType<ContentStore['upload']> {
    const hash = hashers.begin({ md5: wantsMd5, length });
    const chunks = new ChunkSequence(length, mapOffset, async (size) => {
      const chunk = newId();
      const writer = await extents.begin(chunkName(account, chunk), size);
      pin(writer.place.extent, 1);
      return { chunk, writer };
    });
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

/** A body as chunks, one after another. */
class ChunkSequence {
  /** One for each chunk that was begun, and so are the locations. */
  readonly chunkRefs: ChunkRef[] = [];
  readonly locations: ChunkLocation[] = [];
  readonly #beginChunk: (length: number) => Promise<{ chunk: Id; writer: ChunkWriter }>;
  /** Bytes of the body that have no chunk yet. */
  #unassigned: number;
  /** The offset after the last byte, in a content that changes in place. */
  readonly #mapEnd: number | undefined;
  /** The chunk that is being written, and the bytes that it still takes. */
  #writer: ChunkWriter | undefined;
  #room = 0;
  /** Chunks that have all their bytes, and no sync yet. */
  readonly #written: ChunkWriter[] = [];
  #syncing: Promise<unknown> = Promise.resolve();

  constructor(
    length: number,
    mapOffset: number | undefined,
    beginChunk: (length: number) => Promise<{ chunk: Id; writer: ChunkWriter }>,
  ) {
    this.#unassigned = length;
    this.#mapEnd = mapOffset === undefined ? undefined : mapOffset + length;
    this.#beginChunk = beginChunk;
  }

  async write(bytes: readonly Uint8Array[]): Promise<void> {
    for (let rest = bytes; rest.length > 0; ) {
      this.#writer ??= await this.#nextChunk();
      const [now, later, size] = splitAt(rest, this.#room);
      await this.#writer.write(now);
      this.#room -= size;
      rest = later;
      if (this.#room > 0) continue;
      this.#written.push(this.#writer);
      this.#writer = undefined;
      if (this.#written.length < UNSYNCED_CHUNKS_MAX) continue;
      await this.#syncing;
      this.#sync();
    }
  }

  async finish(): Promise<void> {
    const before = this.#syncing;
    this.#sync();
    await bothSettled(before, this.#syncing);
  }

  abandon(): void {
    this.#writer?.abandon();
    for (const writer of this.#written) writer.abandon();
  }

  async #nextChunk(): Promise<ChunkWriter> {
    const length = Math.min(this.#unassigned, this.#chunkBytesMax());
    const { chunk, writer } = await this.#beginChunk(length);
    this.chunkRefs.push({ chunk, length });
    this.locations.push(writer.place);
    this.#unassigned -= length;
    this.#room = length;
    return writer;
  }

  #chunkBytesMax(): number {
    if (this.#mapEnd === undefined) return CHUNK_BYTES_MAX;
    return MAP_PAGE_BYTES - ((this.#mapEnd - this.#unassigned) % MAP_PAGE_BYTES);
  }

  #sync(): void {
    this.#syncing = Promise.all(this.#written.splice(0).map((writer) => writer.finish()));
    // A failure is reported to the next write or to `finish`; until then it must not count as unhandled.
    this.#syncing.catch(() => {});
  }
}

/** Fails only after both have ended, so that the cleanup finds nothing running. */
async function bothSettled<A, B>(one: Promise<A>, other: Promise<B>): Promise<[A, B]> {
  await Promise.allSettled([one, other]);
  return [await one, await other];
}

/** The first `size` bytes, or all if there are fewer, and the rest. */
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
