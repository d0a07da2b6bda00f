import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeKeyText } from '../../partition/keys.ts';
import { decodeStamp, encodeStamp, markKey, snapshotKey, stampInKey, withoutStamp, withStamp } from './old-rows.ts';

const stamp = fc.bigInt({ min: 0n, max: (1n << 64n) - 1n });
const name = fc.string({ unit: 'binary', minLength: 1, maxLength: 40 });

describe('The keys of snapshots', () => {
  it('have the order of their stamps, after the mark of the blob and before every other name', () => {
    fc.assert(
      fc.property(stamp, stamp, name, name, (one, other, blob, next) => {
        expect(decodeStamp(encodeStamp(one))).toBe(one);
        const key = snapshotKey(1n, 2n, blob, one);
        expect([stampInKey(key), stampInKey(markKey(1n, 2n, blob))]).toEqual([one, undefined]);
        expect(withoutStamp(key)).toBe(markKey(1n, 2n, blob));
        expect(withStamp(markKey(1n, 2n, blob), one)).toBe(key);
        expect(key < snapshotKey(1n, 2n, blob, other)).toBe(one < other);
        expect(key > markKey(1n, 2n, blob)).toBe(true);
        if (next > blob) expect(key < markKey(1n, 2n, next)).toBe(true);
      }),
    );
  });

  it('hold no delimiter in their stamps', () => {
    const delimiter = fc.string({ unit: 'binary', minLength: 1, maxLength: 2 });
    fc.assert(
      fc.property(stamp, delimiter, (moment, text) => {
        const bytes = Buffer.from(encodeStamp(moment)).toString('latin1');
        expect(bytes.includes(encodeKeyText(text))).toBe(false);
      }),
    );
  });
});
