import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatEtag } from './conditions.ts';

describe('An ETag', () => {
  it('is the version in upper-case hexadecimal digits, without quotes', () => {
    expect(formatEtag(638_000_000_000_000_000n)).toBe('0x8DAA19EA6B30000');
  });

  it('differs when the versions differ by one tick', () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: 0n, max: 2n ** 62n }),
        (version) => formatEtag(version) !== formatEtag(version + 1n),
      ),
    );
  });
});
