import { describe, expect, it } from 'vitest';
import { createReads } from './active-reads.ts';

describe('The running reads', () => {
  it('have rising numbers, and the oldest is known until it ends', () => {
    const reads = createReads();
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

  it('are waited for only by those who saw something before they began', async () => {
    const reads = createReads();
    const [one, two] = [reads.begin(), reads.begin()];
    const seen = reads.next();
    const three = reads.begin();
    const ended: string[] = [];
    const waits = [
      reads.ended(one.number).then(() => ended.push('none')),
      reads.ended(two.number).then(() => ended.push('one')),
      reads.ended(seen).then(() => ended.push('two')),
      reads.ended(reads.next()).then(() => ended.push('three')),
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

  it('are cut after some hours: nothing waits for them any more', async () => {
    let now = 0;
    const reads = createReads({ millisecondsMax: 1_000, now: () => now });
    const [long, short] = [reads.begin(), reads.begin()];
    const waiting = reads.ended(short.number);
    now = 999;
    const late = reads.begin();
    expect([long.isCut, reads.oldest()]).toEqual([false, long.number]);
    now = 1_500;
    expect(reads.oldest()).toBe(late.number);
    expect([long.isCut, short.isCut, late.isCut]).toEqual([true, true, false]);
    await waiting;
    long.end();
    late.end();
    expect(reads.oldest()).toBe(Infinity);
  });

  it('are all cut when the process has lost its place', async () => {
    const reads = createReads();
    const running = [reads.begin(), reads.begin()];
    const waiting = reads.ended(reads.next());
    reads.cutAll();
    await waiting;
    expect(running.map(({ isCut }) => isCut)).toEqual([true, true]);
    expect(reads.begin().isCut).toBe(false);
  });
});
