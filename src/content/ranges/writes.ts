/** Writes, clears and truncations of a range map. The functions only read and write rows, so a transaction may run them again. */
import { type Row, type Transaction, Unavailable } from '../../partition/partition.ts';
import { stoppedEarly } from '../../partition/values.ts';
import { type AccountId, type ChunkRef, formatId, sliceRefs } from '../rows.ts';
import { moveFirstToPage } from './first-bytes.ts';
import {
  type ChunkSource,
  cutSegments,
  joinableBefore,
  MAP_PAGE_BYTES,
  type MapPage,
  type MapSegment,
  withSegment,
} from './map-page.ts';
import { decodeMapPage } from './map-page-codec.ts';
import { mapPageKey, numbersAfterId, queueRanges, type RangeMap, updateRanges } from './map-rows.ts';
import { PageChanges } from './pages.ts';
import { decodePiece, makePiece, type PagePlace, readPiece } from './pieces.ts';
import type { ChangedRange } from './reads.ts';
import { joinSources, type SharedSource, sharedParts } from './shared.ts';
import { appendToTail, closeTail } from './tail.ts';

/** A longer write becomes chunks: a page is written again with each short one. */
export const INLINE_WRITE_BYTES_MAX = 4 << 10;
/** Of short writes that become one piece together: a read of a part of them reads the whole row. */
const JOINED_WRITES_BYTES_MAX = 16 << 10;
/** The end of a range that has none. */
export const NO_END = Number.MAX_SAFE_INTEGER;

/** A clear of more pages, or of pages with more chunks and short writes, is a void. */
const CLEARED_PAGES_MAX = 64;
const CLEARED_SOURCES_MAX = 400;
const CLEARED_BYTES_MAX = 4 << 20;
/** Each read of a page looks at all of them. */
const VOIDS_MAX = 64;

/** Bytes that a transaction can name: in memory, or in chunks that have one reference each for this write. */
export type WrittenBytes =
  | { readonly inline: Buffer }
  | { readonly inline?: undefined; readonly chunkRefs: readonly ChunkRef[] };

export interface MapWritten {
  /** The sweeper has work to do. */
  readonly needsSweep: boolean;
}

/** @throws MapPageFull before anything is written */
export function writeRange(
  tx: Transaction,
  account: AccountId,
  map: RangeMap,
  offset: number,
  bytes: WrittenBytes,
): Promise<MapWritten> {
  return writeParts(tx, account, map, bytes.inline ? [] : bytes.chunkRefs, splitAtPages(offset, bytes));
}

/** A short write at an offset. */
export interface ShortWrite {
  readonly offset: number;
  readonly bytes: Buffer;
}

/**
 * Short writes, the later ones over the earlier: each of their pages is written once, and those that follow each other are one.
 * @throws MapPageFull before anything is written
 */
export function writeShort(
  tx: Transaction,
  account: AccountId,
  map: RangeMap,
  writes: readonly ShortWrite[],
): Promise<MapWritten> {
  const [only] = writes;
  const parts =
    writes.length === 1
      ? splitBytes(only!.offset, only!.bytes)
      : joinNeighbours(writes).flatMap(({ offset, bytes }) => splitBytes(offset, bytes));
  return writeParts(tx, account, map, [], parts);
}

/**
 * Short writes, each where the one before it ends, at the end of the content: from there on nothing can be seen.
 * @throws MapPageFull
 */
export async function appendShort(
  tx: Transaction,
  account: AccountId,
  found: RangeMap,
  writes: readonly ShortWrite[],
): Promise<MapWritten> {
  const map = found.first ? await moveFirstToPage(tx, account, found) : found;
  const { offset, bytes } = writes[0]!;
  const all = writes.length === 1 ? bytes : Buffer.concat(writes.map((write) => write.bytes));
  return { needsSweep: await appendToTail(tx, account, map, offset, all) };
}

function joinNeighbours(writes: readonly ShortWrite[]): readonly ShortWrite[] {
  const joined: ShortWrite[] = [];
  for (let first = 0; first < writes.length; ) {
    const { offset } = writes[first]!;
    let [end, length] = [first + 1, writes[first]!.bytes.length];
    for (; end < writes.length && writes[end]!.offset === offset + length; end++) {
      const longer = length + writes[end]!.bytes.length;
      if (longer > JOINED_WRITES_BYTES_MAX) break;
      length = longer;
    }
    const bytes = writes.slice(first, end).map((write) => write.bytes);
    joined.push({ offset, bytes: bytes.length === 1 ? bytes[0]! : Buffer.concat(bytes, length) });
    first = end;
  }
  return joined;
}

/**
 * Writes and clears several ranges, each of their pages once.
 * @param chunkRefs the bytes of all ranges that are written, one after another; they have one reference each for this write
 * @throws MapPageFull before anything is written
 */
export function writeRanges(
  tx: Transaction,
  account: AccountId,
  map: RangeMap,
  ranges: readonly ChangedRange[],
  chunkRefs: readonly ChunkRef[],
): Promise<MapWritten> {
  return writeParts(tx, account, map, chunkRefs, splitRanges(ranges, chunkRefs));
}

/**
 * Writes what another place shows, or another content: chunks are named again, not copied.
 * @throws CannotShare or MapPageFull before anything is written
 */
export async function writeShared(
  tx: Transaction,
  account: AccountId,
  map: RangeMap,
  offset: number,
  source: SharedSource,
): Promise<MapWritten> {
  return writeParts(tx, account, map, [], await sharedParts(tx, account, source, offset), true);
}

function splitRanges(ranges: readonly ChangedRange[], chunkRefs: readonly ChunkRef[]): WrittenPart[] {
  const parts: WrittenPart[] = [];
  let taken = 0;
  for (const { from, to, isWritten } of ranges) {
    if (isWritten) {
      const length = to - from;
      parts.push(...splitAtPages(from, { chunkRefs: sliceRefs(chunkRefs, taken, taken + length) }));
      taken += length;
    } else parts.push(...splitCleared(from, to));
  }
  return parts;
}

async function writeParts(
  tx: Transaction,
  account: AccountId,
  found: RangeMap,
  chunkRefs: readonly ChunkRef[],
  written: readonly WrittenPart[],
  isShared = false,
): Promise<MapWritten> {
  const map = found.first || found.tail ? await moveToPages(tx, account, found) : found;
  const changes = new PageChanges(tx, account, map);
  for (const { chunk } of chunkRefs) changes.refs.add(chunk, -1);
  const parts = groupByPage(written);
  const rows = await tx.getMany(parts.map(([{ page }]) => mapPageKey(account, map.id, page)));
  for (let i = 0; i < parts.length; i++) {
    const added = parts[i]!;
    const place = { account, id: map.id, offset: added[0].page };
    await changes.rewrite(place.offset, rows[i], (page) => addParts(tx, place, page, added, map.gen, isShared));
  }
  await changes.refs.apply(tx, account);
  return { needsSweep: changes.hasQueued };
}

/** Before a change: the map pages name all bytes. */
async function moveToPages(tx: Transaction, account: AccountId, map: RangeMap): Promise<RangeMap> {
  return closeTail(tx, account, await moveFirstToPage(tx, account, map));
}

type PageParts = readonly [WrittenPart, ...WrittenPart[]];

function groupByPage(written: readonly WrittenPart[]): readonly PageParts[] {
  if (written.length === 1) return [[written[0]!]];
  const pages = new Map<number, [WrittenPart, ...WrittenPart[]]>();
  for (const part of written) {
    const known = pages.get(part.page);
    if (known) known.push(part);
    else pages.set(part.page, [part]);
  }
  return [...pages.values()];
}

/** Without a chunk and bytes: zeros. */
export interface WrittenPart {
  /** The offset of the page. */
  readonly page: number;
  readonly from: number;
  readonly to: number;
  readonly chunk?: ChunkRef['chunk'];
  readonly bytes?: Buffer;
  readonly at: number;
}

function splitCleared(from: number, to: number): WrittenPart[] {
  const parts: WrittenPart[] = [];
  for (let begin = from; begin < to; ) {
    const page = begin - (begin % MAP_PAGE_BYTES);
    const next = Math.min(to, page + MAP_PAGE_BYTES);
    parts.push({ page, from: begin - page, to: next - page, at: 0 });
    begin = next;
  }
  return parts;
}

/** Each part in one page, and of one source. */
function splitAtPages(offset: number, written: WrittenBytes): WrittenPart[] {
  if (written.inline) return splitBytes(offset, written.inline);
  const parts: WrittenPart[] = [];
  let start = offset;
  for (const { chunk, length, offset: first = 0 } of written.chunkRefs) {
    for (const { page, from, to } of splitCleared(start, start + length))
      parts.push({ page, from, to, chunk, at: first + page + from - start });
    start += length;
  }
  return parts;
}

function splitBytes(offset: number, bytes: Buffer): WrittenPart[] {
  const page = offset - (offset % MAP_PAGE_BYTES);
  const end = Math.min(offset + bytes.length, page + MAP_PAGE_BYTES);
  const part = { page, from: offset - page, to: end - page, bytes: bytes.subarray(0, end - offset), at: 0 };
  const isAll = end === offset + bytes.length;
  return isAll ? [part] : [part, ...splitBytes(end, bytes.subarray(end - offset))];
}

async function addParts(
  tx: Transaction,
  place: PagePlace,
  page: MapPage,
  parts: readonly WrittenPart[],
  born: number,
  isShared: boolean,
): Promise<Pick<MapPage, 'segments' | 'nextPiece'>> {
  let { segments, nextPiece } = page;
  const chunks = chunkSources(parts);
  // A chunk of an upload is new to the page.
  if (isShared) segments = joinSources(segments, parts, chunks);
  for (const { from, to, chunk, bytes, at } of parts) {
    if (chunk) segments = withSegment(segments, { from, to, born, source: chunks.get(formatId(chunk)), at });
    else if (!bytes) segments = cutSegments(segments, from, to, born);
    else {
      const joined = await joinPiece(tx, place, segments, from, born, bytes);
      const source = joined ? undefined : makePiece(nextPiece++, bytes);
      segments = withSegment(segments, joined ?? { from, to, born, source, at: 0 });
    }
  }
  return { segments, nextPiece };
}

const NO_CHUNKS: ReadonlyMap<string, ChunkSource> = new Map();

/** Each with the number of bytes that the parts have of it. */
function chunkSources(parts: readonly WrittenPart[]): ReadonlyMap<string, ChunkSource> {
  if (!parts.some(({ chunk }) => chunk)) return NO_CHUNKS;
  const sources = new Map<string, ChunkSource & { length: number }>();
  for (const { chunk, from, to } of parts) {
    if (!chunk) continue;
    const known = sources.get(formatId(chunk));
    if (known) known.length += to - from;
    else sources.set(formatId(chunk), { chunk, length: to - from });
  }
  return sources;
}

/**
 * A short write that follows another one of its generation, as one with it: a page of appends has few segments. The piece keeps its number and
 * its first bytes, so that a merge that has planned to move those does so.
 */
async function joinPiece(
  tx: Transaction,
  place: PagePlace,
  segments: readonly MapSegment[],
  from: number,
  born: number,
  bytes: Buffer,
): Promise<MapSegment | undefined> {
  const before = joinableBefore(segments, from, born, bytes.length);
  if (!before) return undefined;
  const { source } = before;
  // A piece of this very write has no row yet.
  const first = source.row
    ? decodePiece({ value: source.row })
    : (source.bytes ?? (await readPiece(tx, place, source)));
  const longer = makePiece(source.piece, bytes, first);
  return { from: before.from, to: from + bytes.length, born, source: longer, at: 0 };
}

/** Zeros from `from` to before `to`. A truncation clears up to NO_END. */
export async function clearRange(
  tx: Transaction,
  account: AccountId,
  found: RangeMap,
  from: number,
  to: number,
  pagesMax = CLEARED_PAGES_MAX,
): Promise<MapWritten> {
  const map = await moveToPages(tx, account, found);
  const limits = { limit: pagesMax + 1, bytesMax: CLEARED_BYTES_MAX };
  const first = mapPageKey(account, map.id, from - (from % MAP_PAGE_BYTES));
  const rows = await tx.scan({ from: first, to: mapPageKey(account, map.id, to) }, limits);
  if (rows.length === 0) return { needsSweep: false };
  const sources = rows.reduce((sum, row) => sum + countSources(row), 0);
  if (stoppedEarly(rows, limits) || sources > CLEARED_SOURCES_MAX) {
    await addVoid(tx, account, map, from, to);
    return { needsSweep: true };
  }
  const changes = new PageChanges(tx, account, map);
  for (const row of rows) await clearPage(changes, row, map, from, to);
  await changes.refs.apply(tx, account);
  return { needsSweep: changes.hasQueued };
}

function countSources(row: Row): number {
  const { chunks, pieces } = decodeMapPage(row).use;
  return chunks.length + pieces.length;
}

async function clearPage(changes: PageChanges, row: Row, map: RangeMap, from: number, to: number): Promise<void> {
  const [offset = 0] = numbersAfterId(row.key);
  const isTouched = decodeMapPage(row).segments.some(
    (segment) => segment.source && offset + segment.to > from && offset + segment.from < to,
  );
  if (!isTouched) return;
  await changes.rewrite(offset, row, ({ segments, nextPiece }) => ({
    segments: cutSegments(segments, from - offset, to - offset, map.gen),
    nextPiece,
  }));
}

/** One row for any number of pages: the sweeper cuts them, and until then whoever reads them. */
async function addVoid(tx: Transaction, account: AccountId, map: RangeMap, from: number, to: number): Promise<void> {
  const { gen, id } = map;
  const number = map.lastVoid + 1;
  const kept = map.voids.filter((each) => each.gen !== gen || each.from < from || each.to > to);
  if (kept.length >= VOIDS_MAX) throw new Unavailable('Too many truncations are still being applied.');
  await updateRanges(tx, account, id, { voids: [...kept, { number, from, to, gen }], lastVoid: number });
  const first = from - (from % MAP_PAGE_BYTES);
  queueRanges(tx, account, { kind: 'void', content: formatId(id), number, from: first });
}
