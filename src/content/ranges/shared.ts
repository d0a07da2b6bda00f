/**
 * Bytes of one range map that another place of a map names, too: chunks are shared by reference; short writes, which belong to their page, are
 * copied. In a page no byte of a chunk is at two places, so that a merge moves each once.
 */
import type { Transaction } from '../../partition/partition.ts';
import { type AccountId, formatId } from '../rows.ts';
import { isPiece, MAP_PAGE_BYTES, type MapSegment, partOf } from './map-page.ts';
import type { RangeMap } from './map-rows.ts';
import { withBytes } from './pieces.ts';
import { type ByteRange, pagesAt } from './reads.ts';
import type { WrittenPart } from './writes.ts';

export interface SharedSource extends ByteRange {
  readonly map: RangeMap;
  /** Undefined: the current state. */
  readonly gen: number | undefined;
}

/** The bytes have to be read and written: nothing is changed. */
export class CannotShare extends Error {
  override readonly name = 'CannotShare';
}

/** Far less than fills a page: a range that others wrote in many pieces becomes one chunk when its bytes are copied. */
const SHARED_SEGMENTS_MAX = 32;

/** What is at `offset` and after it when the bytes are shared, in parts that each are in one page; zeros where the source has nothing. */
export async function sharedParts(
  tx: Transaction,
  account: AccountId,
  { map, gen, from, to }: SharedSource,
  offset: number,
): Promise<WrittenPart[]> {
  const parts: WrittenPart[] = [];
  let [next, count] = [from, 0];
  for await (const page of pagesAt(tx, account, map, gen, { from, to })) {
    const found = within(page.segments, from - page.offset, to - page.offset);
    count += found.length;
    if (count > SHARED_SEGMENTS_MAX) throw new CannotShare('the range is in too many pieces');
    const place = { account, id: map.id, offset: page.offset };
    for (const segment of await withBytes(tx, place, found)) {
      const [begin, end] = [page.offset + segment.from, page.offset + segment.to];
      if (begin > next) parts.push(...splitAt(offset + next - from, begin - next));
      parts.push(...splitAt(offset + begin - from, end - begin, segment));
      next = end;
    }
  }
  if (next < to) parts.push(...splitAt(offset + next - from, to - next));
  return parts;
}

function within(segments: readonly MapSegment[], from: number, to: number): MapSegment[] {
  return segments
    .filter((segment) => segment.source && segment.to > from && segment.from < to)
    .map((segment) => partOf(segment, Math.max(segment.from, from), Math.min(segment.to, to)));
}

/** Each part in one page. @param segment undefined: zeros */
function splitAt(start: number, length: number, segment?: MapSegment): WrittenPart[] {
  const parts: WrittenPart[] = [];
  for (let begin = start; begin < start + length; ) {
    const page = begin - (begin % MAP_PAGE_BYTES);
    const end = Math.min(start + length, page + MAP_PAGE_BYTES);
    const at = (segment?.at ?? 0) + begin - start;
    parts.push({ page, from: begin - page, to: end - page, ...sourceOf(segment, at, end - begin) });
    begin = end;
  }
  return parts;
}

function sourceOf(segment: MapSegment | undefined, at: number, length: number) {
  const source = segment?.source;
  if (!source) return { at: 0 };
  return isPiece(source) ? { bytes: source.bytes!.subarray(at, at + length), at: 0 } : { chunk: source.chunk, at };
}

/**
 * The segments of a page, whose sources of the same chunks become those of the parts.
 * @param sources of the parts, by the names of their chunks
 */
export function joinSources(
  segments: readonly MapSegment[],
  parts: readonly WrittenPart[],
  sources: ReadonlyMap<string, { readonly length: number }>,
): MapSegment[] {
  checkOverlaps(segments, parts);
  const counted = new Set<object>();
  return segments.map((segment) => {
    const { source } = segment;
    const joined = source && !isPiece(source) ? sources.get(formatId(source.chunk)) : undefined;
    if (!source || !joined) return segment;
    if (!counted.has(source)) (joined as { length: number }).length += source.length;
    counted.add(source);
    return { ...segment, source: joined as typeof source };
  });
}

/** Also of what a part replaces: it is not worth finding out. */
function checkOverlaps(segments: readonly MapSegment[], parts: readonly WrittenPart[]): void {
  const used = new Map<string, { readonly at: number; readonly end: number }[]>();
  const add = (chunk: string, at: number, end: number) => {
    const known = used.get(chunk) ?? [];
    if (known.some((each) => at < each.end && end > each.at)) throw new CannotShare('the page has these bytes');
    used.set(chunk, [...known, { at, end }]);
  };
  for (const { chunk, from, to, at } of parts) if (chunk) add(formatId(chunk), at, at + to - from);
  for (const { source, from, to, at } of segments) {
    if (source && !isPiece(source) && used.has(formatId(source.chunk))) {
      add(formatId(source.chunk), at, at + to - from);
    }
  }
}
