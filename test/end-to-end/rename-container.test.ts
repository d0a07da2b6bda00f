import { randomUUID } from 'node:crypto';
import {
  AccountSASPermissions,
  AccountSASResourceTypes,
  AccountSASServices,
  generateAccountSASQueryParameters,
  StorageSharedKeyCredential,
} from '@azure/storage-blob';
import { describe, expect, it } from 'vitest';
import { account, accountKey, expectError, onEveryEngine, type Running } from '../support/test-server.ts';

describe('Rename Container', () => {
  onEveryEngine((running) => {
    it('moves all blobs, blocks, metadata and policies to the new name, and frees the old one', async () => {
      const source = await running.newContainer();
      await source.setMetadata({ Key: 'value' });
      const policy = { id: 'reader', accessPolicy: { permissions: 'r' } };
      await source.setAccessPolicy('blob', [policy]);
      for (const name of ['a', 'dir/b']) await source.uploadBlockBlob(name, name, name.length);
      await source.getBlockBlobClient('staged').stageBlock('AAAA', 'Hello', 5);
      const { etag } = await source.getProperties();
      const before = await source.getBlobClient('a').getProperties();

      const target = running.service.getContainerClient(newName());
      const answer = await rename(running, source.containerName, target.containerName);
      expect([answer.status, answer.text]).toEqual([200, '']);
      expect(answer.headers).not.toHaveProperty('etag');

      expect(await source.exists()).toBe(false);
      const after = await target.getProperties();
      expect(after).toMatchObject({ metadata: { key: 'value' }, blobPublicAccess: 'blob' });
      expect(after.etag).not.toBe(etag);
      expect((await target.getAccessPolicy()).signedIdentifiers).toMatchObject([{ id: 'reader' }]);
      expect((await target.getBlobClient('dir/b').downloadToBuffer()).toString()).toBe('dir/b');
      expect((await target.getBlobClient('a').getProperties()).etag).toBe(before.etag);
      await target.getBlockBlobClient('staged').commitBlockList(['AAAA']);
      expect((await target.getBlobClient('staged').downloadToBuffer()).toString()).toBe('Hello');

      await source.create();
      expect((await source.listBlobsFlat().next()).done).toBe(true);
      await target.delete();
      expect(await source.exists()).toBe(true);
    });

    it('leads a search by tags to the new name, also for blobs that are tagged later', async () => {
      const source = await running.newContainer();
      const key = `k${randomUUID().slice(0, 8)}`;
      await source.getBlockBlobClient('a').upload('a', 1, { tags: { [key]: '1' } });
      const target = running.service.getContainerClient(newName());
      await rename(running, source.containerName, target.containerName);
      await target.getBlockBlobClient('b').upload('b', 1, { tags: { [key]: '1' } });
      await source.create();
      const found: string[] = [];
      for await (const blob of running.service.findBlobsByTags(`${key}='1'`)) {
        found.push(`${blob.containerName}/${blob.name}`);
      }
      expect(found).toEqual(['a', 'b'].map((name) => `${target.containerName}/${name}`));
    });

    it('refuses a name that is taken, whether the source exists or not, and a source that does not exist', async () => {
      const [source, taken] = [await running.newContainer(), await running.newContainer()];
      const to = taken.containerName;
      for (const from of [source.containerName, to, newName()]) {
        expectError(await rename(running, from, to), 409, 'ContainerAlreadyExists');
      }
      expectError(await rename(running, newName(), newName()), 404, 'ContainerNotFound');
      expect(await source.exists()).toBe(true);
    });

    it('needs the id of the lease of the source, and ends that lease', async () => {
      const source = await running.newContainer();
      const from = source.containerName;
      const withId = (id: string) => ({ 'x-ms-source-lease-id': id });
      const unleased = await rename(running, from, newName(), withId(randomUUID()));
      expectError(unleased, 412, 'LeaseNotPresentWithContainerOperation');
      const lease = source.getBlobLeaseClient();
      await lease.acquireLease(-1);
      expectError(await rename(running, from, newName()), 412, 'LeaseIdMissing');
      const other = await rename(running, from, newName(), withId(randomUUID()));
      expectError(other, 412, 'LeaseIdMismatchWithContainerOperation');
      const details = { HeaderName: 'x-ms-source-lease-id', HeaderValue: 'bad_id' };
      expectError(await rename(running, from, newName(), withId('bad_id')), 400, 'InvalidHeaderValue', details);
      const to = newName();
      expect((await rename(running, from, to, withId(lease.leaseId))).status).toBe(200);
      const { leaseState, leaseStatus } = await running.service.getContainerClient(to).getProperties();
      expect([leaseState, leaseStatus]).toEqual(['available', 'unlocked']);
    });

    it('refuses names that no container can have, and the container of the logs', async () => {
      const { containerName } = await running.newContainer();
      const HeaderName = 'x-ms-source-container-name';
      for (const HeaderValue of ['A', 'a', 'a--b', 'x'.repeat(64)]) {
        const details = { HeaderName, HeaderValue };
        expectError(await rename(running, HeaderValue, newName()), 400, 'InvalidHeaderValue', details);
      }
      expectError(await rename(running, containerName, 'a--b'), 400, 'InvalidResourceName');
      expectError(await rename(running, '$logs', newName()), 403, 'AuthorizationFailure');
      expectError(await rename(running, containerName, '$logs'), 403, 'AuthorizationFailure');
      const without = await running.request('PUT', `/${newName()}?restype=container&comp=rename`);
      expectError(without, 400, 'MissingRequiredHeader', { HeaderName });
    });

    it('is for the owner of the account alone', async () => {
      const { containerName } = await running.newContainer();
      const values = {
        permissions: AccountSASPermissions.parse('rwdlacup'),
        services: AccountSASServices.parse('b').toString(),
        resourceTypes: AccountSASResourceTypes.parse('sco').toString(),
        expiresOn: new Date(Date.now() + 3_600_000),
      };
      const key = new StorageSharedKeyCredential(account, accountKey);
      const sas = generateAccountSASQueryParameters(values, key).toString();
      const answer = await running.request('PUT', `/${newName()}?restype=container&comp=rename&${sas}`, {
        headers: { 'x-ms-source-container-name': containerName },
        unsigned: true,
      });
      expectError(answer, 403, 'AuthorizationFailure');
    });
  });
});

const newName = () => `renamed-${randomUUID()}`;

function rename(running: Running, from: string, to: string, headers: Record<string, string> = {}) {
  return running.request('PUT', `/${to}?restype=container&comp=rename`, {
    headers: { 'x-ms-source-container-name': from, ...headers },
  });
}
