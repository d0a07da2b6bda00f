/** Uncommitted blocks, and the lists of blocks. */
import { type ContentId, parseId } from '../../content/rows.ts';
import { decodeKey, keyAfter } from '../../partition/keys.ts';
import type { Snapshot, Transaction } from '../../partition/partition.ts';
import { encodeValue } from '../../partition/values.ts';
import { blockIdBytes, judgeBlock, parseBlockId } from '../../rules/block-list.ts';
import type { SentContent } from '../common/sent-content.ts';
import { nextSlice, type Storage } from '../common/storage.ts';
import { withUpload } from '../common/upload.ts';
import { type BlobInput, checkWriteInput } from './blobs.ts';
import { fail } from './errors.ts';
import {
  checkBlobName,
  checkContainerName,
  checkLease,
  checkWritable,
  type DecisionSnapshot,
  parseLeaseId,
} from './request-checks.ts';
import {
  type Blob,
  blockKey,
  blocksIn,
  decodeBlock,
  encodeBlock,
  encodeUncommitted,
  expiryKey,
  scheduleUncommittedDeletion,
  txQueueKey,
  type UncommittedBlocks,
  type UncommittedId,
  uncommittedExpiry,
  uncommittedKey,
} from './rows.ts';
import { checkSameContainer, currentLease, findContainerId, readTarget } from './write-target.ts';

export interface PutBlockInput extends Omit<BlobInput, 'conditions'> {
  /** As it was sent. */
  readonly blockId: string;
  readonly wantsMd5: boolean;
  readonly body: SentContent;
}

/** Refuses what would be refused anyway, before the body is sent. */
export async function precheckPutBlock(storage: Storage, input: Omit<PutBlockInput, 'body'>): Promise<void> {
  const leaseId = checkWriteInput({ ...input, conditions: {} });
  const blockId = checkBlockId(input.blockId);
  await storage.partition.read((at) => checkPutBlock(at, storage, { ...input, blockId }, leaseId));
}

export async function putBlock(storage: Storage, input: PutBlockInput) {
  const { container, blob, body } = input;
  const { account, content } = storage;
  const leaseId = checkWriteInput({ ...input, conditions: {} });
  const blockId = checkBlockId(input.blockId);
  if (body.length === 0) throw fail('InvalidHeaderValue', { HeaderName: 'Content-Length', HeaderValue: '0' });
  const containerId = await findContainerId(storage, container);
  return withUpload(storage, body, { md5: input.wantsMd5 }, async (uploaded) => {
    const newId = content.newId();
    const { value: trashed } = await storage.partition.transact(txQueueKey(account, container, blob), async (tx) => {
      const { target, replaced } = await checkPutBlock(tx, storage, { ...input, blockId }, leaseId);
      checkSameContainer(target, containerId);
      if (target.expired) scheduleUncommittedDeletion(tx, account, target.container, blob, target.expired);
      await content.commitUpload(tx, account, uploaded);
      if (replaced) await content.decrefChunks(tx, account, replaced.chunkRefs);
      const uncommitted = nextUncommitted(tx, target.uncommitted, newId, blockId, replaced !== undefined);
      tx.put(
        blockKeyFromId(storage, uncommitted.id, blockId),
        encodeBlock({ length: uploaded.length, chunkRefs: uploaded.chunkRefs }),
      );
      tx.put(uncommittedKey(account, target.container, blob), encodeUncommitted(uncommitted));
      if (!target.uncommitted) tx.put(expiryKey(account, uncommitted.due, target.container, blob), encodeValue({}));
      return target.expired !== undefined;
    });
    if (trashed) storage.sweeper.wake();
    return { md5: uploaded.md5, crc64: uploaded.crc64 };
  });
}

function checkBlockId(text: string): string {
  const id = parseBlockId(text);
  if (id !== undefined) return id;
  const details = { QueryParameterName: 'blockid', QueryParameterValue: text };
  throw fail('InvalidQueryParameterValue', { ...details, Reason: 'It is not base64 of at most 64 bytes.' });
}

function nextUncommitted(
  { now, timestamp }: Transaction,
  stage: UncommittedBlocks | undefined,
  newId: UncommittedId,
  blockId: string,
  replaces: boolean,
): UncommittedBlocks {
  const touched = now;
  if (!stage) {
    const idLength = blockIdBytes(blockId);
    return { id: newId, created: timestamp, idLength, count: 1, gen: 0, touched, due: uncommittedExpiry(now) };
  }
  return replaces ? { ...stage, gen: stage.gen + 1, touched } : { ...stage, count: stage.count + 1, touched };
}

/** With the block of the same id, which the new one replaces. */
async function checkPutBlock(
  at: DecisionSnapshot,
  storage: Storage,
  { container, blob, blockId }: Pick<PutBlockInput, 'container' | 'blob' | 'blockId'>,
  leaseId: string | undefined,
) {
  checkWritable(storage, container);
  const target = await readTarget(at, storage, container, blob);
  checkLease(at, currentLease(target), leaseId, 'write', 'blob');
  const row = target.uncommitted && (await at.get(blockKeyFromId(storage, target.uncommitted.id, blockId)));
  const verdict = judgeBlock(target.uncommitted, blockId, row !== undefined);
  if (verdict !== 'proceed') throw fail(verdict);
  return { target, replaced: row && decodeBlock(row) };
}

export function blockKeyFromId({ account }: Storage, stage: UncommittedId, blockId: string) {
  return blockKey(account, stage, Buffer.from(blockId, 'base64'));
}

export type BlockListType = 'committed' | 'uncommitted' | 'all';

export interface GetBlockListInput extends Omit<BlobInput, 'conditions'> {
  readonly type: BlockListType;
}

export interface ListedBlock {
  readonly id: string;
  readonly length: number;
}

export interface BlockLists<Rendered> {
  /** Undefined: there is nothing but uncommitted blocks. */
  readonly blob: Blob | undefined;
  readonly committed: Rendered[] | undefined;
  readonly uncommitted: Rendered[] | undefined;
}

const SLICE = { limit: 500 };

/** `render` is given the blocks slice by slice: there may be 150,000. */
export async function getBlockList<Rendered>(
  storage: Storage,
  input: GetBlockListInput,
  render: (blocks: readonly ListedBlock[]) => Rendered,
): Promise<BlockLists<Rendered>> {
  checkContainerName(input.container);
  checkBlobName(input.blob);
  const leaseId = parseLeaseId(input.leaseId);
  return storage.partition.read(async (at) => {
    const target = await readTarget(at, storage, input.container, input.blob);
    const { blob, uncommitted } = target;
    if (!blob && !uncommitted) throw fail('BlobNotFound');
    checkLease(at, currentLease(target), leaseId, 'read', 'blob');
    const lists: { committed?: Rendered[]; uncommitted?: Rendered[] } = {};
    if (input.type !== 'uncommitted') {
      lists.committed = [];
      const id = blob?.contentId;
      if (id !== undefined) {
        for await (const blocks of committedBlocks(at, storage, parseId(id))) lists.committed.push(render(blocks));
      }
    }
    if (input.type !== 'committed') {
      lists.uncommitted = [];
      if (uncommitted) {
        for await (const blocks of uncommittedBlocks(at, storage, uncommitted)) lists.uncommitted.push(render(blocks));
      }
    }
    return { blob, committed: lists.committed, uncommitted: lists.uncommitted };
  });
}

/** What was put whole has a piece without a label, and no blocks. */
export async function* committedBlocks(
  at: Snapshot,
  { content, account }: Storage,
  id: ContentId,
): AsyncGenerator<(ListedBlock & { offset: number })[]> {
  for (let from = 0; ; ) {
    const { offset, segments } = await content.segmentsFrom(at, account, id, from);
    if (segments.length === 0) return;
    from = offset;
    const blocks: (ListedBlock & { offset: number })[] = [];
    for (const { label, length } of segments) {
      if (label !== undefined) blocks.push({ id: label, length, offset: from });
      from += length;
    }
    yield blocks;
    await nextSlice();
  }
}

/** In the order of their ids. */
async function* uncommittedBlocks(
  at: Snapshot,
  { account }: Storage,
  { id }: UncommittedBlocks,
): AsyncGenerator<readonly ListedBlock[]> {
  const range = blocksIn(account, id);
  for (let { from } = range; ; ) {
    const rows = await at.scan({ from, to: range.to }, SLICE);
    yield rows.map((row) => ({
      id: Buffer.from(decodeKey(row.key).at(-1) as Uint8Array).toString('base64'),
      length: decodeBlock(row).length,
    }));
    if (rows.length < SLICE.limit) return;
    from = keyAfter(rows.at(-1)!.key);
    await nextSlice();
  }
}
