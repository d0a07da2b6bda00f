/**
 * Append blobs: Put Blob, Append Block and Append Blob Seal. The offset of an append is decided in its commit; appends to one blob wait in one
 * queue and share commits.
 */
import { INLINE_WRITE_BYTES_MAX, type WrittenBytes } from '../../content/ranges/range-maps.ts';
import { formatId, parseId } from '../../content/rows.ts';
import { crc64Base64, md5Base64 } from '../../hashing/hasher.ts';
import type { Transaction } from '../../partition/partition.ts';
import { type AppendConditions, judgeAppend, judgeSeal } from '../../rules/append.ts';
import { formatEtag } from '../../rules/conditions.ts';
import { leaseAfterWrite } from '../../rules/lease.ts';
import type { Storage } from '../common/storage.ts';
import { checkHashes, type SentContent, stageUpload, withUpload } from '../common/upload.ts';
import { encodeBlobRecord } from './blob-record.ts';
import { fail } from './errors.ts';
import { checkPutBlobInput } from './put-blob.ts';
import {
  type BlobInput,
  checkLease,
  checkWritable,
  checkWriteConditions,
  checkWriteInput,
  type DecisionSnapshot,
  type SentMetadata,
} from './request-checks.ts';
import {
  type AppendState,
  type Blob,
  blobKey,
  type ContainerId,
  type ContentHeaders,
  recordFrom,
  txQueueKey,
} from './rows.ts';
import {
  checkPut,
  checkSameContainer,
  checkType,
  putBlobRecord,
  readTarget,
  releaseReplaced,
  type WriteTarget,
} from './write-target.ts';

export interface CreateAppendBlobInput extends BlobInput {
  readonly content: ContentHeaders;
  readonly metadata: SentMetadata;
  /** The header x-ms-tags. */
  readonly tags?: string | undefined;
}

/** An append blob is empty at first, whatever blob it replaces. */
export async function createAppendBlob(storage: Storage, input: CreateAppendBlobInput) {
  const { container, blob } = input;
  const { account, content, partition, sweeper } = storage;
  const { leaseId, metadata, tags } = checkPutBlobInput(storage, input);
  const id = content.newId();
  const { timestamp, value: needsSweep } = await partition.transact(
    txQueueKey(account, container, blob),
    async (tx) => {
      const target = await readTarget(tx, storage, input);
      checkPut(tx, storage, target, input, leaseId, 'append');
      const hasReleased = await releaseReplaced(tx, storage, target);
      content.ranges.create(tx, account, id);
      const described = { content: input.content, metadata, tags, append: { blocks: 0 } };
      await putBlobRecord(tx, storage, target, { length: 0, contentId: formatId(id), ...described });
      return hasReleased;
    },
  );
  if (needsSweep) sweeper.wake();
  return { etag: formatEtag(timestamp), modified: timestamp };
}

export interface AppendBlockInput extends BlobInput {
  readonly append: AppendConditions;
  readonly wantsMd5: boolean;
  readonly body: SentContent;
}

/** For Expect: 100-continue: fails as Append Block would, before the body is sent. */
export async function precheckAppendBlock(
  storage: Storage,
  input: Omit<AppendBlockInput, 'wantsMd5' | 'body'>,
): Promise<void> {
  const leaseId = checkAppendInput(storage, input);
  await storage.partition.read(async (at) =>
    checkAppend(at, await readTarget(at, storage, input), { ...input, leaseId }, 0),
  );
}

export async function appendBlock(storage: Storage, input: AppendBlockInput) {
  const { body, wantsMd5 } = input;
  const leaseId = checkAppendInput(storage, input);
  if (body.length === 0) throw fail('InvalidHeaderValue', { HeaderName: 'Content-Length', HeaderValue: '0' });
  const canonical = { ...input, leaseId };
  const { whole } = body;
  if (whole && whole.length <= INLINE_WRITE_BYTES_MAX) {
    const md5 = wantsMd5 || body.expected.md5 !== undefined ? md5Base64(whole) : undefined;
    const hashes = { md5, crc64: crc64Base64(whole) };
    checkHashes(body.expected, hashes);
    return { ...hashes, ...(await commitAppend(storage, canonical, undefined, body.length, { inline: whole })) };
  }
  const { containerId, blob } = await storage.partition.read((at) => readTarget(at, storage, input));
  // Where the append will probably land. If others are first, a chunk has bytes of two map pages.
  const wants = { md5: wantsMd5, mapOffset: blob?.length ?? 0 };
  return withUpload(storage, body, wants, async (uploaded) => {
    const { md5, crc64, length } = uploaded;
    const staged = stageUpload(storage, uploaded);
    return { md5, crc64, ...(await commitAppend(storage, canonical, containerId, length, staged)) };
  });
}

/**
 * One commit: the bytes are at the end of the blob.
 * @param input with the canonical lease id
 */
async function commitAppend(
  storage: Storage,
  input: Omit<AppendBlockInput, 'wantsMd5' | 'body'>,
  containerId: ContainerId | undefined,
  length: number,
  bytes: WrittenBytes & { reference?(tx: Transaction): Promise<void> },
) {
  const { account, content, partition, sweeper } = storage;
  const queueKey = txQueueKey(account, input.container, input.blob);
  const { timestamp, value } = await content.ranges.withRoom(account, () =>
    partition.transact(queueKey, async (tx) => {
      const target = await readTarget(tx, storage, input);
      const { blob, append } = checkAppend(tx, target, input, length);
      checkSameContainer(target, containerId);
      await bytes.reference?.(tx);
      const map = await content.ranges.read(tx, account, parseId(blob.contentId!));
      const { needsSweep } = await content.ranges.write(tx, account, map, blob.length, bytes);
      const blocks = append.blocks + 1;
      putRecord(tx, storage, target, blob, { length: blob.length + length, append: { ...append, blocks } });
      return { offset: blob.length, blocks, needsSweep };
    }),
  );
  if (value.needsSweep) sweeper.wake();
  return { etag: formatEtag(timestamp), modified: timestamp, offset: value.offset, blocks: value.blocks };
}

export type SealInput = BlobInput & { readonly append: Pick<AppendConditions, 'position'> };

/** A blob that is sealed already stays as it is. */
export async function sealBlob(storage: Storage, input: SealInput) {
  const { account, partition } = storage;
  const leaseId = checkAppendInput(storage, input);
  const queueKey = txQueueKey(account, input.container, input.blob);
  const { timestamp, value: before } = await partition.transact(queueKey, async (tx) => {
    const target = await readTarget(tx, storage, input);
    const { blob, append } = findAppendBlob(tx, target, { ...input, leaseId });
    const verdict = judgeSeal(blob, input.append);
    if (verdict !== 'proceed') throw fail(verdict);
    if (append.isSealed) return blob;
    putRecord(tx, storage, target, blob, { append: { ...append, isSealed: true } });
    return undefined;
  });
  return before ?? { etag: formatEtag(timestamp), modified: timestamp };
}

function checkAppendInput(storage: Storage, input: BlobInput): string | undefined {
  checkWritable(storage, input.container);
  return checkWriteInput(input);
}

function checkAppend(
  at: DecisionSnapshot,
  target: WriteTarget,
  input: BlobInput & { readonly append: AppendConditions },
  length: number,
) {
  const found = findAppendBlob(at, target, input);
  const verdict = judgeAppend({ length: found.blob.length, ...found.append }, length, input.append);
  if (verdict === 'BlockCountExceedsLimit')
    throw fail(verdict, undefined, 'The committed block count cannot exceed the maximum limit of 50,000 blocks.');
  if (verdict !== 'proceed') throw fail(verdict);
  return found;
}

function findAppendBlob(
  at: DecisionSnapshot,
  { blob }: WriteTarget,
  { conditions, leaseId }: BlobInput,
): { blob: Blob; append: AppendState } {
  if (!blob) throw fail('BlobNotFound');
  checkLease(at, blob.lease, leaseId, 'write', 'blob');
  checkWriteConditions(blob, conditions, leaseId);
  checkType(blob, 'append');
  return { blob, append: blob.append! };
}

/** The state of a copy ends with the first change. */
function putRecord(
  tx: Transaction,
  { account }: Storage,
  { containerId, name }: WriteTarget,
  blob: Blob,
  changes: { readonly length?: number; readonly append: AppendState },
): void {
  const lease = leaseAfterWrite(blob.lease, tx.now);
  const record = { ...recordFrom(blob), ...changes, lease, copy: undefined };
  tx.put(blobKey(account, containerId, name), encodeBlobRecord(record));
}
