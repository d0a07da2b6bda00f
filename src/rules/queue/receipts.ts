/** Message ids, which stay, and pop receipts, which change whenever the visibility of the message changes. */

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
