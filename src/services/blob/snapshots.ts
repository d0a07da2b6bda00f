/** Snapshot Blob, and the deletion of snapshots. A snapshot is a row and a reference to the content of its blob, whatever its length. */
import { deletionKey, parseId } from '../../content/rows.ts';
import type { Snapshot, Timestamp, Transaction } from '../../partition/partition.ts';
import { formatEtag } from '../../rules/conditions.ts';
import { parseSnapshotTime } from '../../rules/snapshots.ts';
import { encodeDeletion } from '../common/deletions.ts';
import type { AccountId, Storage } from '../common/storage.ts';
import { encodeBlobRecord, readBlob } from './blob-record.ts';
import { fail } from './errors.ts';
import {
  deletedUpToKey,
  encodeDeletedUpTo,
  readDeletedUpTo,
  removeSnapshotRows,
  snapshotKey,
  snapshotsAfter,
  stampInKey,
} from './old-rows.ts';
import {
  type BlobInput,
  checkLease,
  checkOnline,
  checkWritable,
  checkWriteConditions,
  checkWriteInput,
  parseMetadata,
  type SentMetadata,
} from './request-checks.ts';
import { type Blob, type ContainerId, inlineKey, recordFrom, txQueueKey } from './rows.ts';
import { shareContent } from './shared-content.ts';

/** The query parameter as it was sent. */
export function parseSnapshot(text: string): Timestamp {
  const stamp = parseSnapshotTime(text);
  if (stamp !== undefined) return stamp;
  throw fail('InvalidQueryParameterValue', { QueryParameterName: 'snapshot', QueryParameterValue: text });
}

export interface SnapshotBlobInput extends BlobInput {
  /** Unless empty, it replaces the metadata of the blob, and the snapshot has an ETag of its own. */
  readonly metadata: SentMetadata;
}

/** The lease of the blob does not matter, unless the request names one; the snapshot has none. */
export async function snapshotBlob(storage: Storage, input: SnapshotBlobInput) {
  const { container, blob: name, conditions } = input;
  const { account } = storage;
  const leaseId = checkWriteInput(input);
  const metadata = parseMetadata(input.metadata);
  checkWritable(storage, container);
  const { value } = await storage.partition.transact(txQueueKey(account, container, name), async (tx) => {
    // The commit checks the record, which every Delete Blob of the base removes.
    const { id, blob } = await readBlob(tx, storage, container, name);
    checkLease(tx, blob.lease, leaseId, 'read', 'blob');
    checkWriteConditions(blob, conditions, leaseId);
    checkOnline(tx, blob);
    const snapshot = await nextStamp(tx, account, id, name);
    await shareContent(tx, storage, { id, name, blob }, inlineKey(account, id, name, snapshot));
    const changed = input.metadata.length > 0;
    const etag = changed ? snapshot : blob.version;
    const record = { ...recordFrom(blob), lease: undefined, etag, ...(changed && { metadata }) };
    tx.put(snapshotKey(account, id, name, snapshot), encodeBlobRecord(record));
    return { snapshot, etag: formatEtag(etag), modified: etag };
  });
  return value;
}

/** Later than every snapshot that is deleted by the mark, and not that of another snapshot: processes may draw one timestamp twice. */
async function nextStamp(tx: Transaction, account: AccountId, id: ContainerId, blob: string): Promise<Timestamp> {
  const upTo = await readDeletedUpTo(tx, account, id, blob);
  let stamp = tx.timestamp > upTo ? tx.timestamp : upTo + 1n;
  while (await tx.get(snapshotKey(account, id, blob, stamp))) stamp++;
  return stamp;
}

/** The newest snapshot. In a transaction the commit checks that there is no newer one. */
export async function lastSnapshot(
  at: Snapshot,
  account: AccountId,
  id: ContainerId,
  blob: string,
): Promise<Timestamp | undefined> {
  const upTo = await readDeletedUpTo(at, account, id, blob);
  const [row] = await at.scan(snapshotsAfter(account, id, blob, upTo), { limit: 1, reverse: true });
  return row && stampInKey(row.key);
}

/**
 * One commit for any number of snapshots: those up to now do not exist any more, and the sweeper removes their rows. One that is taken at
 * the same time checks the mark.
 */
export function deleteSnapshots(
  tx: Transaction,
  account: AccountId,
  id: ContainerId,
  blob: string,
  last: Timestamp,
): void {
  const upTo = last > tx.timestamp ? last : tx.timestamp;
  tx.put(deletedUpToKey(account, id, blob), encodeDeletedUpTo(upTo));
  const container = id.toString();
  const deletion = encodeDeletion({ kind: 'snapshots', container, blob });
  tx.put(deletionKey(account, tx.timestamp, `${container} ${blob}`), deletion);
}

export async function deleteSnapshot(
  tx: Transaction,
  { account, content }: Pick<Storage, 'account' | 'content'>,
  id: ContainerId,
  name: string,
  { snapshot, contentId }: Blob,
): Promise<void> {
  removeSnapshotRows(tx, account, id, name, snapshot!);
  if (contentId !== undefined) await content.decrefContent(tx, account, parseId(contentId));
}
