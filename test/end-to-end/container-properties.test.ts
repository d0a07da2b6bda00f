import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { expectError, onEveryEngine } from '../support/test-server.ts';

describe('Get Container Properties', () => {
  onEveryEngine((running) => {
    it('answers to GET and HEAD as the service does', async () => {
      const container = running.service.getContainerClient(`c-${randomUUID()}`);
      const { etag, lastModified } = await container.create({ metadata: { Key: 'Value' } });
      for (const method of ['GET', 'HEAD']) {
        const answer = await running.request(method, `/${container.containerName}?restype=container`);
        expect([answer.status, answer.text]).toEqual([200, '']);
        expect(answer.rawHeaders).toContain('x-ms-meta-Key');
        expect(answer.headers).toMatchObject({
          etag,
          'last-modified': lastModified!.toUTCString(),
          'x-ms-lease-state': 'available',
          'x-ms-lease-status': 'unlocked',
          'x-ms-has-immutability-policy': 'false',
          'x-ms-has-legal-hold': 'false',
          'x-ms-default-encryption-scope': '$account-encryption-key',
          'x-ms-deny-encryption-scope-override': 'false',
          'x-ms-immutable-storage-with-versioning-enabled': 'false',
        });
        expect(answer.headers).not.toHaveProperty('x-ms-blob-public-access');
      }
    });

    it('is not changed by what happens to the blobs', async () => {
      const container = await running.newContainer();
      const { etag } = await container.getProperties();
      await container.uploadBlockBlob('blob', 'x', 1);
      await container.deleteBlob('blob');
      expect((await container.getProperties()).etag).toBe(etag);
    });

    it('refuses a missing container, and a lease id that is wrong', async () => {
      const { containerName } = await running.newContainer();
      const get = (name: string, headers = {}) => running.request('GET', `/${name}?restype=container`, { headers });
      expectError(await get('not-there'), 404, 'ContainerNotFound');
      expectError(
        await get(containerName, { 'x-ms-lease-id': randomUUID() }),
        412,
        'LeaseNotPresentWithContainerOperation',
      );
      expectError(await get(containerName, { 'x-ms-lease-id': 'no-guid' }), 400, 'InvalidHeaderValue');
      const head = await running.request('HEAD', '/not-there?restype=container');
      expect([head.status, head.headers['x-ms-error-code'], head.text]).toEqual([404, 'ContainerNotFound', '']);
    });
  });
});
