/** What a long block list means: one look at what it names. Whether it was still so at the end is checked then. */
import { nextSlice } from '../../base/time-slices.ts';
import { formatId, parseId, type Segment } from '../../content/rows.ts';
import type { Snapshot, Transaction } from '../../partition/partition.ts';
import { listsToSearch } from '../../rules/block-list.ts';
import type { Storage } from '../common/storage.ts';
import { checkPut } from './block-blobs.ts';
import type { CheckedBlockList } from './block-lists.ts';
import { blockKeyFromId } from './blocks.ts';
import { type CommittedBlocks, findCommitted } from './committed-blocks.ts';
import { fail } from './errors.ts';
import { decodeBlock, type UncommittedBlocks } from './rows.ts';
import type { ReferenceSources, WriteTarget } from './write-target.ts';

const LOOKUP_BLOCKS = 200;
/** Of uncommitted blocks, in memory: of longer lists they are read again where they are used. */
const KEPT_PARTS_MAX = 100_000;

/** What was found out about one block of the list. */
export interface ResolvedBlock {
  readonly id: string;
  readonly length: number;
  readonly parts: number;
  /** Undefined: an uncommitted one that is read again. */
  readonly piece: Segment | undefined;
}

export interface BlockListPlan {
  readonly blocks: readonly ResolvedBlock[];
  readonly uncommitted: UncommittedBlocks | undefined;
  readonly committed: CommittedBlocks | undefined;
  readonly uses: ReferenceSources;
  /** A block of the list could not be found among the uncommitted ones: one that comes there changes what the list means. */
  readonly fellBack: boolean;
  /** The list has each block of those that it uses once: their references become its own, and no chunk's row is touched. */
  readonly handsOver: ReferenceSources | undefined;
}

export async function planBlockList(storage: Storage, list: CheckedBlockList): Promise<BlockListPlan | 'again'> {
  const committed = list.blocks.some(({ source }) => source !== 'Uncommitted')
    ? await findCommitted(storage, list)
    : undefined;
  return storage.partition.read(async (at) => {
    const { blob, uncommitted } = await checkPut(at, storage, list, list.leaseId);
    if (committed && blob?.contentId !== committed.contentId) return 'again';
    const blocks: ResolvedBlock[] = [];
    const ids = new Set<string>();
    const uses = { content: false, stage: false };
    let fellBack = false;
    let unkept = KEPT_PARTS_MAX;
    for (let from = 0; from < list.blocks.length; from += LOOKUP_BLOCKS) {
      const slice = list.blocks.slice(from, from + LOOKUP_BLOCKS);
      const rows = uncommitted
        ? await at.getMany(slice.map(({ id }) => blockKeyFromId(storage, uncommitted.id, id)))
        : [];
      for (const [i, { id, source }] of slice.entries()) {
        const row = rows[i];
        const name = listsToSearch(source).find((one) => one === 'committed' || row !== undefined);
        const piece = name === 'uncommitted' ? decodeBlock(row!) : name && committed?.pieces.get(id);
        if (!piece) throw fail('InvalidBlockList');
        const { length, chunkRefs } = piece;
        const isCommitted = name === 'committed';
        uses[isCommitted ? 'content' : 'stage'] = true;
        fellBack ||= isCommitted && source === 'Latest';
        if (!isCommitted) unkept -= chunkRefs.length;
        blocks.push({ id, length, parts: chunkRefs.length, piece: isCommitted || unkept >= 0 ? piece : undefined });
        ids.add(id);
      }
      await nextSlice();
    }
    const available = (uses.content ? committed!.pieces.size : 0) + (uses.stage ? uncommitted!.count : 0);
    const isAllOnce =
      ids.size === blocks.length && blocks.length === available && (!uses.content || committed!.isComplete);
    const mayHandOver = isAllOnce && unkept >= 0 && (!uses.content || (await isUnshared(at, storage, committed!)));
    return { blocks, uncommitted, committed, uses, fellBack, handsOver: mayHandOver ? uses : undefined };
  });
}

function isUnshared(at: Snapshot, { content, account }: Storage, { contentId }: CommittedBlocks): Promise<boolean> {
  return content.isUnshared(at, account, parseId(contentId!));
}

/** What the plan rests on is not there any more. */
export async function isPlanStale(
  tx: Transaction,
  storage: Storage,
  { uncommitted, committed, uses, handsOver, fellBack }: BlockListPlan,
  target: WriteTarget,
): Promise<boolean> {
  if (uses.content && target.blob?.contentId !== committed!.contentId) return true;
  if (handsOver?.content && !(await isUnshared(tx, storage, committed!))) return true;
  if (!fellBack && !uses.stage) return false;
  if (!uncommitted || !target.uncommitted) return uncommitted !== target.uncommitted;
  const { id, gen, count } = target.uncommitted;
  const needsCount = fellBack || handsOver?.stage === true;
  return (
    formatId(id) !== formatId(uncommitted.id) || gen !== uncommitted.gen || (needsCount && count !== uncommitted.count)
  );
}
