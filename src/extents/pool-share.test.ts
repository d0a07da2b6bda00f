import { describe, expect, it } from 'vitest';
import { createPoolShare } from './pool-share.ts';

function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

describe('A share of the thread pool', () => {
  it('runs as much at once as it has threads, and the rest in its order', async () => {
    const share = createPoolShare(3);
    const begun: number[] = [];
    const gates = Array.from({ length: 6 }, gate);
    const done = gates.map(({ opened }, at) =>
      share.run(async () => {
        begun.push(at);
        await opened;
        return at;
      }),
    );
    await settled();
    expect(begun).toEqual([0, 1, 2]);
    gates[1]!.open();
    await settled();
    expect(begun).toEqual([0, 1, 2, 3]);
    for (const { open } of gates) open();
    expect(await Promise.all(done)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(begun).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it('has its thread back from work that failed', async () => {
    const share = createPoolShare(1);
    const failing = async () => {
      throw new Error('EIO');
    };
    await expect(share.run(failing)).rejects.toThrow('EIO');
    expect(await share.run(async () => 'done')).toBe('done');
  });
});
