/** A message as a row. Its key starts with the time at which it becomes visible: hiding a message moves the row. */
import { encodeKey, type Key } from '../../partition/keys.ts';
import type { Instant, Row, Timestamp } from '../../partition/partition.ts';
import { decodeBytes, encodeBytes } from '../../partition/values.ts';
import { formatMessageId, formatReceipt, type MessageId } from '../../rules/queue/receipts.ts';
import { messagesIn, type Queue } from './rows.ts';

export interface StoredMessage {
  readonly id: MessageId;
  readonly visibleAt: Instant;
  readonly expires: Instant;
  /** New with every move of the row: so an older receipt never matches. */
  readonly nonce: bigint;
  readonly dequeueCount: number;
  /** UTF-8 */
  readonly text: Buffer;
}

/** A message with its row. */
export interface FoundMessage extends StoredMessage {
  readonly key: Key;
  readonly version: Timestamp;
}

/** A message in a response. */
export interface Message {
  readonly id: string;
  readonly inserted: Instant;
  readonly expires: Instant;
  readonly nextVisible: Instant;
  readonly popReceipt: string;
  readonly dequeueCount: number;
  readonly text: string;
}

/** Ordered by the time at which the message becomes visible, then by the time at which it was put. */
export const messageKey = ({ account, id, gen }: Queue, visibleAt: Instant, { inserted, salt }: MessageId): Key =>
  encodeKey([account, 'q', id, gen, visibleAt, inserted, salt]);
/** Before all messages that become visible at this instant. */
export const visibilityKey = ({ account, id, gen }: Queue, visibleAt: Instant): Key =>
  encodeKey([account, 'q', id, gen, visibleAt]);
export const firstMessageKey = (queue: Queue): Key => messagesIn(queue).from;

const FIXED_BYTES = 20;
const fixed = new Uint8Array(FIXED_BYTES);
const numbers = new DataView(fixed.buffer);

export function encodeMessage({ expires, nonce, dequeueCount, text }: StoredMessage): Buffer {
  numbers.setBigUint64(0, expires);
  numbers.setBigUint64(8, nonce);
  numbers.setUint32(16, dequeueCount);
  return encodeBytes(fixed, text);
}

export function decodeMessage(row: Row): FoundMessage {
  const bytes = decodeBytes(row);
  // Three numbers of eight bytes, each after its type byte.
  const keyBytes = Buffer.from(row.key.slice(-27), 'latin1');
  return {
    key: row.key,
    version: row.version,
    id: { inserted: keyBytes.readBigUInt64BE(10), salt: keyBytes.readBigUInt64BE(19) },
    visibleAt: keyBytes.readBigUInt64BE(1),
    expires: bytes.readBigUInt64BE(),
    nonce: bytes.readBigUInt64BE(8),
    dequeueCount: bytes.readUInt32BE(16),
    text: bytes.subarray(FIXED_BYTES),
  };
}

/** @param text where the caller has it decoded already */
export function toMessage(message: StoredMessage, text = message.text.toString()): Message {
  const { id, visibleAt, expires, nonce, dequeueCount } = message;
  return {
    id: formatMessageId(id),
    inserted: id.inserted,
    expires,
    nextVisible: visibleAt,
    popReceipt: formatReceipt({ visibleAt, nonce }),
    dequeueCount,
    text,
  };
}
