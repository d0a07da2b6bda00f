/** A new message: checked before any row is read, and added to a queue in a transaction. */
import type { Instant, Timestamp, Transaction } from '../../partition/partition.ts';
import { addSeconds, expiryTime, putFault, SALT_BITS, TTL_SECONDS_DEFAULT } from '../../rules/queue/messages.ts';
import { random64 } from './dequeue.ts';
import { countMessage, encodeMessage, messageKey, type StoredMessage } from './message-rows.ts';
import { checkMessageText, type Queue, throwIfFault } from './rows.ts';

export interface SentMessage {
  readonly text: string;
  readonly visibilitySeconds?: number | undefined;
  readonly ttlSeconds?: number | undefined;
}

/** A message of another server, with the times that it had there. */
export interface RestoredMessage {
  readonly text: string;
  readonly inserted: Instant;
  readonly visibleAt: Instant;
  readonly expires: Instant;
  readonly dequeueCount: number;
}

type MessageTimes = Pick<StoredMessage, 'visibleAt' | 'expires' | 'dequeueCount'> & { readonly inserted: Instant };

/** A message without a fault. Its random numbers are drawn: the transaction function may run again. */
export interface PreparedMessage extends Pick<StoredMessage, 'text' | 'nonce'> {
  readonly salt: bigint;
  times(now: Instant, timestamp: Timestamp): MessageTimes;
}

export function prepareMessage(sent: SentMessage): PreparedMessage {
  const { text, visibilitySeconds = 0, ttlSeconds = TTL_SECONDS_DEFAULT } = sent;
  throwIfFault(putFault(visibilitySeconds, ttlSeconds));
  return withRandomNumbers(text, (now, timestamp) => ({
    inserted: timestamp,
    visibleAt: addSeconds(now, visibilitySeconds),
    expires: expiryTime(now, ttlSeconds),
    dequeueCount: 0,
  }));
}

export function prepareRestored({ text, ...times }: RestoredMessage): PreparedMessage {
  return withRandomNumbers(text, () => times);
}

function withRandomNumbers(text: string, times: PreparedMessage['times']): PreparedMessage {
  checkMessageText(text);
  return { text: Buffer.from(text), salt: BigInt.asUintN(SALT_BITS, random64()), nonce: random64(), times };
}

/** @param position among the messages of one transaction, which become visible in this order */
export function addMessage(
  tx: Transaction,
  queue: Queue,
  { text, salt, nonce, times }: PreparedMessage,
  position = 0,
): StoredMessage {
  const timestamp = position === 0 ? tx.timestamp : tx.timestamp + BigInt(position);
  const { inserted, visibleAt, expires, dequeueCount } = times(tx.now, timestamp);
  const message: StoredMessage = { id: { inserted, salt }, visibleAt, expires, nonce, dequeueCount, text };
  tx.put(messageKey(queue, visibleAt, message.id), encodeMessage(message));
  countMessage(tx, queue, message, 1);
  return message;
}
