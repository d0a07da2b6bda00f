/** Downloads: streams a content with read-ahead, without an open snapshot and with little memory while the consumer is slow. */

import { nextSlice } from '../base/time-slices.ts';
import { CHECKSUM_BLOCK_BYTES, type Extents, OVERREAD_BYTES_MAX } from '../extents/extents.ts';
import { acquireBuffer, POOL_BUFFER_BYTES, releaseBuffer } from '../hashing/crc32.ts';
import { type Partition, type Snapshot, Unavailable } from '../partition/partition.ts';
import type { ContentRead } from './content.ts';
import type { ActiveRead, ActiveReads } from './gc/active-reads.ts';
import type { RangeMap } from './ranges/map-rows.ts';
import { planRanges } from './ranges/read-plan.ts';
import {
  type ChunkReadRange,
  isInMemory,
  type MemoryRange,
  planPage,
  type ReadPage,
  type ReadRange,
  rangesOfOneRead,
  smallRangesFrom,
  totalBytes,
} from './read-plan.ts';
import type { ContentId } from './rows.ts';

export interface DownloadContext {
  readonly partition: Pick<Partition, 'read'>;
  readonly extents: Pick<Extents, 'read' | 'readMany'>;
  readonly reads: ActiveReads;
  /** Map pages of one lookup; undefined: the default. */
  readonly mapPagesMax?: number | undefined;
  /** Bytes of all streams that are read and not consumed yet. */
  readonly buffered: { bytes: number };
}

/** Small chunks that are read together: chunks that are neighbours in an extent may be far apart in the content. */
const SMALL_CHUNKS_MAX = 4_096;
/** Bytes of a chunk that are read at a time. */
const READ_BYTES = POOL_BUFFER_BYTES - OVERREAD_BYTES_MAX;
/** Nobody writes into them. */
const ZEROS = Buffer.alloc(256 << 10);
/** Bytes of rows that are copied into one reply: a stream costs more than the copy. */
const IN_MEMORY_BYTES_MAX = 64 << 10;
/** Above this, streams read little at a time and do not read ahead. */
const BUFFERED_BYTES_MAX = 64 << 20;

/** Most reads are of blobs whose bytes are in their row, so the state of a stream is created only when there is something to stream. */
export class ContentDownload implements ContentRead {
  // Not #private: Node 20 needs more time to create such fields than for the rest of a small read.
  private readonly context: DownloadContext;
  private readonly activeRead: ActiveRead;
  private bytes: AsyncGenerator<Buffer, void> | undefined = undefined;
  private ended: (() => void) | undefined = undefined;
  inMemory: Buffer | undefined = undefined;

  constructor(context: DownloadContext) {
    this.context = context;
    this.activeRead = context.reads.begin();
  }

  async plan(at: Snapshot, account: bigint, id: ContentId, from: number, to: number): Promise<void> {
    if (from >= to) return;
    const page = await planPage(at, account, id, from, to);
    const lookUp = async (next: Snapshot, begin: number) => planPage(next, account, id, begin, to);
    this.bytes = streamBytes(this.context, page, to, lookUp);
  }

  async planRanges(
    at: Snapshot,
    account: bigint,
    map: RangeMap,
    gen: number | undefined,
    from: number,
    to: number,
  ): Promise<{ readonly isComplete: boolean }> {
    if (from >= to) return { isComplete: true };
    if (map.first && (gen === undefined || map.first.born <= gen) && to <= map.first.bytes.length) {
      this.inMemory = map.first.bytes.subarray(from, to);
      return { isComplete: true };
    }
    const { mapPagesMax } = this.context;
    const page = await planRanges(at, account, map, gen, from, to, mapPagesMax);
    const isComplete = page.end >= to;
    if (isComplete && to - from <= IN_MEMORY_BYTES_MAX && page.ranges.every(isInMemory)) {
      this.inMemory = joinInMemory(page.ranges);
      return { isComplete };
    }
    // Later lookups use the voids of this one: those that come later belong to later generations, and the content row may be gone.
    const lookUp = async (next: Snapshot, begin: number) => planRanges(next, account, map, gen, begin, to, mapPagesMax);
    if (isComplete || gen !== undefined) this.bytes = streamBytes(this.context, page, to, lookUp);
    return { isComplete };
  }

  onEnd(fn: () => void): void {
    this.ended = fn;
  }

  stream(): AsyncIterable<Buffer> {
    const bytes = this.bytes ?? (this.inMemory && singlePiece(this.inMemory));
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
    this.ended?.();
    this.ended = undefined;
  }
}

async function* singlePiece(bytes: Buffer): AsyncGenerator<Buffer, void> {
  yield bytes;
}

async function* streamBytes(
  context: DownloadContext,
  page: ReadPage,
  to: number,
  lookUp: (at: Snapshot, from: number) => Promise<ReadPage>,
): AsyncGenerator<Buffer, void> {
  const reader = new RangeReader(context, page, to, lookUp);
  let prefetch: Promise<Buffer | undefined> | undefined;
  try {
    for (;;) {
      prefetch ??= reader.next();
      const bytes = await prefetch;
      prefetch = undefined;
      if (!bytes) return;
      if (context.buffered.bytes < BUFFERED_BYTES_MAX) {
        prefetch = reader.next();
        // A failure is reported when these bytes are requested; until then it must not count as unhandled.
        prefetch.catch(() => {});
      }
      yield bytes;
      reader.consumed(bytes.length);
    }
  } finally {
    await prefetch?.catch(() => {});
    reader.close();
  }
}

/** Reads the ranges of a content in order. One read runs at a time. */
class RangeReader {
  readonly #context: DownloadContext;
  readonly #to: number;
  readonly #lookUp: (at: Snapshot, from: number) => Promise<ReadPage>;
  /** Ranges that are looked up and not read yet. */
  #page: ReadPage;
  /** The share of this reader in `context.buffered`. */
  #buffered = 0;
  /** The consumer has one of them while the other is filled. */
  readonly #buffers: [Buffer | undefined, Buffer | undefined] = [undefined, undefined];
  #bufferIndex: 0 | 1 = 0;

  constructor(
    context: DownloadContext,
    page: ReadPage,
    to: number,
    lookUp: (at: Snapshot, from: number) => Promise<ReadPage>,
  ) {
    this.#context = context;
    this.#page = page;
    this.#to = to;
    this.#lookUp = lookUp;
  }

  /** The next bytes; undefined when all are read. */
  async next(): Promise<Buffer | undefined> {
    await this.#fillPage();
    const { ranges } = this.#page;
    const range = ranges.shift();
    if (!range) return undefined;
    if (isInMemory(range)) return this.#fromMemory(range);
    const run = rangesOfOneRead(range, ranges);
    if (run.length > 1) {
      ranges.splice(0, run.length - 1);
      this.#addBuffered(totalBytes(run));
      return this.#readOnce(range, run);
    }
    const small = smallRangesFrom(range, ranges);
    if (small.length > 1) {
      ranges.splice(0, small.length - 1);
      this.#addBuffered(totalBytes(small));
      return this.#context.extents.readMany(small);
    }
    return this.#read(range);
  }

  consumed(bytes: number): void {
    this.#addBuffered(-bytes);
  }

  close(): void {
    this.#addBuffered(-this.#buffered);
    for (const buffer of this.#buffers) if (buffer) releaseBuffer(buffer);
  }

  #addBuffered(bytes: number): void {
    this.#buffered += bytes;
    this.#context.buffered.bytes += bytes;
  }

  /** Looks up more ranges, as long as all that are looked up would go out in one piece. */
  async #fillPage(): Promise<void> {
    const { ranges } = this.#page;
    while (this.#page.end < this.#to && ranges.length < SMALL_CHUNKS_MAX && totalBytes(ranges) < CHECKSUM_BLOCK_BYTES) {
      if (ranges.length > 0) await nextSlice();
      const more = await this.#context.partition.read((at) => this.#lookUp(at, this.#page.end));
      ranges.push(...more.ranges);
      this.#page = { ranges, end: more.end };
    }
  }

  #fromMemory(range: MemoryRange): Buffer {
    const { ranges } = this.#page;
    const small = smallRangesFrom(range, ranges);
    ranges.splice(0, small.length - 1);
    if (small.length === 1 && range.to - range.from > ZEROS.length) {
      ranges.unshift({ ...range, from: range.from + ZEROS.length });
      this.#addBuffered(ZEROS.length);
      return bytesOf({ ...range, to: range.from + ZEROS.length });
    }
    this.#addBuffered(totalBytes(small));
    return joinInMemory(small);
  }

  /** @param run of the chunk of `first`, and what is in memory between its ranges */
  async #readOnce({ name, place, from }: ChunkReadRange, run: readonly ReadRange[]): Promise<Buffer> {
    const bytes = await this.#context.extents.read(name, place, from, run.at(-1)!.to);
    return Buffer.concat(
      run.map((each) => (isInMemory(each) ? bytesOf(each) : bytes.subarray(each.from - from, each.to - from))),
    );
  }

  #read(range: ChunkReadRange): Promise<Buffer> {
    const { extents, buffered } = this.#context;
    const { name, place, from } = range;
    let { sums } = range;
    const begin = from - (from % CHECKSUM_BLOCK_BYTES);
    const most = buffered.bytes >= BUFFERED_BYTES_MAX ? CHECKSUM_BLOCK_BYTES : READ_BYTES;
    // A read that ends at the end of a checksum block leaves no bytes that have to be read again.
    const end = Math.min(range.to, begin + most);
    if (end < range.to) {
      sums ??= {};
      this.#page.ranges.unshift({ ...range, from: end, sums });
    }
    this.#addBuffered(end - from);
    // A small piece is sent together with other bytes, and may still be in use when the next piece is requested.
    if (end - from < CHECKSUM_BLOCK_BYTES) return extents.read(name, place, from, end);
    this.#bufferIndex = this.#bufferIndex === 0 ? 1 : 0;
    // An allocation for each read would keep V8's garbage collector busy.
    this.#buffers[this.#bufferIndex] ??= acquireBuffer() ?? Buffer.allocUnsafeSlow(POOL_BUFFER_BYTES);
    return extents.read(name, place, from, end, this.#buffers[this.#bufferIndex], sums);
  }
}

function joinInMemory(ranges: readonly MemoryRange[]): Buffer {
  return ranges.length === 1 ? bytesOf(ranges[0]!) : Buffer.concat(ranges.map(bytesOf));
}

/** At most as many as ZEROS has. */
function bytesOf(range: MemoryRange): Buffer {
  return 'zeros' in range ? ZEROS.subarray(0, range.to - range.from) : range.bytes.subarray(range.from, range.to);
}
