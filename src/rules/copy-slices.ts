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
