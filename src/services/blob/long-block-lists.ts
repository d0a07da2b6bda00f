/**
 * A block list that is too long for one commit. The content is made in slices while nobody can see it; then one commit
 * checks that blob and blocks are still those that it was made of, and swaps it in.
 */
import { nextSlice } from '../../base/time-slices.ts';
import { DanglingReference } from '../../content/content.ts';
import {
  type ContentId,
  formatId,
  MANIFEST_PAGE_CHUNKS_MAX,
  manifestPageKey,
  type Segment,
} from '../../content/rows.ts';
import type { Key } from '../../partition/keys.ts';
import type { Transaction } from '../../partition/partition.ts';
import type { Storage } from '../common/storage.ts';
import { checkPut, putBlobRecord } from './block-blobs.ts';
import { type BlockListPlan, isPlanStale, planBlockList, type ResolvedBlock } from './block-list-plan.ts';
import type { CheckedBlockList } from './block-lists.ts';
import { blockKeyFromId } from './blocks.ts';
import { decodeBlock, txQueueKey } from './rows.ts';
import { releaseReplaced } from './write-target.ts';

/** Each part is a row that a slice reads and writes, unless references are handed over. */
const SLICE_PARTS_MAX = 120;
/** Their commits share a sync. */
const SLICES_MAX = 3;

class SourceChanged extends Error {}

export async function putLongList(storage: Storage, list: CheckedBlockList): Promise<{ timestamp: bigint } | 'again'> {
  const plan = await planBlockList(storage, list);
  if (plan === 'again') return plan;
  const { account, content, partition } = storage;
  const id = content.newId();
  const queueKey = txQueueKey(account, list.container, list.blob);
  const counting = plan.handsOver ? 'uncounted' : 'counted';
  const { value: deletionKey } = await partition.transact(queueKey, (tx) =>
    content.beginPending(tx, account, id, counting),
  );
  try {
    const length = await writePages(storage, plan, id);
    return await partition.transact(queueKey, (tx) => swap(tx, storage, list, plan, id, deletionKey, length));
  } catch (error) {
    await partition.transact(queueKey, async (tx) => {
      // Where nobody could say whether the swap happened, this tells.
      if (await tx.get(deletionKey)) content.abandonPending(tx, id, deletionKey, counting);
    });
    storage.sweeper.wake();
    if (error instanceof SourceChanged || error instanceof DanglingReference) return 'again';
    throw error;
  }
}

/** Returns the length of all. */
async function writePages(storage: Storage, plan: BlockListPlan, id: ContentId): Promise<number> {
  let offset = 0;
  const running = new Set<Promise<void>>();
  try {
    for (const slice of sliceByParts(plan.blocks, plan.handsOver ? MANIFEST_PAGE_CHUNKS_MAX : SLICE_PARTS_MAX)) {
      await nextSlice();
      const done = writePage(storage, plan, id, offset, slice).finally(() => running.delete(done));
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

async function writePage(
  storage: Storage,
  { uncommitted, handsOver }: BlockListPlan,
  id: ContentId,
  offset: number,
  blocks: readonly ResolvedBlock[],
): Promise<void> {
  const { account, content, partition } = storage;
  const unread = blocks.filter(({ piece }) => !piece);
  await partition.transact(manifestPageKey(account, id, offset), async (tx) => {
    const rows = await tx.getMany(unread.map((block) => blockKeyFromId(storage, uncommitted!.id, block.id)));
    let next = 0;
    const pieces = blocks.map(({ id: label, length, piece: known }): Segment => {
      if (known) return { label, length, chunkRefs: known.chunkRefs };
      const row = rows[next++];
      const piece = row && decodeBlock(row);
      if (piece?.length !== length) throw new SourceChanged();
      return { label, length, chunkRefs: piece.chunkRefs };
    });
    if (!handsOver) {
      const parts = pieces.flatMap((piece) => piece.chunkRefs);
      await content.increfChunks(tx, account, parts);
    }
    await content.addSegments(tx, account, id, offset, pieces);
  });
}

async function swap(
  tx: Transaction,
  storage: Storage,
  list: CheckedBlockList,
  plan: BlockListPlan,
  id: ContentId,
  trash: Key,
  length: number,
): Promise<void> {
  const { account, content } = storage;
  const target = await checkPut(tx, storage, list, list.leaseId);
  if (await isPlanStale(tx, storage, plan, target)) throw new SourceChanged();
  await content.finishPending(tx, account, id, trash, length);
  await releaseReplaced(tx, storage, target, { handsOver: plan.handsOver });
  putBlobRecord(tx, storage, target, {
    length,
    contentId: formatId(id),
    content: list.content,
    metadata: list.metadata,
  });
}

function* sliceByParts(blocks: readonly ResolvedBlock[], partsMax: number): Iterable<readonly ResolvedBlock[]> {
  let slice: ResolvedBlock[] = [];
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
