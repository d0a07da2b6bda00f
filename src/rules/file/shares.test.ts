import { describe, expect, it } from 'vitest';
import { fitsQuota, isQuota, parseShareTier } from './shares.ts';

describe('The quota of a share', () => {
  it.each([1, 5_120, 102_400])('can be %d GiB', (quota) => expect(isQuota(quota)).toBe(true));
  it.each([0, -1, 1.5, 102_401, Number.NaN])('cannot be %d GiB', (quota) => expect(isQuota(quota)).toBe(false));

  it('is reached by as many bytes, and exceeded by one more', () => {
    expect(fitsQuota(2n ** 30n, 1)).toBe(true);
    expect(fitsQuota(2n ** 30n + 1n, 1)).toBe(false);
  });
});

describe('The tier of a share', () => {
  it.each([
    ['hot', 'Hot'],
    ['COOL', 'Cool'],
    ['transactionOptimized', 'TransactionOptimized'],
  ])('is found whatever the case: %s', (text, tier) => expect(parseShareTier(text)).toBe(tier));
  it.each(['Premium', 'Cold', 'Archive', ''])('is none of a general-purpose account: %s', (text) => {
    expect(parseShareTier(text)).toBeUndefined();
  });
});
