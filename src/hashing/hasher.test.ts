import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { crc64Base64, createHasher, md5Base64 } from './hasher.ts';

describe('A hasher', () => {
  it('computes the CRC64 of its pieces, and the MD5 if it is wanted', () => {
    const bytes = Buffer.from('some bytes');
    const crc64 = crc64Base64(bytes);
    for (const md5 of [true, false]) {
      const hasher = createHasher({ md5 });
      hasher.update(bytes.subarray(0, 3));
      hasher.update(bytes.subarray(3));
      expect(hasher.digest()).toEqual({ md5: md5 ? md5Base64(bytes) : undefined, crc64 });
    }
  });
});

describe('MD5', () => {
  it('is base64 of the digest', () => {
    expect(md5Base64(Buffer.from('abc'))).toBe(createHash('md5').update('abc').digest('base64'));
    expect(md5Base64(new Uint8Array())).toBe('1B2M2Y8AsgTpgAmY7PhCfg==');
  });
});
