/** Small chunks that lie close to each other: one read of the file for all of them, and a check of each. */
import type { ChunkStretch, Damaged, Place } from './extents.ts';
import type { Files } from './files.ts';
import { readChecked } from './read.ts';
import { slotBytes } from './slots.ts';

/** At most so many bytes in one read; more chunks are read by another one. */
const WINDOW_BYTES_MAX = 256 << 10;

const endOf = ({ offset, length }: Place): number => offset + slotBytes(length);

/** Runs of chunks in one extent, in the order of their places, each of which fits into one read. */
export function* windowsOf(stretches: readonly ChunkStretch[]): Iterable<readonly ChunkStretch[]> {
  let window: ChunkStretch[] = [];
  for (const stretch of stretches) {
    const [first, last] = [window[0]?.place, window.at(-1)?.place];
    const { place } = stretch;
    const fits =
      first?.extent === place.extent && place.offset >= last!.offset && endOf(place) - first.offset <= WINDOW_BYTES_MAX;
    if (first && !fits) {
      yield window;
      window = [];
    }
    window.push(stretch);
  }
  if (window.length > 0) yield window;
}

/** All of one window. */
export async function readWindow(
  files: Pick<Files, 'read'>,
  window: readonly ChunkStretch[],
  onHeader: (damage: Damaged) => void,
): Promise<Buffer[]> {
  const { extent, offset: start } = window[0]!.place;
  const bytes = await files.read(extent, start, endOf(window.at(-1)!.place) - start);
  const inMemory = {
    read: async (_: string, position: number, length: number) =>
      bytes.subarray(position - start, position - start + length),
  };
  const parts: Buffer[] = [];
  for (const { name, place, from, to } of window) {
    parts.push(await readChecked(inMemory, name, place, from, to, onHeader));
  }
  return parts;
}
