/** Create Share, Get Share Properties, Delete Share, List Shares. */
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

  describe('Delete Share', () => {
    it('removes it, and the name can be used again at once', async () => {
      const share = await running.newShare();
      await share.delete();
      await expectRefusal(share.getProperties(), 404, 'ShareNotFound');
      await expectRefusal(share.delete(), 404, 'ShareNotFound');
      await share.create();
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
