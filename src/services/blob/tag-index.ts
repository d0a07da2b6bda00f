/** The index of tags: a row for each tag of each blob, and a counter of the blobs of each container that have a key. */
import { encodeKey, type Key, keysUnder, type Range } from '../../partition/keys.ts';
import type { Transaction } from '../../partition/partition.ts';
import { encodeValue } from '../../partition/values.ts';
import { findTag, NO_TAGS, type Tags } from '../../rules/tags.ts';
import type { AccountId } from '../common/storage.ts';
import type { ContainerId } from './rows.ts';

export const tagKey = (account: AccountId, id: ContainerId, key: string, value: string, blob: string): Key =>
  encodeKey([account, 't', id, key, value, blob]);
/** The blobs of a container that have the tag, in the order of their names; without a value: that have the key, by value. */
export const taggedBlobsIn = (account: AccountId, id: ContainerId, key: string, value?: string): Range =>
  keysUnder([account, 't', id, key, ...(value === undefined ? [] : [value])]);
/** By name, because Find Blobs by Tags answers in that order, and nothing else leads from an id to a name. */
export const taggedContainerKey = (account: AccountId, key: string, container: string, id: ContainerId): Key =>
  encodeKey([account, 'T', key, container, id]);
/** The containers that have the key, from this name on. */
export const taggedContainersIn = (account: AccountId, key: string, from: string): Range => ({
  from: encodeKey([account, 'T', key, from]),
  to: keysUnder([account, 'T', key]).to,
});

export interface IndexedBlob {
  readonly containerId: ContainerId;
  readonly container: string;
  readonly name: string;
}

/** Part of every commit that changes the tags of a blob, so that the index is never older or newer than the blob. */
export function updateTagIndex(
  tx: Transaction,
  account: AccountId,
  { containerId, container, name }: IndexedBlob,
  before: Tags = NO_TAGS,
  after: Tags = NO_TAGS,
): void {
  for (const [key, value] of before) {
    const next = findTag(after, key);
    if (next !== value) tx.remove(tagKey(account, containerId, key, value, name));
    if (next === undefined) tx.add(taggedContainerKey(account, key, container, containerId), -1n);
  }
  for (const [key, value] of after) {
    const last = findTag(before, key);
    if (last !== value) tx.put(tagKey(account, containerId, key, value, name), encodeValue({}));
    if (last === undefined) tx.add(taggedContainerKey(account, key, container, containerId), 1n);
  }
}
