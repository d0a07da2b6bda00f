import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { expectError, expectRefusal, onEveryEngine, onLmdb } from '../support/test-server.ts';

describe('Get Blob Metadata', () => {
  onEveryEngine((running) => {
    it('answers with metadata, ETag and Last-Modified only', async () => {
      const container = await running.newContainer();
      const metadata = { One: '1', two_: 'zwei', __proto__x: 'own', Class: 'a, b' };
      const { etag } = (await container.uploadBlockBlob('blob', 'x', 1, { metadata })).response;
      for (const method of ['GET', 'HEAD']) {
        const answer = await running.request(method, `/${container.containerName}/blob?comp=metadata`);
        expect([answer.status, answer.text]).toEqual([200, '']);
        expect(answer.headers.etag).toBe(etag);
        expect(answer.rawHeaders).toEqual(expect.arrayContaining(['x-ms-meta-One', 'x-ms-meta-two_']));
        expect(answer.headers).toMatchObject({ 'x-ms-meta-class': 'a, b', 'x-ms-meta-__proto__x': 'own' });
        for (const name of ['x-ms-lease-state', 'x-ms-blob-type', 'content-md5']) {
          expect(answer.headers).not.toHaveProperty(name);
        }
      }
    });

    it('honours conditions and lease ids', async () => {
      const container = await running.newContainer();
      const { etag } = (await container.uploadBlockBlob('blob', 'x', 1)).response;
      const get = (headers: Record<string, string>, blob = 'blob') =>
        running.request('GET', `/${container.containerName}/${blob}?comp=metadata`, { headers });
      expect((await get({ 'If-None-Match': etag! })).status).toBe(304);
      expectError(await get({ 'If-Match': '"0x1"' }), 412, 'ConditionNotMet');
      expectError(await get({ 'x-ms-lease-id': randomUUID() }), 412, 'LeaseNotPresentWithBlobOperation');
      expectError(await get({}, 'missing'), 404, 'BlobNotFound');
    });
  });
});

describe('Set Blob Metadata', () => {
  onEveryEngine((running) => {
    it('replaces all metadata, changes the ETag and leaves the content', async () => {
      const blob = (await running.newContainer()).getBlockBlobClient('blob');
      const first = await blob.upload('bytes', 5, {
        metadata: { old: '1', other: '2' },
        blobHTTPHeaders: { blobContentType: 'text/plain' },
      });
      const { etag } = await blob.setMetadata({ fresh: 'x' });
      expect(etag).not.toBe(first.etag);
      expect(await blob.getProperties()).toMatchObject({ metadata: { fresh: 'x' }, contentType: 'text/plain', etag });
      expect((await blob.downloadToBuffer()).toString()).toBe('bytes');
      await blob.setMetadata();
      expect((await blob.getProperties()).metadata).toEqual({});
    });

    it('honours conditions and leases', async () => {
      const blob = (await running.newContainer()).getBlockBlobClient('blob');
      await expectRefusal(blob.setMetadata({ a: '1' }), 404, 'BlobNotFound');
      const { etag } = await blob.upload('x', 1);
      const set = (conditions: object) => blob.setMetadata({ a: '1' }, { conditions });
      await expectRefusal(set({ ifMatch: '"0x1"' }), 412, 'ConditionNotMet');
      await expectRefusal(set({ ifNoneMatch: etag }), 412, 'ConditionNotMet');
      await set({ ifMatch: etag });
      const { leaseId } = await blob.getBlobLeaseClient().acquireLease(15);
      await expectRefusal(set({}), 412, 'LeaseIdMissing');
      await set({ leaseId });
      await running.server.clock.advance(15);
      await expectRefusal(set({ leaseId }), 412, 'LeaseLost');
      await set({});
      // The write has made the blob forget the lease.
      await expectRefusal(set({ leaseId }), 412, 'LeaseNotPresentWithBlobOperation');
    });
  });

  onLmdb((running) => {
    it('refuses names that are no identifiers, names twice and more than 8 KiB', async () => {
      const container = await running.newContainer();
      await container.uploadBlockBlob('blob', 'x', 1, { metadata: { kept: 'yes' } });
      const set = (headers: Record<string, string | string[]>) =>
        running.request('PUT', `/${container.containerName}/blob?comp=metadata`, { headers });
      expectError(await set({ 'x-ms-meta-': 'x' }), 400, 'EmptyMetadataKey');
      expectError(await set({ 'x-ms-meta-a-b': 'x' }), 400, 'InvalidMetadata');
      expectError(await set({ 'x-ms-meta-a': '1', 'X-MS-META-A': '2' }), 400, 'InvalidMetadata');
      expectError(await set({ 'x-ms-meta-a': 'x'.repeat(8_192) }), 400, 'MetadataTooLarge');
      expect((await container.getBlobClient('blob').getProperties()).metadata).toEqual({ kept: 'yes' });
      expect((await set({ 'x-ms-meta-__proto__': 'x', 'x-ms-meta-constructor': 'y' })).status).toBe(200);
      const { headers } = await running.request('GET', `/${container.containerName}/blob?comp=metadata`);
      expect(headers['x-ms-meta-__proto__']).toBe('x');
      expect(headers['x-ms-meta-constructor']).toBe('y');
    });

    it('keeps blanks within a value, and Latin-1, as HTTP carries them', async () => {
      const container = await running.newContainer();
      await container.uploadBlockBlob('blob', 'x', 1);
      const path = `/${container.containerName}/blob?comp=metadata`;
      for (const value of ['b  c', 'caf\u00e9 \u00ff', '<&">', '%41']) {
        expect((await running.request('PUT', path, { headers: { 'x-ms-meta-a': value } })).status).toBe(200);
        expect((await running.request('GET', path)).headers['x-ms-meta-a']).toBe(value);
        const { value: item } = await container.listBlobsFlat({ includeMetadata: true }).next();
        expect(item.metadata).toEqual({ a: value });
      }
    });
  });
});
