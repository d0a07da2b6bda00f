import { describe, expect, it } from 'vitest';
import { PasswordAttempts } from './password-attempts.ts';

describe('Attempts of an address', () => {
  const open = () => new PasswordAttempts({ attemptsAtOnce: 3, millisecondsEach: 1_000 });

  it('are some at once, then one in a while, however they are spread', () => {
    const attempts = open();
    const waits = Array.from({ length: 6 }, () => attempts.begin('192.0.2.1', 0));
    expect(waits).toEqual([0, 0, 0, 1_000, 2_000, 3_000]);
    expect(attempts.begin('192.0.2.1', 2_500)).toBe(1_500);
    expect(attempts.begin('192.0.2.1', 60_000)).toBe(0);
  });

  it('are counted for each address alone', () => {
    const attempts = open();
    for (let i = 0; i < 10; i++) attempts.begin('192.0.2.1', 0);
    expect(attempts.begin('192.0.2.2', 0)).toBe(0);
  });

  it('take nothing if they succeed', () => {
    const attempts = open();
    for (let i = 0; i < 100; i++) {
      expect(attempts.begin('192.0.2.1', 0)).toBe(0);
      attempts.succeeded('192.0.2.1');
    }
  });

  it('wait no longer than a connection lasts, and are forgotten when there are too many addresses', () => {
    const attempts = open();
    for (let i = 0; i < 1_000; i++) attempts.begin('192.0.2.1', 0);
    expect(attempts.begin('192.0.2.1', 0)).toBe(61_000);
    for (let i = 0; i < 10_000; i++) attempts.begin(`address ${i}`, 0);
    expect(attempts.begin('192.0.2.1', 0)).toBe(0);
  });
});
