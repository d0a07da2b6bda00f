import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { expectError, expectRefusal, onEveryEngine, onLmdb } from '../support/test-server.ts';

const START = new Date('2026-01-02T03:04:05.678Z');
const EXPIRY = new Date('2027-01-02T00:00:00Z');

describe('Get Container ACL', () => {
  onEveryEngine((running) => {
    it('answers with an empty list for a new container', async () => {
      const container = await running.newContainer();
      const answer = await running.request('GET', `/${container.containerName}?restype=container&comp=acl`);
      expect(answer.status).toBe(200);
      expect(answer.text).toBe('\ufeff<?xml version="1.0" encoding="utf-8"?><SignedIdentifiers />');
      expect(answer.headers.etag).toBe((await container.getProperties()).etag);
      const head = await running.request('HEAD', `/${container.containerName}?restype=container&comp=acl`);
      expect([head.status, head.text]).toEqual([200, '']);
    });

    it('refuses a missing container, and a lease id that is wrong', async () => {
      const container = await running.newContainer();
      const nowhere = running.service.getContainerClient('not-there');
      await expectRefusal(nowhere.getAccessPolicy(), 404, 'ContainerNotFound');
      const conditions = { leaseId: randomUUID() };
      await expectRefusal(container.getAccessPolicy({ conditions }), 412, 'LeaseNotPresentWithContainerOperation');
    });
  });
});

describe('Set Container ACL', () => {
  onEveryEngine((running) => {
    it('stores policies, which come back with dates of seven digits', async () => {
      const container = await running.newContainer();
      const before = await container.getProperties();
      const policy = { startsOn: START, expiresOn: EXPIRY, permissions: 'rwd' };
      const { etag } = await container.setAccessPolicy(undefined, [
        { id: 'first <&>', accessPolicy: policy },
        { id: 'second', accessPolicy: { permissions: 'r' } },
      ]);
      expect(etag).not.toBe(before.etag);
      const found = await container.getAccessPolicy();
      expect(found.signedIdentifiers).toMatchObject([
        { id: 'first <&>', accessPolicy: policy },
        { id: 'second', accessPolicy: { permissions: 'r' } },
      ]);
      const { text } = await running.request('GET', `/${container.containerName}?restype=container&comp=acl`);
      expect(text).toContain(
        '<Start>2026-01-02T03:04:05.6780000Z</Start><Expiry>2027-01-02T00:00:00.0000000Z</Expiry>',
      );
      await container.setAccessPolicy(undefined, []);
      expect((await container.getAccessPolicy()).signedIdentifiers).toEqual([]);
    });

    it('honours conditions and lease ids', async () => {
      const container = await running.newContainer();
      const { lastModified } = await container.getProperties();
      const set = (conditions: object) => container.setAccessPolicy(undefined, [], { conditions });
      await expectRefusal(set({ ifModifiedSince: lastModified }), 412, 'ConditionNotMet');
      await expectRefusal(set({ ifUnmodifiedSince: new Date(0) }), 412, 'ConditionNotMet');
      await expectRefusal(set({ leaseId: randomUUID() }), 412, 'LeaseNotPresentWithContainerOperation');
      await set({ ifUnmodifiedSince: lastModified });
    });

    it('sets the public access level, and removes it if none is sent', async () => {
      const container = await running.newContainer();
      for (const level of ['blob', 'container', undefined] as const) {
        await container.setAccessPolicy(level);
        expect((await container.getAccessPolicy()).blobPublicAccess).toBe(level);
      }
    });
  });

  onLmdb((running) => {
    const wrap = (inner: string) => `<SignedIdentifiers>${inner}</SignedIdentifiers>`;
    const one = (id: string, policy = '') => `<SignedIdentifier><Id>${id}</Id>${policy}</SignedIdentifier>`;

    it.each([
      ['what is no XML', '<SignedIdentifiers>'],
      ['another document', '<Others />'],
      ['a document type', '<!DOCTYPE SignedIdentifiers [<!ENTITY a "b">]><SignedIdentifiers />'],
      ['a depth without end', '<SignedIdentifiers>'.repeat(1_000)],
      ['six policies', wrap([1, 2, 3, 4, 5, 6].map((id) => one(String(id))).join(''))],
      ['an id twice', wrap(one('a') + one('a'))],
      ['an id of 65 characters', wrap(one('x'.repeat(65)))],
      ['no id', wrap('<SignedIdentifier />')],
      ['an unknown permission', wrap(one('a', '<AccessPolicy><Permission>z!</Permission></AccessPolicy>'))],
      ['a date that is none', wrap(one('a', '<AccessPolicy><Start>yesterday</Start></AccessPolicy>'))],
    ])('refuses %s', async (_, body) => {
      const container = await running.newContainer();
      const answer = await running.request('PUT', `/${container.containerName}?restype=container&comp=acl`, { body });
      expectError(answer, 400, 'InvalidXmlDocument');
      expect((await container.getAccessPolicy()).signedIdentifiers).toEqual([]);
    });

    it('accepts five policies, ids of 64 characters, and no policy at all', async () => {
      const { containerName } = await running.newContainer();
      const set = (body: string) => running.request('PUT', `/${containerName}?restype=container&comp=acl`, { body });
      const five = [1, 2, 3, 4, 5].map((id) => one(String(id).repeat(64))).join('');
      expect((await set(wrap(five))).status).toBe(200);
      expect((await set('')).status).toBe(200);
    });

    it('refuses a document that is too large, or that its checksum does not fit', async () => {
      const { containerName } = await running.newContainer();
      const path = `/${containerName}?restype=container&comp=acl`;
      const large = await running.request('PUT', path, { body: wrap(' '.repeat(100_000)) });
      expectError(large, 413, 'RequestBodyTooLarge');
      const headers = { 'Content-MD5': 'AAAAAAAAAAAAAAAAAAAAAA==' };
      expectError(await running.request('PUT', path, { headers, body: wrap('') }), 400, 'Md5Mismatch');
    });
  });
});
