/** List Shares, and the operations on one share. */
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { elementOf, expectError, expectRefusal, onEveryEngine } from '../support/test-server.ts';

onEveryEngine((running) => {
  describe('Create Share', () => {
    it('makes a share with metadata, quota and tier', async () => {
      const share = running.files.getShareClient(`s-${randomUUID()}`);
      const made = await share.create({ metadata: { one: 'a', Two: 'b' }, quota: 7, accessTier: 'Hot' });
      const found = await share.getProperties();
      expect(found.etag).toBe(made.etag);
      expect(found.lastModified).toEqual(made.lastModified);
      expect(found.metadata).toEqual({ one: 'a', two: 'b' });
      expect([found.quota, found.accessTier]).toEqual([7, 'Hot']);
      expect([found.leaseState, found.leaseStatus, found.leaseDuration]).toEqual(['available', 'unlocked', undefined]);
    });

    it('has 5,120 GiB and the tier TransactionOptimized by default', async () => {
      const share = await running.newShare();
      const { quota, accessTier, accessTierChangeTime, lastModified } = await share.getProperties();
      expect([quota, accessTier, accessTierChangeTime]).toEqual([5_120, 'TransactionOptimized', lastModified]);
    });

    it('refuses a name that is taken', async () => {
      const share = await running.newShare();
      await expectRefusal(share.create(), 409, 'ShareAlreadyExists');
    });

    it.each([
      ['UPPER', 'InvalidResourceName'],
      ['a--b', 'InvalidResourceName'],
      ['$root', 'InvalidResourceName'],
      ['%E5%95%8A%E9%BD%84%E4%B8%82', 'InvalidResourceName'],
      ['ab', 'OutOfRangeInput'],
      ['a'.repeat(64), 'OutOfRangeInput'],
    ])('refuses the name %s', async (name, code) => {
      expectError(await running.request('PUT', `/${name}?restype=share`, { of: 'file' }), 400, code);
    });

    it.each([
      ['x-ms-share-quota', '0'],
      ['x-ms-share-quota', '102401'],
      ['x-ms-share-quota', 'much'],
      ['x-ms-access-tier', 'Premium'],
      ['x-ms-access-tier', 'Archive'],
    ])('refuses %s: %s', async (name, value) => {
      const path = `/s-${randomUUID()}?restype=share`;
      const answer = await running.request('PUT', path, { of: 'file', headers: { [name]: value } });
      expectError(answer, 400, 'InvalidHeaderValue', { HeaderName: name, HeaderValue: value });
      expectError(await running.request('GET', path, { of: 'file' }), 404, 'ShareNotFound');
    });
  });

  describe('Get Share Properties', () => {
    it('knows no leases and tiers in the versions that had none', async () => {
      const share = await running.newShare();
      const at = async (version: string) => {
        const headers = { 'x-ms-version': version };
        return (await running.request('HEAD', `/${share.name}?restype=share`, { of: 'file', headers })).headers;
      };
      expect(Object.keys(await at('2019-07-07')).filter((name) => /lease|tier/.test(name))).toEqual([]);
      expect(Object.keys(await at('2019-12-12')).filter((name) => /lease/.test(name))).toEqual([]);
      expect((await at('2019-12-12'))['x-ms-access-tier']).toBe('TransactionOptimized');
    });

    it.each(['If-Match', 'If-None-Match', 'If-Modified-Since', 'If-Unmodified-Since'])('refuses %s', async (name) => {
      const share = await running.newShare();
      const headers = { [name]: name.endsWith('Since') ? new Date().toUTCString() : '*' };
      const answer = await running.request('GET', `/${share.name}?restype=share`, { of: 'file', headers });
      expectError(answer, 400, 'ConditionHeadersNotSupported');
    });
  });

  describe('Set Share Properties', () => {
    it('changes the quota or the tier, and the ETag with them', async () => {
      const share = await running.newShare();
      const before = await share.getProperties();
      await running.server.clock.advance(2);
      const written = await share.setProperties({ quotaInGB: 3 });
      const resized = await share.getProperties();
      expect([resized.quota, resized.accessTier, resized.etag]).toEqual([3, 'TransactionOptimized', written.etag]);
      expect(resized.accessTierChangeTime).toEqual(before.accessTierChangeTime);
      expect(resized.etag).not.toBe(before.etag);
      await share.setProperties({ accessTier: 'Cool' });
      const cooled = await share.getProperties();
      expect([cooled.quota, cooled.accessTier]).toEqual([3, 'Cool']);
      expect(cooled.accessTierChangeTime).toEqual(cooled.lastModified);
      expect(cooled.accessTierChangeTime).not.toEqual(before.accessTierChangeTime);
    });

    it.each([
      ['x-ms-share-quota', '0', 400],
      ['x-ms-access-tier', 'Premium', 400],
      ['x-ms-root-squash', 'AllSquash', 400],
      ['x-ms-share-paid-bursting-enabled', 'true', 501],
    ])('refuses %s: %s', async (name, value, status) => {
      const share = await running.newShare();
      const { etag } = await share.getProperties();
      const path = `/${share.name}?restype=share&comp=properties`;
      const answer = await running.request('PUT', path, { of: 'file', headers: { [name]: value } });
      expectError(answer, status, status === 501 ? 'NotImplemented' : 'InvalidHeaderValue', { HeaderName: name });
      expect((await share.getProperties()).etag).toBe(etag);
    });

    it('is of a share that exists', async () => {
      const share = running.files.getShareClient(`s-${randomUUID()}`);
      await expectRefusal(share.setProperties({ quotaInGB: 3 }), 404, 'ShareNotFound');
      await expectRefusal(share.setMetadata({ a: '1' }), 404, 'ShareNotFound');
      await expectRefusal(share.setAccessPolicy([]), 404, 'ShareNotFound');
      await expectRefusal(share.getStatistics(), 404, 'ShareNotFound');
    });
  });

  describe('Set Share Metadata', () => {
    it('replaces all of it, and Get Share Metadata returns nothing else', async () => {
      const share = await running.newShare();
      await share.setMetadata({ one: '1', two: '2' });
      const { etag } = await share.setMetadata({ Three: '3' });
      const { headers } = await running.request('GET', `/${share.name}?restype=share&comp=metadata`, { of: 'file' });
      expect([headers['x-ms-meta-three'], headers['x-ms-meta-one'], headers.etag]).toEqual(['3', undefined, etag]);
      expect(Object.keys(headers).filter((name) => /quota|tier|lease/.test(name))).toEqual([]);
      await share.setMetadata();
      expect((await share.getProperties()).metadata).toEqual({});
    });

    it.each([
      ['x-ms-meta-', 'EmptyMetadataKey'],
      ['x-ms-meta-1a', 'InvalidMetadata'],
    ])('refuses the header %s', async (name, code) => {
      const share = await running.newShare();
      const request = { of: 'file', headers: { [name]: 'x' } } as const;
      expectError(await running.request('PUT', `/${share.name}?restype=share&comp=metadata`, request), 400, code);
    });
  });

  describe('Set Share ACL', () => {
    it('stores up to five policies, and Get Share ACL returns them', async () => {
      const share = await running.newShare();
      expect((await share.getAccessPolicy()).signedIdentifiers).toEqual([]);
      const startsOn = new Date('2026-01-01T00:00:00Z');
      const policy = { id: 'read', accessPolicy: { startsOn, expiresOn: new Date('2036-01-01'), permissions: 'rl' } };
      const { etag } = await share.setAccessPolicy([policy]);
      const found = await share.getAccessPolicy();
      expect([found.etag, found.signedIdentifiers]).toEqual([etag, [policy]]);
      await share.setAccessPolicy([]);
      expect((await share.getAccessPolicy()).signedIdentifiers).toEqual([]);
    });

    it.each([
      [
        'six policies',
        Array.from({ length: 6 }, (_, at) => `<SignedIdentifier><Id>${at}</Id></SignedIdentifier>`).join(''),
      ],
      [
        'a right that shares do not have',
        '<SignedIdentifier><Id>a</Id><AccessPolicy><Permission>raup</Permission></AccessPolicy></SignedIdentifier>',
      ],
      ['what is not closed', '<SignedIdentifier>'],
    ])('refuses %s', async (_, parts) => {
      const share = await running.newShare();
      const body = `<SignedIdentifiers>${parts}</SignedIdentifiers>`;
      const answer = await running.request('PUT', `/${share.name}?restype=share&comp=acl`, { of: 'file', body });
      expectError(answer, 400, 'InvalidXmlDocument');
    });
  });

  describe('Get Share Stats', () => {
    it('tells the bytes in use, in older versions in whole GiB', async () => {
      const share = await running.newShare();
      expect((await share.getStatistics()).shareUsageBytes).toBe(0);
      const request = { of: 'file', headers: { 'x-ms-version': '2018-03-28' } } as const;
      const { text } = await running.request('GET', `/${share.name}?restype=share&comp=stats`, request);
      expect(text).toContain('<ShareStats><ShareUsage>0</ShareUsage></ShareStats>');
    });
  });

  describe('Delete Share', () => {
    it('removes it, and the name can be used again at once', async () => {
      const share = await running.newShare();
      await share.delete();
      await expectRefusal(share.getProperties(), 404, 'ShareNotFound');
      await expectRefusal(share.delete(), 404, 'ShareNotFound');
      await share.create();
    });

    it('takes what is said about snapshots, of which there are none', async () => {
      const share = await running.newShare();
      const remove = (value: string) =>
        running.request('DELETE', `/${share.name}?restype=share`, {
          of: 'file',
          headers: { 'x-ms-delete-snapshots': value },
        });
      expectError(await remove('only'), 400, 'InvalidHeaderValue');
      expect((await remove('include')).status).toBe(202);
    });
  });

  describe('List Shares', () => {
    it('lists by prefix, in pages, with metadata if asked', async () => {
      const prefix = `l${randomUUID().slice(0, 8)}-`;
      const names = ['a', 'b', 'c', 'd', 'e'].map((letter) => `${prefix}${letter}`);
      for (const name of names) await running.files.createShare(name, { metadata: { own: name } });
      const listed = [];
      for await (const item of running.files.listShares({ prefix, includeMetadata: true })) listed.push(item);
      expect(listed.map(({ name, metadata }) => [name, metadata])).toEqual(names.map((name) => [name, { own: name }]));
      const pages = [];
      for await (const page of running.files.listShares({ prefix }).byPage({ maxPageSize: 2 })) pages.push(page);
      expect(pages.map(({ shareItems }) => shareItems?.map(({ name }) => name))).toEqual([
        names.slice(0, 2),
        names.slice(2, 4),
        names.slice(4),
      ]);
      expect(pages[0]!.shareItems![0]!.metadata).toBeUndefined();
    });

    it('names the parameters of the request, and no next page where there is none', async () => {
      const { text } = await running.request('GET', '/?comp=list&prefix=none-of-them&maxresults=3', { of: 'file' });
      expect(text).toContain('<Prefix>none-of-them</Prefix><MaxResults>3</MaxResults><Shares></Shares><NextMarker />');
      expect(elementOf(text, 'Name')).toBeUndefined();
    });

    it.each(['marker=%00', 'maxresults=0', 'maxresults=x', 'include=owner'])('refuses %s', async (parameter) => {
      const { status } = await running.request('GET', `/?comp=list&${parameter}`, { of: 'file' });
      expect(status).toBe(400);
    });
  });
});
