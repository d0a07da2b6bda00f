/** Signatures: HMAC-SHA256 in base64. */
import { hash } from 'node:crypto';
import { memoize } from '../../base/memoize.ts';

const BLOCK_BYTES = 64;
const DIGEST_BYTES = 32;
/** For a text that is not longer, as nearly all are, no memory is asked for. */
const PREALLOCATED_BYTES = 4_096;
const UTF8_BYTES_MAX = 3;

export type Encoding = 'utf8' | 'latin1';

/** Keys are in base64. Each has its two blocks made once: see RFC 2104. */
const signerFor = memoize(makeSigner);

export function sign(text: string, key: string, encoding: Encoding = 'utf8'): string {
  return signerFor(key)(text, encoding);
}

/** Whether this key made this signature of the text. */
export function verifySignature(sent: string, key: string, text: string, encoding?: Encoding): boolean {
  return constantTimeEqual(sent, sign(text, key, encoding));
}

/** Takes as long whichever character differs, so that the time tells nothing about the signature. */
function constantTimeEqual(sent: string, expected: string): boolean {
  let difference = sent.length ^ expected.length;
  for (let at = 0; at < expected.length; at++) difference |= sent.charCodeAt(at) ^ expected.charCodeAt(at);
  return difference === 0;
}

/** Of two plain hashes: Node's Hmac is an object for every text, and making and collecting that costs twice what hashing does. */
function makeSigner(base64: string): (text: string, encoding: Encoding) => string {
  const key = Buffer.from(base64, 'base64');
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
