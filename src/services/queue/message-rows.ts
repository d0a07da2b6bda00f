/** A message as a row. Its key is its place in line, so that to hide it is to move it. */
import { encodeKey, type Key } from '../../partition/keys.ts';
import type { Instant, Row } from '../../partition/partition.ts';
import { decodeBytes, encodeBytes } from '../../partition/values.ts';
import { type MessageId, messageIdText, receiptText } from '../../rules/queue/receipts.ts';
import { messagesIn, type Queue } from './rows.ts';

export interface StoredMessage {
  readonly id: MessageId;
  readonly visibleAt: Instant;
  readonly expires: Instant;
  /** Renewed with every move: a receipt of an earlier place names no message, not even by chance. */
  readonly nonce: bigint;
  readonly dequeueCount: number;
  /** UTF-8 */
  readonly text: Buffer;
}

/** As it is told to clients. */
export interface Message {
  readonly id: string;
  readonly inserted: Instant;
  readonly expires: Instant;
  readonly nextVisible: Instant;
  readonly popReceipt: string;
  readonly dequeueCount: number;
  readonly text: string;
}

/** By the next instant at which it can be seen, and then by that at which it was put. */
export const messageKey = ({ account, id, gen }: Queue, visibleAt: Instant, { inserted, salt }: MessageId): Key =>
  encodeKey([account, 'q', id, gen, visibleAt, inserted, salt]);
/** Before all messages that hide at this instant. */
export const placeAt = ({ account, id, gen }: Queue, visibleAt: Instant): Key =>
  encodeKey([account, 'q', id, gen, visibleAt]);
export const headOf = (queue: Queue): Key => messagesIn(queue).from;

const HEAD_BYTES = 20;

export function encodeMessage({ expires, nonce, dequeueCount, text }: StoredMessage): Buffer {
  const bytes = Buffer.allocUnsafe(HEAD_BYTES + text.length);
  bytes.writeBigUInt64BE(expires);
  bytes.writeBigUInt64BE(nonce, 8);
  bytes.writeUInt32BE(dequeueCount, 16);
  bytes.set(text, HEAD_BYTES);
  return encodeBytes(bytes);
}

export function decodeMessage(row: Row): StoredMessage {
  const bytes = decodeBytes(row);
  // Three numbers of eight bytes, each behind the byte that says so.
  const place = Buffer.from(row.key.slice(-27), 'latin1');
  return {
    id: { inserted: place.readBigUInt64BE(10), salt: place.readBigUInt64BE(19) },
    visibleAt: place.readBigUInt64BE(1),
    expires: bytes.readBigUInt64BE(),
    nonce: bytes.readBigUInt64BE(8),
    dequeueCount: bytes.readUInt32BE(16),
    text: bytes.subarray(HEAD_BYTES),
  };
}

export function messageOf({ id, visibleAt, expires, nonce, dequeueCount, text }: StoredMessage): Message {
  return {
    id: messageIdText(id),
    inserted: id.inserted,
    expires,
    nextVisible: visibleAt,
    popReceipt: receiptText({ visibleAt, nonce }),
    dequeueCount,
    text: text.toString(),
  };
}
