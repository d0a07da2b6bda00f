/** Lookup of the locations of a range map's bytes: short writes come with the lookup, and what was not written is zeros. */
import type { Snapshot } from '../../partition/partition.ts';
import type { ReadPage, ReadRange } from '../read-plan.ts';
import { type AccountId, type ChunkId, chunkKey, chunkName, decodeChunk, formatId } from '../rows.ts';
import { isInline, MAP_PAGE_BYTES, type MapSegment, sourceKey } from './map-page.ts';
import type { RangeMap } from './map-rows.ts';
import { type PageSegments, pagesAt } from './reads.ts';

/** Pages of one lookup; each has at most 64 KiB of short writes, and mostly a few chunks. */
const LOOKUP_PAGES = 16;

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
  for await (const page of pagesAt(at, account, map, gen, { from, to })) {
    pages.push(page);
    if (pages.length < pagesMax) continue;
    end = Math.min(to, page.offset + MAP_PAGE_BYTES);
    break;
  }
  const locations = await findChunks(at, account, map, pages);
  const ranges: ReadRange[] = [];
  let next = from;
  for (const { offset, segments } of pages) {
    for (const segment of segments) {
      const begin = Math.max(offset + segment.from, from);
      const stop = Math.min(offset + segment.to, end);
      if (!segment.source || begin >= stop) continue;
      if (begin > next) ranges.push({ zeros: true, from: 0, to: begin - next });
      ranges.push(rangeOf(account, segment, begin - offset - segment.from, stop - offset - segment.from, locations));
      next = stop;
    }
  }
  if (end > next) ranges.push({ zeros: true, from: 0, to: end - next });
  return { ranges, end };
}

type Locations = ReadonlyMap<string, ReturnType<typeof decodeChunk>['place']>;

async function findChunks(
  at: Snapshot,
  account: AccountId,
  { id }: RangeMap,
  pages: readonly PageSegments[],
): Promise<Locations> {
  const chunks = new Map<string, ChunkId>();
  for (const { source } of pages.flatMap(({ segments }) => segments))
    if (source && !isInline(source)) chunks.set(sourceKey(source), source.chunk);
  const rows = await at.getMany([...chunks.values()].map((chunk) => chunkKey(account, chunk)));
  return new Map(
    [...chunks.keys()].map((name, i) => {
      if (!rows[i]) throw new Error(`chunk ${name} of content ${formatId(id)} has no row`);
      return [name, decodeChunk(rows[i]).place];
    }),
  );
}

/** Bytes of a segment, from the `from`th to before the `to`th. */
function rangeOf(account: AccountId, segment: MapSegment, from: number, to: number, locations: Locations): ReadRange {
  const { source, at } = segment;
  if (isInline(source!)) return { bytes: source.bytes, from: at + from, to: at + to };
  const place = locations.get(sourceKey(source!))!;
  return { name: chunkName(account, source!.chunk), place, from: at + from, to: at + to };
}
