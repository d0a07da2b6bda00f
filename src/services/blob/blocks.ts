/** Uncommitted blocks, and the lists of blocks. */
import { type ContentId, idOf } from '../../content/rows.ts';
import { after, decodeKey } from '../../partition/keys.ts';
import type { Snapshot, Transaction } from '../../partition/partition.ts';
import { encodeValue } from '../../partition/values.ts';
import { blockIdBytes, judgeBlock, parseBlockId } from '../../rules/block-list.ts';
import type { SentContent } from '../common/sent-content.ts';
import { nextSlice, type Storage } from '../common/storage.ts';
import { withTaken } from '../common/upload.ts';
import { type BlobInput, checkWrite } from './blobs.ts';
import { fail } from './errors.ts';
import {
  checkBlobName,
  checkContainerName,
  checkWritable,
  type Judged,
  leaseIdOf,
  useLease,
} from './request-checks.ts';
import {
  anchorOf,
  type Blob,
  blockKey,
  blocksIn,
  decodeBlock,
  dueKey,
  encodeBlock,
  encodeStage,
  type Stage,
  type StageId,
  stageEnd,
  stageKey,
  trashStage,
} from './rows.ts';
import { checkHome, homeOf, leaseOn, targetAt } from './write-target.ts';

export interface PutBlockInput extends Omit<BlobInput, 'conditions'> {
  /** As it was sent. */
  readonly blockId: string;
  readonly wantsMd5: boolean;
  readonly body: SentContent;
}

/** Refuses what would be refused anyway, before the body is sent. */
export async function lookAtPutBlock(storage: Storage, input: Omit<PutBlockInput, 'body'>): Promise<void> {
  const leaseId = checkWrite({ ...input, conditions: {} });
  const blockId = blockIdOf(input.blockId);
  await storage.partition.read((at) => mayStage(at, storage, { ...input, blockId }, leaseId));
}

export async function putBlock(storage: Storage, input: PutBlockInput) {
  const { container, blob, body } = input;
  const { account, content } = storage;
  const leaseId = checkWrite({ ...input, conditions: {} });
  const blockId = blockIdOf(input.blockId);
  if (body.length === 0) throw fail('InvalidHeaderValue', { HeaderName: 'Content-Length', HeaderValue: '0' });
  const home = await homeOf(storage, container);
  return withTaken(storage, body, { md5: input.wantsMd5 }, async (taken) => {
    const newId = content.newId();
    const { value: trashed } = await storage.partition.transact(anchorOf(account, container, blob), async (tx) => {
      const { target, replaced } = await mayStage(tx, storage, { ...input, blockId }, leaseId);
      checkHome(target, home);
      if (target.expired) trashStage(tx, account, target.container, blob, target.expired);
      await content.nameChunks(tx, account, taken);
      if (replaced) await content.releaseParts(tx, account, replaced.parts);
      const stage = nextStage(tx, target.stage, newId, blockId, replaced !== undefined);
      tx.put(blockKeyOf(storage, stage.id, blockId), encodeBlock({ length: taken.length, parts: taken.parts }));
      tx.put(stageKey(account, target.container, blob), encodeStage(stage));
      if (!target.stage) tx.put(dueKey(account, stage.due, target.container, blob), encodeValue({}));
      return target.expired !== undefined;
    });
    if (trashed) storage.sweeper.wake();
    return { md5: taken.md5, crc64: taken.crc64 };
  });
}

function blockIdOf(text: string): string {
  const id = parseBlockId(text);
  if (id !== undefined) return id;
  const details = { QueryParameterName: 'blockid', QueryParameterValue: text };
  throw fail('InvalidQueryParameterValue', { ...details, Reason: 'It is not base64 of at most 64 bytes.' });
}

function nextStage(
  { now, stamp }: Transaction,
  stage: Stage | undefined,
  newId: StageId,
  blockId: string,
  replaces: boolean,
): Stage {
  const touched = now;
  if (!stage) {
    const idLength = blockIdBytes(blockId);
    return { id: newId, created: stamp, idLength, count: 1, gen: 0, touched, due: stageEnd(now) };
  }
  return replaces ? { ...stage, gen: stage.gen + 1, touched } : { ...stage, count: stage.count + 1, touched };
}

/** With the block of the same id, which the new one replaces. */
async function mayStage(
  at: Judged,
  storage: Storage,
  { container, blob, blockId }: Pick<PutBlockInput, 'container' | 'blob' | 'blockId'>,
  leaseId: string | undefined,
) {
  checkWritable(storage, container);
  const target = await targetAt(at, storage, container, blob);
  useLease(at, leaseOn(target), leaseId, 'write', 'blob');
  const row = target.stage && (await at.get(blockKeyOf(storage, target.stage.id, blockId)));
  const verdict = judgeBlock(target.stage, blockId, row !== undefined);
  if (verdict !== 'proceed') throw fail(verdict);
  return { target, replaced: row && decodeBlock(row) };
}

export function blockKeyOf({ account }: Storage, stage: StageId, blockId: string) {
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
  const leaseId = leaseIdOf(input.leaseId);
  return storage.partition.read(async (at) => {
    const target = await targetAt(at, storage, input.container, input.blob);
    const { blob, stage } = target;
    if (!blob && !stage) throw fail('BlobNotFound');
    useLease(at, leaseOn(target), leaseId, 'read', 'blob');
    const lists: { committed?: Rendered[]; uncommitted?: Rendered[] } = {};
    if (input.type !== 'uncommitted') {
      lists.committed = [];
      const id = blob?.contentId;
      if (id !== undefined) {
        for await (const blocks of committedBlocks(at, storage, idOf(id))) lists.committed.push(render(blocks));
      }
    }
    if (input.type !== 'committed') {
      lists.uncommitted = [];
      if (stage) {
        for await (const blocks of uncommittedBlocks(at, storage, stage)) lists.uncommitted.push(render(blocks));
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
    const { offset, pieces } = await content.piecesFrom(at, account, id, from);
    if (pieces.length === 0) return;
    from = offset;
    const blocks: (ListedBlock & { offset: number })[] = [];
    for (const { label, length } of pieces) {
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
  { id }: Stage,
): AsyncGenerator<readonly ListedBlock[]> {
  const range = blocksIn(account, id);
  for (let { from } = range; ; ) {
    const rows = await at.scan({ from, to: range.to }, SLICE);
    yield rows.map((row) => ({
      id: Buffer.from(decodeKey(row.key).at(-1) as Uint8Array).toString('base64'),
      length: decodeBlock(row).length,
    }));
    if (rows.length < SLICE.limit) return;
    from = after(rows.at(-1)!.key);
    await nextSlice();
  }
}
