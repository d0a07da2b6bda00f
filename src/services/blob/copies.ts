/** Copy Blob within an account: source and copy share one reference-counted content, so a copy is finished when it is answered. */
import { randomUUID } from 'node:crypto';
import { parseId } from '../../content/rows.ts';
import type { Transaction } from '../../partition/partition.ts';
import { type Conditions, formatEtag, judgeWrite } from '../../rules/conditions.ts';
import { INFINITE_SECONDS, isLocked, normaliseLeaseId } from '../../rules/lease.ts';
import { REHYDRATION_SECONDS, tierOfCopy } from '../../rules/tiers.ts';
import type { Storage } from '../common/storage.ts';
import { readBlob } from './blob-record.ts';
import type { CopySource } from './copy-sources.ts';
import { fail } from './errors.ts';
import { type ForkedSource, withForkedSource } from './forked-copies.ts';
import {
  type BlobInput,
  checkBlobName,
  checkContainerName,
  checkLease,
  checkSingleCondition,
  checkWritable,
  checkWriteInput,
  type DecisionSnapshot,
  parseLeaseId,
  parseMetadata,
  parseOptionalTier,
  parseSentPriority,
  type SentMetadata,
} from './request-checks.ts';
import {
  type Blob,
  type BlobRecord,
  blobTypeOf,
  type ContainerId,
  changesInPlace,
  inlineKey,
  txQueueKey,
} from './rows.ts';
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
}

export interface CopiedBlob {
  readonly etag: string;
  readonly modified: bigint;
  readonly copyId: string;
}

export async function copyBlob(storage: Storage, input: CopyBlobInput): Promise<CopiedBlob> {
  const { container, blob, source } = input;
  const { account, partition, sweeper, rehydrationSeconds = REHYDRATION_SECONDS } = storage;
  const leaseId = checkWriteInput(input);
  checkContainerName(source.container);
  checkBlobName(source.blob);
  checkSingleCondition(input.sourceConditions);
  const sourceLeaseId = parseLeaseId(input.sourceLeaseId, 'x-ms-source-lease-id');
  const metadata = parseMetadata(input.metadata);
  const requested = { tier: parseOptionalTier(input.tier), priority: parseSentPriority(input.priority) };
  const tags = parseTags(input.tags);
  checkWritable(storage, container);
  const copyId = randomUUID();
  const look = (tx: Transaction) => readSource(tx, storage, source, input.sourceConditions, sourceLeaseId);
  const { timestamp, value: needsSweep } = await partition.transact(
    txQueueKey(account, container, blob),
    async (tx) => {
      const from = await look(tx);
      if (changesInPlace(from.blob)) return 'needs a fork';
      const target = await readTarget(tx, storage, input);
      checkPut(tx, storage, target, input, leaseId);
      checkInfiniteLease(tx, target);
      const tier = tierOfCopy(from.blob.tier, target.blob?.tier, requested, tx.now, rehydrationSeconds);
      if ('refused' in tier) throw fail(tier.refused);
      const hasReleased = await replaceContent(tx, storage, target, from, source.blob);
      const { length, crc64, contentId, content } = from.blob;
      await putBlobRecord(tx, storage, target, {
        length,
        crc64,
        contentId,
        content,
        metadata: input.metadata.length > 0 ? metadata : from.blob.metadata,
        copy: { id: copyId, source: source.url, bytes: length, completed: tx.timestamp },
        tier: tier.next,
        tags,
      });
      return hasReleased;
    },
  );
  if (needsSweep === 'needs a fork') {
    const copied = await withForkedSource(storage, source, look, (forked) =>
      copyForked(storage, { ...input, leaseId }, forked, {
        metadata: input.metadata.length > 0 ? metadata : forked.blob.metadata,
        tags,
        copyId,
      }),
    );
    // Otherwise the source is another blob by now.
    return copied ?? copyBlob(storage, input);
  }
  if (needsSweep) sweeper.wake();
  return { etag: formatEtag(timestamp), modified: timestamp, copyId };
}

async function copyForked(
  storage: Storage,
  input: CopyBlobInput,
  forked: ForkedSource,
  { metadata, tags, copyId }: { readonly copyId: string } & Pick<BlobRecord, 'metadata' | 'tags'>,
): Promise<CopiedBlob> {
  const { container, blob, source, leaseId } = input;
  const { account, partition, sweeper } = storage;
  const { contentId } = forked;
  const { length, content, append, page } = forked.blob;
  const queueKey = txQueueKey(account, container, blob);
  const { timestamp, value: needsSweep } = await partition.transact(queueKey, async (tx) => {
    const target = await readTarget(tx, storage, input);
    checkPut(tx, storage, target, input, leaseId, blobTypeOf(forked.blob));
    checkInfiniteLease(tx, target);
    await forked.finish(tx);
    const hasReleased = await releaseReplaced(tx, storage, target);
    const copy = { id: copyId, source: source.url, bytes: length, completed: tx.timestamp };
    await putBlobRecord(tx, storage, target, { length, contentId, content, metadata, copy, tags, append, page });
    return hasReleased;
  });
  if (needsSweep) sweeper.wake();
  return { etag: formatEtag(timestamp), modified: timestamp, copyId };
}

interface Source {
  readonly id: ContainerId;
  readonly blob: Blob;
}

/** The lease id of the source is optional; if one is sent, it must be that of the active lease. */
async function readSource(
  at: DecisionSnapshot,
  { account, granted }: Storage,
  { container, blob }: CopySource,
  conditions: Conditions,
  leaseId: string | undefined,
): Promise<Source> {
  const found = await readBlob(at, { account, granted: { container: granted?.source?.container } }, container, blob);
  checkLease(at, found.blob.lease, leaseId, 'read', 'blob');
  const verdict = judgeWrite(found.blob, conditions, { creates: false, leaseHeld: false });
  if (verdict !== 'proceed') throw fail('SourceConditionNotMet');
  return found;
}

/** A copy may take longer than a lease that expires, so Azure requires an infinite one. */
function checkInfiniteLease({ now }: Transaction, target: WriteTarget): void {
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
  from: Source,
  sourceName: string,
): Promise<boolean> {
  const { account, content } = storage;
  const { contentId } = from.blob;
  if (contentId !== undefined) {
    // Increment before decrement: source and target may be the same blob.
    await content.increfContent(tx, account, parseId(contentId));
    return releaseReplaced(tx, storage, target);
  }
  const row = await tx.get(inlineKey(account, from.id, sourceName));
  if (!row) throw new Error('a blob without its content');
  tx.put(inlineKey(account, target.containerId, target.name), row.value);
  return releaseReplaced(tx, storage, target, { keepsInlineRow: true });
}

/** Every copy is finished when it is answered, so there is never one to abort. */
export async function abortCopy(
  storage: Storage,
  input: Omit<BlobInput, 'conditions'> & { copyId: string },
): Promise<never> {
  const leaseId = checkWriteInput({ ...input, conditions: {} });
  if (normaliseLeaseId(input.copyId) === undefined) {
    throw fail('InvalidQueryParameterValue', { QueryParameterName: 'copyid', QueryParameterValue: input.copyId });
  }
  await storage.partition.read(async (at) => {
    const target = await readTarget(at, storage, input);
    if (!target.blob) throw fail('BlobNotFound');
    const { lease } = target.blob;
    const infinite = lease?.state === 'leased' && lease.seconds === INFINITE_SECONDS;
    checkLease(at, lease, leaseId, infinite ? 'write' : 'read', 'blob');
  });
  throw fail('NoPendingCopyOperation');
}
