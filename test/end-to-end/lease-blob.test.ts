import { randomUUID } from 'node:crypto';
import type { BlockBlobClient } from '@azure/storage-blob';
import { describe, expect, it } from 'vitest';
import { expectError, expectRefusal, onEveryEngine, onLmdb, type Running } from '../support/test-server.ts';

describe('Lease Blob', () => {
  onEveryEngine((running) => {
    it('leases a blob of uncommitted blocks', async () => {
      const blob = (await running.newContainer()).getBlockBlobClient('blob');
      await blob.stageBlock('AAAA', 'x', 1);
      const lease = blob.getBlobLeaseClient();
      const { etag } = await lease.acquireLease(15);
      expect(etag).toMatch(/^"0x[0-9A-F]{15,16}"$/);
      await expectRefusal(blob.getBlobLeaseClient().acquireLease(15), 409, 'LeaseAlreadyPresent');
      await expectRefusal(blob.upload('x', 1), 412, 'LeaseIdMissing');
      await expectRefusal(blob.delete(), 412, 'LeaseIdMissing');
      expect((await lease.renewLease()).etag).toBe(etag);
      const conditions = { leaseId: lease.leaseId };
      await blob.upload('x', 1, { conditions });
      expect((await blob.getProperties()).leaseState).toBe('leased');
      await blob.delete({ conditions });
      await blob.stageBlock('AAAA', 'x', 1);
      await blob.getBlobLeaseClient().acquireLease(15);
      await running.server.clock.advance(16);
      await blob.stageBlock('AAAB', 'x', 1);
    });

    it('answers as the service does, and changes neither ETag nor Last-Modified', async () => {
      const { container, blob, etag } = await newBlob(running);
      const path = `/${container}/${blob.name}?comp=lease`;
      const lease = (headers: Record<string, string | number>) => running.request('PUT', path, { headers });
      const id = randomUUID();
      const other = randomUUID();
      const acquire = { 'x-ms-lease-action': 'acquire', 'x-ms-lease-duration': 15, 'x-ms-proposed-lease-id': id };
      const acquired = await lease(acquire);
      expect([acquired.status, acquired.headers['x-ms-lease-id'], acquired.headers.etag]).toEqual([201, id, etag]);
      const renewed = await lease({ 'x-ms-lease-action': 'renew', 'x-ms-lease-id': id.toUpperCase() });
      expect([renewed.status, renewed.headers['x-ms-lease-id']]).toEqual([200, id]);
      const change = { 'x-ms-lease-action': 'change', 'x-ms-lease-id': id, 'x-ms-proposed-lease-id': `{${other}}` };
      const changed = await lease(change);
      expect([changed.status, changed.headers['x-ms-lease-id']]).toEqual([200, other]);
      const broken = await lease({ 'x-ms-lease-action': 'break', 'x-ms-lease-break-period': 5 });
      expect([broken.status, broken.headers['x-ms-lease-time']]).toEqual([202, '5']);
      expect(broken.headers).not.toHaveProperty('x-ms-lease-id');
      const released = await lease({ 'x-ms-lease-action': 'release', 'x-ms-lease-id': other });
      expect([released.status, released.headers.etag]).toEqual([200, etag]);
      expect(released.headers).not.toHaveProperty('x-ms-lease-id');
      expect((await blob.getProperties()).etag).toBe(etag);
    });

    it('makes an id of its own when none is proposed', async () => {
      const { container, blob } = await newBlob(running);
      const headers = { 'x-ms-lease-action': 'acquire', 'x-ms-lease-duration': -1 };
      const answer = await running.request('PUT', `/${container}/${blob.name}?comp=lease`, { headers });
      expect(answer.headers['x-ms-lease-id']).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    });

    it('has one holder, which can renew it, until it expires', async () => {
      const { blob } = await newBlob(running);
      const mine = blob.getBlobLeaseClient();
      const theirs = blob.getBlobLeaseClient();
      await mine.acquireLease(15);
      await expectRefusal(theirs.acquireLease(15), 409, 'LeaseAlreadyPresent');
      await running.server.clock.advance(14);
      await mine.renewLease();
      await running.server.clock.advance(14);
      await expectRefusal(theirs.acquireLease(15), 409, 'LeaseAlreadyPresent');
      await running.server.clock.advance(1);
      await theirs.acquireLease(60);
      await expectRefusal(mine.renewLease(), 409, 'LeaseIdMismatchWithLeaseOperation');
      await expectRefusal(write(blob, mine.leaseId), 412, 'LeaseIdMismatchWithBlobOperation');
      await write(blob, theirs.leaseId);
    });

    it('renews an expired lease only if the blob was neither written nor leased meanwhile', async () => {
      const { blob } = await newBlob(running);
      const lease = blob.getBlobLeaseClient();
      await lease.acquireLease(15);
      await running.server.clock.advance(100);
      await expectRefusal(write(blob, lease.leaseId), 412, 'LeaseLost');
      await blob.download();
      await lease.renewLease();
      await write(blob, lease.leaseId);
      await running.server.clock.advance(15);
      await blob.setMetadata({ written: 'yes' });
      await expectRefusal(lease.renewLease(), 409, 'LeaseIdMismatchWithLeaseOperation');
      expect((await blob.getProperties()).leaseState).toBe('available');
    });

    it('changes the id without moving the end', async () => {
      const { blob } = await newBlob(running);
      const lease = blob.getBlobLeaseClient();
      await lease.acquireLease(20);
      const old = lease.leaseId;
      await running.server.clock.advance(10);
      await lease.changeLease(randomUUID());
      await expectRefusal(write(blob, old), 412, 'LeaseIdMismatchWithBlobOperation');
      await write(blob, lease.leaseId);
      await running.server.clock.advance(10);
      expect((await blob.getProperties()).leaseState).toBe('expired');
      await expectRefusal(lease.changeLease(randomUUID()), 409, 'LeaseNotPresentWithLeaseOperation');
    });

    it('breaks a lease in the time that is left of it, or sooner, never later', async () => {
      const { blob } = await newBlob(running);
      const lease = blob.getBlobLeaseClient();
      await expectRefusal(lease.breakLease(0), 409, 'LeaseNotPresentWithLeaseOperation');
      await lease.acquireLease(30);
      await running.server.clock.advance(10);
      expect((await lease.breakLease(60)).leaseTime).toBe(20);
      await write(blob, lease.leaseId);
      await expectRefusal(lease.renewLease(), 409, 'LeaseIsBrokenAndCannotBeRenewed');
      await expectRefusal(lease.changeLease(randomUUID()), 409, 'LeaseIsBreakingAndCannotBeChanged');
      expect((await lease.breakLease(5)).leaseTime).toBe(5);
      expect((await lease.breakLease(30)).leaseTime).toBe(5);
      await running.server.clock.advance(5);
      expect((await lease.breakLease(30)).leaseTime).toBe(0);
      expect((await blob.getProperties()).leaseState).toBe('broken');
      await write(blob);
      expect((await blob.getProperties()).leaseState).toBe('available');
    });

    it('breaks an infinite lease at once when no period is given', async () => {
      const { container, blob } = await newBlob(running);
      await blob.getBlobLeaseClient().acquireLease(-1);
      const headers = { 'x-ms-lease-action': 'break' };
      const answer = await running.request('PUT', `/${container}/${blob.name}?comp=lease`, { headers });
      expect([answer.status, answer.headers['x-ms-lease-time']]).toEqual([202, '0']);
      await write(blob);
    });

    it('frees a released lease at once', async () => {
      const { blob } = await newBlob(running);
      const lease = blob.getBlobLeaseClient();
      await lease.acquireLease(-1);
      await lease.releaseLease();
      await expectRefusal(lease.releaseLease(), 409, 'LeaseIdMismatchWithLeaseOperation');
      await expectRefusal(write(blob, lease.leaseId), 412, 'LeaseNotPresentWithBlobOperation');
      await blob.getBlobLeaseClient().acquireLease(15);
    });

    it('keeps lease, id and end when the holder overwrites the blob', async () => {
      const { blob } = await newBlob(running);
      const lease = blob.getBlobLeaseClient();
      await lease.acquireLease(30);
      await running.server.clock.advance(20);
      await write(blob, lease.leaseId);
      await running.server.clock.advance(9);
      await expectRefusal(write(blob), 412, 'LeaseIdMissing');
      await running.server.clock.advance(1);
      await write(blob);
    });

    it('honours conditions', async () => {
      const { blob, etag } = await newBlob(running);
      const lease = blob.getBlobLeaseClient();
      const acquire = (conditions: object) => lease.acquireLease(15, { conditions });
      await expectRefusal(acquire({ ifMatch: '"0x1"' }), 412, 'ConditionNotMet');
      await expectRefusal(acquire({ ifNoneMatch: etag }), 412, 'ConditionNotMet');
      await expectRefusal(acquire({ ifUnmodifiedSince: new Date(0) }), 412, 'ConditionNotMet');
      await acquire({ ifMatch: etag });
      await expectRefusal(lease.renewLease({ conditions: { ifMatch: '"0x1"' } }), 412, 'ConditionNotMet');
    });

    it('needs a blob', async () => {
      const container = await running.newContainer();
      await expectRefusal(container.getBlobClient('no').getBlobLeaseClient().acquireLease(15), 404, 'BlobNotFound');
    });
  });

  onLmdb((running) => {
    it('refuses missing and invalid headers', async () => {
      const { container, blob } = await newBlob(running);
      const id = randomUUID();
      const lease = (headers: Record<string, string | number>) =>
        running.request('PUT', `/${container}/${blob.name}?comp=lease`, { headers });
      const missing = async (headers: Record<string, string | number>, HeaderName: string) =>
        expectError(await lease(headers), 400, 'MissingRequiredHeader', { HeaderName });
      const invalid = async (headers: Record<string, string | number>, HeaderName: string) =>
        expectError(await lease(headers), 400, 'InvalidHeaderValue', {
          HeaderName,
          HeaderValue: String(headers[HeaderName]),
        });

      await missing({}, 'x-ms-lease-action');
      await invalid({ 'x-ms-lease-action': 'seize' }, 'x-ms-lease-action');
      await missing({ 'x-ms-lease-action': 'acquire' }, 'x-ms-lease-duration');
      for (const seconds of [0, 14, 61, -2, 'ten']) {
        const headers = { 'x-ms-lease-action': 'acquire', 'x-ms-lease-duration': seconds };
        await invalid(headers, 'x-ms-lease-duration');
      }
      const acquire = { 'x-ms-lease-action': 'acquire', 'x-ms-lease-duration': 15 };
      await invalid({ ...acquire, 'x-ms-proposed-lease-id': 'no-guid' }, 'x-ms-proposed-lease-id');
      for (const action of ['renew', 'release']) {
        await missing({ 'x-ms-lease-action': action }, 'x-ms-lease-id');
        await invalid({ 'x-ms-lease-action': action, 'x-ms-lease-id': 'no-guid' }, 'x-ms-lease-id');
      }
      await missing({ 'x-ms-lease-action': 'change', 'x-ms-lease-id': id }, 'x-ms-proposed-lease-id');
      await missing({ 'x-ms-lease-action': 'change', 'x-ms-proposed-lease-id': id }, 'x-ms-lease-id');
      for (const seconds of [-1, 61]) {
        const headers = { 'x-ms-lease-action': 'break', 'x-ms-lease-break-period': seconds };
        await invalid(headers, 'x-ms-lease-break-period');
      }
      expect((await blob.getProperties()).leaseState).toBe('available');
    });

    it('is shown in lists', async () => {
      const container = await running.newContainer();
      const blob = container.getBlockBlobClient('blob');
      await blob.upload('x', 1);
      await blob.getBlobLeaseClient().acquireLease(15);
      const seen = async () => {
        for await (const { properties } of container.listBlobsFlat()) {
          return [properties.leaseState, properties.leaseStatus, properties.leaseDuration];
        }
        return [];
      };
      expect(await seen()).toEqual(['leased', 'locked', 'fixed']);
      await running.server.clock.advance(15);
      expect(await seen()).toEqual(['expired', 'unlocked', undefined]);
    });
  });
});

async function newBlob(running: Running) {
  const container = await running.newContainer();
  const blob = container.getBlockBlobClient('blob');
  const { etag } = await blob.upload('x', 1);
  return { container: container.containerName, blob, etag };
}

function write(blob: BlockBlobClient, leaseId?: string) {
  return blob.upload('y', 1, leaseId ? { conditions: { leaseId } } : {});
}
