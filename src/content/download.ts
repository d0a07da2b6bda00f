/** The bytes of a content as a stream: no snapshot is open while the consumer takes its time, and little memory is held. */

import { nextSlice } from '../base/time-slices.ts';
import { AROUND_BYTES_MAX, CHECKED_BYTES, type ChunkStretch, type Extents, type Sums } from '../extents/extents.ts';
import { borrowBuffer, giveBackBuffer, LENT_BYTES } from '../hashing/crc32.ts';
import { type Partition, type Snapshot, Unavailable } from '../partition/partition.ts';
import type { ContentRead } from './content.ts';
import type { Reads, RunningRead as Registered } from './gc/active-reads.ts';
import { piecesFrom } from './manifest.ts';
import { type ContentId, chunkKey, chunkNameOf, decodeChunk, type Part, textOf } from './rows.ts';

export interface Reading {
  readonly partition: Pick<Partition, 'read'>;
  readonly extents: Pick<Extents, 'read' | 'readMany'>;
  readonly reads: Reads;
  /** What all streams together have read and their consumers have not taken yet. */
  readonly held: { bytes: number };
}

/** What is to be read of one chunk. */
interface Stretch extends ChunkStretch {
  /** If it is read in several steps. */
  readonly sums?: Sums;
}

/** Parts that are looked up at a time; small ones are looked up as long as they have so few bytes. */
const PAGE_PARTS = 64;
const PAGE_BYTES_MIN = 1 << 20;
/** So many small parts are read together: those that lie next to each other may stand far apart in the content. */
const SMALL_PARTS_MAX = 4_096;
/** So much is read of a chunk at a time. */
const READ_BYTES = LENT_BYTES - AROUND_BYTES_MAX;
/** Above this, streams read little at a time and nothing ahead. */
const HELD_BYTES_MAX = 64 << 20;

/** Most reads are of blobs that lie in a row: what a stream needs is made once there is something to stream. */
export class RunningRead implements ContentRead {
  // Not #private: Node 20 takes longer to make such fields than all the rest of a small read.
  private readonly reading: Reading;
  private readonly registered: Registered;
  private bytes: AsyncGenerator<Buffer, void> | undefined = undefined;

  constructor(reading: Reading) {
    this.reading = reading;
    this.registered = reading.reads.begin();
  }

  async plan(at: Snapshot, account: bigint, id: ContentId, from: number, to: number): Promise<void> {
    if (from >= to) return;
    const page = await stretchesFrom(at, account, id, from, to);
    const lookUp = async (next: Snapshot, begin: number) => stretchesFrom(next, account, id, begin, to);
    this.bytes = generate(this.reading, page, to, lookUp);
  }

  stream(): AsyncIterable<Buffer> {
    const { bytes } = this;
    const ended = { done: true, value: undefined } as const;
    return {
      [Symbol.asyncIterator]: () => ({
        next: async () => {
          try {
            if (this.registered.isCut) throw new Unavailable('The read took too long.');
            const step = bytes ? await bytes.next() : ended;
            if (step.done) this.end();
            return step;
          } catch (error) {
            this.end();
            throw error;
          }
        },
        return: async () => {
          await bytes?.return();
          this.end();
          return ended;
        },
      }),
    };
  }

  end(): void {
    this.registered.end();
  }
}

/** Stretches that were looked up together, and the byte at which the next begin. */
interface Page {
  readonly stretches: Stretch[];
  readonly end: number;
}

async function* generate(
  { partition, extents, held }: Reading,
  page: Page,
  to: number,
  lookUp: (at: Snapshot, from: number) => Promise<Page>,
): AsyncGenerator<Buffer, void> {
  let heldHere = 0;
  /** The consumer has one of them while the other is filled. */
  const buffers: (Buffer | undefined)[] = [undefined, undefined];
  let turn = 0;
  let coming: Promise<Buffer | undefined> | undefined;

  function hold(bytes: number): void {
    heldHere += bytes;
    held.bytes += bytes;
  }

  /** Looks up more, as long as all that is looked up would go out in one piece. */
  async function fill(): Promise<void> {
    const { stretches } = page;
    while (page.end < to && stretches.length < SMALL_PARTS_MAX && lengthOf(stretches) < CHECKED_BYTES) {
      if (stretches.length > 0) await nextSlice();
      const more = await partition.read((at) => lookUp(at, page.end));
      stretches.push(...more.stretches);
      page = { stretches, end: more.end };
    }
  }

  /** The next bytes; none when all are read. */
  async function next(): Promise<Buffer | undefined> {
    await fill();
    const stretch = page.stretches.shift();
    if (!stretch) return undefined;
    const small = smallFrom(stretch, page.stretches);
    if (small.length > 1) {
      page.stretches.splice(0, small.length - 1);
      hold(lengthOf(small));
      return extents.readMany(small);
    }
    const { name, place, from } = stretch;
    let { sums } = stretch;
    const begin = from - (from % CHECKED_BYTES);
    const most = held.bytes >= HELD_BYTES_MAX ? CHECKED_BYTES : READ_BYTES;
    // A read that ends where a checksum does leaves nothing to be read again.
    const end = Math.min(stretch.to, begin + most);
    if (end < stretch.to) {
      sums ??= {};
      page.stretches.unshift({ ...stretch, from: end, sums });
    }
    hold(end - from);
    // A small piece goes out with others' bytes, and may still lie there when the next is asked for.
    if (end - from < CHECKED_BYTES) return extents.read(name, place, from, end);
    turn = 1 - turn;
    // To allocate memory for each read would keep V8's collector busy.
    buffers[turn] ??= borrowBuffer() ?? Buffer.allocUnsafeSlow(LENT_BYTES);
    return extents.read(name, place, from, end, buffers[turn], sums);
  }

  try {
    for (;;) {
      coming ??= next();
      const bytes = await coming;
      coming = undefined;
      if (!bytes) return;
      if (held.bytes < HELD_BYTES_MAX) {
        coming = next();
        // Heard of when it is its turn.
        coming.catch(() => {});
      }
      yield bytes;
      hold(-bytes.length);
    }
  } finally {
    await coming?.catch(() => {});
    hold(-heldHere);
    for (const buffer of buffers) if (buffer) giveBackBuffer(buffer);
  }
}

/** This one and those behind it that go out in one piece: together they are smaller than what one checksum is for. */
function smallFrom(first: Stretch, rest: readonly Stretch[]): readonly Stretch[] {
  const small = [first];
  let bytes = first.to - first.from;
  for (const stretch of rest) {
    bytes += stretch.to - stretch.from;
    if (bytes >= CHECKED_BYTES) break;
    small.push(stretch);
  }
  return small;
}

const lengthOf = (stretches: readonly Stretch[]): number => stretches.reduce((sum, { from, to }) => sum + to - from, 0);

/** One page of them, and where the next begins. */
async function stretchesFrom(at: Snapshot, account: bigint, id: ContentId, from: number, to: number): Promise<Page> {
  const wanted: { part: Part; from: number; to: number }[] = [];
  const { offset, pieces } = await piecesFrom(at, account, id, from);
  let end = offset;
  for (const part of pieces.flatMap(({ parts }) => parts)) {
    if (end >= to || (wanted.length >= PAGE_PARTS && end - from >= PAGE_BYTES_MIN)) break;
    const begin = end;
    end += part.length;
    if (end > from) wanted.push({ part, from: Math.max(from - begin, 0), to: Math.min(to - begin, part.length) });
  }
  if (wanted.length === 0) throw new Error(`content ${textOf(id)} has no byte ${from}`);
  const rows = await at.getMany(wanted.map(({ part }) => chunkKey(account, part.chunk)));
  const stretches = wanted.map(({ part, ...stretch }, i): Stretch => {
    const row = rows[i];
    if (!row) throw new Error(`chunk ${textOf(part.chunk)} of content ${textOf(id)} has no row`);
    const { place } = decodeChunk(row);
    return { name: chunkNameOf(account, part.chunk), place, ...stretch };
  });
  return { stretches, end };
}
