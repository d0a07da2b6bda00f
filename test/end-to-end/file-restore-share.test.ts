import { randomUUID } from 'node:crypto';
import type { ShareItem } from '@azure/storage-file-share';
import { check } from 'holdfast';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { account, expectError, onEveryEngine, onLmdb, type Running } from '../support/test-server.ts';

const DAY_SECONDS = 24 * 3600;

const newName = () => `s-${randomUUID().slice(0, 8)}`;

async function listed(running: Running, prefix: string, pageSize = 100): Promise<ShareItem[]> {
  const found: ShareItem[] = [];
  const pages = running.files.listShares({ includeDeleted: true, prefix }).byPage({ maxPageSize: pageSize });
  for await (const { shareItems } of pages) found.push(...shareItems!);
  return found;
}

async function deletedVersion(running: Running, name: string): Promise<string> {
  return (await listed(running, name)).find(({ deleted }) => deleted)!.version!;
}

function restore(running: Running, to: string, from: string, version: string) {
  const headers = { 'x-ms-deleted-share-name': from, 'x-ms-deleted-share-version': version };
  return running.request('PUT', `/${to}?restype=share&comp=undelete`, { of: 'file', headers });
}

describe('Restore Share', () => {
  onEveryEngine((running) => {
    beforeAll(() => running.server.setAccount(account, { shareRetentionDays: 7 }));
    afterAll(() => running.server.setAccount(account, { shareRetentionDays: 0 }));

    it('brings back what is in a deleted share, its settings and its policies', async () => {
      const share = await running.newShare();
      const { name } = share;
      await share.setMetadata({ key: 'value' });
      await share.setProperties({ quotaInGB: 9, accessTier: 'Hot' });
      const accessPolicy = { startsOn: new Date('2026-01-01'), expiresOn: new Date('2036-01-01'), permissions: 'r' };
      await share.setAccessPolicy([{ id: 'reader', accessPolicy }]);
      await share.createDirectory('folder');
      await share.getShareLeaseClient().acquireLease(-1);
      await share.getShareLeaseClient().breakLease();
      const before = await share.getProperties();
      await share.delete();
      expect(await share.exists()).toBe(false);
      const [item] = await listed(running, name);
      expect(item).toMatchObject({ name, deleted: true });
      expect(item!.properties).toMatchObject({ remainingRetentionDays: 7, leaseState: 'broken', quota: 9 });
      expect(item!.properties.deletedTime).toBeInstanceOf(Date);

      const restored = await running.files.undeleteShare(name, item!.version!);
      const { quota, accessTier, accessTierChangeTime, metadata, leaseState, etag } = await restored.getProperties();
      expect([quota, accessTier, metadata, leaseState]).toEqual([9, 'Hot', { key: 'value' }, 'available']);
      expect(accessTierChangeTime).toEqual(before.accessTierChangeTime);
      expect(etag).not.toBe(before.etag);
      expect((await restored.getAccessPolicy()).signedIdentifiers).toMatchObject([{ id: 'reader' }]);
      expect(await restored.getDirectoryClient('folder').exists()).toBe(true);
      expect((await listed(running, name)).map(({ deleted }) => deleted)).toEqual([undefined]);
    });

    it('restores each of several deleted shares of one name, under any free name', async () => {
      const name = newName();
      const share = running.files.getShareClient(name);
      for (const folder of ['first', 'second', 'third']) {
        await share.create();
        await share.createDirectory(folder);
        if (folder !== 'third') await share.delete();
      }
      for (const pageSize of [1, 2, 3]) {
        const items = await listed(running, name, pageSize);
        expect(items.map(({ deleted = false }) => deleted)).toEqual([false, true, true]);
      }
      const [, first, second] = await listed(running, name);
      expectError(await restore(running, name, name, first!.version!), 409, 'ShareAlreadyExists');
      for (const [folder, item] of [
        ['first', first],
        ['second', second],
      ] as const) {
        const other = `${name}-${folder}`;
        expect((await restore(running, other, name, item!.version!)).status).toBe(201);
        expect(await running.files.getShareClient(other).getDirectoryClient(folder).exists()).toBe(true);
      }
      expect((await listed(running, name)).map((item) => item.name)).toEqual([name, `${name}-first`, `${name}-second`]);
    });

    it('restores once, whoever asks at the same time', async () => {
      const share = await running.newShare();
      await share.delete();
      const version = await deletedVersion(running, share.name);
      const names = Array.from({ length: 8 }, (_, i) => `${share.name}-${i % 4}`);
      const answers = await Promise.all(names.map((to) => restore(running, to, share.name, version)));
      expect(answers.map(({ status }) => status).filter((status) => status === 201)).toHaveLength(1);
      expect(await listed(running, share.name)).toHaveLength(1);
    });

    it('cannot restore after the retention, by the clock of the server', async () => {
      const share = await running.newShare();
      const { name } = share;
      await share.delete();
      const version = await deletedVersion(running, name);
      await running.server.clock.advance(6.5 * DAY_SECONDS);
      expect((await listed(running, name))[0]!.properties.remainingRetentionDays).toBe(1);
      await running.server.clock.advance(DAY_SECONDS / 2);
      expect(await listed(running, name)).toEqual([]);
      expectError(await restore(running, name, name, version), 404, 'ShareNotFound');
      if (running.where) expect((await check(running.where)).findings).toEqual([]);
    });
  });

  onLmdb((running) => {
    it('refuses versions, names and shares that there are not', async () => {
      const name = newName();
      const missing = '08DE000000000000';
      expectError(await restore(running, name, name, missing), 404, 'ShareNotFound');
      for (const version of ['', 'x', '8'.repeat(17), 'F'.repeat(16)])
        expectError(await restore(running, name, name, version), 400, 'InvalidHeaderValue');
      const nothing = await running.request('PUT', `/${name}?restype=share&comp=undelete`, { of: 'file' });
      expectError(nothing, 400, 'MissingRequiredHeader');
      expectError(await restore(running, name, 'Not A Name', missing), 400, 'InvalidHeaderValue');
      expectError(await restore(running, 'Not-A-Name', name, missing), 400, 'InvalidResourceName');
    });

    it('is not offered while the account keeps no deleted shares', async () => {
      await running.server.setAccount(account, { containerRetentionDays: 5 });
      await running.server.setAccount(account, { shareRetentionDays: 1 });
      const kept = await running.newShare();
      await kept.delete();
      const settings = await running.server.setAccount(account, { shareRetentionDays: 0 });
      expect(settings).toEqual({ containerRetentionDays: 5, shareRetentionDays: 0 });
      const gone = await running.newShare();
      await gone.delete();
      expect(await listed(running, gone.name)).toEqual([]);
      // A change of the setting does not change the retention of what is deleted already.
      expect(await listed(running, kept.name)).toHaveLength(1);
      await running.server.reset();
      expect(await listed(running, kept.name)).toEqual([]);
      expect((await check(running.where)).findings).toEqual([]);
    });
  });
});
