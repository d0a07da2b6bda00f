/**
 * A block list that is too long for one commit. The content is made in slices while nobody can see it; then one commit
 * checks that blob and blocks are still those that it was made of, and swaps it in.
 */
import { nextSlice } from '../../base/time-slices.ts';
import { PartGone } from '../../content/content.ts';
import { CELL_PARTS_MAX, type ContentId, cellKey, type Piece, textOf } from '../../content/rows.ts';
import type { Key } from '../../partition/keys.ts';
import type { Transaction } from '../../partition/partition.ts';
import type { Storage } from '../common/storage.ts';
import { mayPut, putHead } from './block-blobs.ts';
import { hasChanged, type Plan, planOf, type Resolved } from './block-list-plan.ts';
import type { CheckedBlockList } from './block-lists.ts';
import { blockKeyOf } from './blocks.ts';
import { anchorOf, decodeBlock } from './rows.ts';
import { letGo } from './write-target.ts';

/** Each part is a row that a slice reads and writes, unless references are handed over. */
const SLICE_PARTS_MAX = 120;
/** Their commits share a sync. */
const SLICES_MAX = 3;

class Changed extends Error {}

export async function putLongList(storage: Storage, list: CheckedBlockList): Promise<{ stamp: bigint } | 'again'> {
  const plan = await planOf(storage, list);
  if (plan === 'again') return plan;
  const { account, content, partition } = storage;
  const id = content.newId();
  const anchor = anchorOf(account, list.container, list.blob);
  const counting = plan.handsOver ? 'uncounted' : 'counted';
  const { value: trash } = await partition.transact(anchor, (tx) => content.beginPending(tx, account, id, counting));
  try {
    const length = await makeCells(storage, plan, id);
    return await partition.transact(anchor, (tx) => swap(tx, storage, list, plan, id, trash, length));
  } catch (error) {
    await partition.transact(anchor, async (tx) => {
      // Where nobody could say whether the swap happened, this tells.
      if (await tx.get(trash)) content.abandonPending(tx, account, id, trash, counting);
    });
    storage.sweeper.wake();
    if (error instanceof Changed || error instanceof PartGone) return 'again';
    throw error;
  }
}

/** Returns the length of all. */
async function makeCells(storage: Storage, plan: Plan, id: ContentId): Promise<number> {
  let offset = 0;
  const running = new Set<Promise<void>>();
  try {
    for (const slice of slicesOf(plan.blocks, plan.handsOver ? CELL_PARTS_MAX : SLICE_PARTS_MAX)) {
      await nextSlice();
      const done = makeCell(storage, plan, id, offset, slice).finally(() => running.delete(done));
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
  { stage, handsOver }: Plan,
  id: ContentId,
  offset: number,
  blocks: readonly Resolved[],
): Promise<void> {
  const { account, content, partition } = storage;
  const unread = blocks.filter(({ piece }) => !piece);
  await partition.transact(cellKey(account, id, offset), async (tx) => {
    const rows = await tx.getMany(unread.map((block) => blockKeyOf(storage, stage!.id, block.id)));
    let next = 0;
    const pieces = blocks.map(({ id: label, length, piece: known }): Piece => {
      if (known) return { label, length, parts: known.parts };
      const row = rows[next++];
      const piece = row && decodeBlock(row);
      if (piece?.length !== length) throw new Changed();
      return { label, length, parts: piece.parts };
    });
    if (!handsOver) {
      const parts = pieces.flatMap((piece) => piece.parts);
      await content.raiseParts(tx, account, parts);
    }
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
  const { account, content } = storage;
  const target = await mayPut(tx, storage, list, list.leaseId);
  if (await hasChanged(tx, storage, plan, target)) throw new Changed();
  await content.finishPending(tx, account, id, trash, length);
  await letGo(tx, storage, target, { handsOver: plan.handsOver });
  putHead(tx, storage, target, { length, contentId: textOf(id), content: list.content, metadata: list.metadata });
}

function* slicesOf(blocks: readonly Resolved[], partsMax: number): Iterable<readonly Resolved[]> {
  let slice: Resolved[] = [];
  let parts = 0;
  for (const block of blocks) {
    if (slice.length > 0 && parts + block.parts > partsMax) {
      yield slice;
      [slice, parts] = [[], 0];
    }
    slice.push(block);
    parts += block.parts;
  }
  if (slice.length > 0) yield slice;
}
