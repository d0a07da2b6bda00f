/** What append and page blobs share: their content changes in place, and is created empty. */
import type { RangeMap } from '../../content/ranges/range-maps.ts';
import { formatId, parseId } from '../../content/rows.ts';
import type { Transaction } from '../../partition/partition.ts';
import { formatEtag } from '../../rules/conditions.ts';
import { leaseAfterWrite } from '../../rules/lease.ts';
import { type StagedBytes, withStagedBytes } from '../common/staged-bytes.ts';
import type { Storage } from '../common/storage.ts';
import type { SentContent } from '../common/upload.ts';
import { encodeBlobRecord } from './blob-record.ts';
import { fail } from './errors.ts';
import { checkPutBlobInput } from './put-blob.ts';
import {
  type BlobInput,
  checkChangeable,
  checkLease,
  checkWritable,
  checkWriteConditions,
  checkWriteInput,
  type DecisionSnapshot,
  type SentMetadata,
} from './request-checks.ts';
import {
  type Blob,
  type BlobRecord,
  type BlobType,
  blobKey,
  blobTypeOf,
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

export interface CreateInPlaceInput extends BlobInput {
  readonly content: ContentHeaders;
  readonly metadata: SentMetadata;
  /** The header x-ms-tags. */
  readonly tags?: string | undefined;
}

/** The blob has nothing but zeros, whatever blob it replaces. */
export async function createInPlace(
  storage: Storage,
  input: CreateInPlaceInput,
  initial: Pick<BlobRecord, 'length' | 'append' | 'page'>,
) {
  const { container, blob } = input;
  const { account, content, partition, sweeper } = storage;
  const { leaseId, metadata, tags } = checkPutBlobInput(storage, input);
  const id = content.newId();
  const queueKey = txQueueKey(account, container, blob);
  const { timestamp, value: needsSweep } = await partition.transact(queueKey, async (tx) => {
    const target = await readTarget(tx, storage, input);
    checkPut(tx, storage, target, input, leaseId, blobTypeOf(initial));
    const hasReleased = await releaseReplaced(tx, storage, target);
    content.ranges.create(tx, account, id);
    const described = { content: input.content, metadata, tags };
    await putBlobRecord(tx, storage, target, { ...initial, contentId: formatId(id), ...described });
    return hasReleased;
  });
  if (needsSweep) sweeper.wake();
  return { etag: formatEtag(timestamp), modified: timestamp };
}

/** @returns the canonical lease id */
export function checkInPlaceInput(storage: Storage, input: BlobInput): string | undefined {
  checkWritable(storage, input.container);
  return checkWriteInput(input);
}

/**
 * Calls `use` with the verified bytes, and with the container as it was found before long ones came.
 * @param offset where they will probably be
 */
export async function withBlobBytes<T>(
  storage: Storage,
  input: Pick<BlobInput, 'container' | 'blob'> & { readonly body: SentContent; readonly wantsMd5: boolean },
  offset: (target: WriteTarget) => number,
  use: (bytes: StagedBytes, containerId: ContainerId | undefined) => Promise<T>,
) {
  let target: WriteTarget | undefined;
  const look = async () => {
    target = await storage.partition.read((at) => readTarget(at, storage, input));
    return offset(target);
  };
  return withStagedBytes(storage, input, look, (bytes) => use(bytes, target?.containerId));
}

/** What a write does to the map and to the record. */
export interface InPlaceChange<T> {
  readonly record?: Pick<Partial<BlobRecord>, 'length' | 'append' | 'page' | 'content'>;
  /** True: the sweeper has work to do. */
  write?(tx: Transaction, map: RangeMap): Promise<{ readonly needsSweep: boolean }>;
  readonly result: T;
}

/**
 * One commit that changes a blob of this type.
 * @param input with the canonical lease id
 * @param containerId the container as it was found before the bytes came
 * @param decide may throw; `record` undefined: the blob stays as it is
 */
export async function changeInPlace<T>(
  storage: Storage,
  input: BlobInput,
  type: BlobType,
  containerId: ContainerId | undefined,
  decide: (blob: Blob, tx: Transaction) => InPlaceChange<T>,
) {
  const { account, content, partition, sweeper } = storage;
  const { ranges } = content;
  const queueKey = txQueueKey(account, input.container, input.blob);
  const { timestamp, value } = await ranges.withRoom(account, () =>
    partition.transact(queueKey, async (tx) => {
      const target = await readTarget(tx, storage, input);
      const blob = findInPlace(tx, target, input, type);
      checkSameContainer(target, containerId);
      const { record, write, result } = decide(blob, tx);
      if (!record) return { before: blob, result, needsSweep: false };
      const map = write && (await ranges.read(tx, account, parseId(blob.contentId!)));
      const written = map && (await write(tx, map));
      const lease = leaseAfterWrite(blob.lease, tx.now);
      // The state of a copy ends with the first change.
      const next = { ...recordFrom(blob), ...record, lease, copy: undefined };
      tx.put(blobKey(account, target.containerId, target.name), encodeBlobRecord(next));
      return { before: undefined, result, needsSweep: written?.needsSweep ?? false };
    }),
  );
  const { before, result, needsSweep } = value;
  if (needsSweep) sweeper.wake();
  const { etag, modified } = before ?? { etag: formatEtag(timestamp), modified: timestamp };
  return { ...result, etag, modified };
}

/** The blob of this type, if lease and conditions permit a write. */
export function findInPlace(
  at: DecisionSnapshot,
  { blob }: WriteTarget,
  { conditions, leaseId }: Pick<BlobInput, 'conditions' | 'leaseId'>,
  type: BlobType,
): Blob {
  if (!blob) throw fail('BlobNotFound');
  checkLease(at, blob.lease, leaseId, 'write', 'blob');
  checkWriteConditions(blob, conditions, leaseId);
  checkType(blob, type);
  checkChangeable(blob);
  return blob;
}
