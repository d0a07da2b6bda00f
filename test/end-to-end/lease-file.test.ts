/** Lease File, and what a lease keeps others from. */
import { randomUUID } from 'node:crypto';
import type { ShareFileClient } from '@azure/storage-file-share';
import { describe, expect, it } from 'vitest';
import { expectError, expectRefusal, onEveryEngine } from '../support/test-server.ts';

const ONE = '11111111-1111-1111-1111-111111111111';
const TWO = '22222222-2222-2222-2222-222222222222';

onEveryEngine((running) => {
  async function newFile(): Promise<ShareFileClient> {
    const share = await running.newShare();
    const file = share.rootDirectoryClient.getFileClient(`f-${randomUUID()}`);
    await file.create(5);
    return file;
  }
  const lease = (file: ShareFileClient, headers: Record<string, string>) =>
    running.request('PUT', `/${file.shareName}/${file.path}?comp=lease`, { of: 'file', headers });

  describe('Lease File', () => {
    it('acquires, changes and releases an infinite lease, and leaves the ETag alone', async () => {
      const file = await newFile();
      const { etag } = await file.getProperties();
      const client = file.getShareLeaseClient(ONE);
      const acquired = await client.acquireLease();
      expect([acquired.leaseId, acquired.etag]).toEqual([ONE, etag]);
      const { leaseState, leaseStatus, leaseDuration } = await file.getProperties();
      expect([leaseState, leaseStatus, leaseDuration]).toEqual(['leased', 'locked', 'infinite']);
      expect((await client.acquireLease()).leaseId).toBe(ONE);
      expect((await client.changeLease(TWO)).leaseId).toBe(TWO);
      await expectRefusal(file.getShareLeaseClient(ONE).releaseLease(), 409, 'LeaseIdMismatchWithLeaseOperation');
      await client.releaseLease();
      expect(await file.getProperties()).toMatchObject({ leaseState: 'available', etag });
    });

    it('is refused to others while it is held, and broken at once', async () => {
      const file = await newFile();
      await file.getShareLeaseClient(ONE).acquireLease();
      await expectRefusal(file.getShareLeaseClient(TWO).acquireLease(), 409, 'LeaseAlreadyPresent');
      const broken = await lease(file, { 'x-ms-lease-action': 'break' });
      expect([broken.status, broken.headers['x-ms-lease-time']]).toEqual([202, '0']);
      expect(await file.getProperties()).toMatchObject({ leaseState: 'broken', leaseStatus: 'unlocked' });
      expect((await lease(file, { 'x-ms-lease-action': 'break' })).headers['x-ms-lease-time']).toBe('0');
      await file.uploadRange('Hello', 0, 5);
      expect((await file.getShareLeaseClient(TWO).acquireLease()).leaseId).toBe(TWO);
    });

    it('refuses what files do not have: durations, break periods, renewals, and a lease that is not there', async () => {
      const file = await newFile();
      const acquire = { 'x-ms-lease-action': 'acquire' };
      expectError(await lease(file, { ...acquire, 'x-ms-lease-duration': '30' }), 400, 'InvalidHeaderValue');
      expectError(await lease(file, acquire), 400, 'MissingRequiredHeader');
      expectError(
        await lease(file, { 'x-ms-lease-action': 'break', 'x-ms-lease-break-period': '5' }),
        400,
        'InvalidHeaderValue',
      );
      expectError(await lease(file, { 'x-ms-lease-action': 'renew', 'x-ms-lease-id': ONE }), 400, 'InvalidHeaderValue');
      const change = { 'x-ms-lease-action': 'change', 'x-ms-lease-id': ONE, 'x-ms-proposed-lease-id': TWO };
      expectError(await lease(file, change), 409, 'LeaseNotPresentWithLeaseOperation');
      expectError(await lease(file, { 'x-ms-lease-action': 'break' }), 409, 'LeaseNotPresentWithLeaseOperation');
    });

    it('keeps others from every write, and from reads with a wrong id', async () => {
      const file = await newFile();
      await file.getShareLeaseClient(ONE).acquireLease();
      const writes = [
        () => file.uploadRange('Hello', 0, 5),
        () => file.clearRange(0, 5),
        () => file.create(7),
        () => file.resize(7),
        () => file.setMetadata({ a: 'b' }),
        () => file.startCopyFromURL(file.url),
        () => file.delete(),
      ];
      for (const write of writes) await expectRefusal(write(), 412, 'LeaseIdMissing');
      const wrong = { leaseAccessConditions: { leaseId: TWO } };
      await expectRefusal(file.uploadRange('Hello', 0, 5, wrong), 412, 'LeaseIdMismatchWithFileOperation');
      await expectRefusal(file.getProperties(wrong), 412, 'LeaseIdMismatchWithFileOperation');
      await expectRefusal(file.getRangeList(wrong), 412, 'LeaseIdMismatchWithFileOperation');
      const right = { leaseAccessConditions: { leaseId: ONE } };
      await file.uploadRange('Hello', 0, 5, right);
      await file.create(6, right);
      expect(await file.getProperties(right)).toMatchObject({ leaseState: 'leased', contentLength: 6 });
      await file.delete(right);
    });

    it('is named in vain where there is none', async () => {
      const file = await newFile();
      const wrong = { leaseAccessConditions: { leaseId: TWO } };
      await expectRefusal(file.uploadRange('Hello', 0, 5, wrong), 412, 'LeaseNotPresentWithFileOperation');
      await expectRefusal(file.getRangeList(wrong), 412, 'LeaseNotPresentWithFileOperation');
    });
  });
});
