/** AES-128-CMAC (RFC 4493), made of AES-CBC: Node offers no CMAC. */
import { createCipheriv } from 'node:crypto';

const BLOCK = 16;
const ZERO_IV = Buffer.alloc(BLOCK);

export class Cmac {
  readonly #key: Buffer;
  /** For a message whose last block is full, and for one whose last block is padded. */
  readonly #fullKey: Buffer;
  readonly #paddedKey: Buffer;

  constructor(key: Buffer) {
    this.#key = key;
    const zero = createCipheriv('aes-128-ecb', key, null).setAutoPadding(false).update(ZERO_IV);
    this.#fullKey = doubled(zero);
    this.#paddedKey = doubled(this.#fullKey);
  }

  compute(message: Buffer): Buffer {
    const isFull = message.length > 0 && message.length % BLOCK === 0;
    const lastAt = isFull ? message.length - BLOCK : message.length - (message.length % BLOCK);
    const last = Buffer.alloc(BLOCK);
    message.copy(last, 0, lastAt);
    if (!isFull) last[message.length - lastAt] = 0x80;
    const subkey = isFull ? this.#fullKey : this.#paddedKey;
    for (let i = 0; i < BLOCK; i += 1) last[i] = last[i]! ^ subkey[i]!;
    const cipher = createCipheriv('aes-128-cbc', this.#key, ZERO_IV).setAutoPadding(false);
    if (lastAt > 0) cipher.update(message.subarray(0, lastAt));
    return cipher.update(last);
  }
}

/** In GF(2^128). */
function doubled(block: Buffer): Buffer {
  const result = Buffer.alloc(BLOCK);
  for (let i = 0; i < BLOCK; i += 1) result[i] = (block[i]! << 1) | ((block[i + 1] ?? 0) >> 7);
  if (block[0]! & 0x80) result[BLOCK - 1]! ^= 0x87;
  return result;
}
