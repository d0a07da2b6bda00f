/** Copy Blob from other accounts and other servers: pending while the bytes stream; and Abort Copy Blob of such a copy. */
import { randomBytes, randomUUID } from 'node:crypto';
import {
  BlobSASPermissions,
  BlobServiceClient,
  type BlockBlobClient,
  StorageSharedKeyCredential,
} from '@azure/storage-blob';
import { check } from 'holdfast';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { blocksOf, id, pathOf, stage, textOf } from '../support/blocks.ts';
import { CopyOrigin } from '../support/copy-origin.ts';
import {
  accountKey,
  elementOf,
  expectError,
  expectRefusal,
  listXml,
  onEngine,
  onEveryEngine,
  type Running,
} from '../support/test-server.ts';

const MIB = 1 << 20;
const OTHER = { name: 'other', keys: [Buffer.from('a key').toString('base64')] };
const WEEK_SECONDS = 7 * 24 * 3600;

const origin = await CopyOrigin.start();
afterAll(() => origin.stop());
afterEach(() => origin.resume());

/** Copies a resource that stalls after its first bytes, so that the copy is pending until `origin.resume`. */
async function startStalled(running: Running, bytes = randomBytes(20 * MIB), options: object = {}) {
  const to = (await running.newContainer()).getBlockBlobClient('sub/to');
  const url = origin.put(`/${randomUUID()}`, { bytes, stallsAt: 18 * MIB, headers: { 'Content-Type': 'text/plain' } });
  const poller = await to.beginCopyFromURL(url, { intervalInMs: 20, ...options });
  const { copyId } = poller.getOperationState() as { copyId?: string };
  return { to, url, bytes, copyId: copyId!, poller };
}

/** Waits until the copy has come so far, or has ended. */
async function seen(
  to: BlockBlobClient,
  isReached: (found: { copyStatus?: string; copyProgress?: string }) => boolean,
) {
  for (;;) {
    const found = await to.getProperties();
    if (isReached(found)) return found;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const ended = (to: BlockBlobClient) => seen(to, ({ copyStatus }) => copyStatus !== 'pending');

async function blobOfOther(running: Running): Promise<BlockBlobClient> {
  const url = running.server.blobUrl.replace('devstoreaccount1', OTHER.name);
  const service = new BlobServiceClient(url, new StorageSharedKeyCredential(OTHER.name, OTHER.keys[0]!));
  const container = service.getContainerClient(`c-${randomUUID()}`);
  await container.create();
  return container.getBlockBlobClient('from');
}

const signed = (blob: BlockBlobClient) =>
  blob.generateSasUrl({ permissions: BlobSASPermissions.parse('r'), expiresOn: new Date(Date.now() + 3_600_000) });

const start = {
  accounts: [{ name: 'devstoreaccount1', keys: [accountKey] }, OTHER],
  copyFrom: [origin.url],
  blobKeepAliveSeconds: 600,
};

describe('Copy Blob from another server', () => {
  onEveryEngine(
    (running) => {
      it('is pending while the bytes stream, and shows how far it is', async () => {
        const { to, url, bytes, copyId, poller } = await startStalled(running, undefined, {
          metadata: { a: '1' },
          tags: { t: '1' },
        });
        const half = await seen(to, ({ copyProgress }) => copyProgress === `${16 * MIB}/${20 * MIB}`);
        expect(half).toMatchObject({
          contentLength: 0,
          contentType: 'text/plain',
          metadata: { a: '1' },
          copyId,
          copySource: url,
          copyStatus: 'pending',
        });
        expect(half.copyCompletedOn).toBeUndefined();
        expect(half.copyStatusDescription).toBeUndefined();
        expect(await to.download()).toMatchObject({ contentLength: 0, copyStatus: 'pending', copyId });
        const xml = await listXml(running, to.containerName, '&include=copy');
        expect([elementOf(xml, 'CopyStatus'), elementOf(xml, 'CopyProgress')]).toEqual([
          'pending',
          `${16 * MIB}/${20 * MIB}`,
        ]);
        expect(xml).not.toContain('<CopyCompletionTime>');
        origin.resume();
        expect(await poller.pollUntilDone()).toMatchObject({ copyId, copyStatus: 'success' });
        const found = await to.getProperties();
        expect(found).toMatchObject({
          contentLength: 20 * MIB,
          contentType: 'text/plain',
          metadata: { a: '1' },
          copyStatus: 'success',
          copyProgress: `${20 * MIB}/${20 * MIB}`,
          tagCount: 1,
        });
        expect(found.copyCompletedOn).toBeInstanceOf(Date);
        expect(found.etag).not.toBe(half.etag);
        expect((await to.downloadToBuffer()).equals(bytes)).toBe(true);
        if (running.engine !== 'memory') expect((await check(running.where)).findings).toEqual([]);
      });

      it.each([0, 10, 16_384, 16_385, 33 * MIB])(
        'copies %i bytes with the properties of the source',
        async (length) => {
          const bytes = randomBytes(length);
          const md5 = Buffer.alloc(16, 7).toString('base64');
          const url = origin.put(`/${randomUUID()}`, {
            bytes,
            headers: {
              'Content-Type': 'text/x-test',
              'Content-Language': 'en',
              'Cache-Control': 'no-store',
              'Content-MD5': md5,
              'x-ms-meta-color': 'red',
            },
          });
          const to = (await running.newContainer()).getBlockBlobClient('to');
          await to.upload('replaced', 8);
          await (await to.beginCopyFromURL(url, { intervalInMs: 20 })).pollUntilDone();
          const found = await to.getProperties();
          expect(found).toMatchObject({
            contentLength: length,
            contentType: 'text/x-test',
            contentLanguage: 'en',
            cacheControl: 'no-store',
            metadata: { color: 'red' },
            copyProgress: `${length}/${length}`,
          });
          expect(Buffer.from(found.contentMD5!).toString('base64')).toBe(md5);
          const downloaded = await to.download();
          const pieces: Buffer[] = [];
          for await (const piece of downloaded.readableStreamBody!) pieces.push(piece as Buffer);
          expect(Buffer.concat(pieces).equals(bytes)).toBe(true);
          if (running.engine !== 'memory') expect((await check(running.where)).findings).toEqual([]);
        },
      );

      it('leaves an empty blob with its metadata when it is aborted', async () => {
        const { to, copyId, url } = await startStalled(running, undefined, { metadata: { a: '1' } });
        const before = await seen(to, ({ copyProgress }) => copyProgress?.startsWith(`${16 * MIB}/`) ?? false);
        expect((await to.abortCopyFromURL(copyId))._response.status).toBe(204);
        const found = await to.getProperties();
        expect(found).toMatchObject({
          contentLength: 0,
          contentType: 'text/plain',
          metadata: { a: '1' },
          copyId,
          copySource: url,
          copyStatus: 'aborted',
          copyProgress: `${16 * MIB}/${20 * MIB}`,
        });
        expect(found.copyCompletedOn).toBeInstanceOf(Date);
        expect(found.etag).not.toBe(before.etag);
        await expectRefusal(to.abortCopyFromURL(copyId), 409, 'NoPendingCopyOperation');
        origin.resume();
        await to.upload('free again', 10);
        expect(await textOf(to)).toBe('free again');
        if (running.engine !== 'memory') expect((await check(running.where)).findings).toEqual([]);
      });

      it('lets nothing else change the blob meanwhile', async () => {
        const { to, copyId } = await startStalled(running);
        const pending = [409, 'PendingCopyOperation'] as const;
        const source = origin.put('/small', { bytes: Buffer.from('x') });
        for (const write of [
          () => to.upload('x', 1),
          () => to.stageBlock(id('a'), 'x', 1),
          () => to.commitBlockList([]),
          () => to.setMetadata({ a: '1' }),
          () => to.setHTTPHeaders({}),
          () => to.setAccessTier('Cool'),
          () => to.setTags({ a: '1' }),
          () => to.delete(),
          () => to.getBlobLeaseClient().acquireLease(-1),
          () => to.getBlobLeaseClient().breakLease(0),
          () => to.beginCopyFromURL(source),
          () => to.syncCopyFromURL(source),
          () => to.syncUploadFromURL(source),
          () => to.stageBlockFromURL(id('a'), source),
        ])
          await expectRefusal(write(), ...pending);
        await expectRefusal(to.abortCopyFromURL(randomUUID()), 409, 'CopyIdMismatch');
        await to.abortCopyFromURL(copyId);
        await to.delete();
      });

      it('needs the infinite lease of its target, and Abort Copy Blob needs it too', async () => {
        const to = (await running.newContainer()).getBlockBlobClient('to');
        await to.upload('x', 1);
        const lease = to.getBlobLeaseClient();
        const url = origin.put(`/${randomUUID()}`, { bytes: randomBytes(20 * MIB), stallsAt: 10 });
        await lease.acquireLease(60);
        await expectRefusal(to.beginCopyFromURL(url), 412, 'LeaseIdMissing');
        const conditions = { leaseId: lease.leaseId };
        await expectRefusal(to.beginCopyFromURL(url, { conditions }), 412, 'InfiniteLeaseDurationRequired');
        await lease.releaseLease();
        await lease.acquireLease(-1);
        const poller = await to.beginCopyFromURL(url, { conditions: { leaseId: lease.leaseId } });
        const { copyId } = poller.getOperationState() as { copyId?: string };
        await expectRefusal(lease.renewLease(), 409, 'PendingCopyOperation');
        await expectRefusal(to.abortCopyFromURL(copyId!), 412, 'LeaseIdMissing');
        const wrong = { conditions: { leaseId: randomUUID() } };
        await expectRefusal(to.abortCopyFromURL(copyId!, wrong), 412, 'LeaseIdMismatchWithBlobOperation');
        await to.abortCopyFromURL(copyId!, { conditions: { leaseId: lease.leaseId } });
        expect(await to.getProperties()).toMatchObject({ leaseState: 'leased', copyStatus: 'aborted' });
        await lease.releaseLease();
      });

      it('goes with its container, and a new one of the name is not touched', async () => {
        const { to } = await startStalled(running);
        await running.service.deleteContainer(to.containerName);
        await running.service.createContainer(to.containerName);
        origin.resume();
        expect(await to.exists()).toBe(false);
        await to.upload('new', 3);
        expect(await textOf(to)).toBe('new');
      });

      it('is no source for another copy before it is complete', async () => {
        const { to, bytes } = await startStalled(running);
        const container = running.service.getContainerClient(to.containerName);
        const [copy, block] = ['copy', 'block'].map((name) => container.getBlockBlobClient(name)) as [
          BlockBlobClient,
          BlockBlobClient,
        ];
        await expectRefusal(copy.beginCopyFromURL(to.url), 409, 'PendingCopyOperation');
        await expectRefusal(copy.syncCopyFromURL(await signed(to)), 409, 'CannotVerifyCopySource');
        await expectRefusal(block.stageBlockFromURL(id('a'), await signed(to)), 409, 'CannotVerifyCopySource');
        origin.resume();
        await ended(to);
        await (await copy.beginCopyFromURL(to.url)).pollUntilDone();
        expect((await copy.downloadToBuffer()).equals(bytes)).toBe(true);
      });

      it('goes on in a container that is renamed', async () => {
        const { to, bytes } = await startStalled(running);
        const name = `c-${randomUUID()}`;
        const renamed = await running.request('PUT', `/${name}?restype=container&comp=rename`, {
          headers: { 'x-ms-source-container-name': to.containerName },
        });
        expect(renamed.status).toBe(200);
        origin.resume();
        const there = running.service.getContainerClient(name).getBlockBlobClient(to.name);
        expect((await ended(there)).copyStatus).toBe('success');
        expect((await there.downloadToBuffer()).equals(bytes)).toBe(true);
      });
    },
    { start },
  );

  onEngine(
    'LMDB',
    (running) => {
      const copyOf = async (resource: Parameters<CopyOrigin['put']>[1]) => {
        const to = (await running.newContainer()).getBlockBlobClient('to');
        const path = `/${randomUUID()}`;
        const url = origin.put(path, resource);
        await to.beginCopyFromURL(url);
        return { to, path };
      };

      it('goes on after cut connections, where it was', async () => {
        const bytes = randomBytes(40 * MIB);
        const { to, path } = await copyOf({ bytes, cutsAfter: [1000, 17 * MIB, 17 * MIB] });
        expect((await ended(to)).copyStatus).toBe('success');
        expect((await to.downloadToBuffer()).equals(bytes)).toBe(true);
        const ranges = origin.requestsFor(path).map(({ headers }) => headers.range);
        expect(ranges).toContain(`bytes=${16 * MIB}-`);
        expect(ranges).toContain(`bytes=${32 * MIB}-`);
      });

      it('goes on after a cut connection to a server that has no ranges', async () => {
        const bytes = randomBytes(20 * MIB);
        const { to } = await copyOf({ bytes, cutsAfter: [0, 17 * MIB], ignoresRanges: true });
        expect((await ended(to)).copyStatus).toBe('success');
        expect((await to.downloadToBuffer()).equals(bytes)).toBe(true);
      });

      it('does not show a failure any more once it has passed it', async () => {
        const { to } = await copyOf({ bytes: randomBytes(MIB), cutsAfter: [0, 10, 10] });
        const found = await seen(to, ({ copyStatus }) => copyStatus !== 'pending');
        expect(found.copyStatus).toBe('success');
        expect(found.copyStatusDescription).toBeUndefined();
      });

      it.each([403, 404, 410])('fails when the source answers %i', async (status) => {
        const to = (await running.newContainer()).getBlockBlobClient('to');
        const bytes = randomBytes(20 * MIB);
        const path = `/${randomUUID()}`;
        await to.beginCopyFromURL(origin.put(path, { bytes, stallsAt: 17 * MIB }));
        await seen(to, ({ copyProgress }) => copyProgress?.startsWith(`${16 * MIB}/`) ?? false);
        origin.put(path, { bytes, statuses: [status] });
        origin.stopConnections();
        const found = await ended(to);
        expect(found).toMatchObject({ copyStatus: 'failed', contentLength: 0 });
        expect(found.copyStatusDescription).toMatch(
          new RegExp(`^${status} \\w+ "Copy failed when reading the source."$`),
        );
        expect(found.copyCompletedOn).toBeInstanceOf(Date);
        expect((await check(running.where)).findings).toEqual([]);
      });

      it('fails when the source has changed', async () => {
        const { to, url } = await startStalled(running);
        await seen(to, ({ copyProgress }) => copyProgress?.startsWith(`${16 * MIB}/`) ?? false);
        origin.put(new URL(url).pathname, { bytes: randomBytes(20 * MIB) });
        origin.stopConnections();
        expect(await ended(to)).toMatchObject({
          copyStatus: 'failed',
          copyStatusDescription: '412 ConditionNotMet "Copy failed when reading the source."',
        });
      });

      it('fails after two weeks', async () => {
        const { to } = await startStalled(running);
        await running.server.clock.advance(2 * WEEK_SECONDS - 60);
        expect((await to.getProperties()).copyStatus).toBe('pending');
        await running.server.clock.advance(60);
        expect(await ended(to)).toMatchObject({
          copyStatus: 'failed',
          copyStatusDescription: '500 OperationCancelled "The copy exceeded the maximum allowed time."',
        });
      });

      it('is refused if its source is', async () => {
        const to = (await running.newContainer()).getBlockBlobClient('to');
        const ask = (source: string, headers: Record<string, string> = {}) =>
          running.request('PUT', pathOf(to), { headers: { 'x-ms-copy-source': source, ...headers } });
        const bytes = Buffer.from('x');
        expectError(await ask(`${origin.url}/none`), 404, 'CannotVerifyCopySource');
        expectError(await ask(origin.put('/503', { bytes, statuses: [503] })), 409, 'CannotVerifyCopySource');
        expectError(await ask(origin.put('/away', { bytes, redirectsTo: '/503' })), 409, 'CannotVerifyCopySource');
        const unknown = { bytes, headers: { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' } };
        expectError(await ask(origin.put('/chunked', unknown)), 409, 'CannotVerifyCopySource');
        const url = origin.put('/x', { bytes, headers: { 'Last-Modified': 'Mon, 01 Jan 2024 00:00:00 GMT' } });
        for (const [header, value] of [
          ['match', '"other"'],
          ['none-match', '"9dd4e461268c8034f5c8564e155c67a6"'],
          ['modified-since', 'Mon, 01 Jan 2024 00:00:00 GMT'],
          ['unmodified-since', 'Sun, 31 Dec 2023 00:00:00 GMT'],
        ])
          expectError(await ask(url, { [`x-ms-source-if-${header}`]: value! }), 412, 'SourceConditionNotMet');
        expect(await to.exists()).toBe(false);
        expect((await ask(url, { 'x-ms-source-if-match': '"9dd4e461268c8034f5c8564e155c67a6"' })).status).toBe(202);
        expect((await ended(to)).copyStatus).toBe('success');
      });

      it('sends no credential, and does not show a signature', async () => {
        const to = (await running.newContainer()).getBlockBlobClient('to');
        const path = `/${randomUUID()}`;
        const url = origin.put(path, { bytes: Buffer.from('x') });
        await (await to.beginCopyFromURL(`${url}?a=b&sig=secret`, { intervalInMs: 20 })).pollUntilDone();
        expect((await to.getProperties()).copySource).toBe(url);
        expect(origin.requestsFor(path)).toHaveLength(2);
        for (const { headers } of origin.requestsFor(path)) {
          expect(headers.authorization).toBeUndefined();
          expect(headers.cookie).toBeUndefined();
        }
      });

      it('runs a few at a time, and the others follow', async () => {
        const container = await running.newContainer();
        const bytes = randomBytes(MIB);
        const path = `/${randomUUID()}`;
        const url = origin.put(path, { bytes, stallsAt: 10 });
        const targets = Array.from({ length: 20 }, (_, at) => container.getBlockBlobClient(`to-${at}`));
        await Promise.all(targets.map((to) => to.beginCopyFromURL(url)));
        const begun = origin.requestsFor(path).length;
        expect(begun).toBeLessThanOrEqual(20 + 8);
        origin.resume();
        for (const to of targets) {
          expect((await ended(to)).copyStatus).toBe('success');
        }
      });
    },
    { start },
  );
});

describe('Copy Blob from another account', () => {
  for (const engine of ['LMDB', 'memory'] as const)
    onEngine(
      engine,
      (running) => {
        it.each([0, 10, 100_000, 40 * MIB])('copies %i bytes with the properties of the source', async (length) => {
          const from = await blobOfOther(running);
          const bytes = randomBytes(length);
          await from.uploadData(bytes, {
            maxSingleShotSize: 64 * MIB,
            metadata: { a: '1' },
            blobHTTPHeaders: { blobContentType: 'text/plain' },
          });
          const to = (await running.newContainer()).getBlockBlobClient('to');
          const poller = await to.beginCopyFromURL(await signed(from), { intervalInMs: 20 });
          expect(await poller.pollUntilDone()).toMatchObject({ copyStatus: 'success' });
          const found = await to.getProperties();
          expect(found).toMatchObject({ contentLength: length, contentType: 'text/plain', metadata: { a: '1' } });
          expect(found.contentMD5).toEqual((await from.getProperties()).contentMD5);
          await from.delete();
          if (length > 0) expect((await to.downloadToBuffer()).equals(bytes)).toBe(true);
        });

        it('copies blocks with their ids, also those that are larger than a slice', async () => {
          const from = await blobOfOther(running);
          const large = randomBytes(20 * MIB);
          await stage(from, 'a1', 'b2');
          await from.stageBlock(id('c'), large, large.length);
          const ids = Array.from({ length: 900 }, (_, at) => id(`${at % 10}`));
          for (let at = 0; at < 10; at++) await from.stageBlock(id(`${at}`), `<${at}>`, 3);
          await from.commitBlockList([id('a'), id('c'), id('b'), ...ids]);
          const to = (await running.newContainer()).getBlockBlobClient('to');
          await (await to.beginCopyFromURL(await signed(from), { intervalInMs: 20 })).pollUntilDone();
          expect(await blocksOf(to)).toEqual(await blocksOf(from));
          expect((await to.downloadToBuffer()).equals(await from.downloadToBuffer())).toBe(true);
          await to.commitBlockList([id('b'), id('3')]);
          expect(await textOf(to)).toBe('b2<3>');
          if (engine === 'LMDB') expect((await check(running.where)).findings).toEqual([]);
        });

        it('needs a source that is authorized by itself, and exists', async () => {
          const from = await blobOfOther(running);
          const to = (await running.newContainer()).getBlockBlobClient('to');
          await expectRefusal(to.beginCopyFromURL(await signed(from)), 404, 'CannotVerifyCopySource');
          await from.upload('x', 1);
          await expectRefusal(to.beginCopyFromURL(from.url), 401, 'CannotVerifyCopySource');
          const sourceConditions = { ifMatch: '"0x1"' };
          const conditional = to.beginCopyFromURL(await signed(from), { sourceConditions });
          await expectRefusal(conditional, 412, 'SourceConditionNotMet');
        });
      },
      { start },
    );
});
