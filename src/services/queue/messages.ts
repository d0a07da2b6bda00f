import type { Instant, Transaction } from '../../partition/partition.ts';
import { type MessageId, parseMessageId, receiptText, SALT_BITS } from '../../rules/queue/receipts.ts';
import { expiryOf, later, putFault, TTL_SECONDS_DEFAULT, updateFault } from '../../rules/queue/timing.ts';
import type { Storage } from '../common/storage.ts';
import { fail } from './errors.ts';
import { countMessage } from './message-counts.ts';
import { decodeMessage, encodeMessage, type Message, messageKey, messageOf, type Waiting } from './message-rows.ts';
import { checkMessageCount, checkQueueName, checkText, checkVisibility, receiptOf, refuse } from './request-checks.ts';
import { anchorOf, encodeQueue, nameKey, type Queue, queueAt, trashGeneration } from './rows.ts';
import { dropExpired, lookAhead, random64 } from './visibility-index.ts';

export interface QueueInput {
  readonly queue: string;
}

export interface MessageInput extends QueueInput {
  readonly messageId: string;
  readonly popReceipt: string;
}

export async function putMessage(
  storage: Storage,
  input: QueueInput & {
    readonly text: string;
    readonly visibilitySeconds?: number | undefined;
    readonly ttlSeconds?: number | undefined;
  },
): Promise<Message> {
  const { queue, visibilitySeconds = 0, ttlSeconds = TTL_SECONDS_DEFAULT } = input;
  checkQueueName(queue);
  refuse(putFault(visibilitySeconds, ttlSeconds));
  checkText(input.text);
  const text = Buffer.from(input.text);
  const { value } = await storage.partition.transact(anchorOf(storage.account, queue), async (tx) => {
    const found = await queueAt(tx, storage, queue);
    const message = {
      id: { inserted: tx.stamp, salt: BigInt.asUintN(SALT_BITS, random64()) },
      visibleAt: later(tx.now, visibilitySeconds),
      expires: expiryOf(tx.now, ttlSeconds),
      nonce: random64(),
      dequeueCount: 0,
      text,
    };
    tx.put(messageKey(found, message.visibleAt, message.id), encodeMessage(message));
    countMessage(tx, found, message, 1);
    return messageOf(message, input.text);
  });
  return value;
}

/** Changes nothing that anybody could see: what has expired is not there. */
export async function peekMessages(
  storage: Storage,
  { queue, count }: QueueInput & { readonly count: number },
): Promise<readonly Message[]> {
  checkQueueName(queue);
  checkMessageCount(count);
  for (;;) {
    const { live, isAll } = await storage.partition.read(async (at) =>
      lookAhead(at.scan, await queueAt(at, storage, queue), at.now, count),
    );
    if (live.length > 0 || isAll) return live.map((message) => messageOf(message));
    await dropHead(storage, queue);
  }
}

/** Lets go of what has expired at the head of the line, as much as one commit can. */
async function dropHead(storage: Storage, queue: string): Promise<void> {
  await storage.partition.transact(anchorOf(storage.account, queue), async (tx) => {
    const found = await queueAt(tx, storage, queue);
    const { expired } = await lookAhead(tx.glance.bind(tx), found, tx.now, 1);
    await dropExpired(tx, found, expired);
  });
}

/** @param input without a text only its visibility changes */
export async function updateMessage(
  storage: Storage,
  input: MessageInput & { readonly visibilitySeconds: number; readonly text?: string | undefined },
): Promise<{ readonly popReceipt: string; readonly nextVisible: Instant }> {
  const { visibilitySeconds } = input;
  checkVisibility(visibilitySeconds, 0);
  if (input.text !== undefined) checkText(input.text);
  const text = input.text === undefined ? undefined : Buffer.from(input.text);
  return holding(storage, input, async (tx, queue, message) => {
    refuse(updateFault(tx.now, visibilitySeconds, message.expires));
    const visibleAt = later(tx.now, visibilitySeconds);
    const nonce = random64();
    tx.remove(message.key);
    const moved = { ...message, visibleAt, nonce, text: text ?? message.text };
    tx.put(messageKey(queue, visibleAt, message.id), encodeMessage(moved));
    return { popReceipt: receiptText({ visibleAt, nonce }), nextVisible: visibleAt };
  });
}

export async function deleteMessage(storage: Storage, input: MessageInput): Promise<void> {
  await holding(storage, input, async (tx, queue, message) => {
    tx.remove(message.key);
    countMessage(tx, queue, message, -1);
  });
}

/** For the holder of a message's latest receipt, as long as it has not expired. */
async function holding<T>(
  storage: Storage,
  { queue, messageId, popReceipt }: MessageInput,
  act: (tx: Transaction, queue: Queue, message: Waiting) => Promise<T>,
): Promise<T> {
  checkQueueName(queue);
  const { visibleAt, nonce } = receiptOf(popReceipt);
  const id = parseMessageId(messageId);
  const { value } = await storage.partition.transact(anchorOf(storage.account, queue), async (tx) => {
    const found = await queueAt(tx, storage, queue);
    const message = id && (await messageAt(tx, found, visibleAt, id));
    if (!message || message.nonce !== nonce || message.expires <= tx.now) throw fail('MessageNotFound');
    tx.before(message.expires);
    return act(tx, found, message);
  });
  return value;
}

async function messageAt(
  tx: Transaction,
  queue: Queue,
  visibleAt: Instant,
  id: MessageId,
): Promise<Waiting | undefined> {
  const row = await tx.get(messageKey(queue, visibleAt, id));
  return row && decodeMessage(row);
}

/** All at once, however many: they belong to a generation that is over. */
export async function clearMessages(storage: Storage, { queue }: QueueInput): Promise<void> {
  checkQueueName(queue);
  const { account } = storage;
  await storage.partition.transact(anchorOf(account, queue), async (tx) => {
    const found = await queueAt(tx, storage, queue);
    tx.put(nameKey(account, queue), encodeQueue(found.id, found.gen + 1n));
    trashGeneration(tx, found);
  });
  storage.sweeper.wake();
}
