/**
 * Messages: ids, which stay; pop receipts, which change whenever the visibility of the message changes; time-to-live and visibility.
 */
import { TICKS_PER_SECOND } from '../../base/time.ts';

/** Ids rise as messages are added. Two processes can add messages at the same instant: then the salt tells them apart. */
export interface MessageId {
  readonly inserted: bigint;
  readonly salt: bigint;
}

/** The key of the message in the visibility index, and a number that cannot be guessed. */
export interface Receipt {
  readonly visibleAt: bigint;
  readonly nonce: bigint;
}

export const SALT_BITS = 60;
const INSTANT_MAX = (1n << 62n) - 1n;
const GUID = /^([0-9a-f]{8})-([0-9a-f]{4})-4([0-9a-f]{3})-([89ab])([0-9a-f]{3})-([0-9a-f]{12})$/i;

/** A GUID: of its 128 bits, six are fixed, 62 hold the instant, to the end of the year 9999, and the rest is the salt. */
export function formatMessageId({ inserted, salt }: MessageId): string {
  const instant = (inserted >> 2n).toString(16).padStart(15, '0');
  const rest = salt.toString(16).padStart(15, '0');
  const variant = (8 + Number(inserted & 3n)).toString(16);
  const first = `${instant.slice(0, 8)}-${instant.slice(8, 12)}-4${instant.slice(12)}`;
  return `${first}-${variant}${rest.slice(0, 3)}-${rest.slice(3)}`;
}

/** Undefined: no message can have this id. */
export function parseMessageId(text: string): MessageId | undefined {
  const [, first, second, third, variant, fourth, last] = GUID.exec(text) ?? [];
  if (first === undefined) return undefined;
  const inserted = (BigInt(`0x${first}${second}${third}`) << 2n) | BigInt(Number.parseInt(variant!, 16) - 8);
  return { inserted, salt: BigInt(`0x${fourth}${last}`) };
}

const RECEIPT = /^[\w-]{24}$/;
const RECEIPT_BYTES = 18;
const RECEIPT_FORMAT = 0x0100;

const receiptBytes = Buffer.alloc(RECEIPT_BYTES);
const receiptView = new DataView(receiptBytes.buffer, receiptBytes.byteOffset);
receiptView.setUint16(0, RECEIPT_FORMAT);

/** Without characters that need escaping in a URL: clients forget it. */
export function formatReceipt({ visibleAt, nonce }: Receipt): string {
  receiptView.setBigUint64(2, visibleAt);
  receiptView.setBigUint64(10, nonce);
  return receiptBytes.toString('base64url');
}

/** Undefined: the text is no receipt. */
export function parseReceipt(text: string): Receipt | undefined {
  if (!RECEIPT.test(text)) return undefined;
  const bytes = Buffer.from(text, 'base64url');
  const visibleAt = bytes.readBigUInt64BE(2);
  if (bytes.readUInt16BE() !== RECEIPT_FORMAT || visibleAt > INSTANT_MAX) return undefined;
  return { visibleAt, nonce: bytes.readBigUInt64BE(10) };
}

type Instant = bigint;

const WEEK_SECONDS = 604_800;
export const VISIBILITY_SECONDS_MAX = WEEK_SECONDS;
export const TTL_SECONDS_DEFAULT = WEEK_SECONDS;
/** The time-to-live of a message that does not expire. */
const TTL_NEVER = -1;
const TTL_SECONDS_MAX = 2 ** 31 - 1;
/** The last instant of the year 9999. */
export const NEVER: Instant = 3_155_378_975_999_999_999n;

/** A parameter that is out of its bounds, or wrong for another reason. */
export type TimingFault =
  | { readonly parameter: string; readonly value: number; readonly min: number; readonly max: number }
  | { readonly parameter: string; readonly value: number; readonly reason: string };

export interface Limits {
  readonly min: number;
  readonly max: number;
}

export function limitsFault(parameter: string, value: number, { min, max }: Limits): TimingFault | undefined {
  if (Number.isInteger(value) && value >= min && value <= max) return undefined;
  return { parameter, value, min, max };
}

/** A message must become visible before it expires. */
export function putFault(visibilitySeconds: number, ttlSeconds: number): TimingFault | undefined {
  const visibilityFault = limitsFault('visibilitytimeout', visibilitySeconds, { min: 0, max: VISIBILITY_SECONDS_MAX });
  if (visibilityFault) return visibilityFault;
  if (ttlSeconds > TTL_SECONDS_MAX) return limitsFault('messagettl', ttlSeconds, { min: 1, max: TTL_SECONDS_MAX });
  const isValidTtl = Number.isInteger(ttlSeconds) && ttlSeconds >= 1;
  if (ttlSeconds !== TTL_NEVER && !isValidTtl)
    return { parameter: 'messagettl', value: ttlSeconds, reason: 'messagettl must be positive, or -1.' };
  if (ttlSeconds === TTL_NEVER || visibilitySeconds < ttlSeconds) return undefined;
  const reason = 'messagettl must be greater than visibilitytimeout.';
  return { parameter: 'visibilitytimeout', value: visibilitySeconds, reason };
}

export function addSeconds(now: Instant, seconds: number): Instant {
  return now + BigInt(seconds) * TICKS_PER_SECOND;
}

export function expiryTime(now: Instant, ttlSeconds: number): Instant {
  if (ttlSeconds === TTL_NEVER) return NEVER;
  const expires = addSeconds(now, ttlSeconds);
  return expires < NEVER ? expires : NEVER;
}

/** A message that is invisible until it expires would never be seen again. */
export function updateFault(now: Instant, visibilitySeconds: number, expires: Instant): TimingFault | undefined {
  if (addSeconds(now, visibilitySeconds) <= expires) return undefined;
  const reason = 'visibilitytimeout must not be later than the expiry of the message.';
  return { parameter: 'visibilitytimeout', value: visibilitySeconds, reason };
}

/**
 * @param storedAt the instant of the commit. If the process that committed the message has a clock that is ahead, a message that was to be
 *   visible at once is visible
 */
export function isVisible(visibleAt: Instant, storedAt: Instant, now: Instant): boolean {
  return visibleAt <= now || visibleAt <= storedAt;
}
