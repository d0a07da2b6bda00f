/** The bytes of a content as a stream: no snapshot is open while the consumer takes its time, and little memory is held. */

import { nextSlice } from '../base/time-slices.ts';
import {
  CHECKSUM_BLOCK_BYTES,
  type ChecksumCache,
  type ChunkRange,
  type Extents,
  OVERREAD_BYTES_MAX,
} from '../extents/extents.ts';
import { acquireBuffer, POOL_BUFFER_BYTES, releaseBuffer } from '../hashing/crc32.ts';
import { type Partition, type Snapshot, Unavailable } from '../partition/partition.ts';
import type { ContentRead } from './content.ts';
import type { ActiveReads, ActiveRead as Registered } from './gc/active-reads.ts';
import { segmentsFrom } from './manifest.ts';
import { type ChunkRef, type ContentId, chunkKey, chunkName, decodeChunk, formatId } from './rows.ts';

export interface DownloadContext {
  readonly partition: Pick<Partition, 'read'>;
  readonly extents: Pick<Extents, 'read' | 'readMany'>;
  readonly reads: ActiveReads;
  /** What all streams together have read and their consumers have not taken yet. */
  readonly buffered: { bytes: number };
}

/** What is to be read of one chunk. */
interface ReadRange extends ChunkRange {
  /** If it is read in several steps. */
  readonly sums?: ChecksumCache;
}

/** Parts that are looked up at a time; small ones are looked up as long as they have so few bytes. */
const PAGE_CHUNKS = 64;
const PAGE_BYTES_MIN = 1 << 20;
/** So many small parts are read together: those that lie next to each other may stand far apart in the content. */
const SMALL_CHUNKS_MAX = 4_096;
/** So much is read of a chunk at a time. */
const READ_BYTES = POOL_BUFFER_BYTES - OVERREAD_BYTES_MAX;
/** Above this, streams read little at a time and nothing ahead. */
const BUFFERED_BYTES_MAX = 64 << 20;

/** Most reads are of blobs that lie in a row: what a stream needs is made once there is something to stream. */
export class ContentDownload implements ContentRead {
  // Not #private: Node 20 takes longer to make such fields than all the rest of a small read.
  private readonly context: DownloadContext;
  private readonly activeRead: Registered;
  private bytes: AsyncGenerator<Buffer, void> | undefined = undefined;

  constructor(reading: DownloadContext) {
    this.context = reading;
    this.activeRead = reading.reads.begin();
  }

  async plan(at: Snapshot, account: bigint, id: ContentId, from: number, to: number): Promise<void> {
    if (from >= to) return;
    const page = await planPage(at, account, id, from, to);
    const lookUp = async (next: Snapshot, begin: number) => planPage(next, account, id, begin, to);
    this.bytes = streamBytes(this.context, page, to, lookUp);
  }

  stream(): AsyncIterable<Buffer> {
    const { bytes } = this;
    const ended = { done: true, value: undefined } as const;
    return {
      [Symbol.asyncIterator]: () => ({
        next: async () => {
          try {
            if (this.activeRead.isCancelled) throw new Unavailable('The read took too long.');
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
    this.activeRead.end();
  }
}

/** Stretches that were looked up together, and the byte at which the next begin. */
interface Page {
  readonly ranges: ReadRange[];
  readonly end: number;
}

async function* streamBytes(
  { partition, extents, buffered }: DownloadContext,
  page: Page,
  to: number,
  lookUp: (at: Snapshot, from: number) => Promise<Page>,
): AsyncGenerator<Buffer, void> {
  let bufferedHere = 0;
  /** The consumer has one of them while the other is filled. */
  const buffers: (Buffer | undefined)[] = [undefined, undefined];
  let bufferIndex = 0;
  let prefetch: Promise<Buffer | undefined> | undefined;

  function addBuffered(bytes: number): void {
    bufferedHere += bytes;
    buffered.bytes += bytes;
  }

  /** Looks up more, as long as all that is looked up would go out in one piece. */
  async function fillPage(): Promise<void> {
    const { ranges } = page;
    while (page.end < to && ranges.length < SMALL_CHUNKS_MAX && totalBytes(ranges) < CHECKSUM_BLOCK_BYTES) {
      if (ranges.length > 0) await nextSlice();
      const more = await partition.read((at) => lookUp(at, page.end));
      ranges.push(...more.ranges);
      page = { ranges, end: more.end };
    }
  }

  /** The next bytes; none when all are read. */
  async function next(): Promise<Buffer | undefined> {
    await fillPage();
    const range = page.ranges.shift();
    if (!range) return undefined;
    const small = smallRangesFrom(range, page.ranges);
    if (small.length > 1) {
      page.ranges.splice(0, small.length - 1);
      addBuffered(totalBytes(small));
      return extents.readMany(small);
    }
    const { name, place, from } = range;
    let { sums } = range;
    const begin = from - (from % CHECKSUM_BLOCK_BYTES);
    const most = buffered.bytes >= BUFFERED_BYTES_MAX ? CHECKSUM_BLOCK_BYTES : READ_BYTES;
    // A read that ends where a checksum does leaves nothing to be read again.
    const end = Math.min(range.to, begin + most);
    if (end < range.to) {
      sums ??= {};
      page.ranges.unshift({ ...range, from: end, sums });
    }
    addBuffered(end - from);
    // A small piece goes out with others' bytes, and may still lie there when the next is asked for.
    if (end - from < CHECKSUM_BLOCK_BYTES) return extents.read(name, place, from, end);
    bufferIndex = 1 - bufferIndex;
    // To allocate memory for each read would keep V8's collector busy.
    buffers[bufferIndex] ??= acquireBuffer() ?? Buffer.allocUnsafeSlow(POOL_BUFFER_BYTES);
    return extents.read(name, place, from, end, buffers[bufferIndex], sums);
  }

  try {
    for (;;) {
      prefetch ??= next();
      const bytes = await prefetch;
      prefetch = undefined;
      if (!bytes) return;
      if (buffered.bytes < BUFFERED_BYTES_MAX) {
        prefetch = next();
        // Heard of when it is its turn.
        prefetch.catch(() => {});
      }
      yield bytes;
      addBuffered(-bytes.length);
    }
  } finally {
    await prefetch?.catch(() => {});
    addBuffered(-bufferedHere);
    for (const buffer of buffers) if (buffer) releaseBuffer(buffer);
  }
}

/** This one and those behind it that go out in one piece: together they are smaller than what one checksum is for. */
function smallRangesFrom(first: ReadRange, rest: readonly ReadRange[]): readonly ReadRange[] {
  const small = [first];
  let bytes = first.to - first.from;
  for (const stretch of rest) {
    bytes += stretch.to - stretch.from;
    if (bytes >= CHECKSUM_BLOCK_BYTES) break;
    small.push(stretch);
  }
  return small;
}

const totalBytes = (stretches: readonly ReadRange[]): number =>
  stretches.reduce((sum, { from, to }) => sum + to - from, 0);

/** One page of them, and where the next begins. */
async function planPage(at: Snapshot, account: bigint, id: ContentId, from: number, to: number): Promise<Page> {
  const wanted: { part: ChunkRef; from: number; to: number }[] = [];
  const { offset, segments } = await segmentsFrom(at, account, id, from);
  let end = offset;
  for (const part of segments.flatMap(({ chunkRefs }) => chunkRefs)) {
    if (end >= to || (wanted.length >= PAGE_CHUNKS && end - from >= PAGE_BYTES_MIN)) break;
    const begin = end;
    end += part.length;
    if (end > from) wanted.push({ part, from: Math.max(from - begin, 0), to: Math.min(to - begin, part.length) });
  }
  if (wanted.length === 0) throw new Error(`content ${formatId(id)} has no byte ${from}`);
  const rows = await at.getMany(wanted.map(({ part }) => chunkKey(account, part.chunk)));
  const ranges = wanted.map(({ part, ...stretch }, i): ReadRange => {
    const row = rows[i];
    if (!row) throw new Error(`chunk ${formatId(part.chunk)} of content ${formatId(id)} has no row`);
    const { place } = decodeChunk(row);
    return { name: chunkName(account, part.chunk), place, ...stretch };
  });
  return { ranges, end };
}
