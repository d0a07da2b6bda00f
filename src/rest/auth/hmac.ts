/** HMAC-SHA256 (RFC 2104) in base64, with precomputed key blocks and comparison in constant time. */
import { hash } from 'node:crypto';
import { memoize } from '../../base/memoize.ts';

const BLOCK_BYTES = 64;
const DIGEST_BYTES = 32;
/** Nearly all texts are shorter: they need no allocation. */
const PREALLOCATED_BYTES = 4_096;
const UTF8_BYTES_MAX = 3;

export type Encoding = 'utf8' | 'latin1';

/** Keys are in base64. The inner and outer block of each key are computed once. */
const signerFor = memoize(makeSigner);

export function sign(text: string, key: string, encoding: Encoding = 'utf8'): string {
  return signerFor(key)(text, encoding);
}

/** Whether this key made this signature of the text. */
export function verifySignature(sent: string, key: string, text: string, encoding?: Encoding): boolean {
  return constantTimeEqual(sent, sign(text, key, encoding));
}

/** The time does not depend on which character differs, so it reveals nothing about the signature. */
function constantTimeEqual(sent: string, expected: string): boolean {
  let difference = sent.length ^ expected.length;
  for (let at = 0; at < expected.length; at++) difference |= sent.charCodeAt(at) ^ expected.charCodeAt(at);
  return difference === 0;
}

/** Composed of two plain hashes: Node's Hmac allocates an object per text, which costs twice as much as the hashing. */
function makeSigner(base64: string): (text: string, encoding: Encoding) => string {
  const key = Buffer.from(base64, 'base64');
  // One scratch buffer of each per key: shared by all calls, which is safe because signing is synchronous.
  const inner = Buffer.alloc(BLOCK_BYTES + PREALLOCATED_BYTES);
  const outer = Buffer.alloc(BLOCK_BYTES + DIGEST_BYTES);
  const block = key.length > BLOCK_BYTES ? hash('sha256', key, 'buffer') : key;
  for (let at = 0; at < BLOCK_BYTES; at++) {
    inner[at] = 0x36 ^ (block[at] ?? 0);
    outer[at] = 0x5c ^ (block[at] ?? 0);
  }
  const innerBlock = inner.subarray(0, BLOCK_BYTES);
  return (text, encoding) => {
    const message =
      text.length * UTF8_BYTES_MAX <= PREALLOCATED_BYTES
        ? inner.subarray(0, BLOCK_BYTES + inner.write(text, BLOCK_BYTES, encoding))
        : Buffer.concat([innerBlock, Buffer.from(text, encoding)]);
    outer.write(hash('sha256', message, 'binary'), BLOCK_BYTES, 'latin1');
    return hash('sha256', outer, 'base64');
  };
}
