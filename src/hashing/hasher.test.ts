import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { computeHashes, crc64Base64, createCrc64, createHasher, md5Base64 } from './hasher.ts';

/** Bit by bit, by the definition: reflected polynomial, all ones at the start and at the end. */
function naiveCrc64(bytes: Uint8Array): string {
  let crc = 0xffffffffffffffffn;
  for (const byte of bytes) {
    crc ^= BigInt(byte);
    for (let bit = 0; bit < 8; bit++) crc = crc & 1n ? (crc >> 1n) ^ 0x9a6c9329ac4bc9b5n : crc >> 1n;
  }
  const result = Buffer.alloc(8);
  result.writeBigUInt64LE(crc ^ 0xffffffffffffffffn);
  return result.toString('base64');
}

describe('CRC64', () => {
  it('is the one that the service computes', () => {
    expect(crc64Base64(Buffer.from('123456789'))).toBe(naiveCrc64(Buffer.from('123456789')));
    // The check value of this polynomial in catalogues of CRCs (CRC-64/NVME).
    expect(Buffer.from(crc64Base64(Buffer.from('123456789')), 'base64').readBigUInt64LE()).toBe(0xae8b14860a799888n);
    expect(crc64Base64(new Uint8Array())).toBe('AAAAAAAAAAA=');
  });

  it('agrees with its definition on any bytes, in one piece or several', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 70 }), { maxLength: 4 }), (pieces) => {
        const crc = createCrc64();
        for (const piece of pieces) crc.update(piece);
        expect(crc.digest()).toBe(naiveCrc64(Buffer.concat(pieces)));
      }),
    );
  });
});

describe('CRC64 of long bytes', () => {
  const long = Buffer.from(Uint8Array.from({ length: 200_003 }, (_, i) => Math.imul(i, 2654435761) >>> 24));

  it('agrees with its definition', () => {
    expect(crc64Base64(long)).toBe(naiveCrc64(long));
  });

  it('does not depend on where they are cut, nor on others that are computed in between', () => {
    const other = createCrc64();
    for (const cut of [1, 4_095, 4_096, 6_001, 65_535, 65_536, 65_537, 131_072, 200_002]) {
      const crc = createCrc64();
      crc.update(long.subarray(0, cut));
      other.update(long.subarray(cut));
      crc.update(long.subarray(cut));
      expect(crc.digest()).toBe(crc64Base64(long));
    }
  });
});

describe('Both hashes', () => {
  it('are the same in one piece or several, and MD5 is there if it was asked for', () => {
    const bytes = Buffer.from('some bytes');
    const crc64 = crc64Base64(bytes);
    expect(computeHashes(bytes, { md5: false })).toEqual({ md5: undefined, crc64 });
    expect(computeHashes(bytes, { md5: true })).toEqual({ md5: md5Base64(bytes), crc64 });
    const hashes = createHasher({ md5: true });
    hashes.update(bytes.subarray(0, 3));
    hashes.update(bytes.subarray(3));
    expect(hashes.digest()).toEqual({ md5: md5Base64(bytes), crc64 });
  });
});

describe('MD5', () => {
  it('is base64 of the digest', () => {
    expect(md5Base64(Buffer.from('abc'))).toBe(createHash('md5').update('abc').digest('base64'));
    expect(md5Base64(new Uint8Array())).toBe('1B2M2Y8AsgTpgAmY7PhCfg==');
  });
});
