/**
 * Put Block List of a list that is too long for one commit: copy-on-write with optimistic validation. The new content is built
 * in slices while no blob references it; then one commit validates that the sources are unchanged, and swaps it in.
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
import { tierAfterWrite } from '../../rules/tiers.ts';
import type { Storage } from '../common/storage.ts';
import { type BlockListPlan, isPlanStale, type PlannedBlock, planBlockList } from './block-list-plan.ts';
import type { CheckedBlockList } from './block-lists.ts';
import { blockKeyFromId } from './blocks.ts';
import { decodeBlock, txQueueKey } from './rows.ts';
import { checkPut, putBlobRecord, readTarget, releaseReplaced } from './write-target.ts';

/** A slice reads and writes a row per chunk, unless references are handed over. */
const SLICE_CHUNKS_MAX = 120;
/** Slices written at the same time: their commits share a sync. */
const PARALLEL_SLICES_MAX = 3;

class SourceChanged extends Error {}

export async function putLongList(storage: Storage, list: CheckedBlockList): Promise<{ timestamp: bigint } | 'retry'> {
  const plan = await planBlockList(storage, list);
  if (plan === 'retry') return plan;
  const { account, content, partition } = storage;
  const id = content.newId();
  const queueKey = txQueueKey(account, list.container, list.blob);
  const counting = plan.handsOver ? 'uncounted' : 'counted';
  const { value: pendingKey } = await partition.transact(queueKey, (tx) =>
    content.beginPending(tx, account, id, counting),
  );
  try {
    const length = await writePages(storage, plan, id);
    return await partition.transact(queueKey, async (tx) => {
      const target = await readTarget(tx, storage, list);
      checkPut(tx, storage, target, list, list.leaseId);
      if (await isPlanStale(tx, storage, plan, target)) throw new SourceChanged();
      await content.finishPending(tx, account, id, pendingKey, length);
      await releaseReplaced(tx, storage, target, { handsOver: plan.handsOver });
      const { content: headers, metadata, tags } = list;
      const tier = tierAfterWrite(target.blob?.tier, list.tier, tx.now);
      await putBlobRecord(tx, storage, target, {
        length,
        contentId: formatId(id),
        content: headers,
        metadata,
        tags,
        tier,
      });
    });
  } catch (error) {
    await partition.transact(queueKey, async (tx) => {
      // If the outcome of the swap is unknown: the swap removes this row.
      if (await tx.get(pendingKey)) content.abandonPending(tx, id, pendingKey, counting);
    });
    storage.sweeper.wake();
    if (error instanceof SourceChanged || error instanceof DanglingReference) return 'retry';
    throw error;
  }
}

/** Returns the length of the content. */
async function writePages(storage: Storage, plan: BlockListPlan, id: ContentId): Promise<number> {
  let offset = 0;
  const running = new Set<Promise<void>>();
  try {
    for (const slice of sliceByChunks(plan.blocks, plan.handsOver ? MANIFEST_PAGE_CHUNKS_MAX : SLICE_CHUNKS_MAX)) {
      await nextSlice();
      const done = writePage(storage, plan, id, offset, slice).finally(() => running.delete(done));
      // The failure is thrown where the slice is awaited.
      done.catch(() => {});
      running.add(done);
      for (const { length } of slice) offset += length;
      if (running.size >= PARALLEL_SLICES_MAX) await Promise.race(running);
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
  blocks: readonly PlannedBlock[],
): Promise<void> {
  const { account, content, partition } = storage;
  // Only uncommitted blocks are left out of a plan.
  const unread = blocks.filter(({ segment }) => !segment);
  await partition.transact(manifestPageKey(account, id, offset), async (tx) => {
    const rows = await tx.getMany(unread.map((block) => blockKeyFromId(storage, uncommitted!.id, block.id)));
    let next = 0;
    const segments = blocks.map(({ id: label, length, segment: planned }): Segment => {
      if (planned) return { label, length, chunkRefs: planned.chunkRefs };
      const row = rows[next++];
      const segment = row && decodeBlock(row);
      if (segment?.length !== length) throw new SourceChanged();
      return { label, length, chunkRefs: segment.chunkRefs };
    });
    if (!handsOver) {
      const chunkRefs = segments.flatMap((segment) => segment.chunkRefs);
      await content.increfChunks(tx, account, chunkRefs);
    }
    await content.addSegments(tx, account, id, offset, segments);
  });
}

function* sliceByChunks(blocks: readonly PlannedBlock[], chunksMax: number): Iterable<readonly PlannedBlock[]> {
  let slice: PlannedBlock[] = [];
  let chunks = 0;
  for (const block of blocks) {
    if (slice.length > 0 && chunks + block.chunks > chunksMax) {
      yield slice;
      [slice, chunks] = [[], 0];
    }
    slice.push(block);
    chunks += block.chunks;
  }
  if (slice.length > 0) yield slice;
}
