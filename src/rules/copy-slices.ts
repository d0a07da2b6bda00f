/** How a long copy is cut into slices, each of which is one commit. */

/** Consecutive bytes of a blob; one with a label is a block. */
export interface BlobSegment {
  readonly label?: string | undefined;
  readonly length: number;
}

/** Two chunks: a kill loses at most as much as this, and the progress is shown in such steps. */
export const SLICE_BYTES = 16 << 20;
const MAP_PAGE_BYTES = 1 << 20;
/** Small blocks of one slice: each is a reference to a chunk, in a row of the commit. */
const SLICE_SEGMENTS_MAX = 400;

/** The end of a slice of a content that changes in place: one lookup of its map finds it, wherever the slice begins. */
export const nextInPlaceSlice = (offset: number, length: number): number =>
  Math.min(length, offset - (offset % MAP_PAGE_BYTES) + SLICE_BYTES);

/**
 * The segments of the next slice: at most SLICE_BYTES, except that a block is never divided, and at least one byte.
 * @param skipped bytes of the first segment that are copied already
 */
export function cutSlice(segments: readonly BlobSegment[], skipped: number): BlobSegment[] {
  const slice: BlobSegment[] = [];
  let room = SLICE_BYTES;
  for (const [at, { label, length: whole }] of segments.entries()) {
    const rest = at === 0 ? whole - skipped : whole;
    const fits = label === undefined ? room > 0 : rest <= room || slice.length === 0;
    if (!fits || slice.length === SLICE_SEGMENTS_MAX) break;
    const length = label === undefined ? Math.min(rest, room) : rest;
    slice.push({ label, length });
    room -= length;
    if (length < rest) break;
  }
  return slice;
}

/** A range of a content that changes in place. */
export interface CopiedRange {
  readonly from: number;
  readonly to: number;
  /** False: it was cleared. */
  readonly isWritten: boolean;
}

export interface RangeSlice {
  readonly ranges: readonly CopiedRange[];
  /** Where the next slice begins. */
  readonly end: number;
}

/** From the first byte of a slice to its last one: as many map pages as one lookup finds. */
export const RANGE_SLICE_BYTES = 8 << 20;
/** Each is a segment in a row of the commit. */
export const RANGE_SLICE_RANGES_MAX = 250;

/**
 * The ranges that the next commit copies. A clear that is longer than a slice is one by itself: it costs nothing.
 * @param found the next ranges of the source, in order
 * @param isAll no others follow
 * @param length of the source
 */
export function cutRangeSlice(found: readonly CopiedRange[], isAll: boolean, length: number): RangeSlice {
  const [first] = found;
  if (!first) return { ranges: [], end: length };
  const limit = isLongClear(first) ? first.to : first.from + RANGE_SLICE_BYTES;
  const ranges: CopiedRange[] = [];
  for (const range of found.slice(0, RANGE_SLICE_RANGES_MAX)) {
    if (range.from >= limit) break;
    ranges.push({ ...range, to: Math.min(range.to, limit) });
  }
  const last = ranges.at(-1)!;
  const isEnd = isAll && ranges.length === found.length && last.to === found.at(-1)!.to;
  return { ranges, end: isEnd ? length : last.to };
}

const isLongClear = ({ from, to, isWritten }: CopiedRange): boolean => !isWritten && to - from > RANGE_SLICE_BYTES;

export const writtenBytes = (ranges: readonly CopiedRange[]): number =>
  ranges.reduce((sum, { from, to, isWritten }) => (isWritten ? sum + to - from : sum), 0);
