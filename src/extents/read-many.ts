/** Vectored reads of small chunks: adjacent chunks are read from the file together, and each is verified. */
import type { ExtentFiles } from './extent-files.ts';
import type { ChunkLocation, ChunkRange, CorruptChunk } from './extents.ts';
import { slotBytes } from './slots.ts';
import { GAP_BYTES_MAX, verifySlot } from './verified-read.ts';

/** Bytes of one read at most. */
const WINDOW_BYTES_MAX = 256 << 10;
/** Chunks that are verified in one turn of the event loop at most: each takes some microseconds. */
const WINDOW_CHUNKS_MAX = 512;

/** Bytes of a chunk, and their offset in the result. */
export interface RangeRequest extends ChunkRange {
  readonly at: number;
}

const slotEnd = ({ offset, length }: ChunkLocation): number => offset + slotBytes(length);

/** The result has the order of the request, the disk that of the writes. */
function sortByLocation(ranges: readonly ChunkRange[]): RangeRequest[] {
  let at = 0;
  const requests = ranges.map(({ name, place, from, to }): RangeRequest => {
    const start = at;
    at += to - from;
    return { name, place, from, to, at: start };
  });
  return requests.sort(({ place: one }, { place: other }) => {
    if (one.extent === other.extent) return one.offset - other.offset;
    return one.extent < other.extent ? -1 : 1;
  });
}

/** Groups of chunks of one extent; each group fits into one read. */
export function* groupIntoWindows(ranges: readonly ChunkRange[]): Iterable<readonly RangeRequest[]> {
  let window: RangeRequest[] = [];
  for (const request of sortByLocation(ranges)) {
    const [first, last] = [window[0]?.place, window.at(-1)?.place];
    const { place } = request;
    const fits =
      first?.extent === place.extent &&
      window.length < WINDOW_CHUNKS_MAX &&
      place.offset - slotEnd(last!) <= GAP_BYTES_MAX &&
      slotEnd(place) - first.offset <= WINDOW_BYTES_MAX;
    if (first && !fits) {
      yield window;
      window = [];
    }
    window.push(request);
  }
  if (window.length > 0) yield window;
}

/** Reads one window into `result`, through the buffer `memory`, if there is one. */
export async function readWindow(
  files: Pick<ExtentFiles, 'read'>,
  window: readonly RangeRequest[],
  result: Buffer,
  memory: Buffer | undefined,
  onCorruptHeader: (error: CorruptChunk) => void,
): Promise<void> {
  const { extent, offset: start } = window[0]!.place;
  const bytes = await files.read(extent, start, slotEnd(window.at(-1)!.place) - start, memory);
  for (const { name, place, from, to, at } of window) {
    result.set(verifySlot(bytes.subarray(place.offset - start), name, place, from, to, onCorruptHeader), at);
  }
}
