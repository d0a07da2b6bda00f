/** The bytes of a content as a stream: no snapshot is open while the consumer takes its time, and little memory is held. */
import { CHECKED_BYTES, type ChunkName, type Extents, type Place } from '../extents/extents.ts';
import type { Partition, Snapshot } from '../partition/partition.ts';
import type { ContentRead } from './content.ts';
import { piecesFrom } from './lists.ts';
import type { Reads } from './reads.ts';
import { type ContentId, chunkKey, chunkNameOf, decodeChunk, type Part, textOf } from './rows.ts';

export interface Reading {
  readonly partition: Pick<Partition, 'read'>;
  readonly extents: Pick<Extents, 'read'>;
  readonly reads: Reads;
  /** What all streams together have read and their consumers have not taken yet. */
  readonly held: { bytes: number };
}

/** What is to be read of one chunk, counted from its beginning. */
interface Stretch {
  readonly name: ChunkName;
  readonly place: Place;
  readonly from: number;
  readonly to: number;
}

/** Parts that are looked up at a time. */
const PAGE_PARTS = 64;
const READ_BYTES = 1 << 20;
/** Above this, streams read little at a time and nothing ahead. */
const HELD_BYTES_MAX = 64 << 20;

export function beginRead({ partition, extents, reads, held }: Reading): ContentRead {
  const read = reads.begin();
  let lookUpMore: ((at: Snapshot) => Promise<void>) | undefined;
  let stretches: Stretch[] = [];
  let heldHere = 0;

  function hold(bytes: number): void {
    heldHere += bytes;
    held.bytes += bytes;
  }

  function planFrom(account: bigint, id: ContentId, from: number, to: number): void {
    lookUpMore = async (at) => {
      const page = await stretchesFrom(at, account, id, from, to);
      stretches = page.stretches;
      if (page.end < to) planFrom(account, id, page.end, to);
      else lookUpMore = undefined;
    };
  }

  /** The next bytes; none when all are read. */
  async function next(): Promise<Buffer | undefined> {
    if (stretches.length === 0 && lookUpMore) await partition.read(lookUpMore);
    const stretch = stretches.shift();
    if (!stretch) return undefined;
    const { name, place, from, to } = stretch;
    const most = held.bytes < HELD_BYTES_MAX ? READ_BYTES : CHECKED_BYTES;
    // A read that ends where a checksum does leaves nothing to be read again.
    const end = Math.min(to, from - (from % CHECKED_BYTES) + most);
    if (end < to) stretches.unshift({ name, place, from: end, to });
    hold(end - from);
    return extents.read(name, place, from, end);
  }

  async function* generate(): AsyncGenerator<Buffer, void> {
    let coming: Promise<Buffer | undefined> | undefined;
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
      read.end();
    }
  }

  return {
    async plan(at, account, id, from, to) {
      if (from >= to) return;
      planFrom(account, id, from, to);
      await lookUpMore?.(at);
    },
    stream() {
      const bytes = generate();
      return {
        [Symbol.asyncIterator]: () => ({
          next: () => bytes.next(),
          // A generator that has not begun does not come to its end when it is returned.
          return: async () => {
            await bytes.return();
            read.end();
            return { done: true, value: undefined };
          },
        }),
      };
    },
    end: read.end,
  };
}

/** One page of them, and where the next begins. */
async function stretchesFrom(
  at: Snapshot,
  account: bigint,
  id: ContentId,
  from: number,
  to: number,
): Promise<{ stretches: Stretch[]; end: number }> {
  const wanted: { part: Part; from: number; to: number }[] = [];
  const { offset, pieces } = await piecesFrom(at, account, id, from);
  let end = offset;
  for (const part of pieces.flatMap(({ parts }) => parts)) {
    if (end >= to || wanted.length === PAGE_PARTS) break;
    const begin = end;
    end += part.length;
    if (end > from) wanted.push({ part, from: Math.max(from - begin, 0), to: Math.min(to - begin, part.length) });
  }
  if (wanted.length === 0) throw new Error(`content ${textOf(id)} has no byte ${from}`);
  const rows = await at.getMany(wanted.map(({ part }) => chunkKey(account, part.chunk)));
  const stretches = wanted.map(({ part, ...stretch }, i): Stretch => {
    const row = rows[i];
    if (!row) throw new Error(`chunk ${textOf(part.chunk)} of content ${textOf(id)} has no row`);
    return { name: chunkNameOf(account, part.chunk), place: decodeChunk(row).place, ...stretch };
  });
  return { stretches, end };
}
