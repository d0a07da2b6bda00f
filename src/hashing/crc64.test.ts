import { StorageCRC64Calculator } from '@azure/storage-common';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { crc64Base64, createCrc64 } from './crc64.ts';

/** The CRC64 of Microsoft's own client library. */
function libraryCrc64(bytes: Uint8Array): string {
  return Buffer.from(new StorageCRC64Calculator().final(bytes, bytes.length)).toString('base64');
}

function crc64OfPieces(pieces: readonly Uint8Array[]): string {
  const crc = createCrc64();
  for (const piece of pieces) crc.update(piece);
  return crc.digest();
}

beforeAll(() => StorageCRC64Calculator.init());

describe('CRC64', () => {
  it('is CRC-64/NVME', () => {
    // The check value in catalogues of CRCs.
    expect(Buffer.from(crc64Base64(Buffer.from('123456789')), 'base64').readBigUInt64LE()).toBe(0xae8b14860a799888n);
    expect(crc64Base64(new Uint8Array())).toBe('AAAAAAAAAAA=');
  });

  it("is that of Microsoft's client library for any bytes, in one piece or several", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 70 }), { maxLength: 4 }), (pieces) => {
        expect(crc64OfPieces(pieces)).toBe(libraryCrc64(Buffer.concat(pieces)));
      }),
    );
  });

  it("is that of Microsoft's client library for long bytes, wherever they begin and are cut", () => {
    const long = fc.uint8Array({ minLength: 10_000, maxLength: 10_000 }).map((seed) => {
      return Buffer.concat(Array.from({ length: 21 }, (_, i) => Buffer.from(seed.map((byte) => byte ^ (i * 37)))));
    });
    fc.assert(
      fc.property(
        long,
        fc.nat(9),
        fc.nat(200_000),
        fc.array(fc.nat(200_000), { maxLength: 4 }),
        (bytes, from, length, cuts) => {
          const body = bytes.subarray(from, from + length);
          const edges = [0, ...cuts.filter((cut) => cut < length).sort((a, b) => a - b), length];
          const pieces = edges.slice(1).map((end, i) => body.subarray(edges[i], end));
          expect(crc64OfPieces(pieces)).toBe(libraryCrc64(body));
        },
      ),
      { numRuns: 200 },
    );
  });
});

describe('CRC64 of long bytes', () => {
  const long = Buffer.from(Uint8Array.from({ length: 200_003 }, (_, i) => Math.imul(i, 2654435761) >>> 24));

  it('does not depend on where they are cut, nor on others that are computed in between', () => {
    const other = createCrc64();
    for (const cut of [1, 4_095, 4_096, 6_001, 65_535, 65_536, 65_537, 131_072, 200_002]) {
      const crc = createCrc64();
      crc.update(long.subarray(0, cut));
      other.update(long.subarray(cut));
      crc.update(long.subarray(cut));
      expect(crc.digest()).toBe(libraryCrc64(long));
    }
  });
});
