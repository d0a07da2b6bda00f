import { StorageCRC64Calculator } from '@azure/storage-common';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { crc64Base64, createCrc64 } from './crc64.ts';

const long = Buffer.from(Uint8Array.from({ length: 200_003 }, (_, i) => Math.imul(i, 2654435761) >>> 24));

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
    const lengths = fc.array(fc.oneof(fc.nat(9_000), fc.nat(70_000)), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(fc.nat(9), lengths, (from, cuts) => {
        let end = from;
        const pieces = cuts.map((length) => {
          const begin = end;
          end = Math.min(begin + length, long.length);
          return long.subarray(begin, end);
        });
        expect(crc64OfPieces(pieces)).toBe(libraryCrc64(long.subarray(from, end)));
      }),
      { numRuns: 300 },
    );
  });
});

describe('CRC64 of long bytes', () => {
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
