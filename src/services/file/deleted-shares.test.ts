import { describe, expect, it } from 'vitest';
import { ACCOUNT } from '../../../test/support/blob-storage.ts';
import { openShare, SHARE } from '../../../test/support/file-storage.ts';
import { createChunkChecker } from '../../content/chunk-check.ts';
import { putAccountSettings } from '../common/account-settings.ts';
import { decodeDeletedName, deletedExpiryKey, deletedNamesIn, formatDeletedVersion } from '../common/deleted-names.ts';
import { check } from '../maintenance/check.ts';
import { emptyAccount, hasContents } from '../maintenance/reset.ts';
import { restoreShare } from './deleted-shares.ts';
import { propertiesKey } from './rows.ts';
import { deleteShare } from './shares.ts';

const DAY = 24n * 3600n * 10_000_000n;

async function withDeletedShare() {
  const world = await openShare();
  const { storage, partition, extents } = world;
  await world.act((tx) => putAccountSettings(tx, ACCOUNT, { containerRetentionDays: 0, shareRetentionDays: 3 }));
  await deleteShare(storage, { share: SHARE, leaseId: undefined });
  const findings = async () => (await check(partition, createChunkChecker(partition, extents))).findings;
  const deletedRow = () =>
    partition.read(async (at) => (await at.scan(deletedNamesIn(ACCOUNT, 'file'), { limit: 1 }))[0]!);
  return { world, storage, findings, deletedRow };
}

describe('A deleted share', () => {
  it('keeps its rows until the retention ends, and then gives all of them back', async () => {
    const { world, findings } = await withDeletedShare();
    await world.sweep();
    expect(await world.kinds()).toMatchObject({ g: 1, p: 1, j: 1 });
    expect(await world.kinds()).not.toHaveProperty('n');
    expect(await findings()).toEqual([]);
    await world.partition.clock.advance(3n * DAY);
    await world.sweep();
    await world.sweep();
    expect(await world.kinds()).toEqual({ s: 1 });
    expect(world.failures).toEqual([]);
    await world.stop();
  });

  it('cannot be restored after the retention, even before the sweeper has removed it', async () => {
    const { world, storage, deletedRow } = await withDeletedShare();
    const { deleted } = decodeDeletedName(await deletedRow());
    const input = { share: SHARE, deletedName: SHARE, deletedVersion: formatDeletedVersion(deleted) };
    await world.partition.clock.advance(3n * DAY);
    await expect(restoreShare(storage, input)).rejects.toMatchObject({ code: 'ShareNotFound' });
    await world.stop();
  });

  it('goes with its account, at once', async () => {
    const { world, storage } = await withDeletedShare();
    await emptyAccount(storage);
    await world.sweep();
    expect(await world.kinds()).toEqual({});
    expect(await hasContents(world.partition, ACCOUNT)).toBe(false);
    await world.stop();
  });

  it('is damaged without its properties or the end of its retention, and check says so', async () => {
    for (const damage of ['properties', 'end'] as const) {
      const { world, findings, deletedRow } = await withDeletedShare();
      const share = decodeDeletedName(await deletedRow());
      await world.act((tx) =>
        tx.remove(damage === 'end' ? deletedExpiryKey(ACCOUNT, 'file', share) : propertiesKey(ACCOUNT, share.id)),
      );
      expect((await findings()).join()).toContain('its properties or the end of its retention is missing');
      await world.stop();
    }
  });
});
