/** Small chunks that lie close to each other: one read of the file for all of them, and a check of each. */

import type { ExtentFiles } from './extent-files.ts';
import type { ChunkLocation, ChunkRange, CorruptChunk } from './extents.ts';
import { slotBytes } from './slots.ts';
import { GAP_BYTES_MAX, verifySlot } from './verified-read.ts';

/** At most so many bytes in one read; more chunks are read by another one. */
export const WINDOW_BYTES_MAX = 256 << 10;
/** At most so many chunks are checked in one turn of the event loop: it takes some microseconds for each. */
const WINDOW_CHUNKS_MAX = 512;

/** What is wanted of a chunk, and where that stands among all that is wanted. */
export interface RangeRequest extends ChunkRange {
  readonly at: number;
}

const slotEnd = ({ offset, length }: ChunkLocation): number => offset + slotBytes(length);

/** They stand in the order in which they are wanted, and lie in the order in which they were written. */
function sortByLocation(stretches: readonly ChunkRange[]): RangeRequest[] {
  let at = 0;
  const wanted = stretches.map(({ name, place, from, to }): RangeRequest => {
    const begin = at;
    at += to - from;
    return { name, place, from, to, at: begin };
  });
  return wanted.sort(({ place: one }, { place: other }) => {
    if (one.extent === other.extent) return one.offset - other.offset;
    return one.extent < other.extent ? -1 : 1;
  });
}

/** Groups of chunks in one extent, each of which fits into one read. */
export function* groupIntoWindows(stretches: readonly ChunkRange[]): Iterable<readonly RangeRequest[]> {
  let window: RangeRequest[] = [];
  for (const wanted of sortByLocation(stretches)) {
    const [first, last] = [window[0]?.place, window.at(-1)?.place];
    const { place } = wanted;
    const fits =
      first?.extent === place.extent &&
      window.length < WINDOW_CHUNKS_MAX &&
      place.offset - slotEnd(last!) <= GAP_BYTES_MAX &&
      slotEnd(place) - first.offset <= WINDOW_BYTES_MAX;
    if (first && !fits) {
      yield window;
      window = [];
    }
    window.push(wanted);
  }
  if (window.length > 0) yield window;
}

/** All of one window: each goes to its place in `result`. `memory` is used meanwhile, if there is any. */
export async function readWindow(
  files: Pick<ExtentFiles, 'read'>,
  window: readonly RangeRequest[],
  result: Buffer,
  memory: Buffer | undefined,
  onHeader: (damage: CorruptChunk) => void,
): Promise<void> {
  const { extent, offset: start } = window[0]!.place;
  const bytes = await files.read(extent, start, slotEnd(window.at(-1)!.place) - start, memory);
  for (const { name, place, from, to, at } of window) {
    result.set(verifySlot(bytes.subarray(place.offset - start), name, place, from, to, onHeader), at);
  }
}
