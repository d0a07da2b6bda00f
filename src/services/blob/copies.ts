/**
 * Copy Blob. Within an account source and copy share one reference-counted content, so the copy is complete when it is answered; from
 * elsewhere it is pending (pending-copies.ts).
 */
import { randomUUID } from 'node:crypto';
import type { Snapshot, Transaction } from '../../partition/partition.ts';
import { type Conditions, formatEtag, judgeWrite, type Validators } from '../../rules/conditions.ts';
import { INFINITE_SECONDS, isLocked } from '../../rules/lease.ts';
import type { Tags } from '../../rules/tags.ts';
import { type CopySource, type LocalSource, readerOf } from '../common/copy-sources.ts';
import type { Storage } from '../common/storage.ts';
import { readBlob } from './blob-record.ts';
import { parseRequestedTier, type RequestedTier, tiersOfCopy } from './copy-tiers.ts';
import { fail } from './errors.ts';
import { type ForkedSource, withForkedSource } from './forked-copies.ts';
import { startPendingCopy } from './pending-copies.ts';
import {
  type BlobInput,
  checkCopyable,
  checkLease,
  checkReadConditions,
  checkSingleCondition,
  checkWritable,
  checkWriteInput,
  type DecisionSnapshot,
  parseLeaseId,
  parseMetadata,
  type SentMetadata,
} from './request-checks.ts';
import { type Blob, blobTypeOf, changesInPlace, inlineKey, type Metadata, txQueueKey } from './rows.ts';
import { type ContentSource, shareContent } from './shared-content.ts';
import { parseTags } from './tags.ts';
import {
  checkPut,
  currentLease,
  putBlobRecord,
  readTarget,
  releaseReplaced,
  type WriteTarget,
} from './write-target.ts';

export interface CopyBlobInput extends BlobInput {
  readonly source: CopySource;
  readonly sourceConditions: Conditions;
  readonly sourceLeaseId: string | undefined;
  /** Unless empty, it replaces the metadata of the source. */
  readonly metadata: SentMetadata;
  readonly tier?: string | undefined;
  /** Of a copy out of the archive. */
  readonly priority?: string | undefined;
  /** The header x-ms-tags; the tags of the source are not copied. */
  readonly tags?: string | undefined;
  /** The copy of an append blob is sealed, whether the source is or not. */
  readonly seals?: boolean | undefined;
}

/** A request that is well-formed. */
export interface CheckedCopy {
  readonly input: CopyBlobInput;
  readonly leaseId: string | undefined;
  readonly sourceLeaseId: string | undefined;
  /** Undefined: that of the source. */
  readonly metadata: Metadata | undefined;
  readonly requested: RequestedTier;
  readonly tags: Tags | undefined;
}

export interface StartedCopy {
  readonly etag: string;
  readonly modified: bigint;
  readonly copyId: string;
  readonly copyStatus: 'success' | 'pending';
}

export async function copyBlob(storage: Storage, input: CopyBlobInput): Promise<StartedCopy> {
  const copy = checkCopyInput(storage, input);
  const { source } = input;
  const isOwn =
    !('remote' in source) &&
    source.service === 'blob' &&
    (storage.granted?.source?.account ?? storage.account) === storage.account;
  return isOwn ? copyWithinAccount(storage, copy, source) : startPendingCopy(storage, copy);
}

function checkCopyInput(storage: Storage, input: CopyBlobInput): CheckedCopy {
  const { source } = input;
  const leaseId = checkWriteInput(input);
  if (!('remote' in source)) readerOf(storage, source.service).check(source);
  checkSingleCondition(input.sourceConditions);
  const sourceLeaseId = parseLeaseId(input.sourceLeaseId, 'x-ms-source-lease-id');
  const sent = parseMetadata(input.metadata);
  const requested = parseRequestedTier(input.tier, input.priority);
  const tags = parseTags(input.tags);
  checkWritable(storage, input.container);
  const metadata = input.metadata.length > 0 ? sent : undefined;
  return { input, leaseId, sourceLeaseId, metadata, requested, tags };
}

interface CompletedCopy extends Validators {
  readonly copyId: string;
  readonly copyStatus: 'success';
}

async function copyWithinAccount(storage: Storage, copy: CheckedCopy, source: LocalSource): Promise<CompletedCopy> {
  const { input, leaseId, requested, metadata, tags } = copy;
  const { account, granted, partition, sweeper } = storage;
  const scope = { account, granted: { container: granted?.source?.container } };
  const copyId = randomUUID();
  const look = async (tx: Transaction) => {
    const from = await readBlob(tx, scope, source.container, source.item, source.snapshot);
    checkSource(tx, from.blob, copy);
    return from;
  };
  const { timestamp, value: needsSweep } = await partition.transact(
    // Copies of one source all count their reference in its content: in one queue they share commits instead of conflicting.
    txQueueKey(account, source.container, source.item),
    async (tx) => {
      const from = await look(tx);
      if (changesInPlace(from.blob)) return 'needs a fork';
      if (input.seals) throw fail('InvalidBlobType');
      const target = await readTarget(tx, storage, input);
      checkPut(tx, storage, target, input, leaseId);
      checkInfiniteLease(tx, target);
      const tiers = tiersOfCopy(storage, requested, { ...from.blob, bytes: from.blob.length }, target.blob, tx.now);
      const hasReleased = await replaceContent(tx, storage, target, { ...from, name: source.item });
      const { length, crc64, contentId, content } = from.blob;
      await putBlobRecord(tx, storage, target, {
        length,
        crc64,
        contentId,
        content,
        metadata: metadata ?? from.blob.metadata,
        copy: { id: copyId, source: source.url, bytes: length, completed: tx.timestamp },
        tags,
        ...tiers,
      });
      return hasReleased;
    },
  );
  if (needsSweep === 'needs a fork') {
    const copied = await withForkedSource(storage, source, look, (forked) =>
      copyForked(storage, copy, source, forked, copyId),
    );
    // Otherwise the source is another blob by now.
    return copied ?? copyWithinAccount(storage, copy, source);
  }
  if (needsSweep) sweeper.wake();
  return { etag: formatEtag(timestamp), modified: timestamp, copyId, copyStatus: 'success' };
}

async function copyForked(
  storage: Storage,
  { input, leaseId, metadata: sent, requested, tags }: CheckedCopy,
  source: LocalSource,
  forked: ForkedSource,
  copyId: string,
): Promise<CompletedCopy> {
  const { account, partition, sweeper } = storage;
  const { contentId } = forked;
  const { length, content } = forked.blob;
  const append = appendStateOf(forked.blob, input.seals);
  const metadata = sent ?? forked.blob.metadata;
  const queueKey = txQueueKey(account, input.container, input.blob);
  const { timestamp, value: needsSweep } = await partition.transact(queueKey, async (tx) => {
    const target = await readTarget(tx, storage, input);
    checkPut(tx, storage, target, input, leaseId, blobTypeOf(forked.blob));
    checkInfiniteLease(tx, target);
    const tiers = tiersOfCopy(storage, requested, { ...forked.blob, bytes: length }, target.blob, tx.now);
    await forked.finish(tx);
    const hasReleased = await releaseReplaced(tx, storage, target);
    const copy = { id: copyId, source: source.url, bytes: length, completed: tx.timestamp };
    await putBlobRecord(tx, storage, target, { length, contentId, content, metadata, copy, tags, append, ...tiers });
    return hasReleased;
  });
  if (needsSweep) sweeper.wake();
  return { etag: formatEtag(timestamp), modified: timestamp, copyId, copyStatus: 'success' };
}

/** The state of the copy of an append blob. */
export function appendStateOf({ append }: Pick<Blob, 'append'>, seals: boolean | undefined): Blob['append'] {
  if (!seals) return append;
  if (!append) throw fail('InvalidBlobType');
  return { ...append, isSealed: true };
}

/** The lease id of the source is optional; if one is sent, it must be that of the active lease. */
export function checkSource(at: DecisionSnapshot, blob: Blob, { input, sourceLeaseId }: CheckedCopy): void {
  checkLease(at, blob.lease, sourceLeaseId, 'read', 'blob');
  checkCopyable(blob);
  checkSourceConditions(blob, input.sourceConditions);
}

export function checkSourceConditions(found: Validators, conditions: Conditions): void {
  const { ifTags, ...others } = conditions;
  const verdict = judgeWrite(found, others, { creates: false, leaseHeld: false });
  if (verdict !== 'proceed') throw fail('SourceConditionNotMet');
  // Azure answers as if they were the tags of the target.
  if (ifTags) checkReadConditions(found, { ifTags });
}

/** A copy may take longer than a lease that expires, so Azure requires an infinite one. */
export function checkInfiniteLease({ now }: Snapshot, target: WriteTarget): void {
  const lease = currentLease(target);
  if (isLocked(lease, now) && lease.state === 'leased' && lease.seconds !== INFINITE_SECONDS) {
    throw fail('InfiniteLeaseDurationRequired');
  }
}

/** The target shares the content of the source, or gets a copy of the inline row. True: the sweeper has work to do. */
async function replaceContent(
  tx: Transaction,
  storage: Storage,
  target: WriteTarget,
  from: ContentSource,
): Promise<boolean> {
  const putInline = await shareContent(tx, storage, from);
  const needsSweep = await releaseReplaced(tx, storage, target);
  putInline(inlineKey(storage.account, target.containerId, target.name));
  return needsSweep;
}
