import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { judgePageTier, judgeTierLength, type PageTier, parsePageTier } from './page-tiers.ts';

const GIB = 2 ** 30;
/** As Microsoft's page on premium page blobs has them. */
const LIMITS: readonly [PageTier, number][] = [
  ['P4', 32],
  ['P6', 64],
  ['P10', 128],
  ['P15', 256],
  ['P20', 512],
  ['P30', 1024],
  ['P40', 2048],
  ['P50', 4096],
  ['P60', 8192],
  ['P70', 16384],
  ['P80', 32768],
];
const aTier = fc.integer({ min: 0, max: LIMITS.length - 1 });

describe('The tier of a page blob', () => {
  it('is one of eleven', () => {
    for (const [tier] of LIMITS) expect(parsePageTier(tier)).toBe(tier);
    for (const text of ['', 'Hot', 'P5', 'p4', 'Premium', 'toString']) expect(parsePageTier(text)).toBeUndefined();
  });

  it('is raised, and never lowered', () => {
    fc.assert(
      fc.property(aTier, aTier, (one, other) => {
        const verdict = judgePageTier(LIMITS[one]![0], 0, LIMITS[other]![0]);
        expect(verdict).toBe(other < one ? 'CannotChangeToLowerTier' : 'proceed');
      }),
    );
  });

  it('limits the length, whichever of the two is changed', () => {
    for (const [tier, gib] of LIMITS) {
      expect(judgePageTier(undefined, gib * GIB, tier)).toBe('proceed');
      expect(judgePageTier(undefined, gib * GIB + 512, tier)).toBe('BlobTierInadequateForContentLength');
      expect(judgeTierLength(tier, gib * GIB)).toBe('proceed');
      expect(judgeTierLength(tier, gib * GIB + 512)).toBe('ContentLengthLargerThanTierLimit');
    }
    expect(judgeTierLength(undefined, 2 ** 43)).toBe('proceed');
  });
});
