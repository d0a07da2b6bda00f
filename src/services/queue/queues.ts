import { checkAccount } from '../common/account-rows.ts';
import { type Metadata, metadataOf, type SentMetadata } from '../common/metadata.ts';
import type { AccessPolicy } from '../common/policies.ts';
import type { Storage } from '../common/storage.ts';
import { fail } from './errors.ts';
import { countedMessages } from './message-counts.ts';
import type { QueueInput } from './messages.ts';
import { checkQueueName } from './request-checks.ts';
import {
  anchorOf,
  decodeQueue,
  encodeProperties,
  encodeQueue,
  nameKey,
  propertiesAt,
  propertiesKey,
  type QueueProperties,
  queueAt,
  trashQueue,
} from './rows.ts';

const POLICIES_MAX = 5;

/** To make a queue again that is the same is no mistake. */
export async function createQueue(
  storage: Storage,
  input: QueueInput & { readonly metadata: SentMetadata },
): Promise<'created' | 'unchanged'> {
  const { queue } = input;
  checkQueueName(queue);
  const metadata = metadataOf(input.metadata);
  const { account } = storage;
  const { value } = await storage.partition.transact(anchorOf(account, queue), async (tx) => {
    const name = await tx.get(nameKey(account, queue));
    if (name) {
      const { metadata: kept } = await propertiesAt(tx, decodeQueue(account, name));
      if (!isSame(kept, metadata)) throw fail('QueueAlreadyExists');
      return 'unchanged' as const;
    }
    await checkAccount(tx, account);
    const properties = propertiesKey(account, tx.stamp);
    // Two processes may give out one stamp for different names: this check lets only one of them use it as an id.
    await tx.get(properties);
    tx.put(nameKey(account, queue), encodeQueue(tx.stamp, 0n));
    tx.put(properties, encodeProperties({ metadata, policies: [] }));
    return 'created' as const;
  });
  return value;
}

/** Names are the same in any case, values only in their own. */
function isSame(one: Metadata, other: Metadata): boolean {
  const folded = (metadata: Metadata) =>
    JSON.stringify(
      Object.entries(metadata)
        .map(([name, value]) => [name.toLowerCase(), value])
        .sort(([a], [b]) => (a! < b! ? -1 : 1)),
    );
  return folded(one) === folded(other);
}

export async function deleteQueue(storage: Storage, { queue }: QueueInput): Promise<void> {
  checkQueueName(queue);
  const { account } = storage;
  await storage.partition.transact(anchorOf(account, queue), async (tx) => {
    const { id } = await queueAt(tx, storage, queue);
    tx.remove(nameKey(account, queue));
    tx.remove(propertiesKey(account, id));
    trashQueue(tx, account, id);
  });
  storage.sweeper.wake();
}

export async function getQueueMetadata(
  storage: Storage,
  { queue }: QueueInput,
): Promise<{ readonly metadata: Metadata; readonly approximateMessages: number }> {
  checkQueueName(queue);
  return storage.partition.read(async (at) => {
    const found = await queueAt(at, storage, queue);
    const { metadata } = await propertiesAt(at, found);
    return { metadata, approximateMessages: await countedMessages(at, found) };
  });
}

export function setQueueMetadata(
  storage: Storage,
  input: QueueInput & { readonly metadata: SentMetadata },
): Promise<void> {
  return change(storage, input, { metadata: metadataOf(input.metadata) });
}

export async function getQueueAcl(storage: Storage, { queue }: QueueInput): Promise<readonly AccessPolicy[]> {
  checkQueueName(queue);
  return storage.partition.read(async (at) => (await propertiesAt(at, await queueAt(at, storage, queue))).policies);
}

export async function setQueueAcl(
  storage: Storage,
  input: QueueInput & { readonly policies: readonly AccessPolicy[] },
): Promise<void> {
  const { policies } = input;
  if (policies.length > POLICIES_MAX) throw fail('InvalidXmlDocument');
  await change(storage, input, { policies });
}

/** The last writer wins, and only what he writes. */
async function change(storage: Storage, { queue }: QueueInput, changed: Partial<QueueProperties>): Promise<void> {
  checkQueueName(queue);
  const { account } = storage;
  await storage.partition.transact(anchorOf(account, queue), async (tx) => {
    const found = await queueAt(tx, storage, queue);
    const { metadata, policies } = { ...(await propertiesAt(tx, found)), ...changed };
    tx.put(propertiesKey(account, found.id), encodeProperties({ metadata, policies }));
  });
}
