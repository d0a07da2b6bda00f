/** A page of a range map: 1 MiB of a content as segments, in order and without overlap. Pure functions, no rows. */
import type { ChunkId, Void } from '../rows.ts';

export const MAP_PAGE_BYTES = 1 << 20;

/** Bytes of one chunk. `length`: those that were written into this page, whether they are still visible or not. */
export interface ChunkSource {
  readonly chunk: ChunkId;
  readonly length: number;
}

/** A short write, stored in the page. `piece` is unique in the page, also after the piece is gone. */
export interface InlineSource {
  readonly piece: number;
  readonly bytes: Buffer;
}

export type SegmentSource = ChunkSource | InlineSource;

export interface MapSegment {
  /** Counted from the start of the page. */
  readonly from: number;
  readonly to: number;
  /** The generation of the write. */
  readonly born: number;
  /** Undefined: zeros, where a clear or a truncation removed bytes. */
  readonly source?: SegmentSource | undefined;
  /** Where the bytes begin in the source. */
  readonly at: number;
}

export interface MapPage {
  /** The commit timestamp of the page's first row: a page that is removed and written again is another one. */
  readonly made: bigint;
  /** The first generation that sees this row; no segment is younger. */
  readonly born: number;
  /** The number of the last void that was applied. */
  readonly seen: number;
  /** The deletion queue has an entry that will merge the page. */
  readonly isQueued: boolean;
  /** The number of the next piece. */
  readonly nextPiece: number;
  readonly segments: readonly MapSegment[];
}

/** A page that exceeds one of these is to be merged. */
const INLINE_BYTES_WANTED = 16 << 10;
const PIECES_WANTED = 256;
const CHUNKS_WANTED = 16;
const JOINED_BYTES_MAX = 8 << 10;
/** More than a page can have whose writes begin and end at multiples of 512 bytes; merge.ts joins those of others. */
const SEGMENTS_WANTED = 3_072;
/** A page never exceeds these: a commit of several pages changes the counts of all their chunks. */
const INLINE_BYTES_MAX = 64 << 10;
const PIECES_MAX = 1_024;
const CHUNKS_MAX = 64;
const SEGMENTS_MAX = 4_096;

export const isInline = (source: SegmentSource): source is InlineSource => 'piece' in source;

export const emptyPage = (made: bigint, born: number, seen: number): MapPage => ({
  ...{ made, born, seen },
  isQueued: false,
  nextPiece: 0,
  segments: [],
});

/** The segments with one more, which replaces what was at its place. */
export function withSegment(segments: readonly MapSegment[], added: MapSegment): MapSegment[] {
  return coalesce([...outside(segments, -Infinity, added.from), added, ...outside(segments, added.to, Infinity)]);
}

/**
 * A short write that follows another one of its generation, as one with it: a page of appends has few segments. It is another piece, so that
 * a merge that has planned for the first one leaves it; hence the limit, or a page under constant appends would never be merged.
 */
export function joinPiece(segments: readonly MapSegment[], added: MapSegment): MapSegment {
  const { source, from } = added;
  const before = segments.findLast((segment) => segment.from < from);
  if (!source || !isInline(source) || before?.to !== from || before.born !== added.born) return added;
  const { source: first, at } = before;
  if (!first || !isInline(first) || at !== 0 || first.bytes.length !== before.to - before.from) return added;
  const bytes = first.bytes.length + source.bytes.length;
  if (bytes > JOINED_BYTES_MAX) return added;
  const joined = { piece: source.piece, bytes: Buffer.concat([first.bytes, source.bytes], bytes) };
  return { ...added, from: before.from, source: joined };
}

/** The segments with zeros of this generation where something was from `from` to before `to`; `zeros` undefined: with nothing there. */
export function cutSegments(
  segments: readonly MapSegment[],
  from: number,
  to: number,
  zeros: number | undefined,
): MapSegment[] {
  const cut = outside(segments, from, to);
  const cleared = zeros === undefined ? [] : cut.map((each) => ({ from: each.from, to: each.to, born: zeros, at: 0 }));
  return coalesce([...outside(segments, -Infinity, from), ...cleared, ...outside(segments, to, Infinity)]);
}

/** The parts of the segments from `from` to before `to`. */
function outside(segments: readonly MapSegment[], from: number, to: number): MapSegment[] {
  const parts: MapSegment[] = [];
  for (const segment of segments) {
    const begin = Math.max(segment.from, from);
    const end = Math.min(segment.to, to);
    if (begin >= end) continue;
    if (begin === segment.from && end === segment.to) {
      parts.push(segment);
      continue;
    }
    const at = segment.source ? segment.at + begin - segment.from : 0;
    parts.push({ ...segment, from: begin, to: end, at });
  }
  return parts;
}

/** Neighbours become one segment if they have one generation, and their bytes follow each other in one source. */
export function coalesce(segments: readonly MapSegment[]): MapSegment[] {
  const joined: MapSegment[] = [];
  for (const segment of segments) {
    const last = joined.at(-1);
    if (last && last.to === segment.from && last.born === segment.born && isContinued(last, segment)) {
      joined[joined.length - 1] = { ...last, to: segment.to };
    } else joined.push(segment);
  }
  return joined;
}

function isContinued(one: MapSegment, next: MapSegment): boolean {
  if (!one.source || !next.source) return one.source === next.source;
  return sourceKey(one.source) === sourceKey(next.source) && one.at + one.to - one.from === next.at;
}

/** Names a source within its page. */
export function sourceKey(source: SegmentSource): string {
  return isInline(source) ? `piece ${source.piece}` : `${source.chunk.epoch}-${source.chunk.number}`;
}

/** Voids that the page has not seen, up to this generation, in the order of their numbers. `offset` is that of the page. */
export function unseenVoids(page: MapPage, offset: number, voids: readonly Void[], gen: number): Void[] {
  return voids.filter(
    ({ number, from, to, gen: since }) =>
      number > page.seen && since <= gen && from < offset + MAP_PAGE_BYTES && to > offset,
  );
}

export function applyVoid(segments: readonly MapSegment[], offset: number, { from, to, gen }: Void): MapSegment[] {
  return cutSegments(segments, from - offset, to - offset, gen);
}

export const withoutZeros = (segments: readonly MapSegment[]): MapSegment[] => segments.filter(({ source }) => source);

/** The distinct sources of the segments, each with the number of its bytes that are visible. */
export function visibleBytes(segments: readonly MapSegment[]): Map<string, { source: SegmentSource; bytes: number }> {
  const sources = new Map<string, { source: SegmentSource; bytes: number }>();
  for (const { source, from, to } of segments) {
    if (!source) continue;
    const key = sourceKey(source);
    const known = sources.get(key);
    if (known) known.bytes += to - from;
    else sources.set(key, { source, bytes: to - from });
  }
  return sources;
}

export function chunksIn(segments: readonly MapSegment[]): ChunkId[] {
  const chunks: ChunkId[] = [];
  for (const { source } of visibleBytes(segments).values()) if (!isInline(source)) chunks.push(source.chunk);
  return chunks;
}

interface PageUse {
  readonly pieces: number;
  readonly inlineBytes: number;
  readonly chunks: number;
  readonly chunkBytes: number;
  readonly visibleChunkBytes: number;
}

function measure(segments: readonly MapSegment[]): PageUse {
  const use = { pieces: 0, inlineBytes: 0, chunks: 0, chunkBytes: 0, visibleChunkBytes: 0 };
  for (const { source, bytes } of visibleBytes(segments).values()) {
    if (isInline(source)) {
      use.pieces++;
      use.inlineBytes += source.bytes.length;
      continue;
    }
    use.chunks++;
    use.chunkBytes += source.length;
    use.visibleChunkBytes += bytes;
  }
  return use;
}

/** Whether the page is to be rewritten: too many short writes, chunks or segments, or less than three quarters of its chunks' bytes visible. */
export function wantsMerge(segments: readonly MapSegment[]): boolean {
  const { pieces, inlineBytes, chunks, chunkBytes, visibleChunkBytes } = measure(segments);
  if (pieces > PIECES_WANTED || inlineBytes > INLINE_BYTES_WANTED || isFragmented(segments)) return true;
  return chunks > CHUNKS_WANTED || !isMostlyVisible(visibleChunkBytes, chunkBytes);
}

export const isFragmented = (segments: readonly MapSegment[]): boolean => segments.length > SEGMENTS_WANTED;

/** So that the chunks take at most a third more than what can be seen of them. */
const isMostlyVisible = (visible: number, length: number): boolean => 4 * visible >= 3 * length;

export function isFull(segments: readonly MapSegment[]): boolean {
  const { pieces, inlineBytes, chunks } = measure(segments);
  if (pieces > PIECES_MAX || segments.length > SEGMENTS_MAX) return true;
  return inlineBytes > INLINE_BYTES_MAX || chunks > CHUNKS_MAX;
}

/**
 * The keys of the sources that a merge moves: all short writes; and of the chunks all if there are too many, or too many segments, else those
 * of which less than three quarters are visible.
 */
export function sourcesToMove(segments: readonly MapSegment[]): Set<string> {
  const sources = visibleBytes(segments);
  // One more will be added.
  const all = measure(segments).chunks >= CHUNKS_WANTED || isFragmented(segments);
  const moved = new Set<string>();
  for (const [key, { source, bytes }] of sources)
    if (isInline(source) || all || !isMostlyVisible(bytes, source.length)) moved.add(key);
  return moved;
}
