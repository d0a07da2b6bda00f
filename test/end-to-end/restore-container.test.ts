import { randomUUID } from 'node:crypto';
import type { ContainerItem } from '@azure/storage-blob';
import { check } from 'holdfast';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { account, expectError, onEveryEngine, onLmdb, type Running } from '../support/test-server.ts';

const DAY_SECONDS = 24 * 3600;

const newName = () => `c-${randomUUID().slice(0, 8)}`;

async function listed(running: Running, prefix: string, pageSize = 100): Promise<ContainerItem[]> {
  const found: ContainerItem[] = [];
  const pages = running.service.listContainers({ includeDeleted: true, prefix }).byPage({ maxPageSize: pageSize });
  for await (const { containerItems } of pages) found.push(...containerItems);
  return found;
}

async function deletedVersion(running: Running, name: string): Promise<string> {
  return (await listed(running, name)).find(({ deleted }) => deleted)!.version!;
}

function restore(running: Running, to: string, from: string, version: string) {
  const headers = { 'x-ms-deleted-container-name': from, 'x-ms-deleted-container-version': version };
  return running.request('PUT', `/${to}?restype=container&comp=undelete`, { headers });
}

describe('Restore Container', () => {
  onEveryEngine((running) => {
    beforeAll(() => running.server.setAccount(account, { containerRetentionDays: 7 }));
    afterAll(() => running.server.setAccount(account, { containerRetentionDays: 0 }));

    it('brings back the blobs, blocks, metadata, policies and tags of a deleted container', async () => {
      const container = await running.newContainer();
      const { containerName: name } = container;
      const key = `k${name.slice(-8)}`;
      await container.setMetadata({ key: 'value' });
      await container.setAccessPolicy('blob', [{ id: 'reader', accessPolicy: { permissions: 'r' } }]);
      await container.getBlockBlobClient('a').upload('Hello', 5, { tags: { [key]: '1' } });
      await container.getBlockBlobClient('staged').stageBlock('AAAA', 'block', 5);
      const { etag } = await container.getBlobClient('a').getProperties();
      await container.delete();
      expect(await container.exists()).toBe(false);
      const tagged = async () => {
        const names: string[] = [];
        for await (const blob of running.service.findBlobsByTags(`${key}='1'`)) names.push(blob.containerName);
        return names;
      };
      expect(await tagged()).toEqual([]);
      const [item] = await listed(running, name);
      expect(item).toMatchObject({ name, deleted: true, properties: { remainingRetentionDays: 7 } });
      expect(item!.properties.deletedOn).toBeInstanceOf(Date);

      const { containerClient } = await running.service.undeleteContainer(name, item!.version!);
      expect((await containerClient.getBlobClient('a').downloadToBuffer()).toString()).toBe('Hello');
      expect((await containerClient.getBlobClient('a').getProperties()).etag).toBe(etag);
      await containerClient.getBlockBlobClient('staged').commitBlockList(['AAAA']);
      expect(await containerClient.getProperties()).toMatchObject({ metadata: { key: 'value' } });
      expect((await containerClient.getAccessPolicy()).signedIdentifiers).toMatchObject([{ id: 'reader' }]);
      expect(await tagged()).toEqual([name]);
      expect((await listed(running, name)).map(({ deleted }) => deleted)).toEqual([undefined]);
    });

    it('restores each of several deleted containers of one name, under any free name', async () => {
      const name = newName();
      const container = running.service.getContainerClient(name);
      for (const text of ['first', 'second', 'third']) {
        await container.create();
        await container.uploadBlockBlob('a', text, text.length);
        if (text !== 'third') await container.delete();
      }
      for (const pageSize of [1, 2, 3]) {
        const items = await listed(running, name, pageSize);
        expect(items.map(({ deleted = false }) => deleted)).toEqual([false, true, true]);
      }
      const [, first, second] = await listed(running, name);
      expectError(await restore(running, name, name, first!.version!), 409, 'ContainerAlreadyExists');
      for (const [text, item] of [
        ['first', first],
        ['second', second],
      ] as const) {
        const other = `${name}-${text}`;
        expect((await restore(running, other, name, item!.version!)).status).toBe(201);
        const restored = running.service.getContainerClient(other).getBlobClient('a');
        expect((await restored.downloadToBuffer()).toString()).toBe(text);
      }
      expect((await listed(running, name)).map((item) => item.name)).toEqual([name, `${name}-first`, `${name}-second`]);
    });

    it('restores once, whoever asks at the same time', async () => {
      const container = await running.newContainer();
      const { containerName: name } = container;
      await container.delete();
      const version = await deletedVersion(running, name);
      const names = Array.from({ length: 8 }, (_, i) => `${name}-${i % 4}`);
      const answers = await Promise.all(names.map((to) => restore(running, to, name, version)));
      expect(answers.map(({ status }) => status).filter((status) => status === 201)).toHaveLength(1);
      expect(await listed(running, name)).toHaveLength(1);
    });

    it('cannot restore after the retention, by the clock of the server', async () => {
      const container = await running.newContainer();
      const { containerName: name } = container;
      await container.uploadBlockBlob('a', 'x', 1);
      await container.delete();
      const version = await deletedVersion(running, name);
      await running.server.clock.advance(6.5 * DAY_SECONDS);
      expect((await listed(running, name))[0]!.properties.remainingRetentionDays).toBe(1);
      await running.server.clock.advance(DAY_SECONDS / 2);
      expect(await listed(running, name)).toEqual([]);
      expectError(await restore(running, name, name, version), 404, 'ContainerNotFound');
      if (running.where) expect((await check(running.where)).findings).toEqual([]);
    });
  });

  onLmdb((running) => {
    it('refuses versions, names and containers that there are not', async () => {
      const name = newName();
      const missing = '08DE000000000000';
      expectError(await restore(running, name, name, missing), 404, 'ContainerNotFound');
      for (const version of ['', 'x', '8'.repeat(17), 'F'.repeat(16)])
        expectError(await restore(running, name, name, version), 400, 'InvalidHeaderValue');
      const nothing = await running.request('PUT', `/${name}?restype=container&comp=undelete`);
      expectError(nothing, 400, 'MissingRequiredHeader');
      expectError(await restore(running, name, 'Not A Name', missing), 400, 'InvalidHeaderValue');
      expectError(await restore(running, 'Not-A-Name', name, missing), 400, 'InvalidResourceName');
    });

    it('is not offered while the account keeps no deleted containers', async () => {
      await running.server.setAccount(account, { containerRetentionDays: 1 });
      const kept = await running.newContainer();
      await kept.delete();
      await running.server.setAccount(account, { containerRetentionDays: 0 });
      const gone = await running.newContainer();
      await gone.delete();
      expect(await listed(running, gone.containerName)).toEqual([]);
      // A change of the setting does not change the retention of what is deleted already.
      expect(await listed(running, kept.containerName)).toHaveLength(1);
    });

    it.each([-1, 366, 1.5, Number.NaN])('cannot keep containers for %d days', async (days) => {
      await expect(running.server.setAccount(account, { containerRetentionDays: days })).rejects.toThrow(
        'from 0 to 365',
      );
    });
  });
});
