import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { expectError, expectRefusal, onEveryEngine } from '../support/test-server.ts';

describe('Lease Share', () => {
  onEveryEngine((running) => {
    const leased = async (headers: Record<string, string | number> = {}) => {
      const share = await running.newShare();
      const path = `/${share.name}?restype=share&comp=lease`;
      const lease = (sent: Record<string, string | number>) =>
        running.request('PUT', path, { of: 'file', headers: sent });
      const id = randomUUID();
      const acquire = { 'x-ms-lease-action': 'acquire', 'x-ms-lease-duration': 15, 'x-ms-proposed-lease-id': id };
      return { share, lease, id, acquired: await lease({ ...acquire, ...headers }) };
    };
    const get = (name: string, leaseId: string) =>
      running.request('GET', `/${name}?restype=share`, { of: 'file', headers: { 'x-ms-lease-id': leaseId } });

    it('answers as the service does, and changes neither ETag nor Last-Modified', async () => {
      const { share, lease, id, acquired } = await leased();
      const { etag } = await share.getProperties();
      const other = randomUUID();
      expect([acquired.status, acquired.headers['x-ms-lease-id'], acquired.headers.etag]).toEqual([201, id, etag]);
      const renewed = await lease({ 'x-ms-lease-action': 'renew', 'x-ms-lease-id': id });
      expect([renewed.status, renewed.headers['x-ms-lease-id']]).toEqual([200, id]);
      const change = { 'x-ms-lease-action': 'change', 'x-ms-lease-id': id, 'x-ms-proposed-lease-id': other };
      expect((await lease(change)).headers['x-ms-lease-id']).toBe(other);
      const broken = await lease({ 'x-ms-lease-action': 'break', 'x-ms-lease-break-period': 5 });
      expect([broken.status, broken.headers['x-ms-lease-time'], broken.headers.etag]).toEqual([202, '5', etag]);
      expect((await lease({ 'x-ms-lease-action': 'release', 'x-ms-lease-id': other })).status).toBe(200);
      const { etag: after, leaseState } = await share.getProperties();
      expect([after, leaseState]).toEqual([etag, 'available']);
    });

    it('guards the deletion of the share, and nothing else', async () => {
      const { share, lease, id } = await leased();
      await share.setMetadata({ a: '1' });
      await share.setProperties({ quotaInGB: 1 });
      expect((await share.getProperties()).leaseState).toBe('leased');
      const refused = await running.request('DELETE', `/${share.name}?restype=share`, { of: 'file' });
      expectError(refused, 412, 'LeaseIdMissing');
      expect(refused.text).toContain('There is currently a lease on the file share and no lease ID was specified');
      await running.server.clock.advance(14);
      expect((await lease({ 'x-ms-lease-action': 'renew', 'x-ms-lease-id': id })).status).toBe(200);
      await running.server.clock.advance(14);
      await expectRefusal(share.delete(), 412, 'LeaseIdMissing');
      await share.delete({ leaseAccessConditions: { leaseId: id } });
    });

    it('refuses another id in every operation, and its own id once it is lost', async () => {
      const { share, id } = await leased();
      const wrong = { leaseAccessConditions: { leaseId: randomUUID() } };
      const mismatch = 'LeaseIdMismatchWithContainerOperation';
      expectError(await get(share.name, wrong.leaseAccessConditions.leaseId), 412, mismatch);
      await expectRefusal(share.setMetadata({}, wrong), 412, mismatch);
      await expectRefusal(share.setProperties({ quotaInGB: 1, ...wrong }), 412, mismatch);
      await expectRefusal(share.getStatistics(wrong), 412, mismatch);
      await expectRefusal(share.delete(wrong), 412, mismatch);
      expect((await get(share.name, id)).status).toBe(200);
      await running.server.clock.advance(15);
      expectError(await get(share.name, id), 412, 'LeaseLost');
      await share.delete();
    });

    it('refuses an id where there is no lease', async () => {
      const share = await running.newShare();
      expectError(await get(share.name, randomUUID()), 412, 'LeaseNotPresentWithContainerOperation');
    });

    it('lets one hold it at a time', async () => {
      const { lease } = await leased({ 'x-ms-lease-duration': -1 });
      const again = { 'x-ms-lease-action': 'acquire', 'x-ms-lease-duration': 15 };
      expectError(await lease(again), 409, 'LeaseAlreadyPresent');
      expect((await lease({ 'x-ms-lease-action': 'break' })).headers['x-ms-lease-time']).toBe('0');
      expect((await lease(again)).status).toBe(201);
    });

    it.each([
      [{ 'x-ms-lease-action': 'acquire', 'x-ms-lease-duration': '14' }, 'InvalidHeaderValue'],
      [{ 'x-ms-lease-action': 'acquire', 'x-ms-lease-duration': '61' }, 'InvalidHeaderValue'],
      [{ 'x-ms-lease-action': 'acquire' }, 'MissingRequiredHeader'],
      [{ 'x-ms-lease-action': 'steal' }, 'InvalidHeaderValue'],
      [{ 'x-ms-lease-action': 'renew' }, 'MissingRequiredHeader'],
      [{ 'x-ms-lease-action': 'renew', 'x-ms-lease-id': 'no GUID' }, 'InvalidHeaderValue'],
      [{}, 'MissingRequiredHeader'],
    ])('refuses %j', async (headers, code) => {
      const share = await running.newShare();
      const path = `/${share.name}?restype=share&comp=lease`;
      expectError(await running.request('PUT', path, { of: 'file', headers }), 400, code);
    });
  });
});
