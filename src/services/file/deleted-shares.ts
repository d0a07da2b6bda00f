/** Soft-deleted shares: Delete Share keeps them, Restore Share brings them back. */
import type { Partition, Row, Transaction } from '../../partition/partition.ts';
import { formatEtag, type Validators } from '../../rules/conditions.ts';
import { shareNameFault } from '../../rules/names.ts';
import { checkNotRemoved } from '../common/account-rows.ts';
import {
  type DeletedName,
  decodeDeletedName,
  deletedKey,
  expiredNameKey,
  forgetDeletedName,
  keepDeletedName,
  parseDeletedVersion,
} from '../common/deleted-names.ts';
import type { AccountId, Storage } from '../common/storage.ts';
import { fail } from './errors.ts';
import {
  decodeShareProperties,
  encodeShare,
  encodeShareProperties,
  nameKey,
  propertiesKey,
  type Share,
  txQueueKey,
} from './rows.ts';
import { scheduleShareDeletion } from './share-deletion.ts';
import { checkShareName, type ShareInput } from './share-reads.ts';

/** What the name row had. */
export type DeletedShare = DeletedName & Pick<Share, 'gen' | 'newest' | 'lastSecond' | 'quota'>;

/** Rows of earlier formats do not have the second. */
export function decodeDeletedShare(row: Row): DeletedShare {
  const deleted = decodeDeletedName<DeletedShare & { readonly lastSecond?: number }>(row);
  return { ...deleted, lastSecond: deleted.lastSecond ?? 0 };
}

/** Part of Delete Share. */
export function keepDeletedShare(
  tx: Transaction,
  { account, id, gen, newest, lastSecond, quota }: Share,
  name: string,
  retentionDays: number,
): void {
  keepDeletedName(tx, account, 'file', { id, name, gen, newest, lastSecond, quota }, retentionDays);
}

export interface RestoreShareInput extends ShareInput {
  readonly deletedName: string;
  readonly deletedVersion: string;
}

/** The share has its files, snapshots, metadata and policies again, and a new ETag; its lease has ended. */
export async function restoreShare(storage: Storage, input: RestoreShareInput): Promise<Validators> {
  const { share, deletedName } = input;
  checkShareName(share);
  if (shareNameFault(deletedName))
    throw fail('InvalidHeaderValue', { HeaderName: 'x-ms-deleted-share-name', HeaderValue: deletedName });
  const deleted = parseDeletedVersion(input.deletedVersion, 'x-ms-deleted-share-version');
  const { account } = storage;
  const { timestamp } = await storage.partition.transact(txQueueKey(account, share), async (tx) => {
    if (await tx.get(nameKey(account, share))) throw fail('ShareAlreadyExists');
    await checkNotRemoved(tx, account);
    const row = await tx.get(deletedKey(account, 'file', deletedName, deleted));
    const found = row && decodeDeletedShare(row);
    if (!found || found.until <= tx.now) throw fail('ShareNotFound');
    forgetDeletedName(tx, account, 'file', found);
    const properties = propertiesKey(account, found.id);
    const { metadata, policies, tier, tierChanged } = decodeShareProperties((await tx.get(properties))!);
    tx.put(nameKey(account, share), encodeShare(found));
    tx.put(properties, encodeShareProperties({ metadata, policies, tier, tierChanged }));
  });
  return { etag: formatEtag(timestamp), modified: timestamp };
}

/** The share cannot be restored any more. */
export function scheduleDeletedShare(tx: Transaction, account: AccountId, row: Row): void {
  const share = decodeDeletedShare(row);
  forgetDeletedName(tx, account, 'file', share);
  tx.remove(propertiesKey(account, share.id));
  scheduleShareDeletion(tx, { account, id: share.id });
}

/** The retention of a row of the expiry index has ended. */
export async function expireDeletedShare(partition: Partition, account: AccountId, indexRow: Row): Promise<void> {
  await partition.transact(indexRow.key, async (tx) => {
    tx.remove(indexRow.key);
    const row = await tx.get(expiredNameKey(account, 'file', indexRow));
    if (row) scheduleDeletedShare(tx, account, row);
  });
}
