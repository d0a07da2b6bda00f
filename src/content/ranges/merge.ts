/**
 * Merging of a map page: short writes, and chunks of which little is visible, become one chunk. The bytes are uploaded outside of any
 * transaction; the swap then changes the location of every segment that still has the old one. So writes meanwhile lose nothing, and every
 * segment keeps its generation. Only of a page with too many segments the sectors are joined.
 */
import type { Extents } from '../../extents/extents.ts';
import { encodeKey, type Key } from '../../partition/keys.ts';
import { OutcomeUnknown, type Partition, type Snapshot, type Transaction } from '../../partition/partition.ts';
import type { UploadedContent } from '../content.ts';
import { RefcountChanges } from '../refcounts.ts';
import {
  type AccountId,
  type ChunkId,
  type ContentId,
  chunkKey,
  chunkName,
  contentKey,
  decodeChunk,
  formatId,
} from '../rows.ts';
import {
  coalesce,
  isFragmented,
  isPiece,
  type MapPage,
  type MapSegment,
  measure,
  partOf,
  type SegmentSource,
  sourceKey,
  sourcesToMove,
  wantsMerge,
} from './map-page.ts';
import { decodeMapPage, encodeMapPage } from './map-page-codec.ts';
import { mapPageKey, olderPageKey } from './map-rows.ts';
import { removePieces, withBytes } from './pieces.ts';
import { type Filler, gapsInSectors, joinSectors } from './sectors.ts';

export interface MergeContext {
  readonly partition: Pick<Partition, 'read' | 'transact'>;
  readonly extents: Pick<Extents, 'read'>;
  upload(account: AccountId, bytes: AsyncIterable<Uint8Array>, length: number): Promise<UploadedContent>;
  commitUpload(tx: Transaction, account: AccountId, uploaded: UploadedContent): Promise<void>;
}

export interface MergeTarget {
  readonly content: ContentId;
  readonly offset: number;
  /** Of an older page. */
  readonly died?: number | undefined;
}

/** Bytes of a source that are visible, and where the merged chunk has them. A piece has its bytes. */
interface Move {
  readonly source: SegmentSource;
  readonly at: number;
  readonly length: number;
  readonly to: number;
}

interface MergePlan {
  readonly made: bigint;
  /** By source, in the order of their bytes. */
  readonly moves: ReadonlyMap<string, readonly Move[]>;
  /** In a page with too many segments. */
  readonly fillers: readonly Filler[];
  readonly length: number;
  readonly locations: ReadonlyMap<string, ReturnType<typeof decodeChunk>['place']>;
}

/** The caller has begun a read, so that no bytes are removed before the plan is carried out. */
export async function mergePage(context: MergeContext, account: AccountId, target: MergeTarget): Promise<void> {
  const key = pageKey(account, target);
  const plan = await context.partition.read((at) => planMerge(at, account, target, key));
  if (!plan) return;
  const uploaded = await context.upload(account, movedBytes(context, account, plan), plan.length);
  try {
    await context.partition.transact(encodeKey([account, 'map', formatId(target.content)]), (tx) =>
      swap(context, tx, account, target, key, plan, uploaded),
    );
  } catch (error) {
    // A row may name the bytes.
    if (!(error instanceof OutcomeUnknown)) uploaded.release();
    throw error;
  }
  uploaded.release();
}

const pageKey = (account: AccountId, { content, offset, died }: MergeTarget): Key =>
  died === undefined ? mapPageKey(account, content, offset) : olderPageKey(account, content, offset, died);

async function planMerge(
  at: Snapshot,
  account: AccountId,
  { content: id, offset }: MergeTarget,
  key: Key,
): Promise<MergePlan | undefined> {
  const page = await findPage(at, account, id, key);
  if (!page) return undefined;
  const segments = await withBytes(at, { account, id, offset }, page.segments);
  const wanted = sourcesToMove(segments);
  const gaps: { from: number; to: number; segment?: undefined }[] = isFragmented(segments)
    ? gapsInSectors(segments)
    : [];
  const moves = new Map<string, Move[]>();
  const fillers: Filler[] = [];
  const chunks = new Map<string, ChunkId>();
  let length = 0;
  const parts: { from: number; to: number; segment?: MapSegment }[] = segments.map((segment) => ({
    ...segment,
    segment,
  }));
  // In order, so that neighbours of one sector become one segment.
  for (const { from, to, segment } of [...parts, ...gaps].sort((one, other) => one.from - other.from)) {
    if (!segment) fillers.push({ from, to, at: length });
    else {
      const { source, at: begin } = segment;
      if (!source || !wanted.has(source)) continue;
      const name = sourceKey(source);
      const move = { source, at: begin, length: to - from, to: length };
      const known = moves.get(name);
      if (known) known.push(move);
      else moves.set(name, [move]);
      if (!isPiece(source)) chunks.set(name, source.chunk);
    }
    length += to - from;
  }
  if (moves.size === 0) return undefined;
  for (const each of moves.values()) each.sort((one, other) => one.at - other.at);
  const rows = await at.getMany([...chunks.values()].map((chunk) => chunkKey(account, chunk)));
  const locations = new Map(
    [...chunks.keys()].map((name, i) => {
      if (!rows[i]) throw new Error(`chunk ${name} of content ${formatId(id)} has no row`);
      return [name, decodeChunk(rows[i]).place];
    }),
  );
  return { made: page.made, moves, fillers, length, locations };
}

/** Undefined: the page, or the whole content, is gone. */
async function findPage(at: Snapshot, account: AccountId, id: ContentId, key: Key): Promise<MapPage | undefined> {
  const [row, content] = await at.getMany([key, contentKey(account, id)]);
  return row && content && decodeMapPage(row);
}

async function* movedBytes(
  { extents }: MergeContext,
  account: AccountId,
  { moves, fillers, locations }: MergePlan,
): AsyncGenerator<Uint8Array> {
  const zeros = fillers.map(({ from, to, at }) => ({ source: undefined, at: 0, length: to - from, to: at }));
  const inOrder = [...[...moves.values()].flat(), ...zeros].sort((one, other) => one.to - other.to);
  for (const { source, at, length } of inOrder) {
    if (!source) yield Buffer.alloc(length);
    else if (isPiece(source)) yield source.bytes!.subarray(at, at + length);
    else yield await extents.read(chunkName(account, source.chunk), locations.get(sourceKey(source))!, at, at + length);
  }
}

async function swap(
  context: MergeContext,
  tx: Transaction,
  account: AccountId,
  { content: id, offset, died }: MergeTarget,
  key: Key,
  { made, moves, fillers, length }: MergePlan,
  uploaded: UploadedContent,
): Promise<void> {
  const page = await findPage(tx, account, id, key);
  if (!page || page.made !== made) return;
  const merged = { chunk: uploaded.chunkRefs[0]!.chunk, length };
  const moved = page.segments.flatMap((segment) => relocate(segment, moves, merged));
  const segments = isFragmented(moved) ? joinSectors(moved, merged, fillers) : coalesce(moved);
  const [before, after] = [measure(page.segments), measure(segments)];
  if (!after.chunks.includes(merged)) return;
  await context.commitUpload(tx, account, uploaded);
  const refs = new RefcountChanges();
  for (const { chunk } of before.chunks) refs.add(chunk, -1);
  // The upload has counted the new chunk.
  for (const each of after.chunks) if (each !== merged) refs.add(each.chunk, 1);
  await refs.apply(tx, account);
  if (died === undefined) removePieces(tx, { account, id, offset }, before.pieces, after.pieces);
  tx.put(key, encodeMapPage({ ...page, segments }, after));
}

/** The segment with the bytes that were moved in the merged chunk. Since the plan it may have become shorter, or its piece longer. */
function relocate(segment: MapSegment, moves: MergePlan['moves'], merged: SegmentSource): MapSegment[] {
  const planned = segment.source && moves.get(sourceKey(segment.source));
  if (!planned) return [segment];
  const parts: MapSegment[] = [];
  const start = segment.from - segment.at;
  let next = segment.from;
  for (let i = firstMoveAfter(planned, segment.at); i < planned.length && next < segment.to; i++) {
    const { at, length, to } = planned[i]!;
    const [begin, end] = [Math.max(next, start + at), Math.min(segment.to, start + at + length)];
    if (begin >= end) break;
    if (begin > next) parts.push(partOf(segment, next, begin));
    parts.push({ ...segment, from: begin, to: end, source: merged, at: to + begin - start - at });
    next = end;
  }
  if (next < segment.to) parts.push(partOf(segment, next, segment.to));
  return parts;
}

/** The index of the first move that ends after this byte of its source. */
function firstMoveAfter(moves: readonly Move[], place: number): number {
  let [low, high] = [0, moves.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const { at, length } = moves[middle]!;
    if (at + length <= place) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Of a merge's entry in the deletion queue: whether it is done. The page notes that it has no entry any more. */
export async function finishMerge(tx: Transaction, account: AccountId, target: MergeTarget): Promise<boolean> {
  const key = pageKey(account, target);
  const page = await findPage(tx, account, target.content, key);
  if (!page) return true;
  if (wantsMerge(measure(page.segments))) return false;
  if (page.isQueued) tx.put(key, encodeMapPage({ ...page, isQueued: false }));
  return true;
}
