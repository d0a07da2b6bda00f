import { setImmediate as eventLoopTick } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { batchWrites } from './batched-writes.ts';

async function* one(piece: Uint8Array): AsyncGenerator<Uint8Array> {
  yield piece;
}

describe('Batched writes of many sources', () => {
  it('start at most four batches in one tick of the event loop, and reach all of them', async () => {
    const began: number[] = [];
    let ticks = 0;
    const sources = Array.from({ length: 10 }, () =>
      batchWrites(one(Buffer.of(1)), 1 << 10, async () => {
        began.push(ticks);
      }),
    );
    let done = false;
    const all = Promise.all(sources).finally(() => {
      done = true;
    });
    while (!done) {
      await eventLoopTick();
      ticks++;
    }
    await all;
    expect(began).toHaveLength(10);
    for (const each of began) expect(began.filter((other) => other === each).length).toBeLessThanOrEqual(4);
  });
});
