/** MD5, and the CRC64 of Azure Storage. */
import { hash } from 'node:crypto';

export function md5Base64(bytes: Uint8Array): string {
  return hash('md5', bytes, 'base64');
}

export interface Crc64 {
  update(bytes: Uint8Array): void;
  /** Base64 of the eight bytes, lowest first. */
  digest(): string;
}

export function crc64Base64(bytes: Uint8Array): string {
  const crc = crc64();
  crc.update(bytes);
  return crc.digest();
}

// The polynomial, reflected: 0x9A6C9329AC4BC9B5. A value is two unsigned halves, since JavaScript's integers have 32 bits.
const POLYNOMIAL_HIGH = 0x9a6c9329;
const POLYNOMIAL_LOW = 0xac4bc9b5;
const SLICES = 8;
const HIGH = new Int32Array(256 * SLICES);
const LOW = new Int32Array(256 * SLICES);

for (let byte = 0; byte < 256; byte++) {
  let high = 0;
  let low = byte;
  for (let bit = 0; bit < 8; bit++) {
    const out = low & 1;
    low = (low >>> 1) | (high << 31);
    high >>>= 1;
    if (out) {
      low ^= POLYNOMIAL_LOW;
      high ^= POLYNOMIAL_HIGH;
    }
  }
  HIGH[byte] = high;
  LOW[byte] = low;
}
for (let at = 256; at < 256 * SLICES; at++) {
  const high = HIGH[at - 256]!;
  const low = LOW[at - 256]!;
  LOW[at] = ((low >>> 8) | (high << 24)) ^ LOW[low & 0xff]!;
  HIGH[at] = (high >>> 8) ^ HIGH[low & 0xff]!;
}

export function crc64(): Crc64 {
  let high = 0xffffffff | 0;
  let low = 0xffffffff | 0;
  return {
    update(bytes) {
      let h = high;
      let l = low;
      let at = 0;
      for (const end = bytes.length - 7; at < end; at += 8) {
        // Eight bytes at a time; the byte that came first is shifted furthest.
        l ^= bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
        h ^= bytes[at + 4]! | (bytes[at + 5]! << 8) | (bytes[at + 6]! << 16) | (bytes[at + 7]! << 24);
        const a = 0x700 | (l & 0xff);
        const b = 0x600 | ((l >>> 8) & 0xff);
        const c = 0x500 | ((l >>> 16) & 0xff);
        const d = 0x400 | (l >>> 24);
        const e = 0x300 | (h & 0xff);
        const f = 0x200 | ((h >>> 8) & 0xff);
        const g = 0x100 | ((h >>> 16) & 0xff);
        const i = h >>> 24;
        l = LOW[a]! ^ LOW[b]! ^ LOW[c]! ^ LOW[d]! ^ LOW[e]! ^ LOW[f]! ^ LOW[g]! ^ LOW[i]!;
        h = HIGH[a]! ^ HIGH[b]! ^ HIGH[c]! ^ HIGH[d]! ^ HIGH[e]! ^ HIGH[f]! ^ HIGH[g]! ^ HIGH[i]!;
      }
      for (; at < bytes.length; at++) {
        const index = (l ^ bytes[at]!) & 0xff;
        l = ((l >>> 8) | (h << 24)) ^ LOW[index]!;
        h = (h >>> 8) ^ HIGH[index]!;
      }
      high = h;
      low = l;
    },
    digest() {
      const bytes = Buffer.allocUnsafe(8);
      bytes.writeInt32LE(~low, 0);
      bytes.writeInt32LE(~high, 4);
      return bytes.toString('base64');
    },
  };
}
