/** A content store on the memory engine, with extents that wait and fail on demand. */
import { createContentStore } from '../../src/content/content-store.ts';
import { createActiveReads } from '../../src/content/gc/active-reads.ts';
import { takeOverEpoch } from '../../src/content/membership/epochs.ts';
import { type ChunkLocation, type ChunkName, CorruptChunk, type Extents } from '../../src/extents/extents.ts';
import type { HashPool } from '../../src/hashing/hash-pool.ts';
import { createHasher } from '../../src/hashing/hasher.ts';
import { openMemory } from '../../src/partition/memory/engine.ts';
import type { Partition } from '../../src/partition/partition.ts';
import { openPartition } from '../../src/partition/transact.ts';

export const account = 7n;

interface Slot {
  readonly name: ChunkName;
  readonly place: ChunkLocation;
  readonly bytes: Buffer;
  written: number;
  state: 'open' | 'finished' | 'abandoned';
}

export interface WatchedExtents extends Extents {
  readonly slots: readonly Slot[];
  /** The number of buffers and bytes of each write. */
  readonly writes: { readonly pieces: number; readonly bytes: number }[];
  readonly reads: { readonly from: number; readonly to: number }[];
}

export interface Faults {
  extentBytes?: number;
  onBegin?: (chunks: number) => Promise<void> | void;
  onWrite?: (writes: number) => Promise<void> | void;
  onFinish?: () => Promise<void> | void;
  onRead?: () => Promise<void> | void;
}

export function watchedExtents(faults: Faults = {}): WatchedExtents {
  const slots: Slot[] = [];
  const writes: { pieces: number; bytes: number }[] = [];
  const reads: { from: number; to: number }[] = [];
  const removed = new Set<string>();
  let extents = 0;
  let end = Infinity;

  function bytesAt(name: ChunkName, place: ChunkLocation, from: number, to: number): Buffer {
    const slot = slots.find((one) => one.place.extent === place.extent && one.place.offset === place.offset);
    if (!slot || removed.has(place.extent) || slot.name.number !== name.number || slot.state !== 'finished') {
      throw new CorruptChunk('not there');
    }
    return Buffer.from(slot.bytes.subarray(from, to));
  }

  return {
    slots,
    writes,
    reads,
    isLowOnSpace: () => false,
    async begin(name, length) {
      await faults.onBegin?.(slots.length + 1);
      if (end + length > (faults.extentBytes ?? 64 << 20)) {
        extents++;
        end = 0;
      }
      const place = { extent: `e${extents}`, offset: end, length };
      end += length;
      const slot: Slot = { name, place, bytes: Buffer.alloc(length), written: 0, state: 'open' };
      slots.push(slot);
      return {
        place,
        async write(bytes) {
          const size = bytes.reduce((sum, piece) => sum + piece.length, 0);
          writes.push({ pieces: bytes.length, bytes: size });
          if (slot.state !== 'open' || slot.written + size > length) throw new Error('a write that was not expected');
          await faults.onWrite?.(writes.length);
          for (const piece of bytes) {
            slot.bytes.set(piece, slot.written);
            slot.written += piece.length;
          }
        },
        async finish() {
          if (slot.state !== 'open' || slot.written !== length) throw new Error('a finish that was not expected');
          slot.state = 'finished';
          await faults.onFinish?.();
        },
        abandon() {
          if (slot.state !== 'open') throw new Error('abandoned, although it was finished');
          slot.state = 'abandoned';
        },
      };
    },
    async read(name, place, from, to) {
      await faults.onRead?.();
      reads.push({ from, to });
      return bytesAt(name, place, from, to);
    },
    async readMany(stretches) {
      await faults.onRead?.();
      reads.push({ from: stretches[0]!.from, to: stretches.at(-1)!.to });
      return Buffer.concat(stretches.map(({ name, place, from, to }) => bytesAt(name, place, from, to)));
    },
    async *walk(extent) {
      for (const { name, place } of slots) if (place.extent === extent) yield { name, place };
    },
    chunksBegun: () => 0,
    list: async () => [],
    bytesOf: async () => 0,
    seal: async () => {},
    async remove(extent) {
      removed.add(extent);
    },
    close: async () => {},
  };
}

/** In this thread; `open` counts hashers that were neither finished nor abandoned. */
export interface WatchedHashers extends HashPool {
  open: number;
  failure?: Error;
}

export function watchedHashers(): WatchedHashers {
  const hashers: WatchedHashers = {
    open: 0,
    begin(wants) {
      const one = createHasher(wants);
      let ended = false;
      hashers.open++;
      const end = () => {
        if (!ended) hashers.open--;
        ended = true;
      };
      return {
        async update(bytes) {
          if (hashers.failure) throw hashers.failure;
          for (const piece of bytes instanceof Uint8Array ? [bytes] : bytes) one.update(piece);
        },
        async digest() {
          end();
          return one.digest();
        },
        abandon: end,
      };
    },
    close: async () => {},
  };
  return hashers;
}

export type Opened = Awaited<ReturnType<typeof openStore>>;

export async function openStore(
  openExtents: (epoch: bigint) => Extents | Promise<Extents> = () => watchedExtents(),
  wrap = (partition: Partition) => partition,
) {
  /** The largest number of rows that one commit wrote. */
  const rows = { most: 0 };
  const engine = openMemory({
    inject({ writeSets }) {
      rows.most = Math.max(rows.most, writeSets.flatMap(({ writes }) => writes).length);
      return undefined;
    },
  });
  const partition = wrap(openPartition(engine));
  const reads = createActiveReads();
  const epoch = await takeOverEpoch(partition);
  const extents = await openExtents(epoch);
  const hashers = watchedHashers();
  const store = createContentStore({ partition, extents, epoch, reads, hashers });
  return { partition, reads, epoch, hashers, store, extents, rows };
}

export async function* inPieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

export async function bytesFrom(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of stream) pieces.push(Buffer.from(piece));
  return Buffer.concat(pieces);
}

/** Deterministic pseudo-random bytes. */
export function bytesOfSeed(seed: number, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  let state = (seed * 2654435761 + 12345) >>> 0;
  for (let i = 0; i < length; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    bytes[i] = state >>> 24;
  }
  return bytes;
}
