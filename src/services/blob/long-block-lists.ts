/**
 * A block list that is too long for one commit. The content is made in slices while nobody can see it; then one commit
 * checks that blob and blocks are still those that it was made of, and swaps it in.
 */
import { PartGone } from '../../content/content.ts';
import { type ContentId, cellKey, type Piece, textOf } from '../../content/rows.ts';
import type { Key } from '../../partition/keys.ts';
import type { Transaction } from '../../partition/partition.ts';
import { listsOf } from '../../rules/block-list.ts';
import { nextSlice, type Storage } from '../storage.ts';
import { mayPut, putHead } from './block-blobs.ts';
import type { CheckedBlockList } from './block-lists.ts';
import { blockKeyOf } from './blocks.ts';
import { type Committed, findCommitted } from './committed-blocks.ts';
import { fail } from './errors.ts';
import { anchorOf, decodeBlock, type Stage } from './rows.ts';
import { letGo, type Target } from './targets.ts';

/** Each part is a row that a slice reads and writes. Those under way run in one turn of the event loop. */
const SLICE_PARTS_MAX = 120;
/** Their commits share a sync. */
const SLICES_MAX = 3;
const LOOK_BLOCKS = 250;

/** What was found out about one block of the list. */
interface Resolved {
  readonly id: string;
  readonly length: number;
  readonly parts: number;
  /** Undefined: an uncommitted one, which is read again where it is used. */
  readonly committed: Piece | undefined;
}

interface Plan {
  readonly blocks: readonly Resolved[];
  readonly stage: Stage | undefined;
  readonly committed: Committed | undefined;
  /** A block of the list could not be found among the uncommitted ones: one that comes there changes what the list means. */
  readonly fellBack: boolean;
}

class Changed extends Error {}

export async function putLongList(storage: Storage, list: CheckedBlockList): Promise<{ stamp: bigint } | 'again'> {
  const plan = await planOf(storage, list);
  if (plan === 'again') return plan;
  const { account, content, partition } = storage;
  const id = content.newId();
  const anchor = anchorOf(account, list.container, list.blob);
  const { value: trash } = await partition.transact(anchor, (tx) => content.beginPending(tx, account, id));
  try {
    const length = await makeCells(storage, plan, id);
    return await partition.transact(anchor, (tx) => swap(tx, storage, list, plan, id, trash, length));
  } catch (error) {
    await partition.transact(anchor, async (tx) => {
      // Where nobody could say whether the swap happened, this tells.
      if (await tx.get(trash)) content.abandonPending(tx, account, id, trash);
    });
    storage.sweeper.wake();
    if (error instanceof Changed || error instanceof PartGone) return 'again';
    throw error;
  }
}

/** One look at what the list names. Whether it was still so at the end is checked then. */
async function planOf(storage: Storage, list: CheckedBlockList): Promise<Plan | 'again'> {
  const committed = list.blocks.some(({ source }) => source !== 'Uncommitted')
    ? await findCommitted(storage, list)
    : undefined;
  return storage.partition.read(async (at) => {
    const { blob, stage } = await mayPut(at, storage, list, list.leaseId);
    if (committed && blob?.contentId !== committed.contentId) return 'again';
    const blocks: Resolved[] = [];
    let fellBack = false;
    let usesCommitted = false;
    for (let from = 0; from < list.blocks.length; from += LOOK_BLOCKS) {
      const slice = list.blocks.slice(from, from + LOOK_BLOCKS);
      const rows = stage ? await at.getMany(slice.map(({ id }) => blockKeyOf(storage, stage.id, id))) : [];
      for (const [i, { id, source }] of slice.entries()) {
        const row = rows[i];
        const name = listsOf(source).find((one) => one === 'committed' || row !== undefined);
        const piece = name === 'uncommitted' ? decodeBlock(row!) : name && committed?.pieces.get(id);
        if (!piece) throw fail('InvalidBlockList');
        const isCommitted = name === 'committed';
        usesCommitted ||= isCommitted;
        fellBack ||= isCommitted && source === 'Latest';
        const { length, parts } = piece;
        blocks.push({ id, length, parts: parts.length, committed: isCommitted ? piece : undefined });
      }
      await nextSlice();
    }
    return { blocks, stage, committed: usesCommitted ? committed : undefined, fellBack };
  });
}

/** Returns the length of all. */
async function makeCells(storage: Storage, plan: Plan, id: ContentId): Promise<number> {
  let offset = 0;
  const running = new Set<Promise<void>>();
  try {
    for (const slice of slicesOf(plan.blocks)) {
      const done = makeCell(storage, plan.stage, id, offset, slice).finally(() => running.delete(done));
      // A failure is heard of where it is waited for.
      done.catch(() => {});
      running.add(done);
      for (const { length } of slice) offset += length;
      if (running.size >= SLICES_MAX) await Promise.race(running);
    }
    await Promise.all(running);
    return offset;
  } finally {
    await Promise.allSettled(running);
  }
}

async function makeCell(
  storage: Storage,
  stage: Stage | undefined,
  id: ContentId,
  offset: number,
  blocks: readonly Resolved[],
): Promise<void> {
  const { account, content, partition } = storage;
  const uncommitted = blocks.filter((block) => !block.committed);
  await partition.transact(cellKey(account, id, offset), async (tx) => {
    const rows = await tx.getMany(uncommitted.map((block) => blockKeyOf(storage, stage!.id, block.id)));
    let next = 0;
    const pieces = blocks.map(({ id: label, length, committed }): Piece => {
      if (committed) return { ...committed, label };
      const row = rows[next++];
      const piece = row && decodeBlock(row);
      if (piece?.length !== length) throw new Changed();
      return { ...piece, label };
    });
    await content.raiseParts(
      tx,
      account,
      pieces.flatMap(({ parts }) => parts),
    );
    await content.addCells(tx, account, id, offset, pieces);
  });
}

async function swap(
  tx: Transaction,
  storage: Storage,
  list: CheckedBlockList,
  plan: Plan,
  id: ContentId,
  trash: Key,
  length: number,
): Promise<void> {
  const target = await mayPut(tx, storage, list, list.leaseId);
  if (hasChanged(plan, target)) throw new Changed();
  await storage.content.finishPending(tx, storage.account, id, trash, length);
  await letGo(tx, storage, target);
  const { content, metadata } = list;
  putHead(tx, storage, target, { length, contentId: textOf(id), content, metadata });
}

function hasChanged({ stage, committed, blocks, fellBack }: Plan, target: Target): boolean {
  if (committed && target.blob?.contentId !== committed.contentId) return true;
  if (!fellBack && blocks.every((block) => block.committed)) return false;
  if (!stage || !target.stage) return stage !== target.stage;
  const { id, gen, count } = target.stage;
  return textOf(id) !== textOf(stage.id) || gen !== stage.gen || (fellBack && count !== stage.count);
}

function* slicesOf(blocks: readonly Resolved[]): Iterable<readonly Resolved[]> {
  let slice: Resolved[] = [];
  let parts = 0;
  for (const block of blocks) {
    if (slice.length > 0 && parts + block.parts > SLICE_PARTS_MAX) {
      yield slice;
      [slice, parts] = [[], 0];
    }
    slice.push(block);
    parts += block.parts;
  }
  if (slice.length > 0) yield slice;
}
