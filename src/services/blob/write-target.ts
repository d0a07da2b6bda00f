/**
 * The write target: blob record and uncommitted blocks as a write finds them; the checks, the new record and the release of the
 * replaced content that Put Blob, Put Block List, Copy Blob and Delete Blob share.
 */
import { parseId } from '../../content/rows.ts';
import type { Row, Snapshot, Transaction } from '../../partition/partition.ts';
import { type Lease, leaseAfterWrite } from '../../rules/lease.ts';
import { type Deletion, deletionNow } from '../../rules/soft-delete.ts';
import type { Storage } from '../common/storage.ts';
import { decodeBlobRecord, encodeBlobRecord } from './blob-record.ts';
import { fail } from './errors.ts';
import { deletedBlobKey } from './old-rows.ts';
import { releaseContent } from './release-content.ts';
import {
  type BlobInput,
  checkChangeable,
  checkLease,
  checkOnline,
  checkWriteConditions,
  type DecisionSnapshot,
} from './request-checks.ts';
import {
  type Blob,
  type BlobRecord,
  type BlobType,
  blobKey,
  blobTypeOf,
  type ContainerId,
  decodeUncommitted,
  inlineKey,
  isExpired,
  readContainerId,
  scheduleUncommittedDeletion,
  type UncommittedBlocks,
  uncommittedKey,
} from './rows.ts';
import { decodePolicy, demoteDeletedBlob, keepRecord, policyKey } from './soft-delete.ts';
import { updateTagIndex } from './tag-index.ts';

export interface WriteTarget {
  readonly containerId: ContainerId;
  readonly container: string;
  readonly name: string;
  readonly blob: Blob | undefined;
  readonly uncommitted: UncommittedBlocks | undefined;
  /** Uncommitted blocks that have expired, and that the sweeper has not removed yet: for the request they do not exist. */
  readonly expired: UncommittedBlocks | undefined;
  /** A soft-deleted blob of the name, whether its retention has ended or not: for conditions and leases it does not exist. */
  readonly deleted: Row | undefined;
  /** Of what the write deletes or replaces; undefined: it is not kept. */
  readonly retention: Deletion | undefined;
}

export async function readTarget(
  at: Snapshot,
  storage: Storage,
  { container, blob: name }: Pick<BlobInput, 'container' | 'blob'>,
): Promise<WriteTarget> {
  const { account } = storage;
  const containerId = await readContainerId(at, storage, container);
  const [recordRow, uncommittedRow, policyRow] = await at.getMany([
    blobKey(account, containerId, name),
    uncommittedKey(account, containerId, name),
    policyKey(account),
  ]);
  // An account that never had a policy has no deleted blobs.
  const deleted = policyRow && (await at.get(deletedBlobKey(account, containerId, name)));
  const found = uncommittedRow && decodeUncommitted(uncommittedRow);
  const hasExpired = found !== undefined && isExpired(found, at.now);
  return {
    containerId,
    container,
    name,
    blob: recordRow && decodeBlobRecord(recordRow),
    uncommitted: hasExpired ? undefined : found,
    expired: hasExpired ? found : undefined,
    deleted,
    retention: deletionNow(decodePolicy(policyRow), at.now),
  };
}

/** The container of an upload, before its bytes are received. */
export function findContainerId(storage: Storage, container: string): Promise<ContainerId> {
  return storage.partition.read((at) => readContainerId(at, storage, container));
}

/**
 * A container that was deleted and created again during an upload is another one of the same name.
 * @param before undefined: nothing was uploaded
 */
export function checkSameContainer(containerId: ContainerId, before: ContainerId | undefined): void {
  if (before !== undefined && containerId !== before) throw fail('ContainerNotFound');
}

/** A blob that consists of uncommitted blocks only can be leased, too. */
export function currentLease({ blob, uncommitted }: Pick<WriteTarget, 'blob' | 'uncommitted'>): Lease | undefined {
  return blob ? blob.lease : uncommitted?.lease;
}

/** The checks of Put Blob, Put Block List and Copy Blob on the blob that they are about to replace. */
export function checkPut(
  at: DecisionSnapshot,
  { granted }: Storage,
  target: WriteTarget,
  { conditions }: Pick<BlobInput, 'conditions'>,
  leaseId: string | undefined,
  type: BlobType = 'block',
): void {
  checkLease(at, currentLease(target), leaseId, 'write', 'blob');
  checkWriteConditions(target.blob, conditions, leaseId, true);
  if (target.blob && granted?.overwrite === false) throw fail('UnauthorizedBlobOverwrite');
  checkType(target.blob, type);
  if (type !== 'block' && target.uncommitted) throw fail('InvalidBlobType');
  checkChangeable(target.blob);
  checkOnline(at, target.blob);
}

/** A blob keeps its type as long as it exists. */
export function checkType(blob: Blob | undefined, type: BlobType): void {
  if (blob && blobTypeOf(blob) !== type) throw fail('InvalidBlobType');
}

/**
 * The record of a blob that is new from its first byte on: of the replaced blob it keeps the creation time and an active lease.
 * @param md5 of the bytes, for a client that sets no Content-MD5
 */
export async function putBlobRecord(
  tx: Transaction,
  { account }: Storage,
  target: WriteTarget,
  {
    length,
    crc64,
    contentId,
    content,
    metadata,
    copy,
    tier,
    tags,
    append,
    page,
  }: Omit<BlobRecord, 'created' | 'lease' | 'etag'>,
  md5?: string,
): Promise<void> {
  const { containerId, name, blob } = target;
  const record = {
    length,
    crc64,
    contentId,
    // Field by field: spreading such objects costs as much as the rest of this function.
    content: {
      contentType: content.contentType ?? 'application/octet-stream',
      contentEncoding: content.contentEncoding,
      contentLanguage: content.contentLanguage,
      contentDisposition: content.contentDisposition,
      cacheControl: content.cacheControl,
      contentMd5: content.contentMd5 ?? md5,
    },
    metadata,
    copy,
    tags,
    append,
    page,
    created: blob?.created ?? tx.timestamp,
    lease: leaseAfterWrite(currentLease(target), tx.now),
    tier,
  };
  tx.put(blobKey(account, containerId, name), encodeBlobRecord(record));
  await updateTagIndex(tx, account, target, blob?.tags, tags);
}

/** Where the chunk references of a new content may come from. */
export interface ReferenceSources {
  readonly content: boolean;
  readonly uncommitted: boolean;
}

interface ReleaseOptions {
  /** The caller writes the inline row: it is not removed. */
  readonly keepsInlineRow?: boolean;
  /** The sources whose chunk references are all transferred to the new content. */
  readonly handsOver?: ReferenceSources | undefined;
}

/** Releases the replaced content, or keeps it if the policy says so, and the uncommitted blocks. True: the sweeper has work to do. */
export async function releaseReplaced(
  tx: Transaction,
  storage: Storage,
  target: WriteTarget,
  { keepsInlineRow = false, handsOver }: ReleaseOptions = {},
): Promise<boolean> {
  const { account, content } = storage;
  const { blob, deleted, retention } = target;
  if (deleted) demoteDeletedBlob(tx, account, target.containerId, target.name, deleted);
  if (blob && retention) {
    await keepRecord(tx, account, { ...target, blob }, retention, 'deleted state');
    return releaseUncommitted(tx, storage, target, handsOver);
  }
  if (blob?.contentId !== undefined && handsOver?.content) content.transferRefs(tx, account, parseId(blob.contentId));
  else if (blob?.contentId !== undefined) await releaseContent(tx, content, account, blob);
  else if (blob && !keepsInlineRow) tx.remove(inlineKey(account, target.containerId, target.name));
  return releaseUncommitted(tx, storage, target, handsOver) || blob?.contentId !== undefined;
}

/** True: the sweeper has work to do. */
export function releaseUncommitted(
  tx: Transaction,
  { account }: Storage,
  { containerId, name, uncommitted, expired }: WriteTarget,
  handsOver?: ReferenceSources,
): boolean {
  const blocks = uncommitted ?? expired;
  if (!blocks) return false;
  const counting = handsOver?.uncommitted ? 'uncounted' : 'counted';
  scheduleUncommittedDeletion(tx, account, containerId, name, blocks, counting);
  return true;
}
