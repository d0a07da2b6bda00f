/** Reads of a range map at one generation: its pages, its ranges, and what differs between two generations. */
import { keyAfter } from '../../partition/keys.ts';
import type { Row, Snapshot } from '../../partition/partition.ts';
import { stoppedEarly } from '../../partition/values.ts';
import type { AccountId } from '../rows.ts';
import { firstSegments } from './first-bytes.ts';
import { applyVoid, MAP_PAGE_BYTES, type MapSegment, unseenVoids } from './map-page.ts';
import { decodeMapPage } from './map-page-codec.ts';
import { mapPageKey, mapPagesIn, numbersAfterId, olderPageKey, olderPagesIn, type RangeMap } from './map-rows.ts';
import { SECTOR_BYTES } from './sectors.ts';
import { tailSegments, withSegments } from './tail.ts';

/** From `from` to before `to`. */
export interface ByteRange {
  readonly from: number;
  readonly to: number;
}

export interface ChangedRange extends ByteRange {
  /** False: the bytes were cleared. */
  readonly isWritten: boolean;
}

export interface PageSegments {
  readonly offset: number;
  readonly segments: readonly MapSegment[];
}

/** Map pages that are read at a time. */
const SLICE = { limit: 16, bytesMax: 1 << 20 };

/**
 * The pages in this range that have segments, in order, as this generation sees them.
 * @param gen undefined: the current state
 */
export async function* pagesAt(
  at: Snapshot,
  account: AccountId,
  map: RangeMap,
  gen: number | undefined,
  { from, to }: ByteRange,
): AsyncGenerator<PageSegments> {
  if (map.first) {
    const isSeen = gen === undefined || map.first.born <= gen;
    if (isSeen && from < map.first.bytes.length) yield { offset: 0, segments: firstSegments(map.first) };
    return;
  }
  const first = from - (from % MAP_PAGE_BYTES);
  const isInRange = map.tail && map.tail.offset >= first && map.tail.offset < to;
  if (gen !== undefined) yield* segmentsOf(pagesSeenBy(at, account, map, gen, first, to), map, gen);
  else if (!isInRange) yield* segmentsOf(currentPages(at, account, map, first, to), map, map.gen);
  else yield* pagesWithTail(at, account, map, segmentsOf(currentPages(at, account, map, first, to), map, map.gen));
}

async function* segmentsOf(pages: AsyncIterable<FoundPage>, map: RangeMap, gen: number): AsyncGenerator<PageSegments> {
  for await (const { offset, row, isOlder } of pages) {
    const page = decodeMapPage(row);
    let { segments } = page;
    // Older pages were written with the voids of their time.
    const voids = isOlder ? [] : unseenVoids(page, offset, map.voids, gen);
    for (const each of voids) segments = applyVoid(segments, offset, each);
    if (segments.length > 0) yield { offset, segments };
  }
}

/** The tail's page may have no row yet, and after it there may be zeros that a truncation has left. */
async function* pagesWithTail(
  at: Snapshot,
  account: AccountId,
  map: RangeMap,
  pages: AsyncIterable<PageSegments>,
): AsyncGenerator<PageSegments> {
  const { offset } = map.tail!;
  let tail: PageSegments | undefined = { offset, segments: await tailSegments(at, account, map) };
  for await (const page of pages) {
    if (tail && page.offset > offset) yield tail;
    if (page.offset !== offset) yield page;
    else yield { offset, segments: withSegments(page.segments, tail!.segments) };
    if (page.offset >= offset) tail = undefined;
  }
  if (tail) yield tail;
}

interface FoundPage {
  readonly offset: number;
  readonly row: Row;
  readonly isOlder: boolean;
}

async function* currentPages(
  at: Snapshot,
  account: AccountId,
  { id }: RangeMap,
  first: number,
  to: number,
): AsyncGenerator<FoundPage> {
  const end = mapPageKey(account, id, to);
  for (let from = mapPageKey(account, id, first); ; ) {
    const rows = await at.scan({ from, to: end }, SLICE);
    for (const row of rows) yield { offset: numbersAfterId(row.key)[0]!, row, isOlder: false };
    if (!stoppedEarly(rows, SLICE)) return;
    from = keyAfter(rows.at(-1)!.key);
  }
}

/** A page that was copied since is an older page now: the one with the least `died` above the generation. */
async function* pagesSeenBy(
  at: Snapshot,
  account: AccountId,
  { id }: RangeMap,
  gen: number,
  first: number,
  to: number,
): AsyncGenerator<FoundPage> {
  const one = { limit: 1 };
  for (let next = first; next < to; ) {
    const [[current], [older]] = await Promise.all([
      at.scan({ from: mapPageKey(account, id, next), to: mapPagesIn(account, id).to }, one),
      at.scan({ from: olderPageKey(account, id, next, 0), to: olderPagesIn(account, id).to }, one),
    ]);
    const offsets = [current, older].flatMap((row) => (row ? [numbersAfterId(row.key)[0]!] : []));
    const offset = Math.min(...offsets);
    if (offset >= to) return;
    const after = olderPageKey(account, id, offset, gen + 1);
    const [seen] = await at.scan({ from: after, to: olderPageKey(account, id, offset + 1, 0) }, one);
    if (seen) {
      if (decodeMapPage(seen).born <= gen) yield { offset, row: seen, isOlder: true };
    } else if (current && numbersAfterId(current.key)[0] === offset && decodeMapPage(current).born <= gen)
      yield { offset, row: current, isOlder: false };
    next = offset + MAP_PAGE_BYTES;
  }
}

/**
 * Ranges that were written and not cleared, in order; neighbours are one.
 * @param unit ranges begin and end at multiples of it, as `within` does
 * @param bytesMax a longer range comes in parts
 */
export async function* listRanges(
  at: Snapshot,
  account: AccountId,
  map: RangeMap,
  gen: number | undefined,
  within: ByteRange,
  { unit = 1, bytesMax }: { unit?: number; bytesMax?: number } = {},
): AsyncGenerator<ChangedRange> {
  const written = segmentRanges(at, account, map, gen, within, ({ source }) => source !== undefined);
  yield* joinNeighbours(unit === 1 ? written : roundOutward(written, unit), bytesMax);
}

async function* roundOutward(ranges: AsyncIterable<ChangedRange>, unit: number): AsyncGenerator<ChangedRange> {
  let end = 0;
  for await (const range of ranges) {
    const from = Math.max(end, range.from - (range.from % unit));
    end = Math.ceil(range.to / unit) * unit;
    if (from < end) yield { ...range, from, to: end };
  }
}

/** What was written or cleared after generation `since`, as generation `gen` sees it. */
export async function* compareGenerations(
  at: Snapshot,
  account: AccountId,
  map: RangeMap,
  since: number,
  gen: number | undefined,
  within: ByteRange,
  bytesMax?: number,
): AsyncGenerator<ChangedRange> {
  yield* joinNeighbours(
    segmentRanges(at, account, map, gen, within, ({ born }) => born > since),
    bytesMax,
  );
}

/**
 * As `compareGenerations`, in whole sectors: one of which a byte changed was written if a byte of it is written, else cleared.
 */
export async function* compareSectors(
  at: Snapshot,
  account: AccountId,
  map: RangeMap,
  since: number,
  gen: number | undefined,
  within: ByteRange,
): AsyncGenerator<ChangedRange> {
  yield* joinNeighbours(changedSectors(at, account, map, since, gen, within));
}

async function* changedSectors(
  at: Snapshot,
  account: AccountId,
  map: RangeMap,
  since: number,
  gen: number | undefined,
  within: ByteRange,
): AsyncGenerator<ChangedRange> {
  for await (const { offset, segments } of pagesAt(at, account, map, gen, within)) {
    const changed = new Uint8Array(MAP_PAGE_BYTES / SECTOR_BYTES);
    const written = new Uint8Array(changed.length);
    for (const { from, to, born, source } of segments) {
      const [first, end] = [Math.floor(from / SECTOR_BYTES), Math.ceil(to / SECTOR_BYTES)];
      if (born > since) changed.fill(1, first, end);
      if (source) written.fill(1, first, end);
    }
    for (let i = 0; i < changed.length; i++) {
      const from = offset + i * SECTOR_BYTES;
      if (!changed[i] || from < within.from || from >= within.to) continue;
      yield { from, to: from + SECTOR_BYTES, isWritten: written[i] === 1 };
    }
  }
}

async function* segmentRanges(
  at: Snapshot,
  account: AccountId,
  map: RangeMap,
  gen: number | undefined,
  within: ByteRange,
  includes: (segment: MapSegment) => boolean,
): AsyncGenerator<ChangedRange> {
  for await (const { offset, segments } of pagesAt(at, account, map, gen, within)) {
    for (const segment of segments) {
      if (!includes(segment)) continue;
      const from = Math.max(offset + segment.from, within.from);
      const to = Math.min(offset + segment.to, within.to);
      if (from < to) yield { from, to, isWritten: segment.source !== undefined };
    }
  }
}

/** @param bytesMax from which on a range is not joined with further ones */
async function* joinNeighbours(ranges: AsyncIterable<ChangedRange>, bytesMax = Infinity): AsyncGenerator<ChangedRange> {
  let open: ChangedRange | undefined;
  for await (const range of ranges) {
    const isNext = open && open.to === range.from && open.isWritten === range.isWritten;
    if (open && isNext && open.to - open.from < bytesMax) {
      open = { ...open, to: range.to };
      continue;
    }
    if (open) yield open;
    open = range;
  }
  if (open) yield open;
}
