/** Incremental Copy Blob: a page blob of another one's snapshots, within an account, from another account and from another server. */
import { randomUUID } from 'node:crypto';
import {
  BlobSASPermissions,
  BlobServiceClient,
  type ContainerClient,
  type PageBlobClient,
  StorageSharedKeyCredential,
} from '@azure/storage-blob';
import { check, start as startServer } from 'holdfast';
import { afterAll, describe, expect, it } from 'vitest';
import {
  accountKey,
  clientOf,
  expectError,
  expectRefusal,
  listXml,
  onEngine,
  type Running,
} from '../support/test-server.ts';

const PAGE = 512;
const OTHER = { name: 'other', keys: [Buffer.from('a key').toString('base64')] };

const elsewhere = await startServer({ blobPort: 0, inMemory: true });
afterAll(() => elsewhere.stop());

const start = {
  accounts: [{ name: 'devstoreaccount1', keys: [accountKey] }, OTHER],
  copyFrom: [new URL(elsewhere.blobUrl).origin],
  blobKeepAliveSeconds: 600,
};

type Place = 'the account' | 'another account' | 'another server';

async function containerAt(running: Running, place: Place): Promise<ContainerClient> {
  if (place === 'the account') return running.newContainer();
  const url = running.server.blobUrl.replace('devstoreaccount1', OTHER.name);
  const other = new BlobServiceClient(url, new StorageSharedKeyCredential(OTHER.name, OTHER.keys[0]!));
  const service = place === 'another server' ? clientOf(elsewhere.blobUrl) : other;
  const container = service.getContainerClient(`c-${randomUUID()}`);
  await container.create();
  return container;
}

async function sourceAt(running: Running, place: Place, length = 16 * PAGE): Promise<PageBlobClient> {
  const blob = (await containerAt(running, place)).getPageBlobClient('from');
  await blob.create(length, { blobSequenceNumber: 3, metadata: { a: '1' } });
  return blob;
}

const put = (blob: PageBlobClient, page: number, count: number, fill: string) =>
  blob.uploadPages(Buffer.alloc(count * PAGE, fill), page * PAGE, count * PAGE);

async function signed(blob: PageBlobClient): Promise<string> {
  const options = { permissions: BlobSASPermissions.parse('r'), expiresOn: new Date(Date.now() + 3_600_000) };
  return blob.generateSasUrl(options);
}

async function takeSnapshot(blob: PageBlobClient): Promise<{ snapshot: string; url: string }> {
  const { snapshot } = await blob.createSnapshot();
  return { snapshot: snapshot!, url: await signed(blob.withSnapshot(snapshot!)) };
}

const copy = (running: Running, to: PageBlobClient, url: string, headers: Record<string, string> = {}) =>
  running.request('PUT', `/${to.containerName}/${to.name}?comp=incrementalcopy`, {
    headers: { 'x-ms-copy-source': url, ...headers },
  });

async function ended(to: PageBlobClient) {
  for (;;) {
    const found = await to.getProperties();
    if (found.copyStatus !== 'pending') return found;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function copied(running: Running, to: PageBlobClient, url: string) {
  expect(await copy(running, to, url)).toMatchObject({ status: 202 });
  const found = await ended(to);
  expect(found).toMatchObject({ copyStatus: 'success', isIncrementalCopy: true });
  return to.withSnapshot(found.destinationSnapshot!);
}

/** One character for each page: its first byte, or a dot. */
async function textOf(blob: PageBlobClient): Promise<string> {
  const bytes = await blob.downloadToBuffer();
  return Array.from({ length: bytes.length / PAGE }, (_, i) => {
    const page = bytes.subarray(i * PAGE, (i + 1) * PAGE);
    expect(page.every((byte) => byte === page[0])).toBe(true);
    return page[0] === 0 ? '.' : String.fromCharCode(page[0]!);
  }).join('');
}

async function expectInOrder(running: Running): Promise<void> {
  if (running.engine !== 'memory') expect((await check(running.where)).findings).toEqual([]);
}

describe('Incremental Copy Blob', () => {
  for (const engine of ['LMDB', 'memory'] as const)
    onEngine(
      engine,
      (running) => {
        it.each<Place>(['the account', 'another account', 'another server'])(
          'leaves a snapshot for each snapshot of a source in %s',
          async (place) => {
            const from = await sourceAt(running, place, 8 * PAGE);
            await put(from, 0, 3, 'a');
            const first = await takeSnapshot(from);
            await put(from, 2, 2, 'b');
            await from.clearPages(0, PAGE);
            const second = await takeSnapshot(from);
            await from.resize(2 * PAGE);
            await from.resize(10 * PAGE);
            await put(from, 9, 1, 'c');
            const third = await takeSnapshot(from);
            await put(from, 0, 8, 'x');

            const to = (await running.newContainer()).getPageBlobClient('to');
            const one = await copied(running, to, first.url);
            expect(await textOf(one)).toBe('aaa.....');
            expect(await one.getProperties()).toMatchObject({
              ...{ isIncrementalCopy: true, blobSequenceNumber: 3, metadata: { a: '1' }, copyStatus: 'success' },
              ...{ contentLength: 8 * PAGE, blobType: 'PageBlob' },
            });
            const two = await copied(running, to, second.url);
            expect(await textOf(two)).toBe('.abb....');
            const three = await copied(running, to, third.url);
            expect(await textOf(three)).toBe('.a.......c');
            expect([await textOf(one), await textOf(two)]).toEqual(['aaa.....', '.abb....']);

            const { pageRange, clearRange } = await two.getPageRangesDiff(
              0,
              8 * PAGE,
              new URL(one.url).searchParams.get('snapshot')!,
            );
            expect(pageRange!.map(({ offset }) => offset)).toEqual([2 * PAGE]);
            expect(clearRange!.map(({ offset }) => offset)).toEqual([0]);
            expect((await to.getProperties()).copySource).toContain('from?snapshot=');
            await expectInOrder(running);
            await to.delete({ deleteSnapshots: 'include' });
            await expectInOrder(running);
          },
        );

        it('is started by the SDK, and shows in a list what it is', async () => {
          const from = await sourceAt(running, 'the account');
          const to = (await running.newContainer()).getPageBlobClient('to');
          const begun = await to.startCopyIncremental((await takeSnapshot(from)).url);
          expect(begun).toMatchObject({ copyStatus: 'pending', copyId: expect.any(String), etag: expect.any(String) });
          const snapshot = (await ended(to)).destinationSnapshot!;
          const xml = await listXml(running, to.containerName, '&include=snapshots,copy');
          expect(xml.match(/<IncrementalCopy>true<\/IncrementalCopy>/g)).toHaveLength(2);
          expect(xml).toContain(`<DestinationSnapshot>${snapshot}</DestinationSnapshot>`);
          expect(xml).toContain(`<Snapshot>${snapshot}</Snapshot>`);
        });

        it('makes a blob that nothing else can change, and that is read by its snapshots only', async () => {
          const from = await sourceAt(running, 'the account');
          await put(from, 0, 1, 'a');
          const container = await running.newContainer();
          const to = container.getPageBlobClient('to');
          const one = await copied(running, to, (await takeSnapshot(from)).url);
          const refused = (call: Promise<unknown>) =>
            expectRefusal(call, 409, 'OperationNotAllowedOnIncrementalCopyBlob');
          await refused(to.downloadToBuffer());
          await refused(to.getPageRanges());
          await refused(put(to, 0, 1, 'x'));
          await refused(to.clearPages(0, PAGE));
          await refused(to.resize(PAGE));
          await refused(to.updateSequenceNumber('increment'));
          await refused(to.create(PAGE));
          await refused(to.setMetadata({ b: '1' }));
          await refused(to.setHTTPHeaders({ blobContentType: 'text/plain' }));
          await refused(to.setTags({ a: '1' }));
          await refused(to.createSnapshot());
          await refused(to.getBlobLeaseClient().acquireLease(15));
          await refused(to.setAccessTier('P10'));
          await refused(container.getPageBlobClient('copy').beginCopyFromURL(to.url));
          await refused(to.beginCopyFromURL(from.url));

          const copyOfSnapshot = container.getPageBlobClient('copy');
          await (await copyOfSnapshot.beginCopyFromURL(one.url, { intervalInMs: 20 })).pollUntilDone();
          expect((await textOf(copyOfSnapshot)).startsWith('a.')).toBe(true);
          await put(copyOfSnapshot, 0, 1, 'b');
          await one.delete();
          await to.delete();
          await to.create(PAGE);
          await put(to, 0, 1, 'x');
          await expectInOrder(running);
        });

        it('refuses a source that is no snapshot, no page blob, another blob, or earlier than the last', async () => {
          const from = await sourceAt(running, 'the account');
          const first = await takeSnapshot(from);
          const second = await takeSnapshot(from);
          const container = await running.newContainer();
          const to = container.getPageBlobClient('to');
          expectError(await copy(running, to, await signed(from)), 409, 'IncrementalCopySourceMustBeSnapshot');
          const block = container.getBlockBlobClient('block');
          await block.upload('x', 1);
          const { snapshot } = await block.createSnapshot();
          const blockUrl = await signed(block.withSnapshot(snapshot!) as unknown as PageBlobClient);
          expectError(await copy(running, to, blockUrl), 409, 'InvalidSourceBlobType');
          expectError(await copy(running, to, from.withSnapshot(first.snapshot).url), 401, 'CannotVerifyCopySource');
          const gone = await takeSnapshot(from);
          await from.withSnapshot(gone.snapshot).delete();
          expectError(await copy(running, to, gone.url), 404, 'CannotVerifyCopySource');
          expect(await to.exists()).toBe(false);
          expectError(
            await running.request('PUT', `/${to.containerName}/to?comp=incrementalcopy`),
            400,
            'InvalidHeaderValue',
            {
              ...{ HeaderName: 'x-ms-copy-source', HeaderValue: '' },
            },
          );

          await copied(running, to, second.url);
          expectError(await copy(running, to, first.url), 409, 'IncrementalCopyOfEarlierVersionSnapshotNotAllowed');
          const other = await takeSnapshot(await sourceAt(running, 'the account'));
          expectError(await copy(running, to, other.url), 409, 'IncrementalCopyBlobMismatch');
          const page = container.getPageBlobClient('page');
          await page.create(PAGE);
          expectError(await copy(running, page, first.url), 409, 'IncrementalCopyBlobMismatch');
          expectError(await copy(running, container.getPageBlobClient('block'), first.url), 409, 'InvalidBlobType');
        });

        it('needs the snapshot before, and the same source', async () => {
          const from = await sourceAt(running, 'another account');
          const first = await takeSnapshot(from);
          const to = (await running.newContainer()).getPageBlobClient('to');
          await copied(running, to, first.url);
          const second = await takeSnapshot(from);
          await from.withSnapshot(first.snapshot).delete();
          expectError(await copy(running, to, second.url), 409, 'PreviousSnapshotNotFound');

          const again = await sourceAt(running, 'another account');
          const one = await takeSnapshot(again);
          const target = (await running.newContainer()).getPageBlobClient('to');
          await copied(running, target, one.url);
          await again.create(PAGE);
          expectError(await copy(running, target, (await takeSnapshot(again)).url), 409, 'BlobOverwritten');
        });

        it.each<Place>(['the account', 'another server'])(
          'follows a source that becomes shorter and grows: %s',
          async (place) => {
            const from = await sourceAt(running, place, 4 * PAGE);
            await put(from, 0, 4, 'a');
            const to = (await running.newContainer()).getPageBlobClient('to');
            await copied(running, to, (await takeSnapshot(from)).url);
            await from.resize(PAGE);
            expect(await textOf(await copied(running, to, (await takeSnapshot(from)).url))).toBe('a');
            await from.resize(4 * PAGE);
            await put(from, 2, 1, 'b');
            expect(await textOf(await copied(running, to, (await takeSnapshot(from)).url))).toBe('a.b.');
            await expectInOrder(running);
          },
        );

        it('honours conditions on the copy', async () => {
          const from = await sourceAt(running, 'the account');
          const { url } = await takeSnapshot(from);
          const to = (await running.newContainer()).getPageBlobClient('to');
          expectError(await copy(running, to, url, { 'If-Match': '*' }), 412, 'ConditionNotMet');
          expect((await copy(running, to, url, { 'If-None-Match': '*' })).status).toBe(202);
          const { etag } = await ended(to);
          expectError(await copy(running, to, url, { 'If-None-Match': '*' }), 409, 'BlobAlreadyExists');
          expectError(await copy(running, to, url, { 'If-Match': '"0x1"' }), 412, 'ConditionNotMet');
          expectError(await copy(running, to, url, { 'x-ms-if-tags': "a='1'" }), 412, 'ConditionNotMet');
          expect((await copy(running, to, url, { 'If-Match': etag! })).status).toBe(202);
          await ended(to);
        });

        it('begins anew after one that has failed', async () => {
          const from = await sourceAt(running, 'another server');
          await put(from, 0, 2, 'a');
          const first = await takeSnapshot(from);
          await put(from, 1, 2, 'b');
          const second = await takeSnapshot(from);
          await from.clearPages(2 * PAGE, PAGE);
          const third = await takeSnapshot(from);
          const to = (await running.newContainer()).getPageBlobClient('to');
          const one = await copied(running, to, first.url);
          await from.withSnapshot(first.snapshot).delete();
          expect((await copy(running, to, second.url)).status).toBe(202);
          const failed = await ended(to);
          expect(failed).toMatchObject({ copyStatus: 'failed', isIncrementalCopy: true });
          expect(failed.destinationSnapshot).toBeUndefined();
          await expectInOrder(running);
          const last = await copied(running, to, third.url);
          expect(await textOf(last)).toBe('ab..............');
          expect(await textOf(one)).toBe('aa..............');
          await expectInOrder(running);
        });
      },
      { start },
    );
});
