import { describe, expect, it } from 'vitest';
import { createActiveReads } from './active-reads.ts';

describe('The running reads', () => {
  it('have rising numbers, and the oldest is known until it ends', () => {
    const reads = createActiveReads();
    expect(reads.oldest()).toBe(Infinity);
    const [one, two] = [reads.begin(), reads.begin()];
    expect(two.number).toBeGreaterThan(one.number);
    expect(reads.next()).toBeGreaterThan(two.number);
    expect(reads.oldest()).toBe(one.number);
    one.end();
    expect(reads.oldest()).toBe(two.number);
    one.end();
    two.end();
    expect(reads.oldest()).toBe(Infinity);
  });

  it('are waited for only with numbers that were taken after they began', async () => {
    const reads = createActiveReads();
    const [one, two] = [reads.begin(), reads.begin()];
    const seen = reads.next();
    const three = reads.begin();
    const ended: string[] = [];
    const waits = [
      reads.whenReached(one.number).then(() => ended.push('none')),
      reads.whenReached(two.number).then(() => ended.push('one')),
      reads.whenReached(seen).then(() => ended.push('two')),
      reads.whenReached(reads.next()).then(() => ended.push('three')),
    ];
    for (const [read, soFar] of [
      [undefined, ['none']],
      [one, ['none', 'one']],
      [two, ['none', 'one', 'two']],
      [three, ['none', 'one', 'two', 'three']],
    ] as const) {
      read?.end();
      await new Promise(setImmediate);
      expect(ended).toEqual(soFar);
    }
    await Promise.all(waits);
  });

  it('are cancelled after some hours: nothing waits for them any more', async () => {
    let now = 0;
    const reads = createActiveReads({ millisecondsMax: 1_000, now: () => now });
    const [long, short] = [reads.begin(), reads.begin()];
    const waiting = reads.whenReached(short.number);
    now = 999;
    const late = reads.begin();
    expect([long.isCancelled, reads.oldest()]).toEqual([false, long.number]);
    now = 1_500;
    expect(reads.oldest()).toBe(late.number);
    expect([long.isCancelled, short.isCancelled, late.isCancelled]).toEqual([true, true, false]);
    await waiting;
    long.end();
    late.end();
    expect(reads.oldest()).toBe(Infinity);
  });

  it('are all cancelled when the process is evicted', async () => {
    const reads = createActiveReads();
    const running = [reads.begin(), reads.begin()];
    const waiting = reads.whenReached(reads.next());
    reads.cancelAll();
    await waiting;
    expect(running.map(({ isCancelled }) => isCancelled)).toEqual([true, true]);
    expect(reads.begin().isCancelled).toBe(false);
  });
});
