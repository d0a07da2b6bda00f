/** Compaction: copies the live chunks of an extent to where new chunks go, and changes their locations in one commit. Ids stay. */
import type { ChunkLocation, ChunkName, ChunkWriter, Extents } from '../../extents/extents.ts';
import { encodeKey } from '../../partition/keys.ts';
import type { Partition } from '../../partition/partition.ts';
import { checkEpoch } from '../membership/epochs.ts';
import { type Chunk, chunkKey, decodeChunk, encodeChunk, liveBytesKey } from '../rows.ts';

export interface CollectorStore {
  readonly partition: Partition;
  readonly extents: Extents;
  /** Of this process. */
  readonly epoch: bigint;
}

interface Slot {
  readonly name: ChunkName;
  readonly place: ChunkLocation;
}

/** Limits of a batch, which has one sync and one commit. */
const BATCH_CHUNKS = 128;
const BATCH_BYTES = 32 << 20;
/** At most COPY_BYTES of each of CONCURRENT_COPIES chunks are in memory at a time. */
const COPY_BYTES = 1 << 20;
const CONCURRENT_COPIES = 4;
/** More than header and checksums of the longest chunk take. */
const OVERHEAD_BYTES_MAX = 4096;

/** Bytes of the live chunks in an extent, and the bytes that their slots would take elsewhere. */
export async function measureExtent(
  store: CollectorStore,
  extent: string,
): Promise<{ liveBytes: number; footprint: number }> {
  let liveBytes = 0;
  let footprint = 0;
  let previous: ChunkLocation | undefined;
  /** A slot ends where the next one begins. After the last slot, and before a gap, its size is estimated. */
  const add = (next: ChunkLocation | undefined) => {
    if (!previous) return;
    const estimate = previous.length + OVERHEAD_BYTES_MAX;
    footprint += next ? Math.min(next.offset - previous.offset, estimate) : estimate;
    previous = undefined;
  };
  for await (const batch of inBatches(store.extents.walk(extent))) {
    const live = new Set(await liveSlots(store.partition, batch));
    for (const slot of batch) {
      add(slot.place);
      if (!live.has(slot)) continue;
      liveBytes += slot.place.length;
      previous = slot.place;
    }
  }
  add(undefined);
  return { liveBytes, footprint };
}

/**
 * @param pause is called after every batch; false ends the compaction
 * @throws CorruptChunk if a chunk cannot be read
 */
export async function compactExtent(
  store: CollectorStore,
  extent: string,
  pause: () => Promise<boolean>,
): Promise<void> {
  for await (const batch of inBatches(store.extents.walk(extent))) {
    const live = await liveSlots(store.partition, batch);
    if (live.length > 0) await copyChunks(store, live);
    if (!(await pause())) return;
  }
}

async function copyChunks(store: CollectorStore, slots: readonly Slot[]): Promise<void> {
  const writers: ChunkWriter[] = [];
  try {
    for (const { name, place } of slots) writers.push(await store.extents.begin(name, place.length, 'frees'));
    const left = slots.entries();
    await allSettled(Array.from({ length: CONCURRENT_COPIES }, () => copyWorker(store.extents, left, writers)));
    await allSettled(writers.map((writer) => writer.finish()));
  } catch (error) {
    for (const writer of writers) writer.abandon();
    throw error;
  }
  const moves = slots.map((slot, i) => ({ ...slot, to: writers[i]!.place }));
  // Accounts never share a transaction.
  for (const account of new Set(slots.map(({ name }) => name.account))) {
    await relocate(
      store,
      account,
      moves.filter(({ name }) => name.account === account),
    );
  }
}

/** Copies slots from the shared iterator until none is left. */
async function copyWorker(
  extents: Extents,
  slots: Iterable<[number, Slot]>,
  writers: readonly ChunkWriter[],
): Promise<void> {
  for (const [i, { name, place }] of slots) {
    for (let from = 0; from < place.length; from += COPY_BYTES) {
      const to = Math.min(from + COPY_BYTES, place.length);
      await writers[i]!.write([await extents.read(name, place, from, to)]);
    }
  }
}

/** Fails only after all of them have ended, so that the cleanup finds nothing running. */
async function allSettled(work: readonly Promise<void>[]): Promise<void> {
  await Promise.allSettled(work);
  await Promise.all(work);
}

/** A chunk that was removed meanwhile stays removed: its copy is dead bytes. */
async function relocate(
  store: CollectorStore,
  account: bigint,
  moves: readonly (Slot & { to: ChunkLocation })[],
): Promise<void> {
  await store.partition.transact(encodeKey([account, 'collector']), async (tx) => {
    await checkEpoch(tx, store.epoch);
    const rows = await tx.getMany(moves.map(({ name }) => chunkKey(account, name)));
    const change = new Map<string, number>();
    const count = (extent: string, bytes: number) => change.set(extent, (change.get(extent) ?? 0) + bytes);
    for (const [i, { name, place, to }] of moves.entries()) {
      const row = rows[i];
      const chunk: Chunk | undefined = row && decodeChunk(row);
      if (!chunk || !isSameLocation(chunk.place, place)) continue;
      tx.put(chunkKey(account, name), encodeChunk({ ...chunk, place: to }));
      count(place.extent, -place.length);
      count(to.extent, to.length);
    }
    for (const [extent, bytes] of change) tx.add(liveBytesKey(account, extent), BigInt(bytes));
  });
}

/** Slots to which the row of their chunk points. Older copies of a chunk may lie in other slots. */
async function liveSlots(partition: Partition, slots: readonly Slot[]): Promise<Slot[]> {
  const rows = await partition.read((at) => at.getMany(slots.map(({ name }) => chunkKey(name.account, name))));
  return slots.filter(({ place }, i) => {
    const row = rows[i];
    return row !== undefined && isSameLocation(decodeChunk(row).place, place);
  });
}

function isSameLocation(one: ChunkLocation, other: ChunkLocation): boolean {
  return one.extent === other.extent && one.offset === other.offset && one.length === other.length;
}

async function* inBatches(slots: AsyncIterable<Slot>): AsyncIterable<Slot[]> {
  let batch: Slot[] = [];
  let bytes = 0;
  for await (const slot of slots) {
    batch.push(slot);
    bytes += slot.place.length;
    if (batch.length < BATCH_CHUNKS && bytes < BATCH_BYTES) continue;
    yield batch;
    batch = [];
    bytes = 0;
  }
  if (batch.length > 0) yield batch;
}
