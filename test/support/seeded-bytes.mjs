/** Pseudo-random bytes from a seed. Any range can be generated again, so tests need not store them. */
import { createCipheriv, createHash } from 'node:crypto';

const CIPHER_BLOCK = 16;

/**
 * The same seed gives the same bytes; no two stretches of them, and none of two seeds, are alike.
 * @param {string} seed
 * @param {number} length
 * @param {number} from
 */
export function bytesOf(seed, length, from = 0) {
  const key = createHash('md5').update(seed).digest();
  const counter = Buffer.alloc(CIPHER_BLOCK);
  counter.writeBigUInt64BE(BigInt(Math.floor(from / CIPHER_BLOCK)), CIPHER_BLOCK - 8);
  const before = from % CIPHER_BLOCK;
  const stream = createCipheriv('aes-128-ctr', key, counter).update(Buffer.alloc(before + length));
  return stream.subarray(before);
}
