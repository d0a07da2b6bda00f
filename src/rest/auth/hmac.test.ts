import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Encoding, sign, verifySignature } from './canonical.ts';

describe('a signature', () => {
  const keys = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes));
  const texts = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 300 }),
    fc.string({ unit: 'grapheme', maxLength: 2_000 }),
    fc.nat(20_000).map((length) => 'ä'.repeat(length)),
  );

  it("is Node's HMAC, whatever key and text", () => {
    fc.assert(
      fc.property(keys, texts, fc.constantFrom<Encoding>('utf8', 'latin1'), (key, text, encoding) => {
        const expected = createHmac('sha256', key).update(text, encoding).digest('base64');
        expect(sign(text, key.toString('base64'), encoding)).toBe(expected);
      }),
    );
  });

  it('is that of RFC 4231', () => {
    const key = Buffer.alloc(131, 0xaa).toString('base64');
    const text = 'Test Using Larger Than Block-Size Key - Hash Key First';
    const hex = '60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54';
    expect(Buffer.from(sign(text, key), 'base64').toString('hex')).toBe(hex);
  });

  it('is refused if it is cut or has more characters', () => {
    const key = Buffer.from('a key').toString('base64');
    const good = sign('text', key);
    expect(verifySignature(good, key, 'text')).toBe(true);
    for (const bad of ['', good.slice(1), good.slice(0, -1), `${good}=`, good.toLowerCase(), `A${good.slice(1)}`]) {
      expect(verifySignature(bad, key, 'text')).toBe(false);
    }
    expect(verifySignature(good, key, 'texts')).toBe(false);
    expect(verifySignature(good, Buffer.from('other key').toString('base64'), 'text')).toBe(false);
  });
});
