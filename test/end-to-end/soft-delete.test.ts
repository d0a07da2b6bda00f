import type { BlockBlobClient, ContainerClient } from '@azure/storage-blob';
import { describe, expect, it } from 'vitest';
import { id } from '../support/blocks.ts';
import { expectError, expectRefusal, listXml, onEveryEngine, type Running } from '../support/test-server.ts';

const DAY = 86_400;
const LARGE = Buffer.alloc(200_000, 5);

async function setPolicy(running: Running, days?: number, allowPermanentDelete = false) {
  const enabled = days !== undefined;
  await running.service.setProperties({ deleteRetentionPolicy: enabled ? { enabled, days } : { enabled } });
  if (!allowPermanentDelete) return;
  // The client for JavaScript does not send this one.
  const policy = `<Enabled>true</Enabled><Days>${days}</Days><AllowPermanentDelete>true</AllowPermanentDelete>`;
  const body = `<StorageServiceProperties><DeleteRetentionPolicy>${policy}</DeleteRetentionPolicy></StorageServiceProperties>`;
  expect((await running.request('PUT', '/?restype=service&comp=properties', { body })).status).toBe(202);
}

/** Every blob, snapshot and deleted one: its name, and what it is. */
async function listed(container: ContainerClient, options: object = { includeSnapshots: true, includeDeleted: true }) {
  const found: string[] = [];
  for await (const { name, snapshot, deleted } of container.listBlobsFlat(options))
    found.push([name, snapshot && 'snapshot', deleted && 'deleted'].filter(Boolean).join(' '));
  return found;
}

const textOf = async (blob: BlockBlobClient) => (await blob.downloadToBuffer()).toString();

describe('Soft delete and Undelete Blob', () => {
  onEveryEngine((running) => {
    const newBlob = async (content = 'first') => {
      const container = await running.newContainer();
      const blob = container.getBlockBlobClient('blob');
      await blob.upload(content, content.length, { metadata: { a: 'b' }, tags: { colour: 'red' } });
      return { container, blob, path: `/${container.containerName}/blob` };
    };

    it('keeps a deleted blob until its retention ends, hidden from everything but lists and Undelete', async () => {
      await setPolicy(running, 2);
      const { container, blob, path } = await newBlob();
      const before = await blob.getProperties();
      const removed = await running.request('DELETE', path);
      expect([removed.status, removed.headers['x-ms-delete-type-permanent']]).toEqual([202, 'false']);
      expectError(await running.request('GET', path), 404, 'BlobNotFound');
      expectError(await running.request('DELETE', path), 404, 'BlobNotFound');
      expectError(await running.request('PUT', `${path}?comp=snapshot`), 404, 'BlobNotFound');
      await expectRefusal(blob.beginCopyFromURL(blob.url), 404, 'BlobNotFound');
      expect([await listed(container, {}), await listed(container)]).toEqual([[], ['blob deleted']]);
      const xml = await listXml(running, container.containerName, '&include=deleted');
      expect(xml).toContain('<Name>blob</Name><Deleted>true</Deleted><Properties>');
      expect(xml).toContain('<LeaseStatus /><ServerEncrypted>true</ServerEncrypted><DeletedTime>');
      expect(xml).toContain('<RemainingRetentionDays>1</RemainingRetentionDays>');
      expect((await blob.undelete())._response.status).toBe(200);
      const after = await blob.getProperties();
      expect([after.etag, after.lastModified, after.metadata]).toEqual([before.etag, before.lastModified, { a: 'b' }]);
      expect([await textOf(blob), await listed(container)]).toEqual(['first', ['blob']]);
      const found: string[] = [];
      for await (const { name } of container.findBlobsByTags(`colour = 'red'`)) found.push(name);
      expect(found).toEqual(['blob']);
      await setPolicy(running);
    });

    it('ends with the retention, by the clock of the server, and the space comes back', async () => {
      await setPolicy(running, 2);
      const { container, blob } = await newBlob(LARGE.toString('latin1'));
      await blob.createSnapshot();
      await blob.upload('second', 6);
      await blob.delete({ deleteSnapshots: 'include' });
      await running.server.clock.advance(DAY);
      expect(await listed(container)).toEqual(['blob snapshot deleted', 'blob snapshot deleted', 'blob deleted']);
      const xml = await listXml(running, container.containerName, '&include=deleted');
      expect(xml).toContain('<RemainingRetentionDays>0</RemainingRetentionDays>');
      await running.server.clock.advance(DAY);
      expect(await listed(container)).toEqual([]);
      await expectRefusal(blob.undelete(), 404, 'BlobNotFound');
      await setPolicy(running);
    });

    it('keeps what a write replaces as a deleted snapshot; other changes leave nothing', async () => {
      await setPolicy(running, 1);
      const { container, blob } = await newBlob();
      await blob.setMetadata({ c: 'd' });
      await blob.setHTTPHeaders({ blobContentType: 'text/x' });
      await blob.setAccessTier('Cool');
      expect(await listed(container)).toEqual(['blob']);
      await blob.upload('second', 6);
      await blob.stageBlock(id('1'), LARGE, LARGE.length);
      await blob.commitBlockList([id('1')]);
      await blob.stageBlock(id('2'), 'x', 1);
      await blob.commitBlockList([id('1'), id('2')]);
      await (await blob.beginCopyFromURL(blob.url)).pollUntilDone();
      const deleted = Array.from({ length: 4 }, () => 'blob snapshot deleted');
      expect(await listed(container)).toEqual([...deleted, 'blob']);
      expect(await listed(container, { includeSnapshots: true })).toEqual(['blob']);
      expect(await listed(container, { includeDeleted: true })).toEqual(['blob']);
      await blob.undelete();
      expect(await listed(container)).toEqual([...deleted.map(() => 'blob snapshot'), 'blob']);
      const contents: number[] = [];
      for await (const { snapshot } of container.listBlobsFlat({ includeSnapshots: true }))
        if (snapshot) contents.push((await blob.withSnapshot(snapshot).downloadToBuffer()).length);
      expect(contents).toEqual([5, 6, LARGE.length, LARGE.length + 1]);
      await expectRefusal(blob.delete(), 409, 'SnapshotsPresent');
      await setPolicy(running);
    });

    it('keeps snapshots that are deleted one by one, only, or with their blob', async () => {
      await setPolicy(running, 1);
      const { container, blob, path } = await newBlob();
      const taken: string[] = [];
      for (let i = 0; i < 3; i++) taken.push((await blob.createSnapshot()).snapshot!);
      await blob.withSnapshot(taken[1]!).delete();
      expectError(await running.request('GET', `${path}?snapshot=${taken[1]}`), 404, 'BlobNotFound');
      expect(await listed(container)).toEqual(['blob snapshot', 'blob snapshot deleted', 'blob snapshot', 'blob']);
      await blob.delete({ deleteSnapshots: 'only' });
      expect(await listed(container, { includeSnapshots: true })).toEqual(['blob']);
      await blob.undelete();
      expect(await listed(container)).toEqual(['blob snapshot', 'blob snapshot', 'blob snapshot', 'blob']);
      await blob.delete({ deleteSnapshots: 'include' });
      expect(await listed(container)).toHaveLength(4);
      await blob.upload('second', 6, { conditions: { ifNoneMatch: '*' } });
      const { snapshot } = await blob.createSnapshot();
      await blob.delete({ deleteSnapshots: 'include' });
      await blob.undelete();
      expect(await textOf(blob)).toBe('second');
      expect(await listed(container)).toEqual([...Array.from({ length: 5 }, () => 'blob snapshot'), 'blob']);
      expect(await textOf(blob.withSnapshot(taken[2]!) as BlockBlobClient)).toBe('first');
      expect(await textOf(blob.withSnapshot(snapshot!) as BlockBlobClient)).toBe('second');
      await setPolicy(running);
    });

    it('sees conditions and leases of a deleted blob as absent', async () => {
      await setPolicy(running, 1);
      const { blob } = await newBlob();
      const lease = blob.getBlobLeaseClient();
      await lease.acquireLease(-1);
      await expectRefusal(blob.delete(), 412, 'LeaseIdMissing');
      await blob.delete({ conditions: { leaseId: lease.leaseId } });
      await expectRefusal(blob.upload('x', 1, { conditions: { ifMatch: '*' } }), 412, 'ConditionNotMet');
      await blob.undelete();
      expect((await blob.getProperties()).leaseState).toBe('available');
      await blob.delete();
      await blob.upload('second', 6, { conditions: { ifNoneMatch: '*' } });
      expect(await textOf(blob)).toBe('second');
      await setPolicy(running);
    });

    it('follows the policy at once, and what is kept stays kept', async () => {
      const { container, blob, path } = await newBlob();
      const second = container.getBlockBlobClient('second');
      await second.upload('x', 1);
      await setPolicy(running, 365);
      await blob.delete();
      await setPolicy(running);
      expect((await running.request('DELETE', `/${container.containerName}/second`)).headers).toMatchObject({
        'x-ms-delete-type-permanent': 'true',
      });
      expect(await listed(container)).toEqual(['blob deleted']);
      await blob.undelete();
      expect((await running.request('HEAD', path)).status).toBe(200);
      await expectRefusal(second.undelete(), 404, 'BlobNotFound');
    });

    it('ends early for deleted snapshots, where the policy allows it', async () => {
      await setPolicy(running, 7);
      const { container, blob, path } = await newBlob();
      const { snapshot } = await blob.createSnapshot();
      const remove = (headers: Record<string, string> = {}) =>
        running.request('DELETE', `${path}?snapshot=${snapshot}&deletetype=permanent`, { headers });
      expectError(await remove(), 409, 'BlobOperationNotSupported');
      await blob.withSnapshot(snapshot!).delete();
      expectError(await remove(), 409, 'BlobOperationNotSupported');
      await setPolicy(running, 7, true);
      const { etag } = await blob.getProperties();
      for (const [headers, code] of [
        [{ 'if-match': '"0x1"' }, 'ConditionNotMet'],
        [{ 'if-none-match': etag! }, 'ConditionNotMet'],
        [{ 'x-ms-if-tags': `"k" = 'v'` }, 'ConditionNotMet'],
        [{ 'x-ms-lease-id': '8ddbb7a4-2a5a-4d11-a3a3-1c3a7d5c1a9e' }, 'LeaseNotPresentWithBlobOperation'],
      ] as const)
        expectError(await remove(headers), 412, code);
      const answer = await remove();
      expect([answer.status, answer.headers['x-ms-delete-type-permanent']]).toEqual([202, 'true']);
      expectError(await remove(), 404, 'BlobNotFound');
      expectError(await running.request('DELETE', `${path}?deletetype=permanent`), 409, 'BlobOperationNotSupported');
      expect(await listed(container)).toEqual(['blob']);
      const properties = await running.request('GET', '/?restype=service&comp=properties');
      expect(properties.text).toContain(
        '<Enabled>true</Enabled><AllowPermanentDelete>true</AllowPermanentDelete><Days>7</Days></DeleteRetentionPolicy>',
      );
      await setPolicy(running);
    });

    it('is listed in pages of any length, under prefixes, and alone', async () => {
      await setPolicy(running, 1);
      const container = await running.newContainer();
      for (const name of ['a', 'b/c', 'b/d', 'e']) {
        const blob = container.getBlockBlobClient(name);
        await blob.upload('x', 1);
        await blob.upload('y', 1);
        await blob.createSnapshot();
        if (name !== 'e') await blob.delete({ deleteSnapshots: 'include' });
      }
      const all = await listed(container);
      expect(all).toHaveLength(12);
      for (const maxPageSize of [1, 2, 3, 5]) {
        const found: string[] = [];
        const options = { includeSnapshots: true, includeDeleted: true };
        for await (const page of container.listBlobsFlat(options).byPage({ maxPageSize }))
          for (const { name, snapshot, deleted } of page.segment.blobItems)
            found.push([name, snapshot && 'snapshot', deleted && 'deleted'].filter(Boolean).join(' '));
        expect(found).toEqual(all);
      }
      const names = async (query: string) => {
        const xml = await listXml(running, container.containerName, query);
        return [...xml.matchAll(/<BlobPrefix><Name>(.*?)<|<Blob><Name>(.*?)</g)].map(([, a, b]) => a ?? b);
      };
      expect(await names('&delimiter=/')).toEqual(['e']);
      expect(await names('&delimiter=/&include=deleted')).toEqual(['a', 'b/', 'e']);
      expect(await names('&showonly=deleted')).toEqual(['a', 'b/c', 'b/d']);
      expect(await names('&showonly=deleted&prefix=b/&maxresults=1')).toEqual(['b/c']);
      const { containerName } = container;
      const unknown = await running.request('GET', `/${containerName}?restype=container&comp=list&showonly=all`);
      expectError(unknown, 400, 'InvalidQueryParameterValue');
      await setPolicy(running);
    });
  });
});
