import {
  type AppendBlobClient,
  BlobSASPermissions,
  BlockBlobClient,
  type ContainerClient,
  type PageBlobClient,
  type StorageSharedKeyCredential,
} from '@azure/storage-blob';
import { describe, expect, it } from 'vitest';
import { serviceSas } from '../support/raw-signing.mjs';
import { expectError, expectRefusal, onEveryEngine, onLmdb, type Running } from '../support/test-server.ts';

const MET = `"a" = '1' AND "b" <> '3'`;
const UNMET = `"a" = '2' OR "b" > '2'`;

type Act = (blob: BlockBlobClient, conditions: { tagConditions: string }) => Promise<unknown>;

const READS: readonly [string, Act][] = [
  ['Get Blob', (blob, conditions) => blob.download(0, undefined, { conditions })],
  ['Get Block List', (blob, conditions) => blob.getBlockList('committed', { conditions })],
  ['Get Blob Tags', (blob, conditions) => blob.getTags({ conditions })],
];
const tags = { a: '1', b: '2' };
const WRITES: readonly [string, Act][] = [
  ['Put Blob', (blob, conditions) => blob.upload('y', 1, { conditions, tags })],
  ['Put Block List', (blob, conditions) => blob.commitBlockList([], { conditions, tags })],
  [
    'Copy Blob',
    async (blob, conditions) => (await blob.beginCopyFromURL(blob.url, { conditions, tags })).pollUntilDone(),
  ],
  ['Set Blob Metadata', (blob, conditions) => blob.setMetadata({ c: 'd' }, { conditions })],
  ['Set Blob Properties', (blob, conditions) => blob.setHTTPHeaders({ blobContentType: 'a/b' }, { conditions })],
  ['Set Blob Tags', (blob, conditions) => blob.setTags(tags, { conditions })],
  [
    'Lease Blob',
    async (blob, conditions) => {
      const lease = blob.getBlobLeaseClient();
      await lease.acquireLease(15, { conditions });
      await lease.releaseLease();
    },
  ],
  ['Delete Blob', (blob, conditions) => blob.delete({ conditions })],
];

type ActInPlace = (container: ContainerClient, conditions: { tagConditions: string }) => Promise<unknown>;

const onAppend =
  (act: (blob: AppendBlobClient, conditions: { tagConditions: string }) => Promise<unknown>): ActInPlace =>
  (container, conditions) =>
    act(container.getAppendBlobClient('blob'), conditions);
const onPage =
  (act: (blob: PageBlobClient, conditions: { tagConditions: string }) => Promise<unknown>): ActInPlace =>
  (container, conditions) =>
    act(container.getPageBlobClient('blob'), conditions);
const PAGE = Buffer.alloc(512, 'x');

/** The type of the blob, and what is done to it. */
const IN_PLACE: readonly [string, 'append' | 'page', ActInPlace][] = [
  ['Put Blob (append blob)', 'append', onAppend((blob, conditions) => blob.create({ conditions, tags }))],
  ['Append Block', 'append', onAppend((blob, conditions) => blob.appendBlock('x', 1, { conditions }))],
  [
    'Append Block From URL',
    'append',
    onAppend(async (blob, conditions) => blob.appendBlockFromURL(await sourceOf(blob), 0, 512, { conditions })),
  ],
  ['Put Blob (page blob)', 'page', onPage((blob, conditions) => blob.create(512, { conditions, tags }))],
  ['Put Page', 'page', onPage((blob, conditions) => blob.uploadPages(PAGE, 0, 512, { conditions }))],
  ['Clear Page', 'page', onPage((blob, conditions) => blob.clearPages(0, 512, { conditions }))],
  [
    'Put Page From URL',
    'page',
    onPage(async (blob, conditions) => blob.uploadPagesFromURL(await sourceOf(blob), 0, 0, 512, { conditions })),
  ],
  ['Get Page Ranges', 'page', onPage((blob, conditions) => blob.getPageRanges(0, 512, { conditions }))],
  ['Set Blob Properties (resize)', 'page', onPage((blob, conditions) => blob.resize(1024, { conditions }))],
  [
    'Set Blob Properties (sequence number)',
    'page',
    onPage((blob, conditions) => blob.updateSequenceNumber('increment', undefined, { conditions })),
  ],
];

/** A signed page beside the blob. */
function sourceOf(blob: AppendBlobClient | PageBlobClient): Promise<string> {
  const source = new BlockBlobClient(
    blob.url.replace(/blob$/, 'source'),
    blob.credential as StorageSharedKeyCredential,
  );
  const options = { permissions: BlobSASPermissions.parse('r'), expiresOn: new Date(Date.now() + 3_600_000) };
  return source.generateSasUrl(options);
}

async function newBlob(container: ContainerClient): Promise<BlockBlobClient> {
  const blob = container.getBlockBlobClient('blob');
  await blob.upload('x', 1, { tags });
  return blob;
}

describe('x-ms-if-tags', () => {
  onEveryEngine((running) => {
    it.each([...READS, ...WRITES])('decides whether %s happens', async (_, act) => {
      const blob = await newBlob(await running.newContainer());
      const { etag } = await blob.getProperties();
      await expectRefusal(act(blob, { tagConditions: UNMET }), 412, 'ConditionNotMet');
      expect(await blob.getProperties()).toMatchObject({ etag, leaseState: 'available', tagCount: 2 });
      await act(blob, { tagConditions: MET });
    });

    it.each(IN_PLACE)('decides whether %s happens', async (_, type, act) => {
      const container = await running.newContainer();
      await container.getBlockBlobClient('source').upload(PAGE, PAGE.length);
      if (type === 'append') await container.getAppendBlobClient('blob').create({ tags });
      else await container.getPageBlobClient('blob').create(512, { tags });
      const blob = container.getBlobClient('blob');
      const { etag } = await blob.getProperties();
      await expectRefusal(act(container, { tagConditions: UNMET }), 412, 'ConditionNotMet');
      expect(await blob.getProperties()).toMatchObject({ etag, tagCount: 2 });
      await act(container, { tagConditions: MET });
    });

    it('decides whether Get Blob Properties and Get Blob Metadata answer', async () => {
      const container = await running.newContainer();
      await newBlob(container);
      for (const query of ['', '?comp=metadata']) {
        const head = (condition: string) =>
          running.request('HEAD', `/${container.containerName}/blob${query}`, {
            headers: { 'x-ms-if-tags': condition },
          });
        expect((await head(UNMET)).status).toBe(412);
        expect((await head(MET)).status).toBe(200);
      }
    });

    it('is not met by a blob that does not exist', async () => {
      const blob = (await running.newContainer()).getBlockBlobClient('blob');
      const conditions = { tagConditions: `"a" <> '1'` };
      await expectRefusal(blob.upload('x', 1, { conditions }), 412, 'ConditionNotMet');
      expect(await blob.exists()).toBe(false);
    });
  });

  onLmdb((running: Running) => {
    it('holds beside other conditions', async () => {
      const blob = await newBlob(await running.newContainer());
      const { etag = '' } = await blob.getProperties();
      const set = (conditions: object) => blob.setMetadata({}, { conditions });
      await expectRefusal(set({ ifMatch: etag, tagConditions: UNMET }), 412, 'ConditionNotMet');
      await expectRefusal(set({ ifMatch: '"0x1"', tagConditions: MET }), 412, 'ConditionNotMet');
      await set({ ifMatch: etag, tagConditions: MET });
    });

    it('is refused where it is no condition, and by Put Block', async () => {
      const container = await running.newContainer();
      await newBlob(container);
      const path = `/${container.containerName}/blob`;
      for (const text of ['', 'some', `@container = 'c'`, `"a" = 1`]) {
        const answer = await running.request('GET', path, { headers: { 'x-ms-if-tags': text } });
        expectError(answer, 400, 'InvalidHeaderValue');
      }
      const block = { headers: { 'x-ms-if-tags': MET }, body: 'x' };
      expectError(await running.request('PUT', `${path}?comp=block&blockid=MDE%3D`, block), 501, 'NotImplemented');
    });

    it('needs the permission for tags', async () => {
      const container = await running.newContainer();
      await newBlob(container);
      const path = `/${container.containerName}/blob`;
      const get = (sp: string) => {
        const sas = serviceSas(path, { sv: '2022-11-02', sr: 'b', sp, se: '2099-01-01T00:00:00Z' });
        const headers = { 'x-ms-if-tags': MET };
        return running.request('GET', `${path}?${sas.join('&')}`, { unsigned: true, headers });
      };
      expectError(await get('r'), 403, 'AuthorizationPermissionMismatch');
      expect((await get('rt')).status).toBe(200);
    });
  });
});
