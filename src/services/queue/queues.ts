/** The operations on one queue: create, delete, metadata and access policies. */
import { checkNotRemoved } from '../common/account-rows.ts';
import { type Metadata, parseMetadata, type SentMetadata } from '../common/names.ts';
import type { AccessPolicy } from '../common/policies.ts';
import type { Storage } from '../common/storage.ts';
import { fail } from './errors.ts';
import { readMessageCount } from './message-rows.ts';
import type { QueueInput } from './messages.ts';
import { addMessage, prepareMessage, type SentMessage } from './put-message.ts';
import {
  checkQueueName,
  decodeQueue,
  encodeProperties,
  encodeQueue,
  nameKey,
  propertiesKey,
  type QueueProperties,
  readProperties,
  readQueue,
  scheduleQueueDeletion,
  txQueueKey,
} from './rows.ts';

const POLICIES_MAX = 5;

/**
 * Creating a queue that exists with the same metadata is no error.
 * @param input with messages, a new queue has them from its first moment on
 */
export async function createQueue(
  storage: Storage,
  input: QueueInput & { readonly metadata: SentMetadata; readonly messages?: readonly SentMessage[] },
): Promise<'created' | 'unchanged'> {
  const { queue } = input;
  checkQueueName(queue);
  const metadata = parseMetadata(input.metadata);
  const messages = (input.messages ?? []).map(prepareMessage);
  const { account } = storage;
  const { value } = await storage.partition.transact(txQueueKey(account, queue), async (tx) => {
    const name = await tx.get(nameKey(account, queue));
    if (name) {
      const { metadata: stored } = await readProperties(tx, decodeQueue(account, name));
      if (!isSameMetadata(stored, metadata)) throw fail('QueueAlreadyExists');
      return 'unchanged' as const;
    }
    await checkNotRemoved(tx, account);
    const properties = propertiesKey(account, tx.timestamp);
    // A read check: two processes may propose the same timestamp for different names, and only one of them may use it as an id.
    await tx.get(properties);
    tx.put(nameKey(account, queue), encodeQueue(tx.timestamp, 0n));
    tx.put(properties, encodeProperties({ metadata, policies: [] }));
    const created = { account, id: tx.timestamp, gen: 0n };
    for (const [position, message] of messages.entries()) addMessage(tx, created, message, position);
    return 'created' as const;
  });
  return value;
}

/** Names are case-insensitive, values are not. */
function isSameMetadata(one: Metadata, other: Metadata): boolean {
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
  await storage.partition.transact(txQueueKey(account, queue), async (tx) => {
    const { id } = await readQueue(tx, storage, queue);
    tx.remove(nameKey(account, queue));
    tx.remove(propertiesKey(account, id));
    scheduleQueueDeletion(tx, account, id);
  });
  storage.sweeper.wake();
}

export async function getQueueMetadata(
  storage: Storage,
  { queue }: QueueInput,
): Promise<{ readonly metadata: Metadata; readonly approximateMessages: number }> {
  checkQueueName(queue);
  return storage.partition.read(async (at) => {
    const found = await readQueue(at, storage, queue);
    const { metadata } = await readProperties(at, found);
    return { metadata, approximateMessages: await readMessageCount(at, found) };
  });
}

export function setQueueMetadata(
  storage: Storage,
  input: QueueInput & { readonly metadata: SentMetadata },
): Promise<void> {
  return changeProperties(storage, input, { metadata: parseMetadata(input.metadata) });
}

export async function getQueueAcl(storage: Storage, { queue }: QueueInput): Promise<readonly AccessPolicy[]> {
  checkQueueName(queue);
  return storage.partition.read(async (at) => (await readProperties(at, await readQueue(at, storage, queue))).policies);
}

export async function setQueueAcl(
  storage: Storage,
  input: QueueInput & { readonly policies: readonly AccessPolicy[] },
): Promise<void> {
  const { policies } = input;
  if (policies.length > POLICIES_MAX) throw fail('InvalidXmlDocument');
  await changeProperties(storage, input, { policies });
}

/** The last write wins, per property. */
async function changeProperties(
  storage: Storage,
  { queue }: QueueInput,
  changed: Partial<QueueProperties>,
): Promise<void> {
  checkQueueName(queue);
  const { account } = storage;
  await storage.partition.transact(txQueueKey(account, queue), async (tx) => {
    const found = await readQueue(tx, storage, queue);
    const { metadata, policies } = { ...(await readProperties(tx, found)), ...changed };
    tx.put(propertiesKey(account, found.id), encodeProperties({ metadata, policies }));
  });
}
