import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { expectRefusal, onEveryEngine, onLmdb } from '../support/test-server.ts';

describe('Get Blob Properties', () => {
  onEveryEngine((running) => {
    it('answers as Get Blob does, without the bytes', async () => {
      const container = await running.newContainer();
      const { etag, lastModified } = (await container.uploadBlockBlob('blob', 'Hello World', 11)).response;
      const answer = await running.request('HEAD', `/${container.containerName}/blob`);
      expect([answer.status, answer.text]).toEqual([200, '']);
      expect(answer.headers).toMatchObject({
        'content-length': '11',
        'content-type': 'application/octet-stream',
        'content-md5': 'sQqNsWTgdUEFt6mb5y4/5Q==',
        'accept-ranges': 'bytes',
        etag,
        'last-modified': lastModified!.toUTCString(),
        'x-ms-creation-time': lastModified!.toUTCString(),
        'x-ms-blob-type': 'BlockBlob',
        'x-ms-access-tier': 'Hot',
        'x-ms-access-tier-inferred': 'true',
        'x-ms-lease-state': 'available',
        'x-ms-lease-status': 'unlocked',
        'x-ms-server-encrypted': 'true',
      });
    });

    it('refuses without a body, the code in a header', async () => {
      const { containerName } = await running.newContainer();
      const answer = await running.request('HEAD', `/${containerName}/blob`);
      expect([answer.status, answer.headers['x-ms-error-code'], answer.text]).toEqual([404, 'BlobNotFound', '']);
      expect(answer.headers).not.toHaveProperty('content-type');
      const nowhere = await running.request('HEAD', '/not-there/blob');
      expect([nowhere.status, nowhere.headers['x-ms-error-code']]).toEqual([404, 'ContainerNotFound']);
    });

    it('shows whether the blob exists', async () => {
      const container = await running.newContainer();
      const blob = container.getBlockBlobClient('blob');
      expect(await blob.exists()).toBe(false);
      await blob.upload('x', 1);
      expect(await blob.exists()).toBe(true);
      await container.delete();
      expect(await blob.exists()).toBe(false);
    });

    it('honours conditions and lease ids', async () => {
      const blob = (await running.newContainer()).getBlockBlobClient('blob');
      const { etag, lastModified } = await blob.upload('x', 1);
      const head = (conditions: object) => blob.getProperties({ conditions });
      await head({ ifMatch: etag, ifUnmodifiedSince: lastModified });
      await expectRefusal(head({ ifMatch: '"0x1"' }), 412, 'ConditionNotMet');
      await expectRefusal(head({ ifNoneMatch: etag }), 304, 'ConditionNotMet');
      await expectRefusal(head({ ifModifiedSince: lastModified }), 304, 'ConditionNotMet');
      await expectRefusal(head({ leaseId: randomUUID() }), 412, 'LeaseNotPresentWithBlobOperation');
    });

    it('shows each state of a lease, and its duration only while it is held', async () => {
      const blob = (await running.newContainer()).getBlockBlobClient('blob');
      await blob.upload('x', 1);
      const lease = blob.getBlobLeaseClient();
      const seen = async () => {
        const { leaseState, leaseStatus, leaseDuration } = await blob.getProperties();
        return [leaseState, leaseStatus, leaseDuration];
      };
      expect(await seen()).toEqual(['available', 'unlocked', undefined]);
      await lease.acquireLease(15);
      expect(await seen()).toEqual(['leased', 'locked', 'fixed']);
      await running.server.clock.advance(15);
      expect(await seen()).toEqual(['expired', 'unlocked', undefined]);
      await lease.acquireLease(-1);
      expect(await seen()).toEqual(['leased', 'locked', 'infinite']);
      await lease.breakLease(10);
      expect(await seen()).toEqual(['breaking', 'locked', undefined]);
      await running.server.clock.advance(10);
      expect(await seen()).toEqual(['broken', 'unlocked', undefined]);
    });
  });

  onLmdb((running) => {
    it('refuses versions, which are not built', async () => {
      const { containerName } = await running.newContainer();
      const answer = await running.request('HEAD', `/${containerName}/blob?versionid=2022-05-23T20:10:08.4782043Z`);
      expect(answer.status).toBe(501);
    });
  });
});
