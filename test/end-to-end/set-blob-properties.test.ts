import { describe, expect, it } from 'vitest';
import { expectError, expectRefusal, onEveryEngine, onLmdb } from '../support/test-server.ts';

describe('Set Blob Properties', () => {
  onEveryEngine((running) => {
    it('sets all content headers and clears those that are not sent', async () => {
      const blob = (await running.newContainer()).getBlockBlobClient('blob');
      const first = await blob.upload('Hello World', 11, { metadata: { kept: 'yes' } });
      const set = await blob.setHTTPHeaders({
        blobContentType: 'text/plain',
        blobContentEncoding: 'gzip',
        blobContentLanguage: 'fr',
        blobContentDisposition: 'inline',
        blobCacheControl: 'max-age=5',
        blobContentMD5: Buffer.from('sQqNsWTgdUEFt6mb5y4/5Q==', 'base64'),
      });
      expect(set.etag).not.toBe(first.etag);
      expect(await blob.getProperties()).toMatchObject({
        contentType: 'text/plain',
        contentEncoding: 'gzip',
        contentLanguage: 'fr',
        contentDisposition: 'inline',
        cacheControl: 'max-age=5',
        contentLength: 11,
        metadata: { kept: 'yes' },
        etag: set.etag,
      });
      await blob.setHTTPHeaders({});
      const cleared = await blob.getProperties();
      expect(cleared.contentType).toBeUndefined();
      expect(cleared.contentEncoding).toBeUndefined();
      expect(cleared.contentMD5).toBeUndefined();
      expect(cleared.cacheControl).toBeUndefined();
    });

    it('honours conditions and leases', async () => {
      const blob = (await running.newContainer()).getBlockBlobClient('blob');
      await expectRefusal(blob.setHTTPHeaders({}), 404, 'BlobNotFound');
      const { etag } = await blob.upload('x', 1);
      const set = (conditions: object) => blob.setHTTPHeaders({ blobContentType: 'a/b' }, { conditions });
      await expectRefusal(set({ ifMatch: '"0x1"' }), 412, 'ConditionNotMet');
      await expectRefusal(set({ ifUnmodifiedSince: new Date(0) }), 412, 'ConditionNotMet');
      await set({ ifMatch: etag });
      const { leaseId } = await blob.getBlobLeaseClient().acquireLease(-1);
      await expectRefusal(set({}), 412, 'LeaseIdMissing');
      await set({ leaseId });
    });
  });

  onLmdb((running) => {
    it('keeps any Base64 as the MD5, and refuses what is none, and what belongs to page blobs', async () => {
      const container = await running.newContainer();
      await container.uploadBlockBlob('blob', 'x', 1);
      const set = (headers: Record<string, string>) =>
        running.request('PUT', `/${container.containerName}/blob?comp=properties`, { headers });
      for (const md5 of ['AAAAAAAAAAA=', 'QUJD', Buffer.alloc(32, 1).toString('base64')]) {
        expect((await set({ 'x-ms-blob-content-md5': md5 })).status).toBe(200);
        const got = await running.request('GET', `/${container.containerName}/blob`);
        expect([got.headers['content-md5'], got.text]).toEqual([md5, 'x']);
      }
      expectError(await set({ 'x-ms-blob-content-md5': 'short' }), 400, 'InvalidHeaderValue');
      expectError(await set({ 'x-ms-blob-content-length': '512' }), 409, 'InvalidBlobType');
      expectError(await set({ 'x-ms-sequence-number-action': 'increment' }), 409, 'InvalidBlobType');
    });
  });
});
