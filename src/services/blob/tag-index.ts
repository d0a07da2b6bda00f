/**
 * The index of tags: a row for each tag of each blob, a counter of the blobs of each container that have a key, and the names of the
 * containers that have tags.
 */
import { encodeKey, type Key, keyPrefix, keysUnder, type Range } from '../../partition/keys.ts';
import type { Transaction } from '../../partition/partition.ts';
import { encodeText, encodeValue } from '../../partition/values.ts';
import { findTag, NO_TAGS, type Tags } from '../../rules/tags.ts';
import type { AccountId } from '../common/storage.ts';
import { type ContainerId, taggedNameKey } from './rows.ts';

export const tagKey = (account: AccountId, id: ContainerId, key: string, value: string, blob: string): Key =>
  encodeKey([account, 't', id, key, value, blob]);
/** The blobs of a container that have the tag, in the order of their names; without a value: that have the key, by value. */
export const taggedBlobsIn = (account: AccountId, id: ContainerId, key: string, value?: string): Range =>
  keysUnder([account, 't', id, key, ...(value === undefined ? [] : [value])]);
/** What the keys of the blobs with this tag begin with, before the name. */
export const taggedBlobsPrefix = (account: AccountId, id: ContainerId, key: string, value: string): Key =>
  keyPrefix([account, 't', id, key, value], '');
/** By id: Rename Container must not touch a row for each key. */
export const taggedContainerKey = (account: AccountId, key: string, id: ContainerId): Key =>
  encodeKey([account, 'T', key, id]);
/** The containers that have the key. */
export const taggedContainersIn = (account: AccountId, key: string): Range => keysUnder([account, 'T', key]);

export interface IndexedBlob {
  readonly containerId: ContainerId;
  readonly container: string;
  readonly name: string;
}

/** Part of every commit that changes the tags of a blob, so that the index is never older or newer than the blob. */
export async function updateTagIndex(
  tx: Transaction,
  account: AccountId,
  { containerId, container, name }: IndexedBlob,
  before: Tags = NO_TAGS,
  after: Tags = NO_TAGS,
): Promise<void> {
  if (after.length > 0) await nameTaggedContainer(tx, account, containerId, container);
  for (const [key, value] of before) {
    const next = findTag(after, key);
    if (next !== value) tx.remove(tagKey(account, containerId, key, value, name));
    if (next === undefined) tx.add(taggedContainerKey(account, key, containerId), -1n);
  }
  for (const [key, value] of after) {
    const last = findTag(before, key);
    if (last !== value) tx.put(tagKey(account, containerId, key, value, name), encodeValue({}));
    if (last === undefined) tx.add(taggedContainerKey(account, key, containerId), 1n);
  }
}

/** Written by the first write with tags, because most containers have none. From then on it follows the name of the container. */
async function nameTaggedContainer(tx: Transaction, account: AccountId, id: ContainerId, name: string): Promise<void> {
  const key = taggedNameKey(account, id);
  if (!(await tx.get(key))) tx.put(key, encodeText(name));
}
