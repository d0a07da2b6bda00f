/** Writes, clears and truncations of a range map. The functions only read and write rows, so a transaction may run them again. */
import { type Row, type Transaction, Unavailable } from '../../partition/partition.ts';
import { stoppedEarly } from '../../partition/values.ts';
import { type AccountId, type ChunkRef, formatId, sliceRefs } from '../rows.ts';
import {
  chunksIn,
  cutSegments,
  joinPiece,
  MAP_PAGE_BYTES,
  type MapPage,
  type SegmentSource,
  withSegment,
} from './map-page.ts';
import { decodeMapPage } from './map-page-codec.ts';
import { mapPageKey, numbersAfterId, queueRanges, type RangeMap, updateRanges } from './map-rows.ts';
import { PageChanges } from './pages.ts';
import type { ChangedRange } from './reads.ts';

/** A longer write becomes chunks: a page is written again with each short one. */
export const INLINE_WRITE_BYTES_MAX = 4 << 10;
/** The end of a range that has none. */
export const NO_END = Number.MAX_SAFE_INTEGER;

/** A clear of more pages, or of pages with more chunks, is a void. */
const CLEARED_PAGES_MAX = 64;
const CLEARED_CHUNKS_MAX = 400;
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

function* splitRanges(ranges: readonly ChangedRange[], chunkRefs: readonly ChunkRef[]): Generator<WrittenPart> {
  let taken = 0;
  for (const { from, to, isWritten } of ranges) {
    if (isWritten) {
      const length = to - from;
      yield* splitAtPages(from, { chunkRefs: sliceRefs(chunkRefs, taken, taken + length) });
      taken += length;
    } else yield* splitCleared(from, to);
  }
}

async function writeParts(
  tx: Transaction,
  account: AccountId,
  map: RangeMap,
  chunkRefs: readonly ChunkRef[],
  written: Iterable<WrittenPart>,
): Promise<MapWritten> {
  const changes = new PageChanges(tx, account, map);
  for (const { chunk } of chunkRefs) changes.refs.add(chunk, -1);
  const parts = new Map<number, WrittenPart[]>();
  for (const part of written) {
    const known = parts.get(part.page);
    if (known) known.push(part);
    else parts.set(part.page, [part]);
  }
  const rows = await tx.getMany([...parts.keys()].map((page) => mapPageKey(account, map.id, page)));
  for (const [i, [page, added]] of [...parts].entries())
    await changes.rewrite(page, rows[i], (found) => addParts(found, added, map.gen));
  await changes.refs.apply(tx, account);
  return { needsSweep: changes.hasQueued };
}

/** Without a chunk and bytes: zeros. */
interface WrittenPart {
  /** The offset of the page. */
  readonly page: number;
  readonly from: number;
  readonly to: number;
  readonly chunk?: ChunkRef['chunk'];
  readonly bytes?: Buffer;
  readonly at: number;
}

function* splitCleared(from: number, to: number): Generator<WrittenPart> {
  for (let begin = from; begin < to; ) {
    const page = begin - (begin % MAP_PAGE_BYTES);
    const next = Math.min(to, page + MAP_PAGE_BYTES);
    yield { page, from: begin - page, to: next - page, at: 0 };
    begin = next;
  }
}

/** Each part in one page, and of one source. */
function* splitAtPages(offset: number, written: WrittenBytes): Generator<WrittenPart> {
  let end = offset;
  const sources = written.inline ? [{ length: written.inline.length, bytes: written.inline }] : written.chunkRefs;
  for (const source of sources) {
    const start = end;
    end += source.length;
    for (let begin = start; begin < end; ) {
      const page = begin - (begin % MAP_PAGE_BYTES);
      const next = Math.min(end, page + MAP_PAGE_BYTES);
      const place = { page, from: begin - page, to: next - page };
      if ('bytes' in source) yield { ...place, bytes: source.bytes.subarray(begin - start, next - start), at: 0 };
      else yield { ...place, chunk: source.chunk, at: (source.offset ?? 0) + begin - start };
      begin = next;
    }
  }
}

function addParts(page: MapPage, parts: readonly WrittenPart[], born: number): Pick<MapPage, 'segments' | 'nextPiece'> {
  let { segments, nextPiece } = page;
  const lengths = new Map<string, number>();
  for (const { chunk, from, to } of parts)
    if (chunk) lengths.set(formatId(chunk), (lengths.get(formatId(chunk)) ?? 0) + to - from);
  for (const { from, to, chunk, bytes, at } of parts) {
    if (!chunk && !bytes) {
      segments = cutSegments(segments, from, to, born);
      continue;
    }
    const source: SegmentSource = chunk
      ? { chunk, length: lengths.get(formatId(chunk))! }
      : { piece: nextPiece++, bytes: bytes! };
    segments = withSegment(segments, joinPiece(segments, { from, to, born, source, at }));
  }
  return { segments, nextPiece };
}

/** Zeros from `from` to before `to`. A truncation clears up to NO_END. */
export async function clearRange(
  tx: Transaction,
  account: AccountId,
  map: RangeMap,
  from: number,
  to: number,
  pagesMax = CLEARED_PAGES_MAX,
): Promise<MapWritten> {
  const limits = { limit: pagesMax + 1, bytesMax: CLEARED_BYTES_MAX };
  const first = mapPageKey(account, map.id, from - (from % MAP_PAGE_BYTES));
  const rows = await tx.scan({ from: first, to: mapPageKey(account, map.id, to) }, limits);
  if (rows.length === 0) return { needsSweep: false };
  const chunks = rows.reduce((sum, row) => sum + chunksIn(decodeMapPage(row).segments).length, 0);
  if (stoppedEarly(rows, limits) || chunks > CLEARED_CHUNKS_MAX) {
    await addVoid(tx, account, map, from, to);
    return { needsSweep: true };
  }
  const changes = new PageChanges(tx, account, map);
  for (const row of rows) await clearPage(changes, row, map, from, to);
  await changes.refs.apply(tx, account);
  return { needsSweep: changes.hasQueued };
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
