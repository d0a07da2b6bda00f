/**
 * Merging of a map page and the older pages of its offset: short writes, and chunks of which little is visible, become one chunk. The bytes are
 * uploaded outside of any transaction; the swap then changes the location of every segment that still has the old one. So writes meanwhile lose
 * nothing, and every segment keeps its generation. Only of a page with too many segments the sectors are joined.
 */
import { firstSlice, nextSlice } from '../../base/time-slices.ts';
import type { Extents } from '../../extents/extents.ts';
import { encodeKey, type Key, keyAfter } from '../../partition/keys.ts';
import {
  OutcomeUnknown,
  type Partition,
  type Row,
  type Snapshot,
  type Transaction,
} from '../../partition/partition.ts';
import { stoppedEarly } from '../../partition/values.ts';
import { DanglingReference, type UploadedContent } from '../content.ts';
import { RefcountChanges } from '../refcounts.ts';
import { type AccountId, type ContentId, chunkName, contentKey, formatId } from '../rows.ts';
import {
  type ChunkSource,
  coalesce,
  isFragmented,
  type MapPage,
  measure,
  type SegmentSource,
  sourceKey,
  wantsMerge,
} from './map-page.ts';
import { decodeMapPage, encodeMapPage, turnForPage } from './map-page-codec.ts';
import { mapPageKey, olderPagesAt } from './map-rows.ts';
import { type MergePlan, relocateAll, VersionSurvey } from './merge-plan.ts';
import { removePieces } from './pieces.ts';
import { type FoundSource, findSources } from './read-plan.ts';
import { joinSectors } from './sectors.ts';

export interface MergeContext {
  readonly partition: Pick<Partition, 'read' | 'transact'>;
  readonly extents: Pick<Extents, 'read'>;
  upload(account: AccountId, bytes: AsyncIterable<Uint8Array>, length: number): Promise<UploadedContent>;
  commitUpload(tx: Transaction, account: AccountId, uploaded: UploadedContent): Promise<void>;
}

export interface MergeTarget {
  readonly content: ContentId;
  readonly offset: number;
}

export interface Merged {
  /** False: there is more to be moved. */
  readonly isComplete: boolean;
  /** The first generation that sees the map page that was looked at. Undefined: there was none. */
  readonly born: number | undefined;
}

type FoundSources = ReadonlyMap<SegmentSource, FoundSource>;

/** Older pages that are read at a time, or changed by one commit: each has up to 512 KiB of short writes. */
const SLICE = { limit: 12, bytesMax: 1 << 20 };
/** A survey of this size is planned for in a tick of its own. */
const SURVEY_SIZE_SMALL = 1_024;

/** The caller has begun a read, so that no bytes are removed before the plan is carried out. */
export async function mergePage(context: MergeContext, account: AccountId, target: MergeTarget): Promise<Merged> {
  const found = await context.partition.read((at) => planMerge(at, account, target));
  if (!found) return { isComplete: true, born: undefined };
  const { plan, sources } = found;
  const { isComplete, born } = plan;
  if (plan.moves.size === 0) {
    await swap(context, account, target, plan, undefined);
    return { isComplete, born };
  }
  const uploaded = await context.upload(account, movedBytes(context, account, plan, sources), plan.length);
  try {
    await swap(context, account, target, plan, uploaded);
  } catch (error) {
    // A row may name the bytes.
    if (error instanceof OutcomeUnknown) throw error;
    uploaded.release();
    // Nothing named the merged chunk any more before the last pages could.
    if (error instanceof DanglingReference) return { isComplete: false, born };
    throw error;
  }
  uploaded.release();
  return { isComplete, born };
}

/** Undefined: the content is gone, or has no page there. */
async function planMerge(
  at: Snapshot,
  account: AccountId,
  target: MergeTarget,
): Promise<{ plan: MergePlan; sources: FoundSources } | undefined> {
  const survey = await surveyVersions(at, account, target);
  if (!survey) return undefined;
  const { content: id, offset } = target;
  const plan = survey.plan();
  const segments = [...plan.moves.values()].map(([first]) => first!);
  return { plan, sources: await findSources(at, account, { id }, [{ offset, segments }]) };
}

/** Undefined: the content is gone, or has no page there. */
async function surveyVersions(
  at: Snapshot,
  account: AccountId,
  { content: id, offset }: MergeTarget,
): Promise<VersionSurvey | undefined> {
  const [content, row] = await at.getMany([contentKey(account, id), mapPageKey(account, id, offset)]);
  if (!content) return undefined;
  const survey = new VersionSurvey();
  if (row) {
    await turnForPage(row);
    survey.add(decodeMapPage(row), true);
  }
  const range = olderPagesAt(account, id, offset);
  for (let { to } = range; ; ) {
    const rows = await at.scan({ from: range.from, to }, { ...SLICE, reverse: true });
    for (const older of rows) {
      await turnForPage(older);
      survey.add(decodeMapPage(older), false);
    }
    if (!stoppedEarly(rows, SLICE)) break;
    to = rows.at(-1)!.key;
    await nextSlice();
  }
  if (survey.size > SURVEY_SIZE_SMALL) await firstSlice();
  return row || survey.size > 0 ? survey : undefined;
}

async function* movedBytes(
  { extents }: MergeContext,
  account: AccountId,
  { moves, fillers }: MergePlan,
  sources: FoundSources,
): AsyncGenerator<Uint8Array> {
  const zeros = fillers.map(({ from, to, at }) => ({ source: undefined, at: 0, length: to - from, to: at }));
  const inOrder = [...[...moves.values()].flat(), ...zeros].sort((one, other) => one.to - other.to);
  for (const { source, at, length } of inOrder) {
    const found = source && (sources.get(source) ?? (source as { bytes: Buffer }));
    if (!found) yield Buffer.alloc(length);
    else if ('bytes' in found) yield found.bytes.subarray(at, at + length);
    else yield await extents.read(chunkName(account, (source as ChunkSource).chunk), found.place, at, at + length);
  }
}

/** The map page first: a copy that is made of it afterwards names the merged chunk. */
async function swap(
  { partition, commitUpload }: MergeContext,
  account: AccountId,
  target: MergeTarget,
  plan: MergePlan,
  uploaded: UploadedContent | undefined,
): Promise<void> {
  const { content: id, offset } = target;
  const queueKey = encodeKey([account, 'map', formatId(id)]);
  const range = olderPagesAt(account, id, offset);
  let isCommitted = false;
  for (let from: Key | undefined = range.from, isFirst = true; from !== undefined; isFirst = false) {
    const start: Key = from;
    const { value } = await partition.transact(queueKey, async (tx) => {
      const swapping = new Swap(tx, account, target, plan, uploaded);
      if (isFirst) await swapping.swapMapPage();
      const rows =
        uploaded && !plan.isOfMapPageOnly ? await tx.scanUnchecked({ from: start, to: range.to }, SLICE) : [];
      for (const row of rows) await swapping.swapOlderPage(row);
      const hasUpload = await swapping.finish(isCommitted ? undefined : commitUpload);
      return { hasUpload, next: stoppedEarly(rows, SLICE) ? keyAfter(rows.at(-1)!.key) : undefined };
    });
    isCommitted ||= value.hasUpload;
    from = value.next;
    if (from) await nextSlice();
  }
}

/** One commit of a swap. */
class Swap {
  private readonly tx: Transaction;
  private readonly account: AccountId;
  private readonly target: MergeTarget;
  private readonly plan: MergePlan;
  private readonly uploaded: UploadedContent | undefined;
  private readonly merged: { chunk: ContentId; length: number } | undefined;
  private readonly refs = new RefcountChanges();
  private isNamed = false;

  constructor(
    tx: Transaction,
    account: AccountId,
    target: MergeTarget,
    plan: MergePlan,
    uploaded: UploadedContent | undefined,
  ) {
    this.tx = tx;
    this.account = account;
    this.target = target;
    this.plan = plan;
    this.uploaded = uploaded;
    this.merged = uploaded && { chunk: uploaded.chunkRefs[0]!.chunk, length: plan.length };
  }

  async swapMapPage(): Promise<void> {
    const { tx, account, plan } = this;
    const { content: id, offset } = this.target;
    const key = mapPageKey(account, id, offset);
    const page = await findPage(tx, account, id, key);
    if (!page || page.made !== plan.made) return;
    const { moved, after } = this.relocate(page);
    const left = new Set(after.chunks.map(sourceKey));
    const kept = plan.chunksLeft.every((name) => left.has(name)) ? plan.kept : 0;
    if (!moved && kept === page.kept) return;
    if (moved) removePieces(tx, { account, id, offset }, measure(page.segments).pieces, after.pieces);
    tx.put(key, encodeMapPage({ ...page, kept, segments: moved ?? page.segments }, after));
  }

  async swapOlderPage(row: Row): Promise<void> {
    await turnForPage(row);
    const page = decodeMapPage(row);
    const { moved, after } = this.relocate(page);
    if (!moved) return;
    this.tx.addReadCheck(row);
    this.tx.put(row.key, encodeMapPage({ ...page, segments: moved }, after));
  }

  /** Without `moved` the page has no byte that was moved. */
  private relocate(page: MapPage) {
    const { plan, merged, refs } = this;
    const before = measure(page.segments);
    if (!merged) return { after: before };
    const relocated = relocateAll(page, plan.moves, merged);
    const moved = isFragmented(relocated) ? joinSectors(relocated, merged, plan.fillers) : coalesce(relocated);
    const after = measure(moved);
    if (!after.chunks.includes(merged)) return { after: before };
    this.isNamed = true;
    for (const { chunk } of before.chunks) refs.add(chunk, -1);
    for (const { chunk } of after.chunks) refs.add(chunk, 1);
    return { moved, after };
  }

  /** @param commitUpload undefined: an earlier commit has added the merged chunk. @returns whether there is one */
  async finish(commitUpload: MergeContext['commitUpload'] | undefined): Promise<boolean> {
    const { tx, account, merged, refs } = this;
    if (!this.isNamed) return false;
    if (commitUpload) {
      await commitUpload(tx, account, this.uploaded!);
      // The reference of the upload.
      refs.add(merged!.chunk, -1);
    }
    await refs.apply(tx, account);
    return true;
  }
}

/** Undefined: the page, or the whole content, is gone. */
async function findPage(at: Snapshot, account: AccountId, id: ContentId, key: Key): Promise<MapPage | undefined> {
  const [row, content] = await at.getMany([key, contentKey(account, id)]);
  if (!row || !content) return undefined;
  await turnForPage(row);
  return decodeMapPage(row);
}

/** Of a merge's entry in the deletion queue: whether it is done. The page notes that it has no entry any more. */
export async function finishMerge(
  tx: Transaction,
  account: AccountId,
  { content: id, offset }: MergeTarget,
  born: number | undefined,
): Promise<boolean> {
  const key = mapPageKey(account, id, offset);
  const page = await findPage(tx, account, id, key);
  if (!page) return true;
  // A copy of a page that has an entry makes no other one.
  if (page.born !== born || wantsMerge(measure(page.segments), page.kept)) return false;
  if (page.isQueued) tx.put(key, encodeMapPage({ ...page, isQueued: false }));
  return true;
}
