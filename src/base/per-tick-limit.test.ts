import { describe, expect, it } from 'vitest';
import { limitPerTick } from './time-slices.ts';

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('Turns', () => {
  it('starts at most N at once, the others tick by tick, in their order', async () => {
    const enter = limitPerTick(3);
    const gone: number[] = [];
    for (let number = 0; number < 8; number++) {
      const wait = enter();
      if (wait) void wait.then(() => gone.push(number));
      else gone.push(number);
    }
    expect(gone).toEqual([0, 1, 2]);
    await turn();
    expect(gone).toEqual([0, 1, 2, 3, 4, 5]);
    await turn();
    expect(gone).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });

  it('starts anew when nothing waits', async () => {
    const enter = limitPerTick(1);
    for (let round = 0; round < 3; round++) {
      expect(enter()).toBeUndefined();
      expect(enter()).toBeInstanceOf(Promise);
      await turn();
      await turn();
    }
  });
});
