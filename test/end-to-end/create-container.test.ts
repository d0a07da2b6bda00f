import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { expectError, expectRefusal, onEveryEngine, onLmdb } from '../support/test-server.ts';

describe('Create Container', () => {
  onEveryEngine((running) => {
    it('makes a container with metadata, once', async () => {
      const container = running.service.getContainerClient(`c-${randomUUID()}`);
      const made = await container.create({ metadata: { Key: 'Value' } });
      expect(made._response.status).toBe(201);
      expect(made.etag).toMatch(/^"0x[0-9A-F]+"$/);
      expect(await container.getProperties()).toMatchObject({ metadata: { key: 'Value' }, etag: made.etag });
      await expectRefusal(container.create(), 409, 'ContainerAlreadyExists');
      expect((await container.createIfNotExists()).succeeded).toBe(false);
    });

    it('distinguishes containers by their names only', async () => {
      const one = await running.newContainer();
      const other = await running.newContainer();
      await one.uploadBlockBlob('blob', 'one', 3);
      await other.uploadBlockBlob('blob', 'other', 5);
      expect((await one.getBlobClient('blob').downloadToBuffer()).toString()).toBe('one');
      await expectRefusal(one.getBlobClient('other').download(), 404, 'BlobNotFound');
    });
  });

  onLmdb((running) => {
    const create = (name: string, headers: Record<string, string> = {}) =>
      running.request('PUT', `/${name}?restype=container`, { headers });

    it.each(['abc', 'a'.repeat(63), '0-1-2', '$root', '$web'])('takes the name %s', async (name) => {
      expect((await create(name)).status).toBe(201);
    });

    it.each(['Abc', 'a--b', '-ab', 'ab-', 'a_b', 'a.b', 'abc%C3%A9', '$other', 'a%20b'])(
      'refuses the name %s',
      async (name) => {
        expectError(await create(name), 400, 'InvalidResourceName');
      },
    );

    it('leaves the name of the logs to the service', async () => {
      expectError(await create('$logs'), 403, 'AuthorizationFailure');
    });

    it.each(['ab', 'a'.repeat(64)])('refuses the name %s for its length', async (name) => {
      expectError(await create(name), 400, 'OutOfRangeInput');
    });

    it('accepts the public access levels, and no other value', async () => {
      for (const access of ['blob', 'container'] as const) {
        const container = running.service.getContainerClient(`c-${randomUUID()}`);
        await container.create({ access });
        expect((await container.getProperties()).blobPublicAccess).toBe(access);
      }
      const container = running.service.getContainerClient(`c-${randomUUID()}`);
      expectError(
        await create(container.containerName, { 'x-ms-blob-public-access': 'all' }),
        400,
        'InvalidHeaderValue',
      );
      expect(await container.exists()).toBe(false);
    });

    it('refuses bad metadata and encryption scopes', async () => {
      const name = `c-${randomUUID()}`;
      expectError(await create(name, { 'x-ms-meta-a-b': 'x' }), 400, 'InvalidMetadata');
      expectError(await create(name, { 'x-ms-meta-': 'x' }), 400, 'EmptyMetadataKey');
      expectError(await create(name, { 'x-ms-default-encryption-scope': 'scope' }), 501, 'NotImplemented');
    });

    it('is distinguished from other operations by restype', async () => {
      expectError(await running.request('PUT', '/abcd'), 400, 'MissingRequiredQueryParameter');
    });
  });
});
