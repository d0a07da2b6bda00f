/** Put Block and Get Block List. */
import { nextSlice } from '../../base/time-slices.ts';
import { type ContentId, parseId, type Segment } from '../../content/rows.ts';
import { decodeKey, keyAfter } from '../../partition/keys.ts';
import type { Snapshot, Transaction } from '../../partition/partition.ts';
import { encodeValue } from '../../partition/values.ts';
import { blockIdBytes, judgeBlock, parseBlockId } from '../../rules/block-list.ts';
import type { Storage } from '../common/storage.ts';
import { type SentContent, type StagedContent, stageUpload, withUpload } from '../common/upload.ts';
import { readBlob } from './blob-record.ts';
import { fail } from './errors.ts';
import {
  type BlobInput,
  checkChangeable,
  checkLease,
  checkOnline,
  checkReadInput,
  checkWritable,
  checkWriteConditions,
  checkWriteInput,
  type DecisionSnapshot,
  type SnapshotInput,
} from './request-checks.ts';
import {
  type Blob,
  blockKey,
  blocksIn,
  type ContainerId,
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
import {
  checkSameContainer,
  checkType,
  currentLease,
  findContainerId,
  readTarget,
  type WriteTarget,
} from './write-target.ts';

export interface PutBlockInput extends Omit<BlobInput, 'conditions'> {
  /** Base64, as it was sent. */
  readonly blockId: string;
  readonly wantsMd5: boolean;
  readonly body: SentContent;
}

/** For Expect: 100-continue: fails as Put Block would, before the body is sent. */
export async function precheckPutBlock(
  storage: Storage,
  input: Omit<PutBlockInput, 'wantsMd5' | 'body'>,
): Promise<void> {
  const { leaseId, blockId } = checkPutBlockInput(storage, input);
  await storage.partition.read(async (at) =>
    checkPutBlock(at, storage, await readTarget(at, storage, input), blockId, leaseId),
  );
}

export async function putBlock(storage: Storage, input: PutBlockInput) {
  const { container, body } = input;
  const { leaseId, blockId } = checkPutBlockInput(storage, input);
  if (body.length === 0) throw fail('InvalidHeaderValue', { HeaderName: 'Content-Length', HeaderValue: '0' });
  const containerId = await findContainerId(storage, container);
  return withUpload(storage, body, { md5: input.wantsMd5 }, async (uploaded) => {
    await commitBlock(storage, { ...input, leaseId, blockId }, containerId, stageUpload(storage, uploaded));
    return { md5: uploaded.md5, crc64: uploaded.crc64 };
  });
}

/**
 * One commit: the block has these bytes.
 * @param input with the canonical lease id and block id
 */
export async function commitBlock(
  storage: Storage,
  input: Omit<PutBlockInput, 'wantsMd5' | 'body'>,
  containerId: ContainerId,
  staged: StagedContent & { readonly inline?: undefined },
): Promise<void> {
  const { container, blob, blockId, leaseId } = input;
  const { account, content, partition, sweeper } = storage;
  const { length, chunkRefs } = staged;
  const newId = content.newId();
  const { value: needsSweep } = await partition.transact(txQueueKey(account, container, blob), async (tx) => {
    const target = await readTarget(tx, storage, input);
    const replaced = await checkPutBlock(tx, storage, target, blockId, leaseId);
    checkSameContainer(target.containerId, containerId);
    if (target.expired) scheduleUncommittedDeletion(tx, account, target.containerId, blob, target.expired);
    await staged.reference(tx);
    if (replaced) await content.decrefChunks(tx, account, replaced.chunkRefs);
    const uncommitted = nextUncommitted(tx, target.uncommitted, newId, blockId, replaced !== undefined);
    tx.put(blockKeyFromId(storage, uncommitted.id, blockId), encodeBlock({ length, chunkRefs }));
    tx.put(uncommittedKey(account, target.containerId, blob), encodeUncommitted(uncommitted));
    if (!target.uncommitted) tx.put(expiryKey(account, uncommitted.due, target.containerId, blob), encodeValue({}));
    return target.expired !== undefined;
  });
  if (needsSweep) sweeper.wake();
}

export function checkPutBlockInput(storage: Storage, input: Omit<PutBlockInput, 'wantsMd5' | 'body'>) {
  const leaseId = checkWriteInput({ ...input, conditions: {} });
  const blockId = canonicalBlockId(input.blockId);
  checkWritable(storage, input.container);
  return { leaseId, blockId };
}

function canonicalBlockId(text: string): string {
  const id = parseBlockId(text);
  if (id !== undefined) return id;
  const details = { QueryParameterName: 'blockid', QueryParameterValue: text };
  throw fail('InvalidQueryParameterValue', { ...details, Reason: 'It is not base64 of at most 64 bytes.' });
}

function nextUncommitted(
  { now, timestamp }: Transaction,
  known: UncommittedBlocks | undefined,
  newId: UncommittedId,
  blockId: string,
  replaces: boolean,
): UncommittedBlocks {
  const touched = now;
  if (!known) {
    const idLength = blockIdBytes(blockId);
    return { id: newId, created: timestamp, idLength, count: 1, gen: 0, touched, due: uncommittedExpiry(now) };
  }
  return replaces ? { ...known, gen: known.gen + 1, touched } : { ...known, count: known.count + 1, touched };
}

/** The checks of Put Block. Returns the block of the same id, which the new one replaces. */
async function checkPutBlock(
  at: DecisionSnapshot,
  storage: Storage,
  target: WriteTarget,
  blockId: string,
  leaseId: string | undefined,
): Promise<Segment | undefined> {
  const { uncommitted } = target;
  checkLease(at, currentLease(target), leaseId, 'write', 'blob');
  checkType(target.blob, 'block');
  checkChangeable(target.blob);
  checkOnline(at, target.blob);
  const row = uncommitted && (await at.get(blockKeyFromId(storage, uncommitted.id, blockId)));
  const verdict = judgeBlock(uncommitted, blockId, row !== undefined);
  if (verdict !== 'proceed') throw fail(verdict);
  return row && decodeBlock(row);
}

/** @param blockId in base64 */
export function blockKeyFromId({ account }: Storage, id: UncommittedId, blockId: string) {
  return blockKey(account, id, Buffer.from(blockId, 'base64'));
}

export type BlockListType = 'committed' | 'uncommitted' | 'all';

export interface GetBlockListInput extends SnapshotInput {
  readonly type: BlockListType;
}

export interface ListedBlock {
  readonly id: string;
  readonly length: number;
}

export interface BlockLists<Rendered> {
  /** Undefined: the blob consists of uncommitted blocks only. */
  readonly blob: Blob | undefined;
  readonly committed: Rendered[] | undefined;
  readonly uncommitted: Rendered[] | undefined;
}

const SLICE = { limit: 500 };

/** `render` gets the blocks in slices: there may be 150,000. */
export async function getBlockList<Rendered>(
  storage: Storage,
  input: GetBlockListInput,
  render: (blocks: readonly ListedBlock[]) => Rendered,
): Promise<BlockLists<Rendered>> {
  const leaseId = checkReadInput(input);
  return storage.partition.read(async (at) => {
    const target = await readListed(at, storage, input);
    const { blob, uncommitted } = target;
    if (!blob && !uncommitted) throw fail('BlobNotFound');
    checkLease(at, currentLease(target), leaseId, 'read', 'blob');
    checkType(blob, 'block');
    checkOnline(at, blob);
    // For conditions, a blob that consists of uncommitted blocks only does not exist.
    checkWriteConditions(blob, input.conditions);
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

/** A snapshot has no uncommitted blocks. */
async function readListed(
  at: Snapshot,
  storage: Storage,
  input: GetBlockListInput,
): Promise<Pick<WriteTarget, 'blob' | 'uncommitted'>> {
  if (input.snapshot === undefined) return readTarget(at, storage, input);
  const { blob } = await readBlob(at, storage, input.container, input.blob, input.snapshot);
  return { blob, uncommitted: undefined };
}

/** The content of a Put Blob has a segment without a label, and no blocks. */
async function* committedBlocks(
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
