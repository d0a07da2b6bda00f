import { setImmediate as eventLoopTick } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { detachBuffers } from './detach-buffers.ts';

describe('Freeing memory', () => {
  it('detaches pieces that own their memory, and no others', async () => {
    const pieces = [Buffer.allocUnsafeSlow(70_000), Buffer.from(new ArrayBuffer(10), 2), Buffer.from('in the pool')];
    detachBuffers(pieces);
    expect(pieces.map(({ length }) => length)).toEqual([0, 8, 11]);
    detachBuffers(pieces);
    detachBuffers([]);
    await eventLoopTick();
    const later = Buffer.allocUnsafeSlow(70_000);
    const shared = Buffer.from(new SharedArrayBuffer(10));
    detachBuffers([shared, later]);
    expect([shared.length, later.length]).toEqual([10, 0]);
  });
});
