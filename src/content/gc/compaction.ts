/** Moves what is live in an extent to where new chunks go. Only the place in a chunk's row changes: its id and its name stay. */
import type { ChunkName, ChunkWriter, Extents, Place } from '../../extents/extents.ts';
import { encodeKey } from '../../partition/keys.ts';
import type { Partition } from '../../partition/partition.ts';
import { checkEpoch } from '../membership/epochs.ts';
import { type Chunk, chunkKey, decodeChunk, encodeChunk, liveKey } from '../rows.ts';

export interface Store {
  readonly partition: Partition;
  readonly extents: Extents;
  /** Of this process. */
  readonly epoch: bigint;
}

interface Slot {
  readonly name: ChunkName;
  readonly place: Place;
}

/** One commit, and one sync before it, for so many chunks or bytes. */
const BATCH_CHUNKS = 128;
const BATCH_BYTES = 32 << 20;
/** So many bytes of so many chunks are in memory at a time. */
const PIECE_BYTES = 1 << 20;
const ABREAST = 4;
/** More than header and checksums take beside the bytes of the longest chunk. */
const OVERHEAD_BYTES_MAX = 4096;

/** How many bytes of the chunks in an extent some row still names, and how many they would take elsewhere. */
export async function measure(store: Store, extent: string): Promise<{ named: number; taken: number }> {
  let named = 0;
  let taken = 0;
  let previous: Place | undefined;
  /** The beginnings of two slots tell what the first of them takes; behind the last one, or before a gap, it is guessed. */
  const add = (next: Place | undefined) => {
    if (!previous) return;
    const guess = previous.length + OVERHEAD_BYTES_MAX;
    taken += next ? Math.min(next.offset - previous.offset, guess) : guess;
    previous = undefined;
  };
  for await (const batch of batches(store.extents.walk(extent))) {
    const live = new Set(await namedHere(store.partition, batch));
    for (const slot of batch) {
      add(slot.place);
      if (!live.has(slot)) continue;
      named += slot.place.length;
      previous = slot.place;
    }
  }
  add(undefined);
  return { named, taken };
}

/** Calls `rest` after every batch; false from it: stop. Throws Damaged where a chunk is not what it was. */
export async function moveAll(store: Store, extent: string, rest: () => Promise<boolean>): Promise<void> {
  for await (const batch of batches(store.extents.walk(extent))) {
    const live = await namedHere(store.partition, batch);
    if (live.length > 0) await move(store, live);
    if (!(await rest())) return;
  }
}

async function move(store: Store, slots: readonly Slot[]): Promise<void> {
  const writers: ChunkWriter[] = [];
  try {
    for (const { name, place } of slots) writers.push(await store.extents.begin(name, place.length, 'frees'));
    const left = slots.entries();
    await settled(Array.from({ length: ABREAST }, () => copyEach(store.extents, left, writers)));
    await settled(writers.map((writer) => writer.finish()));
  } catch (error) {
    for (const writer of writers) writer.abandon();
    throw error;
  }
  const moves = slots.map((slot, i) => ({ ...slot, to: writers[i]!.place }));
  // Accounts never share a transaction.
  for (const account of new Set(slots.map(({ name }) => name.account))) {
    await swap(
      store,
      account,
      moves.filter(({ name }) => name.account === account),
    );
  }
}

/** Takes the next slot whenever it is done with one. */
async function copyEach(
  extents: Extents,
  slots: Iterable<[number, Slot]>,
  writers: readonly ChunkWriter[],
): Promise<void> {
  for (const [i, { name, place }] of slots) {
    for (let from = 0; from < place.length; from += PIECE_BYTES) {
      const to = Math.min(from + PIECE_BYTES, place.length);
      await writers[i]!.write([await extents.read(name, place, from, to)]);
    }
  }
}

/** All have ended when the first failure is heard of. */
async function settled(work: readonly Promise<void>[]): Promise<void> {
  await Promise.allSettled(work);
  await Promise.all(work);
}

/** A chunk that was let go meanwhile stays gone: its copy is dead bytes like any others. */
async function swap(store: Store, account: bigint, moves: readonly (Slot & { to: Place })[]): Promise<void> {
  await store.partition.transact(encodeKey([account, 'collector']), async (tx) => {
    await checkEpoch(tx, store.epoch);
    const rows = await tx.getMany(moves.map(({ name }) => chunkKey(account, name)));
    const change = new Map<string, number>();
    const count = (extent: string, bytes: number) => change.set(extent, (change.get(extent) ?? 0) + bytes);
    for (const [i, { name, place, to }] of moves.entries()) {
      const row = rows[i];
      const chunk: Chunk | undefined = row && decodeChunk(row);
      if (!chunk || !isAt(chunk.place, place)) continue;
      tx.put(chunkKey(account, name), encodeChunk({ ...chunk, place: to }));
      count(place.extent, -place.length);
      count(to.extent, to.length);
    }
    for (const [extent, bytes] of change) tx.add(liveKey(account, extent), BigInt(bytes));
  });
}

/** Those of one extent whose rows say that they lie just here: a chunk may have left copies in several places. */
async function namedHere(partition: Partition, slots: readonly Slot[]): Promise<Slot[]> {
  const rows = await partition.read((at) => at.getMany(slots.map(({ name }) => chunkKey(name.account, name))));
  return slots.filter(({ place }, i) => {
    const row = rows[i];
    return row !== undefined && isAt(decodeChunk(row).place, place);
  });
}

function isAt(one: Place, other: Place): boolean {
  return one.extent === other.extent && one.offset === other.offset && one.length === other.length;
}

async function* batches(slots: AsyncIterable<Slot>): AsyncIterable<Slot[]> {
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
