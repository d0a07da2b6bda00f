import type { Instant, Transaction } from '../../partition/partition.ts';
import { formatReceipt, type MessageId, parseMessageId, SALT_BITS } from '../../rules/queue/receipts.ts';
import { addSeconds, expiryTime, putFault, TTL_SECONDS_DEFAULT, updateFault } from '../../rules/queue/timing.ts';
import type { Storage } from '../common/storage.ts';
import { fail } from './errors.ts';
import { countMessage } from './message-counts.ts';
import {
  decodeMessage,
  encodeMessage,
  type FoundMessage,
  type Message,
  messageKey,
  toMessage,
} from './message-rows.ts';
import {
  checkMessageCount,
  checkMessageText,
  checkQueueName,
  checkReceipt,
  checkVisibility,
  throwIfFault,
} from './request-checks.ts';
import { encodeQueue, nameKey, type Queue, readQueue, scheduleGenerationDeletion, txQueueKey } from './rows.ts';
import { deleteExpired, random64, scanVisible } from './visibility-index.ts';

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
  throwIfFault(putFault(visibilitySeconds, ttlSeconds));
  checkMessageText(input.text);
  const text = Buffer.from(input.text);
  const { value } = await storage.partition.transact(txQueueKey(storage.account, queue), async (tx) => {
    const found = await readQueue(tx, storage, queue);
    const message = {
      id: { inserted: tx.timestamp, salt: BigInt.asUintN(SALT_BITS, random64()) },
      visibleAt: addSeconds(tx.now, visibilitySeconds),
      expires: expiryTime(tx.now, ttlSeconds),
      nonce: random64(),
      dequeueCount: 0,
      text,
    };
    tx.put(messageKey(found, message.visibleAt, message.id), encodeMessage(message));
    countMessage(tx, found, message, 1);
    return toMessage(message, input.text);
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
    const { live, isComplete } = await storage.partition.read(async (at) =>
      scanVisible(at.scan, await readQueue(at, storage, queue), at.now, count),
    );
    if (live.length > 0 || isComplete) return live.map((message) => toMessage(message));
    await deleteExpiredHead(storage, queue);
  }
}

/** Lets go of what has expired at the head of the line, as much as one commit can. */
async function deleteExpiredHead(storage: Storage, queue: string): Promise<void> {
  await storage.partition.transact(txQueueKey(storage.account, queue), async (tx) => {
    const found = await readQueue(tx, storage, queue);
    const { expired } = await scanVisible(tx.scanUnchecked.bind(tx), found, tx.now, 1);
    await deleteExpired(tx, found, expired);
  });
}

/** @param input without a text only its visibility changes */
export async function updateMessage(
  storage: Storage,
  input: MessageInput & { readonly visibilitySeconds: number; readonly text?: string | undefined },
): Promise<{ readonly popReceipt: string; readonly nextVisible: Instant }> {
  const { visibilitySeconds } = input;
  checkVisibility(visibilitySeconds, 0);
  if (input.text !== undefined) checkMessageText(input.text);
  const text = input.text === undefined ? undefined : Buffer.from(input.text);
  return withReceipt(storage, input, async (tx, queue, message) => {
    throwIfFault(updateFault(tx.now, visibilitySeconds, message.expires));
    const visibleAt = addSeconds(tx.now, visibilitySeconds);
    const nonce = random64();
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

/** For the holder of a message's latest receipt, as long as it has not expired. */
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

/** All at once, however many: they belong to a generation that is over. */
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
