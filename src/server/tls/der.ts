/** DER encoder (ASN.1) for certificates: only the types that they need. */

/** A complete value: tag, length, bytes. */
export type Der = Buffer;

export function sequence(...parts: readonly Der[]): Der {
  return tagged(0x30, ...parts);
}

export function set(...parts: readonly Der[]): Der {
  return tagged(0x31, ...parts);
}

/** A number, or the bytes of a long one that is not negative. */
export function integer(value: number | Uint8Array): Der {
  const bytes = typeof value === 'number' ? [value] : [...value];
  while (bytes.length > 1 && bytes[0] === 0) bytes.shift();
  // The highest bit is the sign.
  if (bytes[0]! >= 0x80) bytes.unshift(0);
  return tagged(0x02, Buffer.from(bytes));
}

export function boolean(value: boolean): Der {
  return tagged(0x01, Buffer.from([value ? 0xff : 0]));
}

export function octetString(bytes: Uint8Array): Der {
  return tagged(0x04, bytes);
}

/** @param unused bits at the end of the last byte */
export function bitString(bytes: Uint8Array, unused = 0): Der {
  return tagged(0x03, Buffer.from([unused]), bytes);
}

export function utf8(text: string): Der {
  return tagged(0x0c, Buffer.from(text));
}

/** UTCTime (a year of two digits) up to 2049, GeneralizedTime from then on: RFC 5280. */
export function time(at: Date): Der {
  const digits = `${at.toISOString().replaceAll(/[-:T]|\.\d+Z/g, '')}Z`;
  return at.getUTCFullYear() < 2050 ? tagged(0x17, Buffer.from(digits.slice(2))) : tagged(0x18, Buffer.from(digits));
}

/** @param dotted as in 2.5.29.17 */
export function objectId(dotted: string): Der {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  return tagged(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(septets)]));
}

/** [n], around a value that keeps its own tag. */
export function explicitTag(n: number, ...parts: readonly Der[]): Der {
  return tagged(0xa0 + n, ...parts);
}

/** [n], in place of the tag that these bytes would have. */
export function implicitTag(n: number, bytes: Uint8Array): Der {
  return tagged(0x80 + n, bytes);
}

function tagged(tag: number, ...parts: readonly Uint8Array[]): Der {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([tag, ...encodeLength(content.length)]), content]);
}

function encodeLength(length: number): number[] {
  if (length < 0x80) return [length];
  if (length < 0x100) return [0x81, length];
  return [0x82, length >> 8, length & 0xff];
}

/** Seven bits a byte, the highest first; all but the last have the eighth bit. */
function septets(value: number): number[] {
  const bytes = [value & 0x7f];
  for (let rest = value >> 7; rest > 0; rest >>= 7) bytes.unshift((rest & 0x7f) | 0x80);
  return bytes;
}
