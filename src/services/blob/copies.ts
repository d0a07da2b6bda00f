/** Copies within an account: they share the content and are done when they are answered. */
import { randomUUID } from 'node:crypto';
import { parseId } from '../../content/rows.ts';
import type { Transaction } from '../../partition/partition.ts';
import { type Conditions, judgeWrite } from '../../rules/conditions.ts';
import { formatEtag } from '../../rules/etag.ts';
import { INFINITE_SECONDS, isLocked, normaliseLeaseId } from '../../rules/lease.ts';
import type { Storage } from '../common/storage.ts';
import { readBlob } from './blob-record.ts';
import { type BlobInput, checkWriteInput } from './blobs.ts';
import { checkPut, putBlobRecord } from './block-blobs.ts';
import { fail } from './errors.ts';
import {
  checkBlobName,
  checkContainerName,
  checkLease,
  checkSingleCondition,
  type DecisionSnapshot,
  parseLeaseId,
  parseMetadata,
  type SentMetadata,
} from './request-checks.ts';
import { type Blob, type ContainerId, inlineKey, txQueueKey } from './rows.ts';
import { currentLease, readTarget, releaseReplaced, type WriteTarget } from './write-target.ts';

export interface CopySource {
  /** As it was sent. */
  readonly url: string;
  readonly container: string;
  readonly blob: string;
}

export interface CopyBlobInput extends BlobInput {
  readonly source: CopySource;
  readonly sourceConditions: Conditions;
  readonly sourceLeaseId: string | undefined;
  /** If there is any, it replaces that of the source. */
  readonly metadata: SentMetadata;
}

export async function copyBlob(storage: Storage, input: CopyBlobInput) {
  const { container, blob, source } = input;
  const { account, partition, sweeper } = storage;
  const leaseId = checkWriteInput(input);
  checkContainerName(source.container);
  checkBlobName(source.blob);
  checkSingleCondition(input.sourceConditions);
  const sourceLeaseId = parseLeaseId(input.sourceLeaseId, 'x-ms-source-lease-id');
  const metadata = parseMetadata(input.metadata);
  const copyId = randomUUID();
  const { timestamp, value } = await partition.transact(txQueueKey(account, container, blob), async (tx) => {
    const from = await readSource(tx, storage, source, input.sourceConditions, sourceLeaseId);
    const target = await checkPut(tx, storage, input, leaseId);
    checkInfiniteLease(target, tx);
    const trashed = await shareOrCopyContent(tx, storage, from, target, source.blob);
    const { length, crc64, contentId, content } = from.blob;
    putBlobRecord(tx, storage, target, {
      length,
      crc64,
      contentId,
      content,
      metadata: input.metadata.length > 0 ? metadata : from.blob.metadata,
      copy: { id: copyId, source: source.url, bytes: length, completed: tx.timestamp },
    });
    return trashed;
  });
  if (value) sweeper.wake();
  return { etag: formatEtag(timestamp), modified: timestamp, copyId };
}

interface Source {
  readonly id: ContainerId;
  readonly blob: Blob;
}

/** Who may read the source need not hold its lease; who says that he does must. */
async function readSource(
  at: DecisionSnapshot,
  { account, granted }: Storage,
  { container, blob }: CopySource,
  conditions: Conditions,
  leaseId: string | undefined,
): Promise<Source> {
  const found = await readBlob(at, { account, granted: { container: granted?.source } }, container, blob);
  checkLease(at, found.blob.lease, leaseId, 'read', 'blob');
  const verdict = judgeWrite(found.blob, conditions, { creates: false, leaseHeld: false });
  if (verdict !== 'proceed') throw fail('SourceConditionNotMet');
  return found;
}

/** A copy may go on for longer than a lease that runs out: the service asks for one that does not. */
function checkInfiniteLease(target: WriteTarget, { now }: Transaction): void {
  const lease = currentLease(target);
  if (isLocked(lease, now) && lease.state === 'leased' && lease.seconds !== INFINITE_SECONDS) {
    throw fail('InfiniteLeaseDurationRequired');
  }
}

/** True: there is something to sweep. */
async function shareOrCopyContent(
  tx: Transaction,
  storage: Storage,
  from: Source,
  target: WriteTarget,
  name: string,
): Promise<boolean> {
  const { account, content } = storage;
  const { contentId } = from.blob;
  if (contentId !== undefined) {
    // Raised before it is lowered: source and target may be one.
    await content.increfContent(tx, account, parseId(contentId));
    return releaseReplaced(tx, storage, target);
  }
  const row = await tx.get(inlineKey(account, from.id, name));
  if (!row) throw new Error('a blob without its content');
  const trashed = await releaseReplaced(tx, storage, target, { inline: true });
  tx.put(inlineKey(account, target.container, target.name), row.value);
  return trashed;
}

/** No copy is ever under way here, so that there is none to abort. */
export async function abortCopy(
  storage: Storage,
  input: Omit<BlobInput, 'conditions'> & { copyId: string },
): Promise<never> {
  const leaseId = checkWriteInput({ ...input, conditions: {} });
  if (normaliseLeaseId(input.copyId) === undefined) {
    throw fail('InvalidQueryParameterValue', { QueryParameterName: 'copyid', QueryParameterValue: input.copyId });
  }
  await storage.partition.read(async (at) => {
    const target = await readTarget(at, storage, input.container, input.blob);
    if (!target.blob) throw fail('BlobNotFound');
    const { lease } = target.blob;
    const infinite = lease?.state === 'leased' && lease.seconds === INFINITE_SECONDS;
    checkLease(at, lease, leaseId, infinite ? 'write' : 'read', 'blob');
  });
  throw fail('NoPendingCopyOperation');
}
