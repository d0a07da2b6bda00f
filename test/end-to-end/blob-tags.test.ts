import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { serviceSas } from '../support/raw-signing.mjs';
import { expectError, expectRefusal, onEveryEngine, onLmdb } from '../support/test-server.ts';

const TAGS = { 'tag 1': 'first/tag', tag2: '', constructor: '+-./:=_' };
const document = (tags: string) => `<?xml version="1.0" encoding="utf-8"?><Tags><TagSet>${tags}</TagSet></Tags>`;
const tag = (key: string, value: string) => `<Tag><Key>${key}</Key><Value>${value}</Value></Tag>`;

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

describe('Set Blob Tags', () => {
  onEveryEngine((running) => {
    it('replaces all tags and changes neither ETag nor Last-Modified', async () => {
      const blob = (await running.newContainer()).getBlockBlobClient('blob');
      await blob.upload('x', 1, { tags: { old: '1' }, metadata: { a: 'b' } });
      const before = await blob.getProperties();
      expect(before.tagCount).toBe(1);
      await blob.setTags(TAGS);
      expect((await blob.getTags()).tags).toEqual(TAGS);
      const { etag, lastModified, tagCount, metadata } = await blob.getProperties();
      expect([etag, lastModified, tagCount]).toEqual([before.etag, before.lastModified, 3]);
      expect(metadata).toEqual({ a: 'b' });
      expect((await blob.download()).tagCount).toBe(3);
      await blob.setTags({});
      expect((await blob.getTags()).tags).toEqual({});
      expect((await blob.getProperties()).tagCount).toBeUndefined();
    });

    it('honours leases', async () => {
      const blob = (await running.newContainer()).getBlockBlobClient('blob');
      await expectRefusal(blob.setTags(TAGS), 404, 'BlobNotFound');
      await blob.upload('x', 1);
      const { leaseId = '' } = await blob.getBlobLeaseClient().acquireLease(-1);
      const set = (id?: string) => blob.setTags(TAGS, id === undefined ? {} : { conditions: { leaseId: id } });
      await expectRefusal(set(), 412, 'LeaseIdMissing');
      await expectRefusal(set(randomUUID()), 412, 'LeaseIdMismatchWithBlobOperation');
      await set(leaseId);
      expect((await blob.getProperties()).leaseState).toBe('leased');
    });
  });

  onLmdb((running) => {
    it.each([
      ['TagsTooLarge', Array.from({ length: 11 }, (_, at) => tag(`key${at}`, '')).join('')],
      ['TagsTooLarge', tag('k'.repeat(129), '')],
      ['TagsTooLarge', tag('key', 'v'.repeat(257))],
      ['EmptyTagName', tag('', 'v')],
      ['InvalidTags', tag('key', 'a&amp;b')],
      ['InvalidTags', tag('key', ' \n')],
      ['DuplicateTagNames', tag('key', '1') + tag('key', '2')],
      ['MissingRequiredXmlNode', '<Tag><Key>key</Key></Tag>'],
      ['InvalidXmlDocument', '<Tag><Key>a</Key><Key>b</Key><Value>c</Value></Tag>'],
      ['InvalidXmlDocument', '<Other />'],
    ])('is refused with %s for %.40s', async (code, tags) => {
      const container = await running.newContainer();
      const blob = container.getBlockBlobClient('blob');
      await blob.upload('x', 1, { tags: { kept: '1' } });
      const path = `/${container.containerName}/blob?comp=tags`;
      expectError(await running.request('PUT', path, { body: document(tags) }), 400, code);
      expect((await blob.getTags()).tags).toEqual({ kept: '1' });
    });

    it('is refused without a document, with conditions and in the container of the logs', async () => {
      const container = await running.newContainer();
      await container.getBlockBlobClient('blob').upload('x', 1);
      const path = `/${container.containerName}/blob?comp=tags`;
      expectError(await running.request('PUT', path, { body: '' }), 400, 'InvalidXmlDocument');
      const conditional = { headers: { 'If-Match': '*' }, body: document('') };
      expectError(await running.request('PUT', path, conditional), 400, 'ConditionHeadersNotSupported');
      const logs = await running.request('PUT', '/$logs/blob?comp=tags', { body: document('') });
      expectError(logs, 403, 'AuthorizationFailure');
    });
  });
});

describe('Get Blob Tags', () => {
  onLmdb((running) => {
    it('answers in the order of the keys', async () => {
      const container = await running.newContainer();
      await container.getBlockBlobClient('blob').upload('x', 1, { tags: { b: '2', a: '1', B: '3' } });
      const answer = await running.request('GET', `/${container.containerName}/blob?comp=tags`);
      expect(answer.status).toBe(200);
      expect(answer.text).toContain(`<Tags><TagSet>${tag('B', '3')}${tag('a', '1')}${tag('b', '2')}</TagSet></Tags>`);
    });

    it('honours lease ids', async () => {
      const container = await running.newContainer();
      const blob = container.getBlockBlobClient('blob');
      await blob.upload('x', 1);
      const get = (headers: Record<string, string>) =>
        running.request('GET', `/${container.containerName}/blob?comp=tags`, { headers });
      expectError(await get({ 'x-ms-lease-id': randomUUID() }), 412, 'LeaseNotPresentWithBlobOperation');
      expectError(await get({ 'x-ms-lease-id': 'none' }), 400, 'InvalidHeaderValue');
      await blob.getBlobLeaseClient().acquireLease(-1);
      expect((await get({})).status).toBe(200);
    });
  });
});

describe('Tags of a blob', () => {
  onEveryEngine((running) => {
    it('come with Put Blob, Put Block List and Copy Blob, and go with a write that has none', async () => {
      const container = await running.newContainer();
      const blob = container.getBlockBlobClient('blob');
      await blob.upload('x', 1, { tags: TAGS });
      const copy = container.getBlockBlobClient('copy');
      await (await copy.beginCopyFromURL(blob.url, { tags: { copied: '1' } })).pollUntilDone();
      expect((await copy.getTags()).tags).toEqual({ copied: '1' });
      await (await copy.beginCopyFromURL(blob.url)).pollUntilDone();
      expect((await copy.getTags()).tags).toEqual({});
      await blob.stageBlock('MDE=', 'y', 1);
      await blob.commitBlockList(['MDE='], { tags: { listed: '2' } });
      expect((await blob.getTags()).tags).toEqual({ listed: '2' });
      await blob.commitBlockList([], { tags: { empty: '3' } });
      expect((await blob.getTags()).tags).toEqual({ empty: '3' });
      await blob.upload('x', 1);
      expect((await blob.getTags()).tags).toEqual({});
    });

    it('stay when metadata, properties or a lease change', async () => {
      const blob = (await running.newContainer()).getBlockBlobClient('blob');
      await blob.upload('x', 1, { tags: TAGS });
      await blob.setMetadata({ a: 'b' });
      await blob.setHTTPHeaders({ blobContentType: 'text/plain' });
      await blob.getBlobLeaseClient().acquireLease(-1);
      expect((await blob.getTags()).tags).toEqual(TAGS);
    });

    it('are in a list that includes them, and their number in every list', async () => {
      const container = await running.newContainer();
      await container.getBlockBlobClient('none').upload('x', 1);
      await container.getBlockBlobClient('some').upload('x', 1, { tags: TAGS });
      const [none, some] = await collect(container.listBlobsFlat({ includeTags: true }));
      expect([none!.tags, none!.properties.tagCount]).toEqual([undefined, undefined]);
      expect([some!.tags, some!.properties.tagCount]).toEqual([TAGS, 3]);
      const [, without] = await collect(container.listBlobsFlat());
      expect([without!.tags, without!.properties.tagCount]).toEqual([undefined, 3]);
    });
  });

  onLmdb((running) => {
    it.each([
      ['InvalidHeaderValue', 'a'],
      ['InvalidHeaderValue', 'a=%'],
      ['InvalidTags', 'a=%26'],
      ['DuplicateTagNames', 'a=1&a=2'],
      ['TagsTooLarge', 'a=1&'.repeat(11)],
    ])('are refused with %s in x-ms-tags: %.20s', async (code, tags) => {
      const container = await running.newContainer();
      const headers = { 'x-ms-blob-type': 'BlockBlob', 'x-ms-tags': tags };
      const answer = await running.request('PUT', `/${container.containerName}/blob`, { headers, body: 'x' });
      expectError(answer, 400, code);
      expect(await container.getBlobClient('blob').exists()).toBe(false);
    });

    it('need the permission for tags beside that of the operation', async () => {
      const container = await running.newContainer();
      await container.setAccessPolicy('container');
      const { containerName } = container;
      await container.getBlockBlobClient('blob').upload('x', 1, { tags: TAGS });
      const by = (sp: string, method: string, path: string, headers: Record<string, string> = {}) => {
        const sas = serviceSas(`/${containerName}`, { sv: '2022-11-02', sr: 'c', sp, se: '2099-01-01T00:00:00Z' });
        const separator = path.includes('?') ? '&' : '?';
        const body = method === 'PUT' ? { body: 'x' } : {};
        return running.request(method, `${path}${separator}${sas.join('&')}`, { unsigned: true, headers, ...body });
      };
      const put = { 'x-ms-blob-type': 'BlockBlob', 'x-ms-tags': 'a=b' };
      const code = 'AuthorizationPermissionMismatch';
      expectError(await by('cw', 'PUT', `/${containerName}/new`, put), 403, code);
      expectError(await by('t', 'PUT', `/${containerName}/new`, put), 403, code);
      expect((await by('ct', 'PUT', `/${containerName}/new`, put)).status).toBe(201);
      expectError(await by('ct', 'PUT', `/${containerName}/new`, put), 403, 'UnauthorizedBlobOverwrite');
      const list = `/${containerName}?restype=container&comp=list&include=metadata,Tags`;
      expectError(await by('l', 'GET', list), 403, code);
      expect((await by('lt', 'GET', list)).status).toBe(200);
      const anonymous = await running.request('GET', list, { unsigned: true });
      expectError(anonymous, 401, 'NoAuthenticationInformation');
    });
  });
});
