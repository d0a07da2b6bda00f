import { type BlobClient, BlobSASPermissions, type BlockBlobClient, type ContainerClient } from '@azure/storage-blob';
import { describe, expect, it } from 'vitest';
import { id } from '../support/blocks.ts';
import { expectError, expectRefusal, listXml, onEveryEngine, onLmdb } from '../support/test-server.ts';

const LARGE = Buffer.alloc(300_000, 7);
const textOf = async (blob: { downloadToBuffer(): Promise<Buffer> }) => (await blob.downloadToBuffer()).toString();

const signed = (blob: BlobClient) =>
  blob.generateSasUrl({ permissions: BlobSASPermissions.parse('r'), expiresOn: new Date(Date.now() + 3_600_000) });

async function listed(container: ContainerClient, options: object = { includeSnapshots: true }) {
  const found: string[] = [];
  for await (const { name, snapshot } of container.listBlobsFlat(options)) found.push(`${name} ${snapshot ?? 'base'}`);
  return found;
}

describe('Snapshot Blob', () => {
  onEveryEngine((running) => {
    const newBlob = async (content = 'first') => {
      const container = await running.newContainer();
      const blob = container.getBlockBlobClient('blob');
      await blob.upload(content, content.length, { metadata: { a: 'b' }, tags: { colour: 'red' } });
      return { container, blob, path: `/${container.containerName}/blob` };
    };
    const snapshotOf = async (blob: BlockBlobClient, options = {}) => {
      const { snapshot } = await blob.createSnapshot(options);
      return { snapshot: snapshot!, taken: blob.withSnapshot(snapshot!) };
    };

    it('keeps content, metadata, properties, tags and tier as they were', async () => {
      const { blob } = await newBlob();
      await blob.setHTTPHeaders({ blobContentType: 'text/x' });
      await blob.setAccessTier('Cool');
      const before = await blob.getProperties();
      const { snapshot, taken } = await snapshotOf(blob);
      expect(snapshot).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z$/);
      await blob.upload('second', 6, { metadata: { c: 'd' } });
      await blob.setAccessTier('Hot');
      const found = await taken.getProperties();
      expect([found.etag, found.lastModified, found.metadata]).toEqual([before.etag, before.lastModified, { a: 'b' }]);
      expect([found.contentType, found.accessTier, found.createdOn]).toEqual(['text/x', 'Cool', before.createdOn]);
      expect([found.leaseState, found.leaseStatus]).toEqual([undefined, undefined]);
      expect((await taken.getTags()).tags).toEqual({ colour: 'red' });
      expect([await textOf(taken), await textOf(blob)]).toEqual(['first', 'second']);
    });

    it('answers the ETag of the blob, or one of its own if it has other metadata', async () => {
      const { blob, path } = await newBlob();
      const { etag, lastModified } = await blob.getProperties();
      const plain = await blob.createSnapshot();
      expect([plain.etag, plain.lastModified]).toEqual([etag, lastModified]);
      const { snapshot, etag: other } = await blob.createSnapshot({ metadata: { new: 'one' } });
      expect(other).not.toBe(etag);
      const found = await blob.withSnapshot(snapshot!).getProperties();
      expect([found.metadata, found.etag]).toEqual([{ new: 'one' }, other]);
      expect((await blob.getProperties()).etag).toBe(etag);
      const raw = await running.request('PUT', `${path}?comp=snapshot`);
      expect([raw.status, raw.headers['x-ms-request-server-encrypted']]).toEqual([201, 'false']);
    });

    it('is named in reads of versions before 2019-02-02', async () => {
      const { blob, path } = await newBlob();
      const { snapshot } = await snapshotOf(blob);
      for (const method of ['GET', 'HEAD'])
        for (const [version, query, expected] of [
          ['2018-11-09', `?snapshot=${snapshot}`, snapshot],
          ['2018-11-09', '', undefined],
          ['2019-02-02', `?snapshot=${snapshot}`, undefined],
        ] as const) {
          const found = await running.request(method, `${path}${query}`, { headers: { 'x-ms-version': version } });
          expect([found.status, found.headers['x-ms-snapshot']]).toEqual([200, expected]);
        }
    });

    it('keeps long contents, blocks and all, after the blob is overwritten and deleted', async () => {
      const container = await running.newContainer();
      const blob = container.getBlockBlobClient('blob');
      await blob.stageBlock(id('1'), LARGE, LARGE.length);
      await blob.commitBlockList([id('1')]);
      const { taken } = await snapshotOf(blob);
      await blob.stageBlock(id('2'), 'x', 1);
      await blob.commitBlockList([id('2')]);
      const { snapshot: second } = await snapshotOf(blob);
      expect((await taken.downloadToBuffer()).equals(LARGE)).toBe(true);
      const list = await taken.getBlockList('all');
      expect(list.committedBlocks).toEqual([{ name: id('1'), size: LARGE.length }]);
      expect(list.uncommittedBlocks ?? []).toEqual([]);
      await taken.delete();
      expect(await taken.exists()).toBe(false);
      expect(await textOf(blob.withSnapshot(second))).toBe('x');
    });

    it('takes the conditions, and the lease only if one is named', async () => {
      const { blob, path } = await newBlob();
      const { etag } = await blob.getProperties();
      const take = (conditions: object) => blob.createSnapshot({ conditions });
      await take({ ifMatch: etag });
      await take({ ifNoneMatch: '"0x1"' });
      await expectRefusal(take({ ifMatch: '"0x1"' }), 412, 'ConditionNotMet');
      await expectRefusal(take({ ifNoneMatch: etag }), 412, 'ConditionNotMet');
      await expectRefusal(take({ ifNoneMatch: '*' }), 412, 'ConditionNotMet');
      await expectRefusal(take({ ifModifiedSince: new Date(Date.now() + 3_600_000) }), 412, 'ConditionNotMet');
      await expectRefusal(take({ ifUnmodifiedSince: new Date(0) }), 412, 'ConditionNotMet');
      await expectRefusal(take({ tagConditions: `colour = 'blue'` }), 412, 'ConditionNotMet');
      await take({ tagConditions: `colour = 'red'` });
      const other = '11111111-1111-1111-1111-111111111111';
      await expectRefusal(take({ leaseId: other }), 412, 'LeaseNotPresentWithBlobOperation');
      const lease = blob.getBlobLeaseClient();
      await lease.acquireLease(-1);
      await take({});
      await take({ leaseId: lease.leaseId });
      await expectRefusal(take({ leaseId: other }), 412, 'LeaseIdMismatchWithBlobOperation');
      await lease.breakLease(0);
      await expectRefusal(take({ leaseId: lease.leaseId }), 412, 'LeaseLost');
      expectError(await running.request('PUT', `${path}2?comp=snapshot`), 404, 'BlobNotFound');
    });

    it('refuses names of snapshots that are malformed, do not exist, or are of another blob', async () => {
      const { container, blob, path } = await newBlob();
      const { snapshot } = await snapshotOf(blob);
      await container.getBlockBlobClient('other').upload('x', 1);
      const get = (query: string, of = path) => running.request('GET', `${of}?snapshot=${query}`);
      for (const text of ['1', '', 'x', '2020-13-01T00:00:00.0000000Z', '2020-02-30T00:00:00Z', '2020-01-01']) {
        expectError(await get(text), 400, 'InvalidQueryParameterValue', { QueryParameterName: 'snapshot' });
      }
      expectError(await get('1988-08-18T07:52:31.6690068Z'), 404, 'BlobNotFound');
      expectError(await get(snapshot, `/${container.containerName}/other`), 404, 'BlobNotFound');
      for (const method of ['GET', 'DELETE'] as const) {
        const both = await running.request(method, `${path}?snapshot=${snapshot}&versionid=${snapshot}`);
        expectError(both, 400, 'MutuallyExclusiveQueryParameters');
      }
      expect((await get(snapshot)).status).toBe(200);
    });

    it('cannot be changed', async () => {
      const { blob, path } = await newBlob();
      const { snapshot } = await snapshotOf(blob);
      const lease = { 'x-ms-lease-action': 'acquire', 'x-ms-lease-duration': '-1' };
      const source = { 'x-ms-copy-source': await signed(blob) };
      const writes: [query: string, headers: Record<string, string>, body?: string][] = [
        ['', { 'x-ms-blob-type': 'BlockBlob' }, 'x'],
        ['&comp=metadata', { 'x-ms-meta-a': 'c' }],
        ['&comp=properties', { 'x-ms-blob-content-type': 'c' }],
        ['&comp=lease', lease],
        ['&comp=block&blockid=MDE%3D', {}, 'x'],
        ['&comp=blocklist', {}, '<BlockList />'],
        ['&comp=snapshot', {}],
        ['&comp=tags', {}, '<Tags><TagSet/></Tags>'],
        ['', source],
        ['', { ...source, 'x-ms-requires-sync': 'true' }],
      ];
      for (const [query, headers, body = ''] of writes) {
        const answer = await running.request('PUT', `${path}?snapshot=${snapshot}${query}`, { headers, body });
        expectError(answer, 400, 'InvalidQueryParameterValue', { QueryParameterName: 'snapshot' });
      }
      expect(await textOf(blob.withSnapshot(snapshot))).toBe('first');
    });

    it('has a tier of its own, and comes out of the archive only as a copy', async () => {
      const { container, blob } = await newBlob();
      const { taken } = await snapshotOf(blob);
      await taken.setAccessTier('Archive');
      expect((await taken.getProperties()).accessTier).toBe('Archive');
      expect((await blob.getProperties()).accessTier).toBe('Hot');
      await expectRefusal(taken.downloadToBuffer(), 409, 'BlobArchived');
      await expectRefusal(taken.setAccessTier('Hot'), 409, 'BlobArchived');
      await expectRefusal(blob.beginCopyFromURL(taken.url), 409, 'BlobArchived');
      const copy = container.getBlockBlobClient('copy');
      await (await copy.beginCopyFromURL(taken.url, { tier: 'Hot' })).pollUntilDone();
      expect((await copy.getProperties()).archiveStatus).toBe('rehydrate-pending-to-hot');
      await blob.setAccessTier('Archive');
      await expectRefusal(blob.createSnapshot(), 409, 'BlobArchived');
    });

    it('is not found by its tags', async () => {
      const { container, blob } = await newBlob();
      await snapshotOf(blob);
      await blob.setTags({ colour: 'green' });
      const found = async (where: string) => {
        const names: string[] = [];
        for await (const { name } of container.findBlobsByTags(where)) names.push(name);
        return names;
      };
      expect([await found(`colour = 'red'`), await found(`colour = 'green'`)]).toEqual([[], ['blob']]);
    });

    it.each(['short', 'long'])('is the source of a copy: %s content', async (kind) => {
      const { container, blob } = await newBlob(kind === 'long' ? LARGE.toString('latin1') : 'first');
      const { taken } = await snapshotOf(blob);
      const expected = await taken.downloadToBuffer();
      await blob.upload('second', 6);
      const copy = container.getBlockBlobClient('copy');
      await copy.syncCopyFromURL(await signed(taken));
      expect((await copy.downloadToBuffer()).equals(expected)).toBe(true);
      await copy.syncUploadFromURL(await signed(taken));
      expect((await copy.downloadToBuffer()).equals(expected)).toBe(true);
      await (await blob.beginCopyFromURL(taken.url)).pollUntilDone();
      expect((await blob.downloadToBuffer()).equals(expected)).toBe(true);
      const { copySource, metadata } = await blob.getProperties();
      expect([copySource, metadata]).toEqual([taken.url, { a: 'b' }]);
      expect((await taken.downloadToBuffer()).equals(expected)).toBe(true);
      await expectRefusal(copy.beginCopyFromURL(`${blob.url}?snapshot=1`), 400, 'InvalidQueryParameterValue');
    });
  });
});

describe('Delete Blob with snapshots', () => {
  onEveryEngine((running) => {
    it('refuses the blob alone, deletes both together, or the snapshots only', async () => {
      const container = await running.newContainer();
      const blob = container.getBlockBlobClient('blob');
      await blob.upload('first', 5);
      const { snapshot } = await blob.createSnapshot();
      await blob.upload('second', 6);
      await blob.createSnapshot();
      const remove = (query: string, headers = {}) =>
        running.request('DELETE', `/${container.containerName}/blob${query}`, { headers });
      expectError(await remove(''), 409, 'SnapshotsPresent');
      for (const value of ['include', 'only']) {
        const both = await remove(`?snapshot=${snapshot}`, { 'x-ms-delete-snapshots': value });
        expectError(both, 400, 'InvalidQueryParameterValue');
      }
      expect(await listed(container)).toHaveLength(3);
      expect((await remove(`?snapshot=${snapshot}`)).status).toBe(202);
      expectError(await remove(`?snapshot=${snapshot}`), 404, 'BlobNotFound');
      await blob.delete({ deleteSnapshots: 'only' });
      expect(await listed(container)).toEqual(['blob base']);
      await blob.delete();
      expectError(await remove('', { 'x-ms-delete-snapshots': 'only' }), 404, 'BlobNotFound');
      await blob.upload('third', 5);
      const { snapshot: third } = await blob.createSnapshot();
      await blob.delete({ deleteSnapshots: 'include' });
      expect(await listed(container)).toEqual([]);
      await blob.upload('fourth', 6);
      expectError(
        await running.request('GET', `/${container.containerName}/blob?snapshot=${third}`),
        404,
        'BlobNotFound',
      );
      const { snapshot: last } = await blob.createSnapshot();
      expect(await listed(container)).toEqual([`blob ${last}`, 'blob base']);
    });

    it('needs the lease for the blob and for all snapshots, and not for one of them', async () => {
      const container = await running.newContainer();
      const blob = container.getBlockBlobClient('blob');
      await blob.upload('first', 5);
      const { snapshot } = await blob.createSnapshot();
      await blob.createSnapshot();
      const lease = blob.getBlobLeaseClient();
      await lease.acquireLease(-1);
      await expectRefusal(blob.delete({ deleteSnapshots: 'only' }), 412, 'LeaseIdMissing');
      await expectRefusal(blob.delete({ deleteSnapshots: 'include' }), 412, 'LeaseIdMissing');
      const conditions = { leaseId: lease.leaseId };
      await expectRefusal(blob.withSnapshot(snapshot!).delete({ conditions }), 412, 'LeaseNotPresentWithBlobOperation');
      await blob.withSnapshot(snapshot!).delete();
      await blob.delete({ deleteSnapshots: 'only', conditions });
      await blob.delete({ conditions });
      expect(await listed(container)).toEqual([]);
    });

    it('judges conditions against what it deletes', async () => {
      const container = await running.newContainer();
      const blob = container.getBlockBlobClient('blob');
      const { etag } = await blob.upload('first', 5);
      const { snapshot } = await blob.createSnapshot();
      await blob.upload('second', 6);
      const taken = blob.withSnapshot(snapshot!);
      await expectRefusal(taken.delete({ conditions: { ifNoneMatch: etag! } }), 412, 'ConditionNotMet');
      const only = { deleteSnapshots: 'only' as const, conditions: { ifMatch: etag! } };
      await expectRefusal(blob.delete(only), 412, 'ConditionNotMet');
      await taken.delete({ conditions: { ifMatch: etag! } });
      expect(await listed(container)).toEqual(['blob base']);
    });
  });
});

describe('List Blobs with snapshots', () => {
  onEveryEngine((running) => {
    it('lists them from the oldest to the newest before their blob, in pages of any length', async () => {
      const container = await running.newContainer();
      const expected: string[] = [];
      for (const name of ['a', 'a/b', 'a/c', 'b']) {
        const blob = container.getBlockBlobClient(name);
        await blob.upload(name, name.length, { metadata: { n: name.replace('/', '') } });
        if (name !== 'a/c') {
          for (let i = 0; i < 3; i++) expected.push(`${name} ${(await blob.createSnapshot()).snapshot}`);
        }
        expected.push(`${name} base`);
      }
      expect(await listed(container)).toEqual(expected);
      expect(await listed(container, {})).toEqual(['a base', 'a/b base', 'a/c base', 'b base']);
      for (const maxPageSize of [1, 2, 3, 5, 12]) {
        const paged: string[] = [];
        for await (const page of container.listBlobsFlat({ includeSnapshots: true }).byPage({ maxPageSize })) {
          expect(page.segment.blobItems.length).toBeLessThanOrEqual(maxPageSize);
          for (const { name, snapshot } of page.segment.blobItems) paged.push(`${name} ${snapshot ?? 'base'}`);
        }
        expect(paged).toEqual(expected);
      }
      const xml = await listXml(running, container.containerName, '&include=snapshots&delimiter=/&prefix=a');
      expect([...xml.matchAll(/<BlobPrefix><Name>(.*?)<|<Blob><Name>(.*?)</g)].map(([, a, b]) => a ?? b)).toEqual([
        ...['a', 'a', 'a', 'a', 'a/'],
      ]);
      const [first] = /<Blob>.*?<\/Blob>/.exec(await listXml(running, container.containerName, '&include=snapshots'))!;
      expect(first).toContain('</Name><Snapshot>');
      expect(first).not.toContain('Lease');
      const withoutThem = await listXml(
        running,
        container.containerName,
        '&include=metadata,uncommittedblobs,snapshots',
      );
      expect(withoutThem.match(/<Metadata><n>/g)).toHaveLength(13);
    });
  });

  onLmdb((running) => {
    it('goes on behind a snapshot that was deleted meanwhile', async () => {
      const container = await running.newContainer();
      const blob = container.getBlockBlobClient('blob');
      await blob.upload('x', 1);
      const taken: string[] = [];
      for (let i = 0; i < 4; i++) taken.push((await blob.createSnapshot()).snapshot!);
      const pages = container.listBlobsFlat({ includeSnapshots: true }).byPage({ maxPageSize: 2 });
      await pages.next();
      await blob.withSnapshot(taken[1]!).delete();
      const { value } = await pages.next();
      expect(value.segment.blobItems.map(({ snapshot }: { snapshot: string }) => snapshot)).toEqual(taken.slice(2));
    });
  });
});
