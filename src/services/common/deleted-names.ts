/**
 * Soft-deleted containers and shares: a deletion moves the name row to a row of the deleted ones, which holds the id until the retention
 * ends; a restore moves it back. What is in them is keyed by the id, so neither touches it.
 */
import { TICKS_PER_SECOND } from '../../base/time.ts';
import { decodeKey, encodeKey, type Key, keyPrefix, keysUnder, type Range } from '../../partition/keys.ts';
import type { Instant, Row, Timestamp, Transaction } from '../../partition/partition.ts';
import { decodeValue, encodeValue } from '../../partition/values.ts';
import { commonErrors, errorFactory } from './errors.ts';
import type { AccountId } from './storage.ts';

const fail = errorFactory(commonErrors);

/** The services whose containers can be restored. */
export type RestorableService = 'blob' | 'file';

export interface DeletedName {
  readonly id: bigint;
  readonly name: string;
  /** The timestamp of the deletion, which tells it from other deleted ones of the name. */
  readonly deleted: Timestamp;
  /** The end of the retention. */
  readonly until: Instant;
}

const TICKS_PER_DAY = 24n * 3600n * TICKS_PER_SECOND;
const EXPIRY_KINDS: Readonly<Record<RestorableService, string>> = { blob: 'container', file: 'share' };

export const deletedKey = (account: AccountId, service: RestorableService, name: string, deleted: Timestamp): Key =>
  encodeKey([account, 'g', service, name, deleted]);
export const deletedKeyPrefix = (account: AccountId, service: RestorableService): Key =>
  keyPrefix([account, 'g', service], '');
export const deletedNamesIn = (account: AccountId, service: RestorableService): Range =>
  keysUnder([account, 'g', service]);
export const deletedExpiryKey = (
  account: AccountId,
  service: RestorableService,
  { until, name, deleted }: DeletedName,
): Key => encodeKey([account, 'w', until, EXPIRY_KINDS[service], name, deleted]);

/** Of a row of the expiry index: the key of the row of the deleted name. */
export function expiredNameKey(account: AccountId, service: RestorableService, indexRow: Row): Key {
  const [, , , , name, deleted] = decodeKey(indexRow.key) as [bigint, string, bigint, string, string, bigint];
  return deletedKey(account, service, name, deleted);
}

/** More: what the service keeps with the id. */
export function decodeDeletedName<More = unknown>(row: Row): DeletedName & More {
  const [, , , name, deleted] = decodeKey(row.key) as [bigint, string, string, string, bigint];
  const { id, until, ...more } = decodeValue<{ id: string; until: string } & More>(row);
  return { ...(more as unknown as More), id: BigInt(id), name, deleted, until: BigInt(until) };
}

/** Part of the deletion: the properties stay, under the id. */
export function keepDeletedName<More extends object>(
  tx: Transaction,
  account: AccountId,
  service: RestorableService,
  { id, name, ...more }: Pick<DeletedName, 'id' | 'name'> & More,
  retentionDays: number,
): void {
  const until = tx.now + BigInt(retentionDays) * TICKS_PER_DAY;
  const value = { ...more, id: id.toString(), until: until.toString() };
  tx.put(deletedKey(account, service, name, tx.timestamp), encodeValue(value));
  tx.put(deletedExpiryKey(account, service, { id, name, until, deleted: tx.timestamp }), encodeValue({}));
}

/** It is restored, or it cannot be restored any more. */
export function forgetDeletedName(
  tx: Transaction,
  account: AccountId,
  service: RestorableService,
  name: DeletedName,
): void {
  tx.remove(deletedKey(account, service, name.name, name.deleted));
  tx.remove(deletedExpiryKey(account, service, name));
}

/** A day that has begun counts, as in Azure's lists. */
export function remainingDays({ until }: DeletedName, now: Instant): number {
  return Number((until - now + TICKS_PER_DAY - 1n) / TICKS_PER_DAY);
}

/** As lists show it and a restore takes it. */
export const formatDeletedVersion = (deleted: Timestamp): string =>
  deleted.toString(16).toUpperCase().padStart(16, '0');

/** @param header the one that has the text */
export function parseDeletedVersion(text: string, header: string): Timestamp {
  if (!/^[\dA-F]{16}$/i.test(text) || /^[89A-F]/i.test(text))
    throw fail('InvalidHeaderValue', { HeaderName: header, HeaderValue: text });
  return BigInt(`0x${text}`);
}
