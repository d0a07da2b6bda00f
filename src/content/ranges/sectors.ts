/**
 * Sectors of 512 bytes: what a file lists as one range, although its writes may begin and end anywhere. A page of such writes could have a segment
 * for each byte; joined by sector it has at most some thousands. Pure functions, no rows.
 */
import { coalesce, isFragmented, type MapSegment, type SegmentSource } from './map-page.ts';
import type { ByteRange } from './reads.ts';

export const SECTOR_BYTES = 512;

/** Zeros that a source has for a part of the page in which nothing was written, in one sector with written parts. */
export interface Filler extends ByteRange {
  /** Where they begin in the source. */
  readonly at: number;
}

/** The parts to be filled so that every sector with written bytes is one segment. */
export function gapsInSectors(segments: readonly MapSegment[]): ByteRange[] {
  const gaps: ByteRange[] = [];
  for (const sector of sectorsOf(segments)) {
    let end = sector[0]!.from;
    for (const { from, to, source } of sector) {
      if (!source) continue;
      if (from > end) gaps.push({ from: end, to: from });
      end = to;
    }
    const last = sector.at(-1)!.to;
    if (last > end && sector.some(({ source }) => source)) gaps.push({ from: end, to: last });
  }
  return gaps;
}

/**
 * The segments with one for each sector, as far as the fillers suffice. All of a sector get the generation of the youngest: who compares
 * generations finds the sector changed either way.
 * @param fillers in order
 */
export function joinSectors(
  segments: readonly MapSegment[],
  source: SegmentSource,
  fillers: readonly Filler[],
): MapSegment[] {
  const parts: MapSegment[] = [];
  let next = 0;
  for (const sector of sectorsOf(segments)) {
    const born = Math.max(...sector.map((segment) => segment.born));
    const first = next;
    while (next < fillers.length && sectorAt(fillers[next]!.from) <= sectorAt(sector[0]!.from)) next++;
    const near = fillers.slice(first, next);
    const gaps = gapsInSectors(sector).flatMap((gap) => fill(gap, born, source, near));
    const filled = [...sector.filter((segment) => segment.source), ...gaps];
    const zeros = { from: sector[0]!.from, to: sector.at(-1)!.to, born, at: 0 };
    parts.push(...(filled.length > 0 ? inOrder(filled) : [zeros]).map((segment) => ({ ...segment, born })));
  }
  return coalesce(parts);
}

const inOrder = (segments: MapSegment[]): MapSegment[] => segments.sort((one, other) => one.from - other.from);

function fill({ from, to }: ByteRange, born: number, source: SegmentSource, fillers: readonly Filler[]): MapSegment[] {
  return fillers.flatMap((filler) => {
    const begin = Math.max(from, filler.from);
    const end = Math.min(to, filler.to);
    return begin < end ? [{ from: begin, to: end, born, source, at: filler.at + begin - filler.from }] : [];
  });
}

/** If there are too many segments, the cleared parts of one sector become one: nothing is between them. */
export function joinZeros(segments: readonly MapSegment[]): readonly MapSegment[] {
  if (!isFragmented(segments)) return segments;
  const joined: MapSegment[] = [];
  for (const segment of segments) {
    const last = joined.at(-1);
    const isNear = last && sectorAt(last.to - 1) === sectorAt(segment.from);
    if (!isNear || last.source || segment.source) joined.push(segment);
    else joined[joined.length - 1] = { ...last, to: segment.to, born: Math.max(last.born, segment.born) };
  }
  return joined;
}

const sectorAt = (place: number): number => Math.floor(place / SECTOR_BYTES);

/** The segments, divided at the borders of sectors. */
function* sectorsOf(segments: readonly MapSegment[]): Generator<MapSegment[]> {
  let sector: MapSegment[] = [];
  for (const segment of segments) {
    for (let from = segment.from; from < segment.to; ) {
      const to = Math.min(segment.to, (sectorAt(from) + 1) * SECTOR_BYTES);
      if (sector.length > 0 && sectorAt(sector[0]!.from) !== sectorAt(from)) {
        yield sector;
        sector = [];
      }
      sector.push({ ...segment, from, to, at: segment.source ? segment.at + from - segment.from : 0 });
      from = to;
    }
  }
  if (sector.length > 0) yield sector;
}
