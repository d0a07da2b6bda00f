/** What turns one state of a page blob into another. Pages whose bytes are at the same place of a file of Azurite are the same. */
import { lengthOf, mapOf, persistencyOf } from './azurite-documents.ts';
import type { Persistency } from './azurite-folder.ts';
import type { LokiDocument } from './loki-file.ts';

/** From `start` to before `end`. The bytes are in the file `id`, and begin there at `offset`. */
export interface WrittenRange extends Pick<Persistency, 'id' | 'offset'> {
  readonly start: number;
  readonly end: number;
}

/** In order. */
export function writtenRanges({ pageRangesInOrder: ranges }: LokiDocument): readonly WrittenRange[] {
  if (!Array.isArray(ranges)) return [];
  const found = ranges.map(mapOf).map((range) => {
    const { id, offset } = persistencyOf(range.persistency);
    return { start: lengthOf(range, 'start'), end: lengthOf(range, 'end') + 1, id, offset };
  });
  if (found.some(({ start, end }, i) => end <= start || start < (found[i - 1]?.end ?? 0)))
    throw new Error('its ranges of pages are not in order');
  return found;
}

export interface PageChange {
  readonly start: number;
  readonly end: number;
  /** Undefined: the pages are cleared. */
  readonly bytes: Persistency | undefined;
}

/** In order, and in parts that are whole in both states. */
export function* pageChanges(
  before: readonly WrittenRange[],
  after: readonly WrittenRange[],
): Generator<PageChange, void, undefined> {
  const borders = [...new Set([...before, ...after].flatMap(({ start, end }) => [start, end]))].sort((a, b) => a - b);
  const [bytesBefore, bytesAfter] = [bytesReader(before), bytesReader(after)];
  for (const [i, start] of borders.slice(0, -1).entries()) {
    const end = borders[i + 1]!;
    const [had, bytes] = [bytesBefore(start, end), bytesAfter(start, end)];
    if (had?.id !== bytes?.id || had?.offset !== bytes?.offset) yield { start, end, bytes };
  }
}

/** For parts in order, each of which is in one range or in none. */
function bytesReader(ranges: readonly WrittenRange[]) {
  let next = 0;
  return (start: number, end: number): Persistency | undefined => {
    while (next < ranges.length && ranges[next]!.end <= start) next++;
    const range = ranges[next];
    if (!range || range.start > start) return undefined;
    return { id: range.id, offset: range.offset + (start - range.start), count: end - start };
  };
}
