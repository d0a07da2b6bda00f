/** Copy Blob of append and page blobs from other accounts and other servers: pending while the bytes stream, and of the type of their source. */
import { randomBytes, randomUUID } from 'node:crypto';
import {
  type AppendBlobClient,
  BlobSASPermissions,
  BlobServiceClient,
  type ContainerClient,
  type PageBlobClient,
  StorageSharedKeyCredential,
} from '@azure/storage-blob';
import { check, start as startServer } from 'holdfast';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { CopyOrigin } from '../support/copy-origin.ts';
import { accountKey, clientOf, expectRefusal, listXml, onEngine, type Running } from '../support/test-server.ts';

const MIB = 1 << 20;
const PAGE = 512;
const OTHER = { name: 'other', keys: [Buffer.from('a key').toString('base64')] };

const origin = await CopyOrigin.start();
afterAll(() => origin.stop());
afterEach(() => origin.resume());

const elsewhere = await startServer({ blobPort: 0, inMemory: true });
afterAll(() => elsewhere.stop());

const start = {
  accounts: [{ name: 'devstoreaccount1', keys: [accountKey] }, OTHER],
  copyFrom: [origin.url, new URL(elsewhere.blobUrl).origin],
  blobKeepAliveSeconds: 600,
};

type AnyBlob = AppendBlobClient | PageBlobClient;

async function containerOfOther(running: Running): Promise<ContainerClient> {
  const url = running.server.blobUrl.replace('devstoreaccount1', OTHER.name);
  const service = new BlobServiceClient(url, new StorageSharedKeyCredential(OTHER.name, OTHER.keys[0]!));
  const container = service.getContainerClient(`c-${randomUUID()}`);
  await container.create();
  return container;
}

const signed = (blob: AnyBlob) =>
  blob.generateSasUrl({ permissions: BlobSASPermissions.parse('r'), expiresOn: new Date(Date.now() + 3_600_000) });

async function seen(to: AnyBlob, isReached: (found: { copyStatus?: string; copyProgress?: string }) => boolean) {
  for (;;) {
    const found = await to.getProperties();
    if (isReached(found)) return found;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
const ended = (to: AnyBlob) => seen(to, ({ copyStatus }) => copyStatus !== 'pending');

async function expectInOrder(running: Running): Promise<void> {
  if (running.engine !== 'memory') expect((await check(running.where)).findings).toEqual([]);
}

/** First page and number of pages of each range. */
async function rangesOf(blob: PageBlobClient): Promise<[number, number][]> {
  const { pageRange = [] } = await blob.getPageRanges(0);
  // The SDK leaves out the last byte.
  return pageRange.map(({ offset, count = 0 }) => [offset / PAGE, (count + 1) / PAGE]);
}

describe('Copy Blob from another account', () => {
  for (const engine of ['LMDB', 'memory'] as const)
    onEngine(
      engine,
      (running) => {
        it('copies an append blob with its blocks, and a sealed one is sealed', async () => {
          const from = (await containerOfOther(running)).getAppendBlobClient('from');
          await from.create({ blobHTTPHeaders: { blobContentType: 'text/plain' }, metadata: { a: '1' } });
          const parts = [randomBytes(10), randomBytes(3 * MIB), randomBytes(9 * MIB), randomBytes(7)];
          for (const part of parts) await from.appendBlock(part, part.length);
          const container = await running.newContainer();
          const to = container.getAppendBlobClient('to');
          const poller = await to.beginCopyFromURL(await signed(from), { intervalInMs: 20 });
          expect(await poller.pollUntilDone()).toMatchObject({ copyStatus: 'success' });
          const length = Buffer.concat(parts).length;
          expect(await to.getProperties()).toMatchObject({
            ...{ blobType: 'AppendBlob', blobCommittedBlockCount: 4, contentLength: length, contentType: 'text/plain' },
            ...{ metadata: { a: '1' }, copyProgress: `${length}/${length}` },
          });
          expect((await to.getProperties()).isSealed).toBeUndefined();
          expect(await to.appendBlock('more', 4)).toMatchObject({
            blobAppendOffset: `${length}`,
            blobCommittedBlockCount: 5,
          });
          expect((await to.downloadToBuffer()).equals(Buffer.concat([...parts, Buffer.from('more')]))).toBe(true);

          await from.seal();
          const sealed = container.getAppendBlobClient('sealed');
          await (await sealed.beginCopyFromURL(await signed(from), { intervalInMs: 20 })).pollUntilDone();
          expect((await sealed.getProperties()).isSealed).toBe(true);
          await expectRefusal(sealed.appendBlock('x', 1), 409, 'BlobIsSealed');
          await expectInOrder(running);
        });

        it('copies a page blob with its length, sequence number and holes', async () => {
          const from = (await containerOfOther(running)).getPageBlobClient('from');
          await from.create(2 ** 40, { blobSequenceNumber: 7 });
          const written: [page: number, bytes: Buffer][] = [
            [1, randomBytes(PAGE)],
            [3, randomBytes(3 * PAGE)],
            [2 ** 30 / PAGE, randomBytes(4 * MIB)],
            [2 ** 30 / PAGE + (4 * MIB) / PAGE, randomBytes(4 * MIB)],
            [2 ** 30 / PAGE + (8 * MIB) / PAGE, randomBytes(4 * MIB)],
            [2 ** 40 / PAGE - 1, randomBytes(PAGE)],
          ];
          for (const [page, bytes] of written) await from.uploadPages(bytes, page * PAGE, bytes.length);
          await from.clearPages(4 * PAGE, PAGE);
          const to = (await running.newContainer()).getPageBlobClient('to');
          await (await to.beginCopyFromURL(await signed(from), { intervalInMs: 20 })).pollUntilDone();
          expect(await to.getProperties()).toMatchObject({
            ...{ blobType: 'PageBlob', contentLength: 2 ** 40, blobSequenceNumber: 7, copyStatus: 'success' },
          });
          expect(await rangesOf(to)).toEqual(await rangesOf(from));
          for (const [page, bytes] of written) {
            const found = await to.downloadToBuffer(page * PAGE, bytes.length);
            if (page === 3) bytes.fill(0, PAGE, 2 * PAGE);
            expect(found.equals(bytes)).toBe(true);
          }
          await to.uploadPages(Buffer.alloc(PAGE, 'x'), 0, PAGE);
          await expectInOrder(running);
        });

        it.each([1, 300])('copies %i ranges of a page each', async (count) => {
          const from = (await containerOfOther(running)).getPageBlobClient('from');
          const length = 2 * count * PAGE;
          await from.create(length);
          const bytes = Buffer.alloc(length);
          for (let at = 0; at < length; at += (8 * MIB) / 2) {
            const part = randomBytes(Math.min(4 * MIB, length - at));
            await from.uploadPages(part, at, part.length);
            part.copy(bytes, at);
          }
          const cleared = Array.from({ length: count }, (_, i) => 2 * i + 1);
          await Promise.all(cleared.map((page) => from.clearPages(page * PAGE, PAGE)));
          for (const page of cleared) bytes.fill(0, page * PAGE, (page + 1) * PAGE);
          const to = (await running.newContainer()).getPageBlobClient('to');
          await (await to.beginCopyFromURL(await signed(from), { intervalInMs: 20 })).pollUntilDone();
          expect(await rangesOf(to)).toEqual(Array.from({ length: count }, (_, i) => [2 * i, 1]));
          expect((await to.downloadToBuffer()).equals(bytes)).toBe(true);
          await expectInOrder(running);
        });

        it('copies a blob without bytes', async () => {
          const other = await containerOfOther(running);
          const container = await running.newContainer();
          for (const name of ['page', 'append'] as const) {
            const [from, to] = [other, container].map((each) =>
              name === 'page' ? each.getPageBlobClient(name) : each.getAppendBlobClient(name),
            );
            await (name === 'page' ? (from as PageBlobClient).create(0) : (from as AppendBlobClient).create());
            await (await to!.beginCopyFromURL(await signed(from!), { intervalInMs: 20 })).pollUntilDone();
            expect(await to!.getProperties()).toMatchObject({ contentLength: 0, copyStatus: 'success' });
          }
        });

        it('copies a snapshot, whatever the blob is by now', async () => {
          const from = (await containerOfOther(running)).getPageBlobClient('from');
          await from.create(4 * PAGE);
          await from.uploadPages(Buffer.alloc(PAGE, 'a'), 0, PAGE);
          const { snapshot } = await from.createSnapshot();
          await from.uploadPages(Buffer.alloc(PAGE, 'b'), 0, PAGE);
          const to = (await running.newContainer()).getPageBlobClient('to');
          const url = await signed(from.withSnapshot(snapshot!));
          await (await to.beginCopyFromURL(url, { intervalInMs: 20 })).pollUntilDone();
          expect((await to.downloadToBuffer(0, 2)).toString()).toBe('aa');
        });

        it('is refused over a blob of another type', async () => {
          const from = (await containerOfOther(running)).getAppendBlobClient('from');
          await from.create();
          const to = (await running.newContainer()).getPageBlobClient('to');
          await to.create(PAGE);
          await expectRefusal(to.beginCopyFromURL(await signed(from)), 409, 'InvalidBlobType');
        });
      },
      { start },
    );
});

describe('Copy Blob from another server', () => {
  for (const engine of ['LMDB', 'memory'] as const)
    onEngine(
      engine,
      (running) => {
        const stalled = async (type: string, headers: Record<string, string> = {}) => {
          const bytes = randomBytes(20 * MIB);
          const container = await running.newContainer();
          const to = type === 'PageBlob' ? container.getPageBlobClient('to') : container.getAppendBlobClient('to');
          const path = `/${randomUUID()}`;
          const url = origin.put(path, { bytes, stallsAt: 17 * MIB, headers: { 'x-ms-blob-type': type, ...headers } });
          const { copyId } = (await to.beginCopyFromURL(url)).getOperationState() as { copyId?: string };
          return { to, bytes, path, copyId: copyId!, container };
        };

        it.each(['AppendBlob', 'PageBlob'])('shows nothing of the bytes before the end: %s', async (type) => {
          const { to, bytes } = await stalled(type, {
            'x-ms-blob-committed-block-count': '3',
            'x-ms-blob-sequence-number': '9',
          });
          const half = await seen(to, ({ copyProgress }) => copyProgress === `${16 * MIB}/${20 * MIB}`);
          expect(half).toMatchObject({ contentLength: 0, blobType: type, copyStatus: 'pending' });
          expect(await listXml(running, to.containerName)).toContain(`<BlobType>${type}</BlobType>`);
          await expectInOrder(running);
          origin.resume();
          const found = await ended(to);
          expect(found).toMatchObject({ contentLength: 20 * MIB, copyStatus: 'success' });
          expect(found).toMatchObject(type === 'PageBlob' ? { blobSequenceNumber: 9 } : { blobCommittedBlockCount: 3 });
          expect((await to.downloadToBuffer()).equals(bytes)).toBe(true);
          await expectInOrder(running);
        });

        it.each(['AppendBlob', 'PageBlob'])('lets nobody write meanwhile: %s', async (type) => {
          const { to, container, copyId } = await stalled(type);
          const pending = (call: Promise<unknown>) => expectRefusal(call, 409, 'PendingCopyOperation');
          if (type === 'PageBlob') {
            const page = container.getPageBlobClient('to');
            await pending(page.uploadPages(Buffer.alloc(PAGE), 0, PAGE));
            await pending(page.clearPages(0, PAGE));
            await pending(page.resize(PAGE));
            await pending(page.updateSequenceNumber('increment'));
            await pending(page.create(PAGE));
          } else {
            const append = container.getAppendBlobClient('to');
            await pending(append.appendBlock('x', 1));
            await pending(append.seal());
            await pending(append.create());
          }
          await pending(to.createSnapshot());
          await pending(to.setMetadata({}));
          await pending(to.delete());
          await to.abortCopyFromURL(copyId);
        });

        it.each(['AppendBlob', 'PageBlob'])('leaves an empty blob when it is aborted: %s', async (type) => {
          const { to, copyId, container } = await stalled(type, { 'x-ms-meta-a': '1' });
          await seen(to, ({ copyProgress }) => copyProgress === `${16 * MIB}/${20 * MIB}`);
          await to.abortCopyFromURL(copyId);
          expect(await to.getProperties()).toMatchObject({
            contentLength: 0,
            copyStatus: 'aborted',
            metadata: { a: '1' },
            blobType: type,
          });
          await expectInOrder(running);
          if (type === 'PageBlob') {
            const page = container.getPageBlobClient('to');
            await page.resize(20 * MIB);
            expect(await rangesOf(page)).toEqual([]);
            expect((await page.downloadToBuffer(0, MIB)).equals(Buffer.alloc(MIB))).toBe(true);
          } else await container.getAppendBlobClient('to').appendBlock('x', 1);
          await to.delete();
          await expectInOrder(running);
        });

        it('keeps the holes of a page blob whose server lists its pages', async () => {
          const there = clientOf(elsewhere.blobUrl).getContainerClient(`c-${randomUUID()}`);
          await there.create();
          const from = there.getPageBlobClient('from');
          await from.create(2 ** 42, { blobSequenceNumber: 7 });
          const places = [0, 3, 5, 2 ** 41 / PAGE, 2 ** 42 / PAGE - 1];
          for (const page of places) await from.uploadPages(Buffer.alloc(PAGE, `${page % 10}`), page * PAGE, PAGE);
          const to = (await running.newContainer()).getPageBlobClient('to');
          await (await to.beginCopyFromURL(await signed(from), { intervalInMs: 20 })).pollUntilDone();
          expect(await to.getProperties()).toMatchObject({ contentLength: 2 ** 42, blobSequenceNumber: 7 });
          expect(await rangesOf(to)).toEqual(places.map((page) => [page, 1]));
          for (const page of places)
            expect((await to.downloadToBuffer(page * PAGE, PAGE)).equals(Buffer.alloc(PAGE, `${page % 10}`))).toBe(
              true,
            );
          await expectInOrder(running);
        });

        it('goes on after a cut connection, where it was', async () => {
          const bytes = randomBytes(20 * MIB);
          const to = (await running.newContainer()).getAppendBlobClient('to');
          const headers = { 'x-ms-blob-type': 'AppendBlob' };
          const path = `/${randomUUID()}`;
          await to.beginCopyFromURL(origin.put(path, { bytes, headers, cutsAfter: [0, 1000, 9 * MIB, 5 * MIB] }));
          expect((await ended(to)).copyStatus).toBe('success');
          expect((await to.downloadToBuffer()).equals(bytes)).toBe(true);
          const ranges = origin.requestsFor(path).map((request) => request.headers.range);
          expect(ranges).toContain(`bytes=${8 * MIB}-${16 * MIB - 1}`);
          expect(ranges).toContain(`bytes=${16 * MIB}-${20 * MIB - 1}`);
        });

        it('fails when the source has changed', async () => {
          const { to, path } = await stalled('PageBlob');
          await seen(to, ({ copyProgress }) => copyProgress === `${16 * MIB}/${20 * MIB}`);
          origin.put(path, { bytes: randomBytes(20 * MIB), headers: { 'x-ms-blob-type': 'PageBlob' } });
          origin.stopConnections();
          expect(await ended(to)).toMatchObject({
            ...{ copyStatus: 'failed', contentLength: 0 },
            copyStatusDescription: '412 ConditionNotMet "Copy failed when reading the source."',
          });
          await expectInOrder(running);
        });

        it('has as many blocks as its source, and takes up to 50,000', async () => {
          const to = (await running.newContainer()).getAppendBlobClient('to');
          const headers = { 'x-ms-blob-type': 'AppendBlob', 'x-ms-blob-committed-block-count': '49999' };
          await to.beginCopyFromURL(origin.put(`/${randomUUID()}`, { bytes: randomBytes(10), headers }));
          expect((await ended(to)).blobCommittedBlockCount).toBe(49_999);
          expect((await to.appendBlock('x', 1)).blobCommittedBlockCount).toBe(50_000);
          await expectRefusal(to.appendBlock('x', 1), 409, 'BlockCountExceedsLimit');
        });

        it('is refused if the source says what cannot be', async () => {
          const to = (await running.newContainer()).getPageBlobClient('to');
          const refused = (bytes: number, headers: Record<string, string>) =>
            expectRefusal(
              to.beginCopyFromURL(origin.put(`/${randomUUID()}`, { bytes: randomBytes(bytes), headers })),
              409,
              'CannotVerifyCopySource',
            );
          await refused(513, { 'x-ms-blob-type': 'PageBlob' });
          await refused(512, { 'x-ms-blob-type': 'PageBlob', 'x-ms-blob-sequence-number': '9223372036854775808' });
          await refused(1, { 'x-ms-blob-type': 'AppendBlob', 'x-ms-blob-committed-block-count': '50001' });
          expect(await to.exists()).toBe(false);
        });

        it('goes with its container', async () => {
          const { to, container } = await stalled('PageBlob');
          await seen(to, ({ copyProgress }) => copyProgress === `${16 * MIB}/${20 * MIB}`);
          await container.delete();
          origin.resume();
          await expectInOrder(running);
        });
      },
      { start },
    );
});
