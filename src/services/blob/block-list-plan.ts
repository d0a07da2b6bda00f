/**
 * The blocks that a block list names, looked up before the transaction that uses them (optimistic concurrency control): the
 * committed ones, whose content never changes, and for a long list a plan of all, which the swap validates.
 */
import { nextSlice } from '../../base/time-slices.ts';
import { formatId, parseId, type Segment } from '../../content/rows.ts';
import type { Snapshot, Transaction } from '../../partition/partition.ts';
import { type BlockChoice, listsToSearch } from '../../rules/block-list.ts';
import type { Storage } from '../common/storage.ts';
import { findBlob } from './blob-record.ts';
import type { CheckedBlockList } from './block-lists.ts';
import { blockKeyFromId } from './blocks.ts';
import { fail } from './errors.ts';
import { decodeBlock, readContainerId, type UncommittedBlocks } from './rows.ts';
import { checkPut, type ReferenceSources, readTarget, type WriteTarget } from './write-target.ts';

export interface CommittedBlocks {
  /** The content whose blocks these are; undefined: the blob has none. A write that replaces it makes the lookup stale. */
  readonly contentId: string | undefined;
  readonly segments: ReadonlyMap<string, Segment>;
  /** The content has no other segments than these. */
  readonly isComplete: boolean;
}

export const NONE_COMMITTED: CommittedBlocks = { contentId: undefined, segments: new Map(), isComplete: true };

const SLICE_BLOCKS = 5_000;
const LOOKUP_BLOCKS = 200;
/** Chunk references of uncommitted blocks that a plan holds in memory; those of longer lists are read again where they are used. */
const CACHED_CHUNKS_MAX = 100_000;

interface NamedBlocks {
  readonly container: string;
  readonly blob: string;
  readonly blocks: readonly BlockChoice[];
}

export function findCommitted(storage: Storage, list: NamedBlocks): Promise<CommittedBlocks> {
  return storage.partition.read((at) => readCommitted(at, storage, list));
}

/** The committed blocks that the list may name. */
export async function readCommitted(
  at: Snapshot,
  storage: Storage,
  { container, blob, blocks }: NamedBlocks,
): Promise<CommittedBlocks> {
  const { account, content } = storage;
  const wanted = new Set<string>();
  for (const [i, { source, id }] of blocks.entries()) {
    if (source !== 'Uncommitted') wanted.add(id);
    if (i % SLICE_BLOCKS === SLICE_BLOCKS - 1) await nextSlice();
  }
  const segments = new Map<string, Segment>();
  const record = await findBlob(at, account, await readContainerId(at, storage, container), blob);
  if (record?.contentId === undefined) return NONE_COMMITTED;
  let from = 0;
  let others = 0;
  while (wanted.size > 0) {
    const page = await content.segmentsFrom(at, account, parseId(record.contentId), from);
    if (page.segments.length === 0) break;
    from = page.offset;
    for (const segment of page.segments) {
      from += segment.length;
      if (segment.label !== undefined && wanted.delete(segment.label)) segments.set(segment.label, segment);
      else others++;
    }
    await nextSlice();
  }
  return { contentId: record.contentId, segments, isComplete: others === 0 && from === record.length };
}

/** One block of the list. */
export interface PlannedBlock {
  readonly id: string;
  readonly length: number;
  readonly chunks: number;
  /** Undefined: an uncommitted block that is read again where it is used. */
  readonly segment: Segment | undefined;
}

export interface BlockListPlan {
  readonly blocks: readonly PlannedBlock[];
  readonly uncommitted: UncommittedBlocks | undefined;
  readonly committed: CommittedBlocks | undefined;
  readonly uses: ReferenceSources;
  /** A "latest" block was found among the committed ones only: a Put Block of its id changes the meaning of the list. */
  readonly fellBack: boolean;
  /**
   * Set only if the sources are unshared and the list has each of their blocks exactly once: then all their chunk references
   * pass to the new content, and no chunk row is written. `isPlanStale` must verify this again in the swap.
   */
  readonly handsOver: ReferenceSources | undefined;
}

export async function planBlockList(storage: Storage, list: CheckedBlockList): Promise<BlockListPlan | 'retry'> {
  const committed = list.blocks.some(({ source }) => source !== 'Uncommitted')
    ? await findCommitted(storage, list)
    : undefined;
  return storage.partition.read(async (at) => {
    const target = await readTarget(at, storage, list);
    checkPut(at, storage, target, list, list.leaseId);
    const { blob, uncommitted } = target;
    if (committed && blob?.contentId !== committed.contentId) return 'retry';
    const blocks: PlannedBlock[] = [];
    const ids = new Set<string>();
    const uses = { content: false, uncommitted: false };
    let fellBack = false;
    let cacheLeft = CACHED_CHUNKS_MAX;
    for (let from = 0; from < list.blocks.length; from += LOOKUP_BLOCKS) {
      const slice = list.blocks.slice(from, from + LOOKUP_BLOCKS);
      const rows = uncommitted
        ? await at.getMany(slice.map(({ id }) => blockKeyFromId(storage, uncommitted.id, id)))
        : [];
      for (const [i, { id, source }] of slice.entries()) {
        const row = rows[i];
        const name = listsToSearch(source).find((one) => one === 'committed' || row !== undefined);
        const segment = name === 'uncommitted' ? decodeBlock(row!) : name && committed?.segments.get(id);
        if (!segment) throw fail('InvalidBlockList');
        const { length, chunkRefs } = segment;
        const isCommitted = name === 'committed';
        uses[isCommitted ? 'content' : 'uncommitted'] = true;
        fellBack ||= isCommitted && source === 'Latest';
        if (!isCommitted) cacheLeft -= chunkRefs.length;
        const cached = isCommitted || cacheLeft >= 0 ? segment : undefined;
        blocks.push({ id, length, chunks: chunkRefs.length, segment: cached });
        ids.add(id);
      }
      await nextSlice();
    }
    const available = (uses.content ? committed!.segments.size : 0) + (uses.uncommitted ? uncommitted!.count : 0);
    const isEachOnce =
      ids.size === blocks.length && blocks.length === available && (!uses.content || committed!.isComplete);
    // A replaced content that is kept needs its references itself.
    const canHandOver =
      isEachOnce &&
      cacheLeft >= 0 &&
      (!uses.content || (!target.retention && (await isUnshared(at, storage, committed!))));
    return { blocks, uncommitted, committed, uses, fellBack, handsOver: canHandOver ? uses : undefined };
  });
}

function isUnshared(at: Snapshot, { content, account }: Storage, { contentId }: CommittedBlocks): Promise<boolean> {
  return content.isUnshared(at, account, parseId(contentId!));
}

/** OCC validation: whether another write has changed blob or blocks since the plan was made. */
export async function isPlanStale(
  tx: Transaction,
  storage: Storage,
  { uncommitted, committed, uses, handsOver, fellBack }: BlockListPlan,
  target: WriteTarget,
): Promise<boolean> {
  if (uses.content && target.blob?.contentId !== committed!.contentId) return true;
  if (handsOver?.content && (target.retention || !(await isUnshared(tx, storage, committed!)))) return true;
  if (!fellBack && !uses.uncommitted) return false;
  if (!uncommitted || !target.uncommitted) return uncommitted !== target.uncommitted;
  const { id, gen, count } = target.uncommitted;
  const needsCount = fellBack || handsOver?.uncommitted === true;
  return (
    formatId(id) !== formatId(uncommitted.id) || gen !== uncommitted.gen || (needsCount && count !== uncommitted.count)
  );
}
