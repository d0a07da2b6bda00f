/** Copy Blob within an account: source and copy share one reference-counted content, so a copy is finished when it is answered. */
import { randomUUID } from 'node:crypto';
import type { Transaction } from '../../partition/partition.ts';
import { type Conditions, formatEtag, judgeWrite } from '../../rules/conditions.ts';
import { INFINITE_SECONDS, isLocked, normaliseLeaseId } from '../../rules/lease.ts';
import { REHYDRATION_SECONDS, tierOfCopy } from '../../rules/tiers.ts';
import type { Storage } from '../common/storage.ts';
import { readBlob } from './blob-record.ts';
import type { CopySource } from './copy-sources.ts';
import { fail } from './errors.ts';
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
import { type Blob, type ContainerId, inlineKey, txQueueKey } from './rows.ts';
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
}

export async function copyBlob(storage: Storage, input: CopyBlobInput) {
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
  const { timestamp, value: needsSweep } = await partition.transact(
    txQueueKey(account, container, blob),
    async (tx) => {
      const from = await readSource(tx, storage, source, input.sourceConditions, sourceLeaseId);
      const target = await readTarget(tx, storage, input);
      checkPut(tx, storage, target, input, leaseId);
      checkInfiniteLease(tx, target);
      const tier = tierOfCopy(from.blob.tier, target.blob?.tier, requested, tx.now, rehydrationSeconds);
      if ('refused' in tier) throw fail(tier.refused);
      const hasReleased = await replaceContent(tx, storage, target, { ...from, name: source.blob });
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
  { container, blob, snapshot }: CopySource,
  conditions: Conditions,
  leaseId: string | undefined,
): Promise<Source> {
  const scope = { account, granted: { container: granted?.source?.container } };
  const found = await readBlob(at, scope, container, blob, snapshot);
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
  from: ContentSource,
): Promise<boolean> {
  const putInline = await shareContent(tx, storage, from);
  const needsSweep = await releaseReplaced(tx, storage, target);
  putInline(inlineKey(storage.account, target.containerId, target.name));
  return needsSweep;
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
