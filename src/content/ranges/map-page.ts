/** A page of a range map: 1 MiB of a content as segments, in order and without overlap. Pure functions, no rows. */
import type { ChunkId, Void } from '../rows.ts';

export const MAP_PAGE_BYTES = 1 << 20;

/** Bytes of one chunk. `length`: those that were written into this page, whether they are still visible or not. */
export interface ChunkSource {
  readonly chunk: ChunkId;
  readonly length: number;
}

/** Short writes that follow each other. `piece` is unique in the page, also after the piece is gone. */
export interface PieceSource {
  readonly piece: number;
  readonly length: number;
  /** Those of an older page are in its row. Undefined: they are in a row of their own, pieces.ts. */
  readonly bytes?: Buffer | undefined;
  /** The row of its own as it is to be written: the piece is new, or was continued. */
  readonly row?: Buffer | undefined;
}

/** All segments of a page with bytes of one source have the same object, so that sources are compared by identity. */
export type SegmentSource = ChunkSource | PieceSource;

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
  /** Bytes of its chunks that it shows no more, and older pages still did when the last merge looked: they are no waste. */
  readonly kept: number;
  readonly segments: readonly MapSegment[];
}

/** A page that exceeds one of these is to be merged: often enough that reads find few rows, and so rarely that a merge is paid by many writes. */
const PIECE_BYTES_WANTED = 256 << 10;
const PIECES_WANTED = 64;
export const CHUNKS_WANTED = 16;
/** Of a piece that another write continues: its row is logged again. */
const JOINED_BYTES_MAX = 8 << 10;
/** More than a page can have whose writes begin and end at multiples of 512 bytes; merge.ts joins those of others. */
const SEGMENTS_WANTED = 3_072;
/** A page never exceeds these: a commit of five pages may change the rows of all their pieces and chunks, and has at most 1,000 rows. */
const PIECE_BYTES_MAX = 512 << 10;
const PIECES_MAX = 128;
const CHUNKS_MAX = 64;
const SEGMENTS_MAX = 4_096;

export const isPiece = (source: SegmentSource): source is PieceSource => 'piece' in source;

const NO_USE: PageUse = { segments: 0, pieces: [], pieceBytes: 0, chunks: [], chunkBytes: 0, visibleChunkBytes: 0 };

export const emptyPage = (made: bigint, born: number, seen: number) => ({
  ...{ made, born, seen },
  isQueued: false,
  nextPiece: 0,
  kept: 0,
  segments: [],
  use: NO_USE,
});

/** The segments with one more, which replaces what was at its place. */
export function withSegment(segments: readonly MapSegment[], added: MapSegment): MapSegment[] {
  return appendSegment(segments, added) ?? replacePart(segments, added.from, added.to, () => [added]);
}

/** Where appends write: after all segments, or over the last one, which they continue. Undefined: the segment is to be elsewhere. */
function appendSegment(segments: readonly MapSegment[], added: MapSegment): MapSegment[] | undefined {
  const last = segments.at(-1);
  const isAfter = !last || last.to <= added.from;
  if (!isAfter && (last.from !== added.from || last.to > added.to)) return undefined;
  const before = isAfter ? last : segments.at(-2);
  if (before && isOneWith(before, added)) return undefined;
  const kept = isAfter ? segments.slice() : segments.slice(0, -1);
  kept.push(added);
  return kept;
}

/** The segment before this place that a short write there continues: all of one piece, with room for as many bytes more. */
export function joinableBefore(
  segments: readonly MapSegment[],
  from: number,
  born: number,
  bytes: number,
): { readonly from: number; readonly source: PieceSource } | undefined {
  const before = segments[firstEndingFrom(segments, from)];
  if (!before?.source || !isPiece(before.source) || before.to !== from || before.born !== born) return undefined;
  const { source, at } = before;
  if (at !== 0 || source.length !== before.to - before.from || source.length + bytes > JOINED_BYTES_MAX)
    return undefined;
  return { from: before.from, source };
}

/**
 * The segments with zeros of this generation where bytes were from `from` to before `to`; `zeros` undefined: with nothing there. What is zeros
 * already does not change, and keeps its generation.
 */
export function cutSegments(
  segments: readonly MapSegment[],
  from: number,
  to: number,
  zeros: number | undefined,
): MapSegment[] {
  return replacePart(segments, from, to, (cut) =>
    zeros === undefined
      ? []
      : cut.map((each) => (each.source ? { from: each.from, to: each.to, born: zeros, at: 0 } : each)),
  );
}

/** Only the segments near the place are looked at: a page may have thousands. */
function replacePart(
  segments: readonly MapSegment[],
  from: number,
  to: number,
  replace: (cut: MapSegment[]) => MapSegment[],
): MapSegment[] {
  const first = firstEndingFrom(segments, from);
  let end = first;
  while (end < segments.length && segments[end]!.from <= to) end++;
  const near = segments.slice(first, end);
  const replaced = [
    ...clip(near, Number.NEGATIVE_INFINITY, from),
    ...replace(clip(near, from, to)),
    ...clip(near, to, Number.POSITIVE_INFINITY),
  ];
  return [...segments.slice(0, first), ...coalesce(replaced), ...segments.slice(end)];
}

/** The index of the first segment that ends at this place or after it. */
const firstEndingFrom = (segments: readonly MapSegment[], place: number): number =>
  firstIndex(segments, ({ to }) => to >= place);

/** The index of the first item for which this is true, in an order in which it is for all after it. */
export function firstIndex<Item>(items: readonly Item[], isFound: (item: Item) => boolean): number {
  let [low, high] = [0, items.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isFound(items[middle]!)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The parts of the segments from `from` to before `to`. */
function clip(segments: readonly MapSegment[], from: number, to: number): MapSegment[] {
  const parts: MapSegment[] = [];
  for (const segment of segments) {
    const begin = Math.max(segment.from, from);
    const end = Math.min(segment.to, to);
    if (begin < end) parts.push(partOf(segment, begin, end));
  }
  return parts;
}

export function partOf(segment: MapSegment, from: number, to: number): MapSegment {
  if (from === segment.from && to === segment.to) return segment;
  return { ...segment, from, to, at: segment.source ? segment.at + from - segment.from : 0 };
}

/** Neighbours become one segment if they have one generation, and their bytes follow each other in one source. */
export function coalesce(segments: readonly MapSegment[]): MapSegment[] {
  const joined: MapSegment[] = [];
  for (const segment of segments) {
    const last = joined.at(-1);
    if (last && isOneWith(last, segment)) {
      joined[joined.length - 1] = { ...last, to: segment.to };
    } else joined.push(segment);
  }
  return joined;
}

function isOneWith(one: MapSegment, next: MapSegment): boolean {
  if (one.to !== next.from || one.born !== next.born || one.source !== next.source) return false;
  return !one.source || one.at + one.to - one.from === next.at;
}

/** Names a source within its page, also after the page was read again. */
export function sourceKey(source: SegmentSource): string {
  return isPiece(source) ? `piece ${source.piece}` : `${source.chunk.epoch}-${source.chunk.number}`;
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

export const withoutZeros = (segments: readonly MapSegment[]): readonly MapSegment[] =>
  segments.every(({ source }) => source) ? segments : segments.filter(({ source }) => source);

export function chunksIn(segments: readonly MapSegment[]): ChunkId[] {
  return measure(segments).chunks.map(({ chunk }) => chunk);
}

/** What the segments of a page name. */
export interface PageUse {
  readonly segments: number;
  readonly pieces: readonly PieceSource[];
  readonly pieceBytes: number;
  readonly chunks: readonly ChunkSource[];
  readonly chunkBytes: number;
  readonly visibleChunkBytes: number;
}

/** Up to this number, looking through all sources costs less than a set of them. */
const SOURCES_FEW = 32;

/** The sources are in the order in which the segments name them first. */
export function measure(segments: readonly MapSegment[]): PageUse {
  const pieces: PieceSource[] = [];
  const chunks: ChunkSource[] = [];
  let pieceBytes = 0;
  let chunkBytes = 0;
  let visibleChunkBytes = 0;
  const known = segments.length > SOURCES_FEW ? new Set<SegmentSource>() : undefined;
  for (const { source, from, to } of segments) {
    if (!source) continue;
    if (isPiece(source)) {
      if (known ? known.has(source) : pieces.includes(source)) continue;
      pieces.push(source);
      pieceBytes += source.length;
    } else {
      visibleChunkBytes += to - from;
      if (known ? known.has(source) : chunks.includes(source)) continue;
      chunks.push(source);
      chunkBytes += source.length;
    }
    known?.add(source);
  }
  return { segments: segments.length, pieces, pieceBytes, chunks, chunkBytes, visibleChunkBytes };
}

/** Whether there are too many short writes, chunks or segments, or too much of the chunks' bytes is visible nowhere. */
export function wantsMerge(use: PageUse, kept: number): boolean {
  const { segments, chunks, chunkBytes, visibleChunkBytes } = use;
  if (hasManyPieces(use) || segments > SEGMENTS_WANTED || chunks.length > CHUNKS_WANTED) return true;
  return !isMostlyVisible(visibleChunkBytes + kept, chunkBytes);
}

export const hasManyPieces = ({ pieces, pieceBytes }: PageUse): boolean =>
  pieces.length > PIECES_WANTED || pieceBytes > PIECE_BYTES_WANTED;

export const isFragmented = (segments: readonly MapSegment[]): boolean => segments.length > SEGMENTS_WANTED;

/** So that the chunks take at most a seventh more than what can be seen of them: the garbage collector counts them as live as a whole. */
export const isMostlyVisible = (visible: number, length: number): boolean => 8 * visible >= 7 * length;

/**
 * Of a page that is copied for older generations: whether too much of what the last of them wrote was overwritten in the same generation. No
 * other page shows that; beside the other bytes of the page it may be little, but it would stay with each snapshot.
 */
export function hasOverwritten({ born, segments }: MapPage): boolean {
  const visible = new Map<ChunkSource, { bytes: number; born: number }>();
  for (const { source, from, to, born: since } of segments) {
    if (!source || isPiece(source)) continue;
    const known = visible.get(source);
    if (!known) visible.set(source, { bytes: to - from, born: since });
    else Object.assign(known, { bytes: known.bytes + to - from, born: Math.max(known.born, since) });
  }
  const written = [...visible].filter(([, each]) => each.born === born);
  const sum = (numbers: number[]) => numbers.reduce((total, each) => total + each, 0);
  return !isMostlyVisible(sum(written.map(([, { bytes }]) => bytes)), sum(written.map(([{ length }]) => length)));
}

export function isFull({ segments, pieces, pieceBytes, chunks }: PageUse): boolean {
  if (pieces.length > PIECES_MAX || segments > SEGMENTS_MAX) return true;
  return pieceBytes > PIECE_BYTES_MAX || chunks.length > CHUNKS_MAX;
}

/** Whether so many more pieces, with as many bytes together, leave the page within its limits. */
export function hasRoomFor(use: PageUse, pieces: number, bytes: number): boolean {
  if (use.pieces.length + pieces > PIECES_MAX || use.segments + pieces > SEGMENTS_MAX) return false;
  return use.pieceBytes + bytes <= PIECE_BYTES_MAX;
}
