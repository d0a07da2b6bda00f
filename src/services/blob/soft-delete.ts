/** Soft delete: what is deleted or replaced while the policy is on is kept as a row until its retention ends, or until Undelete Blob. */
import { decodeKey } from '../../partition/keys.ts';
import type { Row, Snapshot, Timestamp, Transaction } from '../../partition/partition.ts';
import { encodeValue } from '../../partition/values.ts';
import type { DeleteRetention, Deletion } from '../../rules/soft-delete.ts';
import { decodeServiceProperties, servicePropertiesKey } from '../common/service-properties.ts';
import type { AccountId } from '../common/storage.ts';
import { formatBlobRecord, parseBlobRecord } from './blob-record.ts';
import {
  type DeletedHeader,
  decodeDeletedBlob,
  deletedBlobKey,
  deletedStateKey,
  encodeDeletedBlob,
  nextStamp,
  retentionKey,
} from './old-rows.ts';
import { type ReleasingStore, releaseContent } from './release-content.ts';
import { type Blob, type ContainerId, inlineKey, recordFrom } from './rows.ts';

export const policyKey = (account: AccountId) => servicePropertiesKey(account, 'blob');

export function decodePolicy(row: Row | undefined): DeleteRetention | undefined {
  return row && decodeServiceProperties(row).deleteRetention;
}

export async function readPolicy(at: Snapshot, account: AccountId): Promise<DeleteRetention | undefined> {
  return decodePolicy(await at.get(policyKey(account)));
}

/** The blob itself, of which there is at most one; or a state that can become a snapshot. */
type DeletedKind = 'deleted blob' | 'deleted state';

export function putDeleted(
  tx: Transaction,
  account: AccountId,
  id: ContainerId,
  blob: string,
  header: DeletedHeader,
  record: string,
  as: DeletedKind = 'deleted state',
): void {
  const key =
    as === 'deleted blob' ? deletedBlobKey(account, id, blob) : deletedStateKey(account, id, blob, header.stamp);
  tx.put(key, encodeDeletedBlob(header, record));
  tx.put(retentionKey(account, header.until, id, blob, header.stamp), encodeValue({}));
}

/** The record that the caller removes or replaces is kept. The reference of its content passes to it, and its inline row moves. */
export async function keepRecord(
  tx: Transaction,
  account: AccountId,
  { containerId: id, name, blob }: { readonly containerId: ContainerId; readonly name: string; readonly blob: Blob },
  deletion: Deletion,
  as: DeletedKind,
): Promise<void> {
  const stamp = await nextStamp(tx, account, id, name);
  const record = formatBlobRecord({ ...recordFrom(blob), lease: undefined }, blob.version);
  putDeleted(tx, account, id, name, { ...deletion, stamp }, record, as);
  if (blob.contentId === undefined) await moveInline(tx, account, id, name, undefined, stamp);
}

export async function moveInline(
  tx: Transaction,
  account: AccountId,
  id: ContainerId,
  name: string,
  from: Timestamp | undefined,
  to: Timestamp | undefined,
): Promise<void> {
  const row = await tx.get(inlineKey(account, id, name, from));
  if (!row) throw new Error('a blob without its content');
  tx.remove(row.key);
  tx.put(inlineKey(account, id, name, to), row.value);
}

/** A blob is written where a deleted one is kept: that one becomes a state like those that are replaced. */
export function demoteDeletedBlob(tx: Transaction, account: AccountId, id: ContainerId, name: string, row: Row): void {
  tx.remove(row.key);
  tx.put(deletedStateKey(account, id, name, decodeDeletedBlob(row).stamp), row.value);
}

/** The state is gone for good. */
export async function removeDeletedState(
  tx: Transaction,
  content: ReleasingStore,
  account: AccountId,
  id: ContainerId,
  name: string,
  row: Row,
): Promise<void> {
  const { stamp, until, record } = decodeDeletedBlob(row);
  const released = parseBlobRecord(record, row);
  tx.remove(row.key);
  tx.remove(retentionKey(account, until, id, name, stamp));
  if (released.contentId) await releaseContent(tx, content, account, released);
  else tx.remove(inlineKey(account, id, name, stamp));
}

/** Of an entry of the expiry index that is due. What has been restored meanwhile has no row any more. */
export async function expireDeletedState(
  tx: Transaction,
  content: ReleasingStore,
  account: AccountId,
  indexRow: Row,
): Promise<void> {
  const [, , until, , id, name, stamp] = decodeKey(indexRow.key) as [
    ...[bigint, string, bigint, string, bigint, string, bigint],
  ];
  tx.remove(indexRow.key);
  const keys = [deletedBlobKey(account, id, name), deletedStateKey(account, id, name, stamp)];
  for (const row of await tx.getMany(keys)) {
    const found = row && decodeDeletedBlob(row);
    if (found?.stamp === stamp && found.until === until) await removeDeletedState(tx, content, account, id, name, row!);
  }
}
