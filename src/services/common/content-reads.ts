/** Reads of bytes from extents, of whatever service: planned in one snapshot, or of a state that is held until the read ends. */
import type { ContentRead } from '../../content/content.ts';
import type { ByteRange, RangeMap } from '../../content/ranges/range-maps.ts';
import { createHasher } from '../../hashing/hasher.ts';
import type { Key } from '../../partition/keys.ts';
import type { Snapshot, Transaction } from '../../partition/partition.ts';
import { nextSlice, type Storage } from './storage.ts';

/**
 * Plans the read of a content that changes in place.
 * @param gen a generation that stays as it is, and whose release waits for this read; undefined: the current state
 * @returns false: the read takes more than one lookup, and the state has to be held
 */
export type PlanRanges = (
  at: Snapshot,
  map: RangeMap,
  gen: number | undefined,
  range: { readonly from: number; readonly to: number },
) => Promise<boolean>;

export interface PlannedRead {
  readonly from: number;
  readonly to: number;
  /** False: the read has to be held. */
  readonly isPlanned: boolean;
}

/** Finds and permits, and plans the read; in a transaction its plan is not used. */
type Look<Found> = (at: Snapshot, plan: PlanRanges) => Promise<Found>;

type ReadingStorage = Pick<Storage, 'partition' | 'account' | 'content' | 'sweeper'>;

/**
 * Looks at a blob or file and plans the read of its bytes; if one lookup is not enough, its state is held. That state is released when the
 * read ends; before that, nothing of it is removed or changed, in no process.
 */
export async function planOrHold<Found extends PlannedRead>(
  storage: ReadingStorage,
  queueKey: () => Key,
  read: ContentRead,
  look: Look<Found>,
): Promise<Found> {
  const plan: PlanRanges = async (at, map, gen, { from, to }) => {
    const { isComplete } = await read.planRanges(at, storage.account, map, gen, from, to);
    return isComplete || gen !== undefined;
  };
  for (;;) {
    const found = await storage.partition.read((at) => look(at, plan));
    if (found.isPlanned) return found;
    const held = await hold(storage, queueKey(), read, look);
    // Otherwise another content took its place between the two looks.
    if (held) return held;
  }
}

async function hold<Found extends PlannedRead>(
  { partition, account, content, sweeper }: ReadingStorage,
  queueKey: Key,
  read: ContentRead,
  look: Look<Found>,
): Promise<Found | undefined> {
  const { ranges } = content;
  const readId = content.newId();
  const { value } = await partition.transact(queueKey, async (tx: Transaction) => {
    let map: RangeMap | undefined;
    const found = await look(tx, async (_, current) => {
      map = current;
      return false;
    });
    if (found.isPlanned || !map) return undefined;
    return { found, map, held: await ranges.holdForRead(tx, account, map, readId) };
  });
  if (!value) return undefined;
  const { found, map, held } = value;
  read.onEnd(() => void release());
  await partition.read((at) => read.planRanges(at, account, map, held.gen, found.from, found.to));
  return found;

  async function release(): Promise<void> {
    try {
      await ranges.releaseRead(account, held);
      sweeper.wake();
    } catch {
      // The next release of a read tries again, and so does the sweeper after the end of this process.
    }
  }
}

/** The longest range whose hash can be requested. */
export const HASHED_RANGE_MAX = 4 << 20;

export type FoundBytes = PlannedRead & {
  /** The bytes, if they are in a row. */
  readonly inline?: Buffer | undefined;
};

/**
 * The bytes of a blob or file for a reply, and what `look` has found. A stream ends its content read itself; in all other cases the read
 * has ended when this returns.
 * @param hash undefined: none is wanted
 */
export async function openBytes<Found extends FoundBytes>(
  storage: ReadingStorage,
  queueKey: () => Key,
  hash: { readonly md5: boolean } | undefined,
  look: (at: Snapshot, plan: PlanRanges, read: ContentRead) => Promise<Found>,
) {
  const read = storage.content.beginRead();
  let streams = false;
  try {
    const found = await planOrHold(storage, queueKey, read, (at, plan) => look(at, plan, read));
    const inline = found.inline ?? read.inMemory;
    const hashed = hash && (await readAndHash(inline ? [inline] : read.stream(), hash.md5));
    streams = inline === undefined && hashed === undefined;
    return { found, hashed, bytes: inline ?? hashed?.buffers ?? read.stream() };
  } finally {
    if (!streams) read.end();
  }
}

/** The hashes are sent before the bytes. Each buffer is hashed as it is read: 4 MiB at once would block the event loop. */
async function readAndHash(stream: AsyncIterable<Buffer> | Iterable<Buffer>, md5: boolean) {
  const buffers: Buffer[] = [];
  const hash = createHasher({ md5 });
  for await (const buffer of stream) {
    hash.update(buffer);
    // A copy, because the stream reuses the memory.
    buffers.push(Buffer.from(buffer));
  }
  return { buffers, ...hash.digest() };
}

/** Ranges that are emitted together. */
const SLICE_RANGES = 500;

/**
 * A page of a list of ranges.
 * @param emit gets them in slices: there may be millions
 * @returns where the next page of the list begins; undefined: it is complete
 */
export async function emitRanges<Range extends ByteRange>(
  ranges: AsyncIterable<Range>,
  limit: number,
  emit: (ranges: readonly Range[]) => void,
): Promise<number | undefined> {
  let slice: Range[] = [];
  let count = 0;
  for await (const range of ranges) {
    if (count === limit) {
      emit(slice);
      return range.from;
    }
    slice.push(range);
    count++;
    if (slice.length < SLICE_RANGES) continue;
    emit(slice);
    slice = [];
    await nextSlice();
  }
  emit(slice);
  return undefined;
}
