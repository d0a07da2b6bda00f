import { describe, expect, it } from 'vitest';
import { addSeconds, expiryTime, isVisible, limitsFault, NEVER, putFault, updateFault } from './messages.ts';

const SECOND = 10_000_000n;

describe('What a put may say', () => {
  it.each([
    [0, 1],
    [0, -1],
    [604_800, -1],
    [604_800, 604_801],
    [0, 2 ** 31 - 1],
    [6, 7],
  ])('is a delay of %d and a life of %d', (visibility, ttl) => {
    expect(putFault(visibility, ttl)).toBeUndefined();
  });

  it.each([
    [-1, 10, 'visibilitytimeout', 'min'],
    [604_801, -1, 'visibilitytimeout', 'min'],
    [0.5, 10, 'visibilitytimeout', 'min'],
    [Number.NaN, 10, 'visibilitytimeout', 'min'],
    [0, 0, 'messagettl', 'reason'],
    [0, -2, 'messagettl', 'reason'],
    [0, 2 ** 31, 'messagettl', 'max'],
    [0, 1e20, 'messagettl', 'max'],
    [0, 1.5, 'messagettl', 'reason'],
    [7, 7, 'visibilitytimeout', 'reason'],
    [8, 7, 'visibilitytimeout', 'reason'],
  ])('is not a delay of %d and a life of %d', (visibility, ttl, parameter, how) => {
    const fault = putFault(visibility, ttl);
    expect(fault).toMatchObject({ parameter });
    expect(fault).toHaveProperty(how);
  });
});

describe('Instants', () => {
  it('of expiry are the end of the year 9999 at the latest', () => {
    expect(expiryTime(5n, 2)).toBe(5n + 2n * SECOND);
    expect(expiryTime(5n, -1)).toBe(NEVER);
    expect(expiryTime(NEVER - 1n, 1)).toBe(NEVER);
  });

  it('to which a message can be hidden lie before its end', () => {
    expect(updateFault(0n, 10, 10n * SECOND)).toBeUndefined();
    expect(updateFault(1n, 10, 10n * SECOND)).toMatchObject({ parameter: 'visibilitytimeout' });
    expect(updateFault(NEVER, 0, NEVER)).toBeUndefined();
  });

  it('from which a message can be seen are its own, or that of the put by a clock that is ahead', () => {
    expect(isVisible(10n, 1n, 9n)).toBe(false);
    expect(isVisible(10n, 1n, 10n)).toBe(true);
    expect(isVisible(10n, 10n, 9n)).toBe(true);
    expect(isVisible(addSeconds(10n, 1), 10n, 9n)).toBe(false);
  });
});

describe('Bounds', () => {
  it('are both included', () => {
    const bounds = { min: 1, max: 32 };
    for (const value of [1, 2, 32]) expect(limitsFault('n', value, bounds)).toBeUndefined();
    for (const value of [0, 33, 1.5, Number.NaN, -1]) {
      expect(limitsFault('n', value, bounds)).toEqual({ parameter: 'n', value, ...bounds });
    }
  });
});
