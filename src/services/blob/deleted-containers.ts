/** Soft-deleted containers: Delete Container keeps them, Restore Container brings them back. */
import type { Partition, Row, Transaction } from '../../partition/partition.ts';
import { encodeText } from '../../partition/values.ts';
import { containerNameFault } from '../../rules/names.ts';
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
import { encodeName } from '../common/names.ts';
import type { AccountId, Storage } from '../common/storage.ts';
import { fail } from './errors.ts';
import { checkContainerName, checkWritable } from './request-checks.ts';
import {
  decodeProperties,
  encodeProperties,
  nameKey,
  propertiesKey,
  scheduleContainerDeletion,
  taggedNameKey,
  txQueueKey,
} from './rows.ts';

/** Whether the index of tags has its name. */
interface TaggedFlag {
  readonly isTagged: boolean;
}

/** Part of Delete Container. */
export async function keepDeletedContainer(
  tx: Transaction,
  account: AccountId,
  { id, name }: Pick<DeletedName, 'id' | 'name'>,
  retentionDays: number,
): Promise<void> {
  const tagged = taggedNameKey(account, id);
  const isTagged = (await tx.get(tagged)) !== undefined;
  keepDeletedName(tx, account, 'blob', { id, name, isTagged }, retentionDays);
  tx.remove(tagged);
}

export interface RestoreContainerInput {
  readonly container: string;
  readonly deletedName: string;
  readonly deletedVersion: string;
}

/** The container has its blobs, metadata and policies again, and a new ETag; its lease has ended. */
export async function restoreContainer(storage: Storage, input: RestoreContainerInput): Promise<void> {
  const { container, deletedName } = input;
  checkContainerName(container);
  checkWritable(storage, container);
  if (containerNameFault(deletedName)) {
    throw fail('InvalidHeaderValue', { HeaderName: 'x-ms-deleted-container-name', HeaderValue: deletedName });
  }
  const deleted = parseDeletedVersion(input.deletedVersion, 'x-ms-deleted-container-version');
  const { account } = storage;
  await storage.partition.transact(txQueueKey(account, container), async (tx) => {
    if (await tx.get(nameKey(account, container))) throw fail('ContainerAlreadyExists');
    await checkNotRemoved(tx, account);
    const row = await tx.get(deletedKey(account, 'blob', deletedName, deleted));
    const found = row && decodeDeletedName<TaggedFlag>(row);
    if (!found || found.until <= tx.now) throw fail('ContainerNotFound');
    forgetDeletedName(tx, account, 'blob', found);
    const properties = propertiesKey(account, found.id);
    const { metadata, access, policies } = decodeProperties((await tx.get(properties))!);
    tx.put(nameKey(account, container), encodeName(found.id));
    tx.put(properties, encodeProperties({ metadata, access, policies }));
    if (found.isTagged) tx.put(taggedNameKey(account, found.id), encodeText(container));
  });
}

/** The container cannot be restored any more. */
export function scheduleDeletedContainer(tx: Transaction, account: AccountId, row: Row): void {
  const container = decodeDeletedName(row);
  forgetDeletedName(tx, account, 'blob', container);
  tx.remove(propertiesKey(account, container.id));
  scheduleContainerDeletion(tx, account, container.id);
}

/** The retention of a row of the expiry index has ended. */
export async function expireDeletedContainer(partition: Partition, account: AccountId, indexRow: Row): Promise<void> {
  await partition.transact(indexRow.key, async (tx) => {
    tx.remove(indexRow.key);
    const row = await tx.get(expiredNameKey(account, 'blob', indexRow));
    if (row) scheduleDeletedContainer(tx, account, row);
  });
}
