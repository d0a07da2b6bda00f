/** Copies within an account: they share the content and are done when they are answered. */
import { randomUUID } from 'node:crypto';
import { idOf } from '../../content/rows.ts';
import type { Transaction } from '../../partition/partition.ts';
import { type Conditions, judgeWrite } from '../../rules/conditions.ts';
import { etagOf } from '../../rules/etag.ts';
import { INFINITE_SECONDS, isLocked, normaliseLeaseId } from '../../rules/lease.ts';
import type { Storage } from '../common/storage.ts';
import { blobAt } from './blob-record.ts';
import { type BlobInput, checkWrite } from './blobs.ts';
import { mayPut, putHead } from './block-blobs.ts';
import { fail } from './errors.ts';
import {
  checkBlobName,
  checkContainerName,
  checkWriteConditions,
  type Judged,
  leaseIdOf,
  metadataOf,
  type SentMetadata,
  useLease,
} from './request-checks.ts';
import { anchorOf, type Blob, type ContainerId, inlineKey } from './rows.ts';
import { leaseOn, letGo, type Target, targetAt } from './write-target.ts';

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
  const leaseId = checkWrite(input);
  checkContainerName(source.container);
  checkBlobName(source.blob);
  checkWriteConditions(input.sourceConditions);
  const sourceLeaseId = leaseIdOf(input.sourceLeaseId, 'x-ms-source-lease-id');
  const metadata = metadataOf(input.metadata);
  const copyId = randomUUID();
  const { stamp, value } = await partition.transact(anchorOf(account, container, blob), async (tx) => {
    const from = await sourceAt(tx, storage, source, input.sourceConditions, sourceLeaseId);
    const target = await mayPut(tx, storage, input, leaseId);
    checkLease(target, tx);
    const trashed = await moveContent(tx, storage, from, target, source.blob);
    const { length, crc64, contentId, content } = from.blob;
    putHead(tx, storage, target, {
      length,
      crc64,
      contentId,
      content,
      metadata: input.metadata.length > 0 ? metadata : from.blob.metadata,
      copy: { id: copyId, source: source.url, bytes: length, completed: tx.stamp },
    });
    return trashed;
  });
  if (value) sweeper.wake();
  return { etag: etagOf(stamp), modified: stamp, copyId };
}

interface Source {
  readonly id: ContainerId;
  readonly blob: Blob;
}

/** Who may read the source need not hold its lease; who says that he does must. */
async function sourceAt(
  at: Judged,
  { account, granted }: Storage,
  { container, blob }: CopySource,
  conditions: Conditions,
  leaseId: string | undefined,
): Promise<Source> {
  const found = await blobAt(at, { account, granted: { container: granted?.source } }, container, blob);
  useLease(at, found.blob.lease, leaseId, 'read', 'blob');
  const verdict = judgeWrite(found.blob, conditions, { creates: false, leaseHeld: false });
  if (verdict !== 'proceed') throw fail('SourceConditionNotMet');
  return found;
}

/** A copy may go on for longer than a lease that runs out: the service asks for one that does not. */
function checkLease(target: Target, { now }: Transaction): void {
  const lease = leaseOn(target);
  if (isLocked(lease, now) && lease.state === 'leased' && lease.seconds !== INFINITE_SECONDS) {
    throw fail('InfiniteLeaseDurationRequired');
  }
}

/** True: there is something to sweep. */
async function moveContent(
  tx: Transaction,
  storage: Storage,
  from: Source,
  target: Target,
  name: string,
): Promise<boolean> {
  const { account, content } = storage;
  const { contentId } = from.blob;
  if (contentId !== undefined) {
    // Raised before it is lowered: source and target may be one.
    await content.shareContent(tx, account, idOf(contentId));
    return letGo(tx, storage, target);
  }
  const row = await tx.get(inlineKey(account, from.id, name));
  if (!row) throw new Error('a blob without its content');
  const trashed = await letGo(tx, storage, target, { inline: true });
  tx.put(inlineKey(account, target.container, target.name), row.value);
  return trashed;
}

/** No copy is ever under way here, so that there is none to abort. */
export async function abortCopy(
  storage: Storage,
  input: Omit<BlobInput, 'conditions'> & { copyId: string },
): Promise<never> {
  const leaseId = checkWrite({ ...input, conditions: {} });
  if (normaliseLeaseId(input.copyId) === undefined) {
    throw fail('InvalidQueryParameterValue', { QueryParameterName: 'copyid', QueryParameterValue: input.copyId });
  }
  await storage.partition.read(async (at) => {
    const target = await targetAt(at, storage, input.container, input.blob);
    if (!target.blob) throw fail('BlobNotFound');
    const { lease } = target.blob;
    const infinite = lease?.state === 'leased' && lease.seconds === INFINITE_SECONDS;
    useLease(at, lease, leaseId, infinite ? 'write' : 'read', 'blob');
  });
  throw fail('NoPendingCopyOperation');
}
