import { describe, expect, it } from 'vitest';
import { ACCOUNT, CONTAINER, openWorld } from '../../../test/support/blob-storage.ts';
import { createChunkChecker } from '../../content/chunk-check.ts';
import { putAccountSettings } from '../common/account-settings.ts';
import { decodeDeletedName, deletedExpiryKey, deletedNamesIn } from '../common/deleted-names.ts';
import type { Storage } from '../common/storage.ts';
import { check } from '../maintenance/check.ts';
import { emptyAccount, hasContents } from '../maintenance/reset.ts';
import { deleteContainer } from './containers.ts';
import { propertiesKey } from './rows.ts';

const DAY = 24n * 3600n * 10_000_000n;

async function withDeletedContainer() {
  const world = await openWorld();
  const { partition, store, sweeper, extents } = world;
  const storage: Storage = { partition, account: ACCOUNT, content: store, sweeper };
  await world.putContainer();
  for (let i = 0; i < 70; i++) await world.putBlob(`large-${i}`, 2_000);
  for (let i = 0; i < 70; i++) await world.putInline(`small-${i}`);
  await world.putUncommitted('new', 20);
  await world.act((tx) => putAccountSettings(tx, ACCOUNT, { containerRetentionDays: 3, shareRetentionDays: 0 }));
  await deleteContainer(storage, { container: 'box', leaseId: undefined, conditions: {} });
  const findings = async () => (await check(partition, createChunkChecker(partition, extents))).findings;
  const deletedRow = () =>
    partition.read(async (at) => (await at.scan(deletedNamesIn(ACCOUNT, 'blob'), { limit: 1 }))[0]!);
  return { world, storage, findings, deletedRow };
}

describe('A deleted container', () => {
  it('keeps its rows until the retention ends, and then gives all of them back', async () => {
    const { world, findings } = await withDeletedContainer();
    await world.sweep();
    expect(await world.kinds()).toMatchObject({ g: 1, p: 1, b: 140 });
    expect(await world.kinds()).not.toHaveProperty('n');
    expect(await findings()).toEqual([]);
    await world.partition.clock.advance(3n * DAY);
    await world.sweep();
    await world.sweep();
    expect(await world.kinds()).toEqual({ s: 1 });
    expect(world.failures).toEqual([]);
    await world.stop();
  });

  it('goes with its account, at once', async () => {
    const { world, storage } = await withDeletedContainer();
    await emptyAccount(storage);
    await world.sweep();
    expect(await world.kinds()).toEqual({});
    expect(await hasContents(world.partition, ACCOUNT)).toBe(false);
    await world.stop();
  });

  it('is damaged without its properties or the end of its retention, and check says so', async () => {
    for (const damage of ['properties', 'end'] as const) {
      const { world, findings, deletedRow } = await withDeletedContainer();
      const container = decodeDeletedName(await deletedRow());
      await world.act((tx) =>
        tx.remove(damage === 'end' ? deletedExpiryKey(ACCOUNT, 'blob', container) : propertiesKey(ACCOUNT, CONTAINER)),
      );
      expect((await findings()).join()).toContain('its properties or the end of its retention is missing');
      await world.stop();
    }
  });
});
