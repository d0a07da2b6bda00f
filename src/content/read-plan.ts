/** Lookup of the locations of a content's bytes, page by page. */
import { CHECKSUM_BLOCK_BYTES, type ChecksumCache, type ChunkRange } from '../extents/extents.ts';
import type { Snapshot } from '../partition/partition.ts';
import { segmentsFrom } from './manifest.ts';
import { type ChunkRef, type ContentId, chunkKey, chunkName, decodeChunk, formatId } from './rows.ts';

/** Bytes that are to be read. Only those of chunks are on the disk. */
export type ReadRange = ChunkReadRange | MemoryRange;

export interface ChunkReadRange extends ChunkRange {
  /** Kept between reads if the range needs several of them. */
  readonly sums?: ChecksumCache;
}

/** Bytes that the lookup has found, or zeros. */
export type MemoryRange = { readonly from: number; readonly to: number } & (
  | { readonly bytes: Buffer }
  | { readonly zeros: true }
);

export const isInMemory = (range: ReadRange): range is MemoryRange => !('place' in range);

/** Ranges that were looked up together, and the byte at which the next page begins. */
export interface ReadPage {
  readonly ranges: ReadRange[];
  readonly end: number;
}

/** A lookup ends after at least PAGE_CHUNKS chunks and PAGE_BYTES_MIN bytes, or at the end of a manifest page. */
const PAGE_CHUNKS = 64;
const PAGE_BYTES_MIN = 1 << 20;
export async function planPage(
  at: Snapshot,
  account: bigint,
  id: ContentId,
  from: number,
  to: number,
): Promise<ReadPage> {
  const wanted: { ref: ChunkRef; from: number; to: number }[] = [];
  const { offset, segments } = await segmentsFrom(at, account, id, from);
  let end = offset;
  for (const ref of segments.flatMap(({ chunkRefs }) => chunkRefs)) {
    if (end >= to || (wanted.length >= PAGE_CHUNKS && end - from >= PAGE_BYTES_MIN)) break;
    const begin = end;
    end += ref.length;
    const start = ref.offset ?? 0;
    const bounds = { from: start + Math.max(from - begin, 0), to: start + Math.min(to - begin, ref.length) };
    if (end > from) wanted.push({ ref, ...bounds });
  }
  if (wanted.length === 0) throw new Error(`content ${formatId(id)} has no byte ${from}`);
  const rows = await at.getMany(wanted.map(({ ref }) => chunkKey(account, ref.chunk)));
  const ranges = wanted.map(({ ref, ...bounds }, i): ReadRange => {
    const row = rows[i];
    if (!row) throw new Error(`chunk ${formatId(ref.chunk)} of content ${formatId(id)} has no row`);
    const { place } = decodeChunk(row);
    return { name: chunkName(account, ref.chunk), place, ...bounds };
  });
  return { ranges, end };
}

/** This range and those after it that go out in one piece: they are of one sort, and together smaller than a checksum block. */
export function smallRangesFrom<Range extends ReadRange>(first: Range, rest: readonly ReadRange[]): readonly Range[] {
  const small = [first];
  let bytes = first.to - first.from;
  for (const range of rest) {
    bytes += range.to - range.from;
    if (bytes >= CHECKSUM_BLOCK_BYTES || isInMemory(range) !== isInMemory(first)) break;
    small.push(range as Range);
  }
  return small;
}

/**
 * This range and those after it that one read serves: of the same chunk, one behind the other within four checksum blocks, and what is in memory
 * between them. Each would read a block of its own otherwise, for perhaps 512 bytes.
 */
export function rangesOfOneRead(first: ChunkReadRange, rest: readonly ReadRange[]): readonly ReadRange[] {
  const run: ReadRange[] = [first];
  let [bytes, last, count] = [first.to - first.from, first, 1];
  for (const range of rest) {
    bytes += range.to - range.from;
    if (bytes > ONE_READ_BYTES_MAX) break;
    if (isInMemory(range)) {
      if (range.to - range.from > CHECKSUM_BLOCK_BYTES) break;
    } else {
      if (!isSameChunk(range, first) || range.from < last.to || range.to - first.from > ONE_READ_BYTES_MAX) break;
      last = range;
      count = run.length + 1;
    }
    run.push(range);
  }
  return run.slice(0, count);
}

const ONE_READ_BYTES_MAX = 4 * CHECKSUM_BLOCK_BYTES;

const isSameChunk = (one: ChunkReadRange, { name }: ChunkReadRange): boolean =>
  one.name.number === name.number && one.name.epoch === name.epoch && one.name.account === name.account;

export const totalBytes = (ranges: readonly ReadRange[]): number =>
  ranges.reduce((sum, { from, to }) => sum + to - from, 0);
