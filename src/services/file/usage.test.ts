import { describe, expect, it } from 'vitest';
import { openShare } from '../../../test/support/file-storage.ts';
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

  it('can be lowered after the quota was', async () => {
    const { act, partition, share } = await openShare();
    await act((tx) => charge(tx, share, 3 * GIB));
    await act((tx) => charge(tx, { ...share, quota: 1 }, -1));
    expect(await partition.read((at) => readUsage(at, share))).toBe(BigInt(3 * GIB - 1));
  });
});
