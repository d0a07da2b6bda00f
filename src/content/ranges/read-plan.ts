/** Lookup of the locations of a range map's bytes: short writes come with the lookup, and what was not written is zeros. */
import type { Key } from '../../partition/keys.ts';
import type { Snapshot } from '../../partition/partition.ts';
import type { ReadPage, ReadRange } from '../read-plan.ts';
import { type AccountId, chunkKey, chunkName, decodeChunk, formatId } from '../rows.ts';
import {
  type ChunkSource,
  isPiece,
  MAP_PAGE_BYTES,
  type MapSegment,
  type SegmentSource,
  sourceKey,
} from './map-page.ts';
import type { RangeMap } from './map-rows.ts';
import { bytesFrom, pieceKey } from './pieces.ts';
import { type PageSegments, pagesAt } from './reads.ts';

/** Pages of one lookup; each has mostly a few chunks. */
const LOOKUP_PAGES = 16;
/** From this number of bytes of short writes on, which are held in memory, a lookup takes no further page. */
const LOOKUP_PIECE_BYTES = 512 << 10;

/** @param gen undefined: the current state, which may change after this lookup */
export async function planRanges(
  at: Snapshot,
  account: AccountId,
  map: RangeMap,
  gen: number | undefined,
  from: number,
  to: number,
  pagesMax = LOOKUP_PAGES,
): Promise<ReadPage> {
  const pages: PageSegments[] = [];
  let end = to;
  let pieceBytes = 0;
  for await (const { offset, segments } of pagesAt(at, account, map, gen, { from, to })) {
    const wanted = segments.filter((each) => each.source && offset + each.to > from && offset + each.from < to);
    pages.push({ offset, segments: wanted });
    for (const { source, ...place } of wanted) if (isPiece(source!)) pieceBytes += place.to - place.from;
    if (pages.length < pagesMax && pieceBytes < LOOKUP_PIECE_BYTES) continue;
    end = Math.min(to, offset + MAP_PAGE_BYTES);
    break;
  }
  const found = await findSources(at, account, map, pages);
  const ranges: ReadRange[] = [];
  let next = from;
  for (const { offset, segments } of pages) {
    for (const segment of segments) {
      const begin = Math.max(offset + segment.from, from);
      const stop = Math.min(offset + segment.to, end);
      if (begin > next) ranges.push({ zeros: true, from: 0, to: begin - next });
      ranges.push(rangeOf(account, segment, begin - offset - segment.from, stop - offset - segment.from, found));
      next = stop;
    }
  }
  if (end > next) ranges.push({ zeros: true, from: 0, to: end - next });
  return { ranges, end };
}

/** Where the bytes of a chunk are, or those of a piece. */
export type FoundSource = { readonly place: ReturnType<typeof decodeChunk>['place'] } | { readonly bytes: Buffer };

/** The bytes of an older page's pieces are known already. */
export async function findSources(
  at: Snapshot,
  account: AccountId,
  { id }: Pick<RangeMap, 'id'>,
  pages: readonly { readonly offset: number; readonly segments: readonly Pick<MapSegment, 'source'>[] }[],
): Promise<ReadonlyMap<SegmentSource, FoundSource>> {
  const keys = new Map<SegmentSource, Key>();
  for (const { offset, segments } of pages) {
    for (const { source } of segments) {
      if (!source || keys.has(source)) continue;
      if (!isPiece(source)) keys.set(source, chunkKey(account, source.chunk));
      else if (!source.bytes) keys.set(source, pieceKey(account, id, offset, source.piece));
    }
  }
  const rows = await at.getMany([...keys.values()]);
  const found = new Map<SegmentSource, FoundSource>();
  for (const [i, source] of [...keys.keys()].entries()) {
    const row = rows[i];
    if (isPiece(source)) found.set(source, { bytes: bytesFrom(source, id, row) });
    else if (row) found.set(source, { place: decodeChunk(row).place });
    else throw new Error(`chunk ${sourceKey(source)} of content ${formatId(id)} has no row`);
  }
  return found;
}

/** Bytes of a segment, from the `from`th to before the `to`th. */
function rangeOf(
  account: AccountId,
  { source, at }: MapSegment,
  from: number,
  to: number,
  found: ReadonlyMap<SegmentSource, FoundSource>,
): ReadRange {
  const part = { from: at + from, to: at + to };
  if (isPiece(source!) && source.bytes) return { bytes: source.bytes, ...part };
  const known = found.get(source!)!;
  if ('bytes' in known) return { bytes: known.bytes, ...part };
  return { name: chunkName(account, (source as ChunkSource).chunk), place: known.place, ...part };
}
