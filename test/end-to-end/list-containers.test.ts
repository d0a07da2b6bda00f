import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { elementOf, expectError, onEveryEngine, onLmdb, type Running } from '../support/test-server.ts';

describe('List Containers', () => {
  onEveryEngine((running) => {
    it('lists names in order, page by page, whatever the size of the page', async () => {
      const prefix = `p${randomUUID().slice(0, 8)}-`;
      const names = ['a', 'a-b', 'a0', 'aa', 'b', 'b-1', 'z9'].map((name) => prefix + name);
      for (const name of names) await running.service.createContainer(name);
      for (const maxPageSize of [1, 2, 3, 7, 100]) {
        const found: string[] = [];
        for await (const page of running.service.listContainers({ prefix }).byPage({ maxPageSize })) {
          expect(page.containerItems.length).toBeLessThanOrEqual(maxPageSize);
          found.push(...page.containerItems.map(({ name }) => name));
        }
        expect(found).toEqual(names);
      }
    });

    it('gives metadata only when asked for it', async () => {
      const prefix = `m${randomUUID().slice(0, 8)}`;
      const { containerClient } = await running.service.createContainer(prefix, { metadata: { Key: 'a<b' } });
      const { etag, lastModified } = await containerClient.getProperties();
      const [plain] = await listed(running, { prefix });
      expect(plain).toMatchObject({ name: prefix, properties: { etag, lastModified, leaseState: 'available' } });
      expect(plain!.metadata).toBeUndefined();
      const [withMetadata] = await listed(running, { prefix, includeMetadata: true });
      expect(withMetadata!.metadata).toEqual({ Key: 'a<b' });
    });

    it('continues after a container that was deleted between two pages', async () => {
      const prefix = `d${randomUUID().slice(0, 8)}`;
      for (const name of ['a', 'b', 'c']) await running.service.createContainer(prefix + name);
      const pages = running.service.listContainers({ prefix }).byPage({ maxPageSize: 1 });
      await pages.next();
      await running.service.deleteContainer(`${prefix}a`);
      await running.service.deleteContainer(`${prefix}b`);
      const { value } = await pages.next();
      expect(value.containerItems.map(({ name }: { name: string }) => name)).toEqual([`${prefix}c`]);
    });
  });

  onLmdb((running) => {
    it('answers as the service does', async () => {
      const prefix = `x${randomUUID().slice(0, 8)}`;
      for (const name of ['1', '2']) await running.service.createContainer(prefix + name);
      const answer = await running.request('GET', `/?comp=list&prefix=${prefix}&maxresults=1`);
      expect(answer.headers['content-type']).toBe('application/xml');
      expect(answer.text).toMatch(
        /^\ufeff<\?xml version="1\.0" encoding="utf-8"\?><EnumerationResults ServiceEndpoint="http/,
      );
      expect(elementOf(answer.text, 'Prefix')).toBe(prefix);
      expect(elementOf(answer.text, 'MaxResults')).toBe('1');
      expect(elementOf(answer.text, 'Name')).toBe(`${prefix}1`);
      const marker = elementOf(answer.text, 'NextMarker')!;
      const last = await running.request('GET', `/?comp=list&prefix=${prefix}&marker=${encodeURIComponent(marker)}`);
      expect(elementOf(last.text, 'Marker')).toBe(marker);
      expect(last.text).toContain('<NextMarker />');
    });

    it('shows the containers of the root and of a website to everybody, and no deleted ones', async () => {
      for (const name of ['$root', '$web']) await running.service.createContainer(name);
      const gone = `x${randomUUID()}`;
      await running.service.createContainer(gone);
      await running.service.deleteContainer(gone);
      const all = { includeSystem: true, includeDeleted: true, includeMetadata: true };
      for (const options of [{}, { includeSystem: true }, { includeDeleted: true }, all]) {
        const names = (await listed(running, options)).map(({ name }) => name);
        expect(names).toEqual(expect.arrayContaining(['$root', '$web']));
        expect(names).not.toContain(gone);
      }
      for (const name of ['$root', '$web']) await running.service.deleteContainer(name);
    });

    it('refuses parameters that make no sense', async () => {
      const list = (query: string) => running.request('GET', `/?comp=list&${query}`);
      expectError(await list('maxresults=0'), 400, 'OutOfRangeQueryParameterValue');
      expectError(await list('maxresults=many'), 400, 'InvalidQueryParameterValue');
      expectError(await list('marker=nowhere'), 400, 'InvalidQueryParameterValue', { QueryParameterName: 'marker' });
      expectError(await list('include=everything'), 400, 'InvalidQueryParameterValue');
      expectError(await running.request('GET', '/?comp=nothing'), 400, 'InvalidQueryParameterValue');
    });
  });
});

async function listed(running: Running, options: Parameters<typeof running.service.listContainers>[0]) {
  const found = [];
  for await (const item of running.service.listContainers(options)) found.push(item);
  return found;
}
