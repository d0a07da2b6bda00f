/** Streams into extents. A body costs what lies between two writes: a slow one next to nothing. */

import { CHUNK_BYTES_MAX, type ChunkWriter, type Extents, type Place } from '../extents/extents.ts';
import type { Hashers } from '../hashing/hash-pool.ts';
import { gather } from './batched-writes.ts';
import type { ContentStore, Source } from './content.ts';
import { chunkNameOf, type Id, type Part } from './rows.ts';

export interface Taker {
  readonly take: ContentStore['take'];
  readonly heldExtents: () => ReadonlySet<string>;
}

/** How much of a body waits for the write before it. */
const GATHERED_BYTES_MAX = 512 << 10;
/** Chunks of one body that are written before the disk has to have them. Together they cost few syncs. */
const UNSYNCED_CHUNKS_MAX = 8;

export function createTaker(extents: Extents, hashers: Hashers, newId: () => Id): Taker {
  const holders = new Map<string, number>();

  function hold(extent: string, by: number): void {
    const count = (holders.get(extent) ?? 0) + by;
    if (count > 0) holders.set(extent, count);
    else holders.delete(extent);
  }

  async function take(
    account: bigint,
    source: Source,
    length: number,
    wants: { readonly md5: boolean },
  ): ReturnType<ContentStore['take']> {
    const hash = hashers.begin({ ...wants, length });
    const chunks = writeChunks(extents, newId, account, length, (extent) => hold(extent, 1));
    let came = 0;
    let released = false;
    function release(): void {
      if (released) return;
      released = true;
      for (const { extent } of chunks.places) hold(extent, -1);
    }
    try {
      await gather(source, GATHERED_BYTES_MAX, async (batch, bytes) => {
        came += bytes;
        if (came > length) throw new Error(`more than the ${length} bytes that were announced`);
        await both(hash.update(batch), chunks.write(batch));
      });
      if (came < length) throw new Error(`${came} bytes instead of the ${length} that were announced`);
      const [{ md5, crc64 }] = await both(hash.digest(), chunks.finish());
      return { length, md5, crc64, parts: chunks.parts, places: chunks.places, release };
    } catch (error) {
      hash.abandon();
      chunks.abandon();
      release();
      throw error;
    }
  }

  return { take, heldExtents: () => new Set(holders.keys()) };
}

interface Chunks {
  readonly parts: readonly Part[];
  readonly places: readonly Place[];
  write(bytes: readonly Uint8Array[]): Promise<void>;
  finish(): Promise<void>;
  abandon(): void;
}

/** `length` bytes as chunks, one after another. */
function writeChunks(
  extents: Extents,
  newId: () => Id,
  account: bigint,
  length: number,
  onBegin: (extent: string) => void,
): Chunks {
  const parts: Part[] = [];
  const places: Place[] = [];
  let left = length;
  let writer: ChunkWriter | undefined;
  let room = 0;
  const written: ChunkWriter[] = [];
  let syncing: Promise<unknown> = Promise.resolve();

  async function begin(): Promise<ChunkWriter> {
    const chunk = newId();
    room = Math.min(left, CHUNK_BYTES_MAX);
    const begun = await extents.begin(chunkNameOf(account, chunk), room);
    onBegin(begun.place.extent);
    parts.push({ chunk, length: room });
    places.push(begun.place);
    left -= room;
    return begun;
  }

  function sync(): void {
    syncing = Promise.all(written.splice(0).map((done) => done.finish()));
    // Who waits for it hears of a failure; until then it is nobody's.
    syncing.catch(() => {});
  }

  return {
    parts,
    places,
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
      await both(before, syncing);
    },
    abandon() {
      writer?.abandon();
      for (const done of written) done.abandon();
    },
  };
}

/** Both have ended, whatever came of them: who cleans up after a failure finds nothing running. */
async function both<A, B>(one: Promise<A>, other: Promise<B>): Promise<[A, B]> {
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
