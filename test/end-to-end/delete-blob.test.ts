import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { expectError, expectRefusal, onEveryEngine, onLmdb } from '../support/test-server.ts';

describe('Delete Blob', () => {
  onEveryEngine((running) => {
    it('deletes a blob of uncommitted blocks, which cannot be read', async () => {
      const blob = (await running.newContainer()).getBlockBlobClient('blob');
      await blob.stageBlock('AAAA', 'x', 1);
      await expectRefusal(blob.delete({ conditions: { ifMatch: '*' } }), 412, 'ConditionNotMet');
      await expectRefusal(blob.delete({ deleteSnapshots: 'only' }), 404, 'BlobNotFound');
      await blob.delete();
      await expectRefusal(blob.getBlockList('all'), 404, 'BlobNotFound');
      await expectRefusal(blob.delete(), 404, 'BlobNotFound');
    });

    it('deletes uncommitted blocks, too', async () => {
      const blob = (await running.newContainer()).getBlockBlobClient('blob');
      await blob.upload('x'.repeat(50_000), 50_000);
      await blob.stageBlock('AAAA', 'x', 1);
      await blob.delete();
      await expectRefusal(blob.getBlockList('all'), 404, 'BlobNotFound');
    });

    it('removes the blob from reads and lists', async () => {
      const container = await running.newContainer();
      await container.uploadBlockBlob('one', 'x', 1);
      await container.uploadBlockBlob('two', 'x', 1);
      const answer = await running.request('DELETE', `/${container.containerName}/one`);
      expect([answer.status, answer.text]).toEqual([202, '']);
      expect(answer.headers['x-ms-delete-type-permanent']).toBe('true');
      expect(answer.headers).not.toHaveProperty('etag');
      await expectRefusal(container.getBlobClient('one').download(), 404, 'BlobNotFound');
      await expectRefusal(container.deleteBlob('one'), 404, 'BlobNotFound');
      const names = [];
      for await (const { name } of container.listBlobsFlat()) names.push(name);
      expect(names).toEqual(['two']);
    });

    it('leaves no trace of the blob for the next of its name', async () => {
      const blob = (await running.newContainer()).getBlockBlobClient('blob');
      await blob.upload('x', 1, { metadata: { old: '1' } });
      const lease = blob.getBlobLeaseClient();
      await lease.acquireLease(-1);
      const { createdOn } = await blob.getProperties();
      await running.server.clock.advance(2);
      await blob.delete({ conditions: { leaseId: lease.leaseId } });
      await blob.upload('y', 1);
      const found = await blob.getProperties();
      expect(found).toMatchObject({ leaseState: 'available', metadata: {} });
      expect(found.createdOn!.getTime()).toBeGreaterThan(createdOn!.getTime());
    });

    it('honours conditions and leases', async () => {
      const blob = (await running.newContainer()).getBlockBlobClient('blob');
      const { etag, lastModified } = await blob.upload('x', 1);
      const remove = (conditions: object) => blob.delete({ conditions });
      await expectRefusal(remove({ ifMatch: '"0x1"' }), 412, 'ConditionNotMet');
      await expectRefusal(remove({ ifNoneMatch: etag }), 412, 'ConditionNotMet');
      await expectRefusal(remove({ ifModifiedSince: lastModified }), 412, 'ConditionNotMet');
      await expectRefusal(remove({ leaseId: randomUUID() }), 412, 'LeaseNotPresentWithBlobOperation');
      const { leaseId } = await blob.getBlobLeaseClient().acquireLease(-1);
      await expectRefusal(remove({}), 412, 'LeaseIdMissing');
      await expectRefusal(remove({ leaseId: randomUUID() }), 412, 'LeaseIdMismatchWithBlobOperation');
      await remove({ leaseId, ifMatch: etag });
    });

    it('honours conditions on the time when the tier last changed', async () => {
      const blob = (await running.newContainer()).getBlockBlobClient('blob');
      const { etag } = await blob.upload('x', 1);
      const remove = (conditions: object) => blob.delete({ conditions });
      const hour = 3_600_000;
      const now = (await blob.getProperties()).lastModified!.getTime();
      const [before, after] = [new Date(now - hour), new Date(now + hour)];
      // A tier that was never set has never changed.
      await expectRefusal(remove({ accessTierIfModifiedSince: before }), 412, 'ConditionNotMet');
      await blob.setAccessTier('Cool');
      const changed = (await blob.getProperties()).accessTierChangedOn!;
      await expectRefusal(remove({ accessTierIfModifiedSince: changed }), 412, 'ConditionNotMet');
      await expectRefusal(remove({ accessTierIfModifiedSince: after }), 412, 'ConditionNotMet');
      await expectRefusal(remove({ accessTierIfUnmodifiedSince: before }), 412, 'ConditionNotMet');
      const both = { accessTierIfModifiedSince: before, accessTierIfUnmodifiedSince: after };
      await expectRefusal(remove(both), 400, 'MultipleConditionHeadersNotSupported');
      await expectRefusal(remove({ accessTierIfModifiedSince: before, ifMatch: '"0x1"' }), 412, 'ConditionNotMet');
      await remove({ accessTierIfModifiedSince: before, ifMatch: etag });
      for (const tier of [undefined, 'Hot'] as const) {
        await blob.upload('x', 1, tier && { tier });
        await remove({ accessTierIfUnmodifiedSince: tier ? after : before });
      }
      await blob.stageBlock('AAAA', 'x', 1);
      await expectRefusal(remove({ accessTierIfModifiedSince: before }), 412, 'ConditionNotMet');
      await remove({ accessTierIfUnmodifiedSince: before });
    });

    it('reports whether the blob or the container is missing', async () => {
      const container = await running.newContainer();
      expect((await container.getBlobClient('blob').deleteIfExists()).succeeded).toBe(false);
      const nowhere = running.service.getContainerClient('not-there');
      await expectRefusal(nowhere.deleteBlob('blob'), 404, 'ContainerNotFound');
    });
  });

  onLmdb((running) => {
    it('accepts "include" for snapshots, of which there are none, and finds nothing for "only"', async () => {
      const container = await running.newContainer();
      const blob = container.getBlockBlobClient('blob');
      await blob.upload('x', 1);
      const remove = (value: string) =>
        running.request('DELETE', `/${container.containerName}/blob`, { headers: { 'x-ms-delete-snapshots': value } });
      expectError(await remove('only'), 404, 'BlobNotFound');
      expectError(await remove('all'), 400, 'InvalidHeaderValue', { HeaderName: 'x-ms-delete-snapshots' });
      expect(await blob.exists()).toBe(true);
      await blob.delete({ deleteSnapshots: 'include' });
      expect(await blob.exists()).toBe(false);
    });

    it('refuses a version, which is not built, and another type of deletion', async () => {
      const container = await running.newContainer();
      await container.uploadBlockBlob('blob', 'x', 1);
      const remove = (query: string) => running.request('DELETE', `/${container.containerName}/blob?${query}`);
      expectError(await remove('versionid=x'), 501, 'NotImplemented');
      expectError(await remove('deletetype=soft'), 400, 'InvalidQueryParameterValue');
      expectError(await remove('deletetype=permanent'), 409, 'BlobOperationNotSupported');
      expect(await container.getBlobClient('blob').exists()).toBe(true);
    });
  });
});
