import { describe, expect, it } from 'vitest';
import { bytesLeft, isQuota, parseShareTier } from './shares.ts';

describe('The quota of a share', () => {
  it.each([1, 5_120, 102_400])('can be %d GiB', (quota) => expect(isQuota(quota)).toBe(true));
  it.each([0, -1, 1.5, 102_401, Number.NaN])('cannot be %d GiB', (quota) => expect(isQuota(quota)).toBe(false));

  it('is reached by as many bytes, and exceeded by one more', () => {
    expect(bytesLeft(1, 2n ** 30n)).toBe(0n);
    expect(bytesLeft(1, 2n ** 30n + 1n)).toBe(-1n);
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
