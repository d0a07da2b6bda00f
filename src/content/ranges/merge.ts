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
  chunksIn,
  coalesce,
  isFragmented,
  isInline,
  type MapPage,
  type MapSegment,
  sourceKey,
  sourcesToMove,
  wantsMerge,
} from './map-page.ts';
import { decodeMapPage, encodeMapPage } from './map-page-codec.ts';
import { mapPageKey, olderPageKey } from './map-rows.ts';
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

/** Bytes of a source that are visible, and where the merged chunk has them. */
interface Move {
  readonly source: NonNullable<MapSegment['source']>;
  readonly at: number;
  readonly length: number;
  readonly to: number;
}

interface MergePlan {
  readonly made: bigint;
  /** By source. */
  readonly moves: ReadonlyMap<string, readonly Move[]>;
  /** In a page with too many segments. */
  readonly fillers: readonly Filler[];
  readonly length: number;
  readonly locations: ReadonlyMap<string, ReturnType<typeof decodeChunk>['place']>;
}

/** The caller has begun a read, so that no bytes are removed before the plan is carried out. */
export async function mergePage(context: MergeContext, account: AccountId, target: MergeTarget): Promise<void> {
  const key = pageKey(account, target);
  const plan = await context.partition.read((at) => planMerge(at, account, target.content, key));
  if (!plan) return;
  const uploaded = await context.upload(account, movedBytes(context, account, plan), plan.length);
  try {
    await context.partition.transact(encodeKey([account, 'map', formatId(target.content)]), (tx) =>
      swap(context, tx, account, target.content, key, plan, uploaded),
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

async function planMerge(at: Snapshot, account: AccountId, id: ContentId, key: Key): Promise<MergePlan | undefined> {
  const page = await findPage(at, account, id, key);
  if (!page) return undefined;
  const wanted = sourcesToMove(page.segments);
  const gaps: { from: number; to: number; segment?: undefined }[] = isFragmented(page.segments)
    ? gapsInSectors(page.segments)
    : [];
  const moves = new Map<string, Move[]>();
  const fillers: Filler[] = [];
  const chunks = new Map<string, ChunkId>();
  let length = 0;
  const parts: { from: number; to: number; segment?: MapSegment }[] = page.segments.map((segment) => ({
    ...segment,
    segment,
  }));
  // In order, so that neighbours of one sector become one segment.
  for (const { from, to, segment } of [...parts, ...gaps].sort((one, other) => one.from - other.from)) {
    if (!segment) fillers.push({ from, to, at: length });
    else {
      const { source, at: begin } = segment;
      if (!source || !wanted.has(sourceKey(source))) continue;
      const name = sourceKey(source);
      const move = { source, at: begin, length: to - from, to: length };
      const known = moves.get(name);
      if (known) known.push(move);
      else moves.set(name, [move]);
      if (!isInline(source)) chunks.set(name, source.chunk);
    }
    length += to - from;
  }
  if (moves.size === 0) return undefined;
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
    else if (isInline(source)) yield source.bytes.subarray(at, at + length);
    else yield await extents.read(chunkName(account, source.chunk), locations.get(sourceKey(source))!, at, at + length);
  }
}

async function swap(
  context: MergeContext,
  tx: Transaction,
  account: AccountId,
  id: ContentId,
  key: Key,
  { made, moves, fillers, length }: MergePlan,
  uploaded: UploadedContent,
): Promise<void> {
  const page = await findPage(tx, account, id, key);
  const chunk = uploaded.chunkRefs[0]!.chunk;
  if (!page || page.made !== made) return;
  const moved = page.segments.map((segment): MapSegment => {
    const move = segment.source && findMove(moves, segment);
    return move ? { ...segment, source: { chunk, length }, at: move.to + segment.at - move.at } : segment;
  });
  const segments = isFragmented(moved) ? joinSectors(moved, { chunk, length }, fillers) : coalesce(moved);
  if (!chunksIn(segments).includes(chunk)) return;
  await context.commitUpload(tx, account, uploaded);
  const refs = new RefcountChanges();
  for (const each of chunksIn(page.segments)) refs.add(each, -1);
  // The upload has counted the new chunk.
  for (const each of chunksIn(segments)) if (each !== chunk) refs.add(each, 1);
  await refs.apply(tx, account);
  tx.put(key, encodeMapPage({ ...page, segments }));
}

/** A segment can only have become shorter since the plan. */
function findMove(moves: MergePlan['moves'], { source, at, from, to }: MapSegment): Move | undefined {
  return moves.get(sourceKey(source!))?.find((move) => move.at <= at && at + to - from <= move.at + move.length);
}

/** Of a merge's entry in the deletion queue: whether it is done. The page notes that it has no entry any more. */
export async function finishMerge(tx: Transaction, account: AccountId, target: MergeTarget): Promise<boolean> {
  const key = pageKey(account, target);
  const page = await findPage(tx, account, target.content, key);
  if (!page) return true;
  if (wantsMerge(page.segments)) return false;
  if (page.isQueued) tx.put(key, encodeMapPage({ ...page, isQueued: false }));
  return true;
}
