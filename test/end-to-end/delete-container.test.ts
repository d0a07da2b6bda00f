import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { expectRefusal, onEveryEngine } from '../support/test-server.ts';

describe('Delete Container', () => {
  onEveryEngine((running) => {
    it('removes the container and all its blobs, leased or not', async () => {
      const container = await running.newContainer();
      const blob = container.getBlockBlobClient('blob');
      await blob.upload('x', 1);
      await blob.getBlobLeaseClient().acquireLease(-1);
      const answer = await running.request('DELETE', `/${container.containerName}?restype=container`);
      expect([answer.status, answer.text]).toEqual([202, '']);
      expect(answer.headers).not.toHaveProperty('etag');
      expect(await container.exists()).toBe(false);
      await expectRefusal(blob.download(), 404, 'ContainerNotFound');
      await expectRefusal(container.delete(), 404, 'ContainerNotFound');
      await expectRefusal(container.listBlobsFlat().next(), 404, 'ContainerNotFound');
    });

    it('frees the name at once, for an empty container', async () => {
      const container = await running.newContainer();
      for (let round = 0; round < 3; round++) {
        for (let at = 0; at < 5; at++) await container.uploadBlockBlob(`blob-${at}`, 'x', 1);
        await container.delete();
        await container.create();
        expect((await container.listBlobsFlat().next()).done).toBe(true);
        await expectRefusal(container.getBlobClient('blob-1').download(), 404, 'BlobNotFound');
      }
    });

    it('honours conditions', async () => {
      const container = await running.newContainer();
      const { lastModified } = await container.getProperties();
      const remove = (conditions: object) => container.delete({ conditions });
      await expectRefusal(remove({ ifModifiedSince: lastModified }), 412, 'ConditionNotMet');
      await expectRefusal(remove({ ifUnmodifiedSince: new Date(0) }), 412, 'ConditionNotMet');
      await remove({ ifUnmodifiedSince: lastModified });
    });

    it('accepts only the id of the lease while leased', async () => {
      const container = await running.newContainer();
      const remove = (leaseId?: string) => container.delete(leaseId ? { conditions: { leaseId } } : {});
      await expectRefusal(remove(randomUUID()), 412, 'LeaseNotPresentWithContainerOperation');
      const { leaseId } = await container.getBlobLeaseClient().acquireLease(15);
      await expectRefusal(remove(), 412, 'LeaseIdMissing');
      await expectRefusal(remove(randomUUID()), 412, 'LeaseIdMismatchWithContainerOperation');
      await remove(leaseId);
    });

    it('needs no id once the lease has expired, and refuses one', async () => {
      const container = await running.newContainer();
      const lease = container.getBlobLeaseClient();
      await lease.acquireLease(15);
      await running.server.clock.advance(15);
      await expectRefusal(container.delete({ conditions: { leaseId: lease.leaseId } }), 412, 'LeaseLost');
      await container.delete();
    });
  });
});
