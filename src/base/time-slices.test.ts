import { describe, expect, it } from 'vitest';
import { runSliced, type SlicedWork } from './time-slices.ts';

const SLICES = 5;

function* sliced(onSlice: () => void, slices = SLICES): SlicedWork<string> {
  for (let slice = 0; slice < slices; slice++) {
    if (slice > 0) yield;
    onSlice();
  }
  return 'done';
}

describe('Work in turns', () => {
  it('on a small input is done at once', () => {
    let slices = 0;
    const whole = sliced(() => slices++, 1);
    expect(runSliced(whole, 100)).toBe('done');
    expect(slices).toBe(1);
  });

  it('on a large input waits for a tick of its own, also for its first slice', async () => {
    let slices = 0;
    const done = runSliced(
      sliced(() => slices++),
      1 << 20,
    );
    expect(slices).toBe(0);
    expect(await done).toBe('done');
    expect(slices).toBe(SLICES);
  });

  it('on ten large inputs is one slice in each tick of the event loop', async () => {
    let turns = 0;
    let isOver = false;
    const count = () => {
      turns++;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    let most = 0;
    let last = { turn: -1, slices: 0 };
    const onSlice = () => {
      last = { turn: turns, slices: last.turn === turns ? last.slices + 1 : 1 };
      most = Math.max(most, last.slices);
    };
    await Promise.all(Array.from({ length: 10 }, () => runSliced(sliced(onSlice), 1 << 20)));
    isOver = true;
    // Two that meet between two counts belong to different turns.
    expect(most).toBeLessThanOrEqual(2);
    expect(turns).toBeGreaterThanOrEqual(10 * SLICES - 1);
  });
});
