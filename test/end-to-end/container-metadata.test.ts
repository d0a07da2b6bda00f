import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { expectError, expectRefusal, onEveryEngine, onLmdb } from '../support/test-server.ts';

describe('Get Container Metadata', () => {
  onEveryEngine((running) => {
    it('answers with metadata, ETag and Last-Modified only', async () => {
      const container = await running.newContainer();
      const { etag } = await container.setMetadata({ Key: 'Value' });
      for (const method of ['GET', 'HEAD']) {
        const answer = await running.request(method, `/${container.containerName}?restype=container&comp=metadata`);
        expect([answer.status, answer.text, answer.headers.etag]).toEqual([200, '', etag]);
        expect(answer.rawHeaders).toContain('x-ms-meta-Key');
        expect(answer.headers).not.toHaveProperty('x-ms-lease-state');
      }
      const missing = await running.request('GET', '/not-there?restype=container&comp=metadata');
      expectError(missing, 404, 'ContainerNotFound');
    });
  });
});

describe('Set Container Metadata', () => {
  onEveryEngine((running) => {
    it('replaces all metadata and changes the ETag', async () => {
      const container = await running.newContainer();
      const first = await container.setMetadata({ a: '1', b: '2' });
      const second = await container.setMetadata({ c: '3' });
      expect(second.etag).not.toBe(first.etag);
      expect(await container.getProperties()).toMatchObject({ metadata: { c: '3' }, etag: second.etag });
      await container.setMetadata();
      expect((await container.getProperties()).metadata).toEqual({});
    });

    it('honours If-Modified-Since, as its only condition', async () => {
      const container = await running.newContainer();
      const { lastModified } = await container.getProperties();
      const set = (ifModifiedSince: Date) => container.setMetadata({ a: '1' }, { conditions: { ifModifiedSince } });
      await expectRefusal(set(lastModified!), 412, 'ConditionNotMet');
      await set(new Date(lastModified!.getTime() - 1_000));
    });

    it('needs no lease id, but refuses a wrong one', async () => {
      const container = await running.newContainer();
      const set = (leaseId?: string) => container.setMetadata({ a: '1' }, leaseId ? { conditions: { leaseId } } : {});
      await expectRefusal(set(randomUUID()), 412, 'LeaseNotPresentWithContainerOperation');
      const { leaseId } = await container.getBlobLeaseClient().acquireLease(-1);
      await set();
      await set(leaseId);
      await expectRefusal(set(randomUUID()), 412, 'LeaseIdMismatchWithContainerOperation');
      expect((await container.getProperties()).leaseState).toBe('leased');
    });
  });

  onLmdb((running) => {
    it('refuses bad metadata, and needs a container', async () => {
      const { containerName } = await running.newContainer();
      const set = (headers: Record<string, string>, name = containerName) =>
        running.request('PUT', `/${name}?restype=container&comp=metadata`, { headers });
      expectError(await set({ 'x-ms-meta-1': 'x' }), 400, 'InvalidMetadata');
      expectError(await set({ 'x-ms-meta-a': 'x'.repeat(9_000) }), 400, 'MetadataTooLarge');
      expectError(await set({ 'x-ms-meta-a': 'x' }, 'not-there'), 404, 'ContainerNotFound');
    });
  });
});
