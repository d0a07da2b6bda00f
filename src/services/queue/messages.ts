/** The operations on messages of one queue: put, get, peek, update, delete and clear. */
import type { Instant, Transaction } from '../../partition/partition.ts';
import { addSeconds, formatReceipt, type MessageId, parseMessageId, updateFault } from '../../rules/queue/messages.ts';
import type { Storage } from '../common/storage.ts';
import { type DequeueInput, deleteExpired, dequeue, findVisible, random64, readVisible } from './dequeue.ts';
import { fail } from './errors.ts';
import {
  countMessage,
  decodeMessage,
  encodeMessage,
  type FoundMessage,
  type Message,
  messageKey,
  toMessage,
} from './message-rows.ts';
import { addMessage, prepareMessage, prepareRestored, type RestoredMessage, type SentMessage } from './put-message.ts';
import {
  checkMessageCount,
  checkMessageText,
  checkQueueName,
  checkReceipt,
  checkVisibility,
  encodeQueue,
  nameKey,
  type Queue,
  readQueue,
  scheduleGenerationDeletion,
  throwIfFault,
  txQueueKey,
} from './rows.ts';

export interface QueueInput {
  readonly queue: string;
}

export interface MessageInput extends QueueInput {
  readonly messageId: string;
  readonly popReceipt: string;
}

export async function putMessage(storage: Storage, input: QueueInput & SentMessage): Promise<Message> {
  const { queue } = input;
  checkQueueName(queue);
  const prepared = prepareMessage(input);
  const { value } = await storage.partition.transact(txQueueKey(storage.account, queue), async (tx) =>
    toMessage(addMessage(tx, await readQueue(tx, storage, queue), prepared), input.text),
  );
  return value;
}

/** One commit: the queue gets these messages with the times that they had on another server. */
export async function restoreMessages(
  storage: Storage,
  { queue, messages }: QueueInput & { readonly messages: readonly RestoredMessage[] },
): Promise<void> {
  checkQueueName(queue);
  const prepared = messages.map(prepareRestored);
  await storage.partition.transact(txQueueKey(storage.account, queue), async (tx) => {
    const found = await readQueue(tx, storage, queue);
    for (const message of prepared) addMessage(tx, found, message);
  });
}

export async function getMessages(storage: Storage, input: DequeueInput): Promise<readonly Message[]> {
  checkQueueName(input.queue);
  checkMessageCount(input.count);
  checkVisibility(input.visibilitySeconds, 1);
  for (;;) {
    const messages = await dequeue(storage, input);
    if (messages.length > 0) return messages;
    // Other consumers were faster, or all that was found had expired. An empty answer must be true of one committed state.
    if (await isEmpty(storage, input.queue)) return messages;
  }
}

async function isEmpty(storage: Storage, queue: string): Promise<boolean> {
  return await storage.partition.read(async (at) => {
    const { live, isComplete } = await readVisible(at, await readQueue(at, storage, queue), 1);
    return live.length === 0 && isComplete;
  });
}

/** Deletes only expired messages, which no client can see. */
export async function peekMessages(
  storage: Storage,
  { queue, count }: QueueInput & { readonly count: number },
): Promise<readonly Message[]> {
  checkQueueName(queue);
  checkMessageCount(count);
  for (;;) {
    const { live, isComplete } = await storage.partition.read(async (at) =>
      readVisible(at, await readQueue(at, storage, queue), count),
    );
    if (live.length > 0 || isComplete) return live.map((message) => toMessage(message));
    await deleteExpiredHead(storage, queue);
  }
}

/** Deletes expired messages at the head of the visibility index, as many as one commit can. */
async function deleteExpiredHead(storage: Storage, queue: string): Promise<void> {
  await storage.partition.transact(txQueueKey(storage.account, queue), async (tx) => {
    const found = await readQueue(tx, storage, queue);
    const { expired } = await findVisible(tx, found, 1);
    await deleteExpired(tx, found, expired);
  });
}

/** @param input without a text only the visibility changes */
export async function updateMessage(
  storage: Storage,
  input: MessageInput & { readonly visibilitySeconds: number; readonly text?: string | undefined },
): Promise<{ readonly popReceipt: string; readonly nextVisible: Instant }> {
  const { visibilitySeconds } = input;
  checkVisibility(visibilitySeconds, 0);
  if (input.text !== undefined) checkMessageText(input.text);
  const text = input.text === undefined ? undefined : Buffer.from(input.text);
  const nonce = random64();
  return await withReceipt(storage, input, async (tx, queue, message) => {
    throwIfFault(updateFault(tx.now, visibilitySeconds, message.expires));
    const visibleAt = addSeconds(tx.now, visibilitySeconds);
    tx.remove(message.key);
    const moved = { ...message, visibleAt, nonce, text: text ?? message.text };
    tx.put(messageKey(queue, visibleAt, message.id), encodeMessage(moved));
    return { popReceipt: formatReceipt({ visibleAt, nonce }), nextVisible: visibleAt };
  });
}

export async function deleteMessage(storage: Storage, input: MessageInput): Promise<void> {
  await withReceipt(storage, input, async (tx, queue, message) => {
    tx.remove(message.key);
    countMessage(tx, queue, message, -1);
  });
}

/** Runs `fn` for the message whose latest receipt this is, unless the message has expired. */
async function withReceipt<T>(
  storage: Storage,
  { queue, messageId, popReceipt }: MessageInput,
  fn: (tx: Transaction, queue: Queue, message: FoundMessage) => Promise<T>,
): Promise<T> {
  checkQueueName(queue);
  const { visibleAt, nonce } = checkReceipt(popReceipt);
  const id = parseMessageId(messageId);
  const { value } = await storage.partition.transact(txQueueKey(storage.account, queue), async (tx) => {
    const found = await readQueue(tx, storage, queue);
    const message = id && (await readMessage(tx, found, visibleAt, id));
    if (!message || message.nonce !== nonce || message.expires <= tx.now) throw fail('MessageNotFound');
    tx.commitBefore(message.expires);
    return fn(tx, found, message);
  });
  return value;
}

async function readMessage(
  tx: Transaction,
  queue: Queue,
  visibleAt: Instant,
  id: MessageId,
): Promise<FoundMessage | undefined> {
  const row = await tx.get(messageKey(queue, visibleAt, id));
  return row && decodeMessage(row);
}

/** Starts a new generation, so the cost does not depend on the number of messages; the sweeper deletes those of the old one. */
export async function clearMessages(storage: Storage, { queue }: QueueInput): Promise<void> {
  checkQueueName(queue);
  const { account } = storage;
  await storage.partition.transact(txQueueKey(account, queue), async (tx) => {
    const found = await readQueue(tx, storage, queue);
    tx.put(nameKey(account, queue), encodeQueue(found.id, found.gen + 1n));
    scheduleGenerationDeletion(tx, found);
  });
  storage.sweeper.wake();
}
