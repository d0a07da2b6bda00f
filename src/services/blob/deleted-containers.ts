/**
 * Soft-deleted containers: a deletion moves the name row to a row of the deleted ones, which holds the id until the retention ends; a
 * restore moves it back. The blobs are keyed by the id, so neither touches them.
 */
import { TICKS_PER_SECOND } from '../../base/time.ts';
import { decodeKey, encodeKey, type Key, keyPrefix, keysUnder, type Range } from '../../partition/keys.ts';
import type { Instant, Partition, Row, Timestamp, Transaction } from '../../partition/partition.ts';
import { decodeValue, encodeText, encodeValue } from '../../partition/values.ts';
import { containerNameFault } from '../../rules/names.ts';
import { checkNotRemoved } from '../common/account-rows.ts';
import { encodeName } from '../common/names.ts';
import type { AccountId, Storage } from '../common/storage.ts';
import { fail } from './errors.ts';
import { checkContainerName, checkWritable } from './request-checks.ts';
import {
  type ContainerId,
  decodeProperties,
  encodeProperties,
  nameKey,
  propertiesKey,
  scheduleContainerDeletion,
  taggedNameKey,
  txQueueKey,
} from './rows.ts';

export interface DeletedContainer {
  readonly id: ContainerId;
  readonly name: string;
  /** The timestamp of the deletion, which tells it from other deleted containers of the name. */
  readonly deleted: Timestamp;
  /** The end of the retention. */
  readonly until: Instant;
  /** Whether the index of tags has its name. */
  readonly isTagged: boolean;
}

const TICKS_PER_DAY = 24n * 3600n * TICKS_PER_SECOND;

const deletedKey = (account: AccountId, name: string, deleted: Timestamp): Key =>
  encodeKey([account, 'g', 'blob', name, deleted]);
export const deletedKeyPrefix = (account: AccountId): Key => keyPrefix([account, 'g', 'blob'], '');
export const deletedContainersIn = (account: AccountId): Range => keysUnder([account, 'g', 'blob']);
export const deletedExpiryKey = (account: AccountId, { until, name, deleted }: DeletedContainer): Key =>
  encodeKey([account, 'w', until, 'container', name, deleted]);

export function decodeDeletedContainer(row: Row): DeletedContainer {
  const [, , , name, deleted] = decodeKey(row.key) as [bigint, string, string, string, bigint];
  const { id, until, isTagged } = decodeValue<{ id: string; until: string; isTagged: boolean }>(row);
  return { id: BigInt(id), name, deleted, until: BigInt(until), isTagged };
}

/** Part of Delete Container: the properties stay, under the id. */
export async function keepDeletedContainer(
  tx: Transaction,
  account: AccountId,
  { id, name }: Pick<DeletedContainer, 'id' | 'name'>,
  retentionDays: number,
): Promise<void> {
  const tagged = taggedNameKey(account, id);
  const isTagged = (await tx.get(tagged)) !== undefined;
  const until = tx.now + BigInt(retentionDays) * TICKS_PER_DAY;
  const container = { id, name, deleted: tx.timestamp, until, isTagged };
  const value = { id: id.toString(), until: until.toString(), isTagged };
  tx.put(deletedKey(account, name, tx.timestamp), encodeValue(value));
  tx.put(deletedExpiryKey(account, container), encodeValue({}));
  tx.remove(tagged);
}

/** A day that has begun counts, as in Azure's lists. */
export function remainingDays({ until }: DeletedContainer, now: Instant): number {
  return Number((until - now + TICKS_PER_DAY - 1n) / TICKS_PER_DAY);
}

/** As lists show it and Restore Container takes it. */
export const formatDeletedVersion = (deleted: Timestamp): string =>
  deleted.toString(16).toUpperCase().padStart(16, '0');

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
  const deleted = parseDeleted(input);
  const { account } = storage;
  await storage.partition.transact(txQueueKey(account, container), async (tx) => {
    if (await tx.get(nameKey(account, container))) throw fail('ContainerAlreadyExists');
    await checkNotRemoved(tx, account);
    const row = await tx.get(deletedKey(account, deletedName, deleted));
    const found = row && decodeDeletedContainer(row);
    if (!found || found.until <= tx.now) throw fail('ContainerNotFound');
    forgetDeleted(tx, account, found);
    const properties = propertiesKey(account, found.id);
    const { metadata, access, policies } = decodeProperties((await tx.get(properties))!);
    tx.put(nameKey(account, container), encodeName(found.id));
    tx.put(properties, encodeProperties({ metadata, access, policies }));
    if (found.isTagged) tx.put(taggedNameKey(account, found.id), encodeText(container));
  });
}

function parseDeleted({ deletedName, deletedVersion }: RestoreContainerInput): Timestamp {
  if (containerNameFault(deletedName)) {
    throw fail('InvalidHeaderValue', { HeaderName: 'x-ms-deleted-container-name', HeaderValue: deletedName });
  }
  if (!/^[\dA-F]{16}$/i.test(deletedVersion) || /^[89A-F]/i.test(deletedVersion)) {
    throw fail('InvalidHeaderValue', { HeaderName: 'x-ms-deleted-container-version', HeaderValue: deletedVersion });
  }
  return BigInt(`0x${deletedVersion}`);
}

function forgetDeleted(tx: Transaction, account: AccountId, container: DeletedContainer): void {
  tx.remove(deletedKey(account, container.name, container.deleted));
  tx.remove(deletedExpiryKey(account, container));
}

/** The container cannot be restored any more. */
export function scheduleDeletedContainer(tx: Transaction, account: AccountId, row: Row): void {
  const container = decodeDeletedContainer(row);
  forgetDeleted(tx, account, container);
  tx.remove(propertiesKey(account, container.id));
  scheduleContainerDeletion(tx, account, container.id);
}

/** The retention of a row of the expiry index has ended. */
export async function expireDeletedContainer(partition: Partition, account: AccountId, indexRow: Row): Promise<void> {
  const [, , , , name, deleted] = decodeKey(indexRow.key) as [bigint, string, bigint, string, string, bigint];
  await partition.transact(indexRow.key, async (tx) => {
    tx.remove(indexRow.key);
    const row = await tx.get(deletedKey(account, name, deleted));
    if (row) scheduleDeletedContainer(tx, account, row);
  });
}
