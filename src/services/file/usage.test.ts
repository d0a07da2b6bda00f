import { describe, expect, it } from 'vitest';
import { openShare } from '../../../test/support/file-storage.ts';
import { encodeKey } from '../../partition/keys.ts';
import type { Transaction } from '../../partition/partition.ts';
import { charge, readUsage } from './usage.ts';

const GIB = 2 ** 30;

describe('The bytes in use by a share', () => {
  it('are what was added and not taken away, whichever shard counted it', async () => {
    const { act, partition, share } = await openShare();
    for (const bytes of [5, 7, 0, -3, 100, -9]) await act((tx) => charge(tx, share, bytes));
    expect(await partition.read((at) => readUsage(at, share))).toBe(100n);
  });

  it('reach the quota, and never exceed it', async () => {
    const { act, partition, share } = await openShare();
    const small = { ...share, quota: 1 };
    await act((tx) => charge(tx, small, GIB - 1));
    await expect(act((tx) => charge(tx, small, 2))).rejects.toMatchObject({ code: 'ShareSizeLimitReached' });
    await act((tx) => charge(tx, small, 1));
    await expect(act((tx) => charge(tx, small, 1))).rejects.toMatchObject({ code: 'ShareSizeLimitReached' });
    expect(await partition.read((at) => readUsage(at, share))).toBe(BigInt(GIB));
  });

  it('are read once by transactions that read the same state', async () => {
    const { partition, share } = await openShare();
    let reads = 0;
    const counting = (tx: Transaction): Transaction =>
      new Proxy(tx, {
        get(of, name) {
          if (name === 'getUnchecked') reads++;
          const found = Reflect.get(of, name, of);
          return typeof found === 'function' ? found.bind(of) : found;
        },
      });
    const chargeAll = (bytes: number) =>
      Promise.all(
        [1, 2, 3, 4].map((i) =>
          partition.transact(encodeKey(['file', i]), async (tx) => charge(counting(tx), { ...share, quota: 1 }, bytes)),
        ),
      );
    await chargeAll(100);
    expect(reads).toBe(1);
    await chargeAll(50);
    expect(reads).toBe(2);
    expect(await partition.read((at) => readUsage(at, share))).toBe(600n);
  });

  it('never exceed the quota, however many clients write at once', async () => {
    const { partition, share } = await openShare();
    const charging = Array.from({ length: 40 }, (_, i) =>
      partition.transact(encodeKey(['file', i]), (tx) => charge(tx, { ...share, quota: 1 }, Math.floor(GIB / 10))),
    );
    const outcomes = await Promise.allSettled(charging);
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(10);
  });

  it('can be lowered after the quota was', async () => {
    const { act, partition, share } = await openShare();
    await act((tx) => charge(tx, share, 3 * GIB));
    await act((tx) => charge(tx, { ...share, quota: 1 }, -1));
    expect(await partition.read((at) => readUsage(at, share))).toBe(BigInt(3 * GIB - 1));
  });
});
