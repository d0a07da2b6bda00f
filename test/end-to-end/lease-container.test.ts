import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { elementOf, expectError, expectRefusal, onEveryEngine, onLmdb } from '../support/test-server.ts';

describe('Lease Container', () => {
  onEveryEngine((running) => {
    it('answers as the service does, and changes neither ETag nor Last-Modified', async () => {
      const container = await running.newContainer();
      const { etag } = await container.getProperties();
      const lease = (headers: Record<string, string | number>) =>
        running.request('PUT', `/${container.containerName}?restype=container&comp=lease`, { headers });
      const id = randomUUID();
      const other = randomUUID();
      const acquired = await lease({
        'x-ms-lease-action': 'acquire',
        'x-ms-lease-duration': 60,
        'x-ms-proposed-lease-id': id,
      });
      expect([acquired.status, acquired.headers['x-ms-lease-id'], acquired.headers.etag]).toEqual([201, id, etag]);
      const change = { 'x-ms-lease-action': 'change', 'x-ms-lease-id': id, 'x-ms-proposed-lease-id': other };
      const changed = await lease(change);
      expect([changed.status, changed.headers['x-ms-lease-id']]).toEqual([200, other]);
      const broken = await lease({ 'x-ms-lease-action': 'break', 'x-ms-lease-break-period': 10 });
      expect([broken.status, broken.headers['x-ms-lease-time']]).toEqual([202, '10']);
      const released = await lease({ 'x-ms-lease-action': 'release', 'x-ms-lease-id': other });
      expect([released.status, released.headers.etag]).toEqual([200, etag]);
      expect((await container.getProperties()).etag).toBe(etag);
    });

    it('guards the deletion of the container, and nothing else', async () => {
      const container = await running.newContainer();
      const lease = container.getBlobLeaseClient();
      await lease.acquireLease(15);
      await container.uploadBlockBlob('blob', 'x', 1);
      await container.deleteBlob('blob');
      await container.setMetadata({ a: '1' });
      await expectRefusal(container.delete(), 412, 'LeaseIdMissing');
      await running.server.clock.advance(10);
      await lease.renewLease();
      await running.server.clock.advance(14);
      await expectRefusal(container.delete(), 412, 'LeaseIdMissing');
      await lease.releaseLease();
      await container.delete();
    });

    it('renews an expired lease even if the container was written meanwhile', async () => {
      const container = await running.newContainer();
      const lease = container.getBlobLeaseClient();
      await lease.acquireLease(15);
      await running.server.clock.advance(15);
      await container.setMetadata({ a: '1' });
      await lease.renewLease();
      expect((await container.getProperties()).leaseState).toBe('leased');
    });

    it('lets one hold it at a time', async () => {
      const container = await running.newContainer();
      const lease = container.getBlobLeaseClient();
      await lease.acquireLease(-1);
      await expectRefusal(container.getBlobLeaseClient().acquireLease(15), 409, 'LeaseAlreadyPresent');
      expect((await lease.breakLease(0)).leaseTime).toBe(0);
      await expectRefusal(lease.renewLease(), 409, 'LeaseIsBrokenAndCannotBeRenewed');
      await container.getBlobLeaseClient().acquireLease(15);
      await expectRefusal(lease.releaseLease(), 409, 'LeaseIdMismatchWithLeaseOperation');
    });

    it('honours conditions, and needs a container', async () => {
      const container = await running.newContainer();
      const { lastModified } = await container.getProperties();
      const acquire = (conditions: object) => container.getBlobLeaseClient().acquireLease(15, { conditions });
      await expectRefusal(acquire({ ifModifiedSince: lastModified }), 412, 'ConditionNotMet');
      await expectRefusal(acquire({ ifUnmodifiedSince: new Date(0) }), 412, 'ConditionNotMet');
      await acquire({ ifUnmodifiedSince: lastModified });
      const nowhere = running.service.getContainerClient('not-there').getBlobLeaseClient();
      await expectRefusal(nowhere.acquireLease(15), 404, 'ContainerNotFound');
    });
  });

  onLmdb((running) => {
    it('speaks of the container in its refusals', async () => {
      const { containerName } = await running.newContainer();
      const headers = { 'x-ms-lease-action': 'break' };
      const answer = await running.request('PUT', `/${containerName}?restype=container&comp=lease`, { headers });
      expectError(answer, 409, 'LeaseNotPresentWithLeaseOperation');
      expect(elementOf(answer.text, 'Message')).toContain('There is currently no lease on the container.');
    });

    it('refuses durations and periods out of range', async () => {
      const { containerName } = await running.newContainer();
      const lease = (headers: Record<string, string | number>) =>
        running.request('PUT', `/${containerName}?restype=container&comp=lease`, { headers });
      for (const seconds of [0, 14, 61]) {
        const headers = { 'x-ms-lease-action': 'acquire', 'x-ms-lease-duration': seconds };
        expectError(await lease(headers), 400, 'InvalidHeaderValue', { HeaderName: 'x-ms-lease-duration' });
      }
      const headers = { 'x-ms-lease-action': 'break', 'x-ms-lease-break-period': 61 };
      expectError(await lease(headers), 400, 'InvalidHeaderValue', { HeaderName: 'x-ms-lease-break-period' });
    });
  });
});
