/**
 * A message as a row, whose key starts with the time at which it becomes visible: hiding a message moves the row. Sharded counters of messages
 * by expiry time: expired messages must not count even before they are deleted, so each counts in the hour and in the second in which it
 * expires, and the rest of the current hour and all later hours are summed from few rows.
 */

import { TICKS_PER_SECOND } from '../../base/time.ts';
import { encodeKey, type Key, keyAfter, keysUnder, prefixEnd, type Range } from '../../partition/keys.ts';
import type { Instant, Row, Snapshot, Timestamp, Transaction } from '../../partition/partition.ts';
import { decodeBytes, decodeCounter, encodeBytes } from '../../partition/values.ts';
import { formatMessageId, formatReceipt, type MessageId, NEVER } from '../../rules/queue/messages.ts';
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

const HOURS = 0n;
const SECONDS = 1n;
const SECONDS_PER_HOUR = 3_600n;
/** In some engines adds to one row wait for each other: the shards reduce that. */
const SHARDS = 4n;
const SLICE = { limit: 1_000 };

export const countersIn = (queue: Queue): Range => keysUnder(counterKeyParts(queue));

/** Counts an added or a deleted message in the shard of its salt, so that both cancel out in the same row. */
export function countMessage(tx: Transaction, queue: Queue, { id, expires }: StoredMessage, n: 1 | -1): void {
  const second = expires / TICKS_PER_SECOND;
  const shard = id.salt % SHARDS;
  tx.add(counterKey(queue, HOURS, second / SECONDS_PER_HOUR, shard), BigInt(n));
  if (expires < NEVER) tx.add(counterKey(queue, SECONDS, second, shard), BigInt(n));
}

function counterKey({ account, id, gen }: Queue, width: bigint, at: bigint, shard: bigint): Key {
  return encodeKey([account, '#', id, gen, width, at, shard]);
}

/** Messages that expire within the current second still count. */
export async function readMessageCount(at: Snapshot, queue: Queue): Promise<number> {
  const second = at.now / TICKS_PER_SECOND;
  const hour = second / SECONDS_PER_HOUR;
  const nextHour = (hour + 1n) * SECONDS_PER_HOUR;
  const ofHours = prefixEnd(encodeKey([...counterKeyParts(queue), HOURS]));
  const later = await sumCounters(at, { from: encodeKey([...counterKeyParts(queue), HOURS, hour + 1n]), to: ofHours });
  const from = encodeKey([...counterKeyParts(queue), SECONDS, second]);
  return Number(
    later + (await sumCounters(at, { from, to: encodeKey([...counterKeyParts(queue), SECONDS, nextHour]) })),
  );
}

/**
 * Without the seconds of the current hour: messages that expired in it count until its end, or until they are deleted. Reads one slice of
 * counters at most, which hold the messages that expire first.
 */
export async function readMessageEstimate(at: Snapshot, queue: Queue): Promise<number> {
  const hour = at.now / TICKS_PER_SECOND / SECONDS_PER_HOUR;
  const from = encodeKey([...counterKeyParts(queue), HOURS, hour]);
  const rows = await at.scan({ from, to: prefixEnd(encodeKey([...counterKeyParts(queue), HOURS])) }, SLICE);
  return Number(rows.reduce((sum, row) => sum + decodeCounter(row), 0n));
}

async function sumCounters(at: Snapshot, { from, to }: Range): Promise<bigint> {
  let sum = 0n;
  for (let next: Key | undefined = from; next !== undefined; ) {
    const rows = await at.scan({ from: next, to }, SLICE);
    for (const row of rows) sum += decodeCounter(row);
    next = rows.length < SLICE.limit ? undefined : keyAfter(rows.at(-1)!.key);
  }
  return sum;
}

/** Whether this is a counter by the hour: in these every message counts exactly once. */
export const isHourCounter = (width: unknown): boolean => width === HOURS;

function counterKeyParts({ account, id, gen }: Queue) {
  return [account, '#', id, gen] as const;
}
