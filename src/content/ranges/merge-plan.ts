/**
 * What a merge of a map page moves. The older pages of its offset name many of its chunks, too: bytes that are moved for one of these versions are
 * moved for all, or both places would take space while a snapshot is held. Pure functions, no rows.
 */
import { CHUNK_BYTES_MAX } from '../../extents/extents.ts';
import {
  CHUNKS_WANTED,
  type ChunkSource,
  firstIndex,
  hasManyPieces,
  isFragmented,
  isMostlyVisible,
  isPiece,
  type MapPage,
  type MapSegment,
  measure,
  partOf,
  type SegmentSource,
  sourceKey,
} from './map-page.ts';
import { type Filler, gapsInSectors } from './sectors.ts';

/** Bytes of a source that are visible, and where the merged chunk has them. */
export interface Move {
  readonly source: SegmentSource;
  readonly at: number;
  readonly length: number;
  readonly to: number;
}

export interface MergePlan {
  /** Of the map page; undefined: there is none. */
  readonly made: bigint | undefined;
  readonly born: number | undefined;
  /** By the names of the sources, in the order of their bytes. Empty: nothing is worth it. */
  readonly moves: ReadonlyMap<string, readonly Move[]>;
  /** In a map page with too many segments. */
  readonly fillers: readonly Filler[];
  readonly length: number;
  /** The older pages keep what they have. */
  readonly isOfMapPageOnly: boolean;
  /** Of the map page, and the chunks for which that is true. */
  readonly kept: number;
  readonly chunksLeft: readonly string[];
  /** False: there is more than one merge moves. */
  readonly isComplete: boolean;
}

/** Of a page with too many chunks, those with the most bytes are left: so few bytes are moved often. */
const CHUNKS_LEFT = 8;

/** Bytes of a source, from `at` to before `end`. */
interface SourceRange {
  readonly at: number;
  readonly end: number;
}

interface SourceUse {
  readonly name: string;
  readonly source: SegmentSource;
  /** The most that a version says was written of it. */
  length: number;
  /** What any version shows, in order and disjoint. */
  readonly shownRanges: SourceRange[];
  /** What only older pages show. */
  readonly olderRanges: SourceRange[];
  /** Bytes that any version shows, and those of the map page. */
  shown: number;
  shownByMapPage: number;
  /** A short write in an older page with many. */
  isCrowded: boolean;
}

type ChunkUse = SourceUse & { readonly source: ChunkSource };

const isChunk = (use: SourceUse): use is ChunkUse => !isPiece(use.source);

/** A piece has its number in all versions that are copies of one page. */
const sourceName = (source: SegmentSource, { made }: MapPage): string =>
  isPiece(source) ? `${made} ${sourceKey(source)}` : sourceKey(source);

/**
 * The versions of one map page: which bytes of which sources they show together. Ranges are joined, so that it takes memory for the gaps in what
 * is shown, which merges keep few, and not for each version.
 */
export class VersionSurvey {
  /** Undefined: there is none, only older pages. */
  mapPage: MapPage | undefined;
  /** Ranges that were added. */
  size = 0;
  private readonly sources = new Map<string, SourceUse>();
  private readonly ofMapPage = new Map<SegmentSource, SourceUse>();

  /** The map page comes first. */
  add(page: MapPage, isMapPage: boolean): void {
    const uses = isMapPage ? this.ofMapPage : new Map<SegmentSource, SourceUse>();
    const isCrowded = !isMapPage && hasManyPieces(measure(page.segments));
    for (const segment of page.segments) {
      const { source } = segment;
      if (!source) continue;
      const use = uses.get(source) ?? this.find(source, page);
      uses.set(source, use);
      use.isCrowded ||= isCrowded;
      this.addSegment(use, segment, isMapPage);
    }
    if (isMapPage) this.mapPage = page;
  }

  private find(source: SegmentSource, page: MapPage): SourceUse {
    const name = sourceName(source, page);
    const known = this.sources.get(name);
    if (known) {
      known.length = Math.max(known.length, source.length);
      return known;
    }
    const counts = { shown: 0, shownByMapPage: 0, isCrowded: false };
    const use = { name, source, length: source.length, shownRanges: [], olderRanges: [], ...counts };
    this.sources.set(name, use);
    return use;
  }

  private addSegment(use: SourceUse, { from, to, at }: MapSegment, isMapPage: boolean): void {
    if (isMapPage) use.shownByMapPage += to - from;
    for (const gap of addRange(use.shownRanges, at, at + to - from)) {
      use.shown += gap.end - gap.at;
      this.size++;
      if (!isMapPage) appendRange(use.olderRanges, gap);
    }
  }

  /** Chunks of which too little is shown. */
  sparseChunks(): readonly ChunkUse[] {
    return this.chunks().filter((use) => !isMostlyVisible(use.shown, use.length));
  }

  /** Those with the fewest bytes first. */
  private chunks(): ChunkUse[] {
    return [...this.sources.values()].filter(isChunk).sort((one, other) => one.shown - other.shown);
  }

  /** Bytes of chunks that any version shows. */
  chunkBytes(): number {
    return this.chunks().reduce((sum, { shown }) => sum + shown, 0);
  }

  plan(): MergePlan {
    const chosen = this.choose();
    if (chosen) return this.place(chosen.sources, false, chosen.isComplete);
    const all = [...this.sources.values()].filter(({ shownByMapPage }) => shownByMapPage > 0);
    return this.place(new Set(all), true, false);
  }

  /** Undefined: the map page has too many segments, or too many chunks of which others show too much. */
  private choose(): { sources: Set<SourceUse>; isComplete: boolean } | undefined {
    if (this.mapPage && isFragmented(this.mapPage.segments)) return undefined;
    const sources = new Set<SourceUse>();
    let bytes = 0;
    const take = (use: SourceUse): boolean => {
      if (bytes + use.shown > CHUNK_BYTES_MAX) return false;
      bytes += use.shown;
      sources.add(use);
      return true;
    };
    let isComplete = true;
    for (const use of this.sources.values())
      if (isPiece(use.source) && (use.shownByMapPage > 0 || use.isCrowded)) isComplete = take(use) && isComplete;
    for (const use of this.sparseChunks()) isComplete = take(use) && isComplete;
    const left = this.chunks().filter((use) => use.shownByMapPage > 0 && !sources.has(use));
    // The merged chunk is one more.
    if (left.length < CHUNKS_WANTED) return { sources, isComplete };
    for (const use of left.slice(0, -CHUNKS_LEFT)) if (!take(use)) return undefined;
    return { sources, isComplete };
  }

  private place(sources: ReadonlySet<SourceUse>, isOfMapPageOnly: boolean, isComplete: boolean): MergePlan {
    const { mapPage } = this;
    const gaps = mapPage && isFragmented(mapPage.segments) ? gapsInSectors(mapPage.segments) : [];
    const moves = new Map<string, Move[]>();
    const fillers: Filler[] = [];
    let length = 0;
    let next = 0;
    // In the order of the map page, so that neighbours in it, and sectors, become one segment.
    for (const { source, from, to, at } of mapPage?.segments ?? []) {
      const use = source && this.ofMapPage.get(source);
      if (!use || !sources.has(use)) continue;
      for (; isOfMapPageOnly && next < gaps.length && gaps[next]!.from < from; next++) fill(gaps[next]!);
      move(use, at, to - from);
    }
    for (; isOfMapPageOnly && next < gaps.length; next++) fill(gaps[next]!);
    if (!isOfMapPageOnly) for (const use of sources) for (const { at, end } of use.olderRanges) move(use, at, end - at);
    for (const each of moves.values()) each.sort((one, other) => one.at - other.at);
    const left = this.chunks().filter((use) => use.shownByMapPage > 0 && !sources.has(use));
    const moved = [...sources].reduce((sum, use) => sum + use.shownByMapPage, 0);
    const keptInMerged = isOfMapPageOnly || moved === 0 ? 0 : length - moved;
    return {
      ...{ made: mapPage?.made, born: mapPage?.born, moves, fillers, length, isOfMapPageOnly, isComplete },
      kept: left.reduce((sum, use) => sum + hiddenInMapPage(use), keptInMerged),
      chunksLeft: left.map(({ name }) => name),
    };

    function move({ name, source }: SourceUse, at: number, bytes: number): void {
      const added = { source, at, length: bytes, to: length };
      const known = moves.get(name);
      if (known) known.push(added);
      else moves.set(name, [added]);
      length += bytes;
    }

    function fill({ from, to }: { readonly from: number; readonly to: number }): void {
      fillers.push({ from, to, at: length });
      length += to - from;
    }
  }
}

const hiddenInMapPage = ({ shown, shownByMapPage }: SourceUse): number =>
  shownByMapPage > 0 ? shown - shownByMapPage : 0;

function appendRange(ranges: SourceRange[], added: SourceRange): void {
  const last = ranges.at(-1);
  if (last?.end === added.at) ranges[ranges.length - 1] = { at: last.at, end: added.end };
  else ranges.push(added);
}

/** Adds a range to ranges that are in order and disjoint. @returns the parts of it that were in none of them */
function addRange(ranges: SourceRange[], at: number, end: number): SourceRange[] {
  const first = firstIndex(ranges, (known) => known.end >= at);
  const gaps: SourceRange[] = [];
  let [last, next, from] = [first, at, at];
  for (; last < ranges.length && ranges[last]!.at <= end; last++) {
    const known = ranges[last]!;
    if (known.at > next) gaps.push({ at: next, end: known.at });
    next = Math.max(next, known.end);
    from = Math.min(from, known.at);
  }
  if (next < end) gaps.push({ at: next, end });
  if (gaps.length > 0) ranges.splice(first, last - first, { at: from, end: Math.max(next, end) });
  return gaps;
}

/** The segments of a version with the bytes that were moved in the merged chunk. Since the plan one may have become shorter, or its piece longer. */
export function relocateAll(page: MapPage, moves: MergePlan['moves'], merged: SegmentSource): MapSegment[] {
  const planned = new Map<SegmentSource, readonly Move[] | undefined>();
  const relocated: MapSegment[] = [];
  for (const segment of page.segments) {
    const { source } = segment;
    if (source && !planned.has(source)) planned.set(source, moves.get(sourceName(source, page)));
    const found = source && planned.get(source);
    if (found) relocate(segment, found, merged, relocated);
    else relocated.push(segment);
  }
  return relocated;
}

function relocate(segment: MapSegment, planned: readonly Move[], merged: SegmentSource, parts: MapSegment[]): void {
  const start = segment.from - segment.at;
  let next = segment.from;
  const first = firstIndex(planned, ({ at, length }) => at + length > segment.at);
  for (let i = first; i < planned.length && next < segment.to; i++) {
    const { at, length, to } = planned[i]!;
    const [begin, end] = [Math.max(next, start + at), Math.min(segment.to, start + at + length)];
    if (begin >= end) break;
    if (begin > next) parts.push(partOf(segment, next, begin));
    parts.push({ from: begin, to: end, born: segment.born, source: merged, at: to + begin - start - at });
    next = end;
  }
  if (next < segment.to) parts.push(partOf(segment, next, segment.to));
}
