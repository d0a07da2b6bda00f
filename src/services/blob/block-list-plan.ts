/** What a long block list means: one look at what it names. Whether it was still so at the end is checked then. */
import { nextSlice } from '../../base/time-slices.ts';
import { idOf, type Piece, textOf } from '../../content/rows.ts';
import type { Snapshot, Transaction } from '../../partition/partition.ts';
import { listsOf } from '../../rules/block-list.ts';
import type { Storage } from '../common/storage.ts';
import { mayPut } from './block-blobs.ts';
import type { CheckedBlockList } from './block-lists.ts';
import { blockKeyOf } from './blocks.ts';
import { type Committed, findCommitted } from './committed-blocks.ts';
import { fail } from './errors.ts';
import { decodeBlock, type Stage } from './rows.ts';
import type { Sources, Target } from './write-target.ts';

const LOOK_BLOCKS = 200;
/** Of uncommitted blocks, in memory: of longer lists they are read again where they are used. */
const KEPT_PARTS_MAX = 100_000;

/** What was found out about one block of the list. */
export interface Resolved {
  readonly id: string;
  readonly length: number;
  readonly parts: number;
  /** Undefined: an uncommitted one that is read again. */
  readonly piece: Piece | undefined;
}

export interface Plan {
  readonly blocks: readonly Resolved[];
  readonly stage: Stage | undefined;
  readonly committed: Committed | undefined;
  readonly uses: Sources;
  /** A block of the list could not be found among the uncommitted ones: one that comes there changes what the list means. */
  readonly fellBack: boolean;
  /** The list has each block of those that it uses once: their references become its own, and no chunk's row is touched. */
  readonly handsOver: Sources | undefined;
}

export async function planOf(storage: Storage, list: CheckedBlockList): Promise<Plan | 'again'> {
  const committed = list.blocks.some(({ source }) => source !== 'Uncommitted')
    ? await findCommitted(storage, list)
    : undefined;
  return storage.partition.read(async (at) => {
    const { blob, stage } = await mayPut(at, storage, list, list.leaseId);
    if (committed && blob?.contentId !== committed.contentId) return 'again';
    const blocks: Resolved[] = [];
    const ids = new Set<string>();
    const uses = { content: false, stage: false };
    let fellBack = false;
    let unkept = KEPT_PARTS_MAX;
    for (let from = 0; from < list.blocks.length; from += LOOK_BLOCKS) {
      const slice = list.blocks.slice(from, from + LOOK_BLOCKS);
      const rows = stage ? await at.getMany(slice.map(({ id }) => blockKeyOf(storage, stage.id, id))) : [];
      for (const [i, { id, source }] of slice.entries()) {
        const row = rows[i];
        const name = listsOf(source).find((one) => one === 'committed' || row !== undefined);
        const piece = name === 'uncommitted' ? decodeBlock(row!) : name && committed?.pieces.get(id);
        if (!piece) throw fail('InvalidBlockList');
        const { length, parts } = piece;
        const isCommitted = name === 'committed';
        uses[isCommitted ? 'content' : 'stage'] = true;
        fellBack ||= isCommitted && source === 'Latest';
        if (!isCommitted) unkept -= parts.length;
        blocks.push({ id, length, parts: parts.length, piece: isCommitted || unkept >= 0 ? piece : undefined });
        ids.add(id);
      }
      await nextSlice();
    }
    const there = (uses.content ? committed!.pieces.size : 0) + (uses.stage ? stage!.count : 0);
    const isAllOnce = ids.size === blocks.length && blocks.length === there && (!uses.content || committed!.isAll);
    const mayHandOver = isAllOnce && unkept >= 0 && (!uses.content || (await isUnshared(at, storage, committed!)));
    return { blocks, stage, committed, uses, fellBack, handsOver: mayHandOver ? uses : undefined };
  });
}

function isUnshared(at: Snapshot, { content, account }: Storage, { contentId }: Committed): Promise<boolean> {
  return content.isUnshared(at, account, idOf(contentId!));
}

/** What the plan rests on is not there any more. */
export async function hasChanged(
  tx: Transaction,
  storage: Storage,
  { stage, committed, uses, handsOver, fellBack }: Plan,
  target: Target,
): Promise<boolean> {
  if (uses.content && target.blob?.contentId !== committed!.contentId) return true;
  if (handsOver?.content && !(await isUnshared(tx, storage, committed!))) return true;
  if (!fellBack && !uses.stage) return false;
  if (!stage || !target.stage) return stage !== target.stage;
  const { id, gen, count } = target.stage;
  const needsCount = fellBack || handsOver?.stage === true;
  return textOf(id) !== textOf(stage.id) || gen !== stage.gen || (needsCount && count !== stage.count);
}
