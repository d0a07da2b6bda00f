import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { batchWrites } from './batched-writes.ts';

async function* one(piece: Uint8Array): AsyncGenerator<Uint8Array> {
  yield piece;
}

describe('Gathering from many sources', () => {
  it('works on four batches in one turn of the event loop, and comes to all of them', async () => {
    const began: number[] = [];
    let turns = 0;
    const sources = Array.from({ length: 10 }, () =>
      batchWrites(one(Buffer.of(1)), 1 << 10, async () => {
        began.push(turns);
      }),
    );
    let done = false;
    const all = Promise.all(sources).finally(() => {
      done = true;
    });
    while (!done) {
      await turn();
      turns++;
    }
    await all;
    expect(began).toHaveLength(10);
    for (const each of began) expect(began.filter((other) => other === each).length).toBeLessThanOrEqual(4);
  });
});
