import { randomBytes, randomUUID } from 'node:crypto';
import { BlobSASPermissions } from '@azure/storage-blob';
import { describe, expect, it } from 'vitest';
import { blocksOf, id, pathOf, stage, textOf } from '../support/blocks.ts';
import { expectError, expectRefusal, listXml, onEveryEngine, onLmdb, type RawRequest } from '../support/test-server.ts';

const GUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

describe('Copy Blob', () => {
  onEveryEngine((running) => {
    async function pair() {
      const container = await running.newContainer();
      return { from: container.getBlockBlobClient('from'), to: container.getBlockBlobClient('sub/to') };
    }

    it.each([10, 100_000, 20 << 20])('copies a blob of %i bytes and reports success', async (length) => {
      const { from, to } = await pair();
      const bytes = randomBytes(length);
      await from.uploadData(bytes, {
        metadata: { a: '1' },
        blobHTTPHeaders: { blobContentType: 'text/plain', blobCacheControl: 'no-store' },
      });
      const copied = await (await to.beginCopyFromURL(from.url)).pollUntilDone();
      expect(copied._response.status).toBeLessThan(300);
      expect(copied.copyStatus).toBe('success');
      expect(copied.copyId).toMatch(GUID);
      const found = await to.getProperties();
      expect(found).toMatchObject({
        contentLength: length,
        contentType: 'text/plain',
        cacheControl: 'no-store',
        metadata: { a: '1' },
        copyId: copied.copyId,
        copySource: from.url,
        copyStatus: 'success',
        copyProgress: `${length}/${length}`,
      });
      expect(found.contentMD5).toEqual((await from.getProperties()).contentMD5);
      expect(found.copyCompletedOn).toBeInstanceOf(Date);
      expect((await to.downloadToBuffer()).equals(bytes)).toBe(true);
      await from.delete();
      expect((await to.downloadToBuffer()).equals(bytes)).toBe(true);
      await from.upload('other', 5);
      expect((await to.downloadToBuffer()).equals(bytes)).toBe(true);
    });

    it('copies blocks with their ids', async () => {
      const { from, to } = await pair();
      await stage(from, 'a1', 'b2');
      await from.commitBlockList([id('a'), id('b')]);
      await stage(from, 'c3');
      await to.beginCopyFromURL(from.url);
      expect(await blocksOf(to)).toEqual({ committed: ['a', 'b'], uncommitted: [] });
      await stage(to, 'd4');
      await to.commitBlockList([id('d'), id('a')]);
      expect(await textOf(to)).toBe('d4a1');
      expect(await textOf(from)).toBe('a1b2');
    });

    it('stores the metadata of the request instead of that of the source', async () => {
      const { from, to } = await pair();
      await from.upload('x', 1, { metadata: { a: '1', b: '2' } });
      await to.beginCopyFromURL(from.url, { metadata: { c: '3' } });
      expect((await to.getProperties()).metadata).toEqual({ c: '3' });
    });

    it.each([1, 100_000])('copies a blob of %i bytes onto itself', async (length) => {
      const { from } = await pair();
      await from.upload('x'.repeat(length), length);
      const { etag } = await from.getProperties();
      await from.beginCopyFromURL(from.url, { metadata: { again: 'yes' } });
      const found = await from.getProperties();
      expect(found.metadata).toEqual({ again: 'yes' });
      expect(found.etag).not.toBe(etag);
      expect(await textOf(from)).toBe('x'.repeat(length));
    });

    it('replaces an older blob of any kind of content', async () => {
      const { from, to } = await pair();
      for (const [older, newer] of [
        [1, 2],
        [100_000, 2],
        [2, 100_000],
        [100_000, 100_001],
      ] as const) {
        await to.upload('o'.repeat(older), older);
        const { createdOn } = await to.getProperties();
        await from.upload('n'.repeat(newer), newer);
        await to.beginCopyFromURL(from.url);
        expect(await textOf(to)).toBe('n'.repeat(newer));
        expect((await to.getProperties()).createdOn).toEqual(createdOn);
      }
    });

    it('is forgotten with the next write, but not with other metadata', async () => {
      const { from, to } = await pair();
      await from.upload('x', 1);
      const copy = () => to.beginCopyFromURL(from.url);
      const copyId = async () => (await to.getProperties()).copyId;
      await copy();
      await to.setMetadata({ a: '1' });
      expect(await copyId()).toMatch(GUID);
      await to.setHTTPHeaders({});
      expect(await copyId()).toBeUndefined();
      await copy();
      await to.upload('y', 1);
      expect(await copyId()).toBeUndefined();
      await copy();
      await to.commitBlockList([]);
      expect(await copyId()).toBeUndefined();
    });

    it('is shown by Get Blob, and by List Blobs with include=copy', async () => {
      const { from, to } = await pair();
      await from.upload('x', 1);
      await to.beginCopyFromURL(from.url);
      expect(await to.download()).toMatchObject({ copyStatus: 'success', copySource: from.url, copyProgress: '1/1' });
      const listed = await listXml(running, to.containerName, '&include=copy');
      expect(listed).toContain('<CopyStatus>success</CopyStatus><CopyProgress>1/1</CopyProgress><CopyCompletionTime>');
      expect(listed.match(/<CopyId>/g)).toHaveLength(1);
      expect(await listXml(running, to.containerName)).not.toContain('<CopyId>');
    });

    it('honours conditions of the source', async () => {
      const { from, to } = await pair();
      await from.upload('x', 1);
      const { etag, lastModified } = await from.getProperties();
      const copy = (sourceConditions: object) => to.beginCopyFromURL(from.url, { sourceConditions });
      await copy({ ifMatch: etag });
      await copy({ ifUnmodifiedSince: lastModified });
      for (const wrong of [
        { ifMatch: '"0x1"' },
        { ifNoneMatch: etag },
        { ifModifiedSince: lastModified },
        { ifUnmodifiedSince: new Date(0) },
      ]) {
        await expectRefusal(copy(wrong), 412, 'SourceConditionNotMet');
      }
    });

    it('honours conditions and the lease of the target', async () => {
      const { from, to } = await pair();
      await from.upload('x', 1);
      const copy = (conditions: object) => to.beginCopyFromURL(from.url, { conditions });
      await expectRefusal(copy({ ifMatch: '*' }), 412, 'ConditionNotMet');
      await expectRefusal(copy({ leaseId: randomUUID() }), 412, 'LeaseNotPresentWithBlobOperation');
      await copy({ ifNoneMatch: '*' });
      await expectRefusal(copy({ ifNoneMatch: '*' }), 409, 'BlobAlreadyExists');
      const lease = to.getBlobLeaseClient();
      await lease.acquireLease(60);
      await expectRefusal(copy({}), 412, 'LeaseIdMissing');
      await expectRefusal(copy({ leaseId: lease.leaseId }), 412, 'InfiniteLeaseDurationRequired');
      await lease.releaseLease();
      await lease.acquireLease(-1);
      await copy({ leaseId: lease.leaseId });
      expect((await to.getProperties()).leaseState).toBe('leased');
    });

    it('does not mind the lease of the source, nor copies it', async () => {
      const { from, to } = await pair();
      await from.upload('x', 1);
      const lease = from.getBlobLeaseClient();
      await lease.acquireLease(-1);
      await to.beginCopyFromURL(from.url);
      expect((await to.getProperties()).leaseState).toBe('available');
      const ask = (leaseId: string) =>
        running.request('PUT', pathOf(to), {
          headers: { 'x-ms-copy-source': from.url, 'x-ms-source-lease-id': leaseId },
        });
      expectError(await ask(randomUUID()), 412, 'LeaseIdMismatchWithBlobOperation');
      expect((await ask(lease.leaseId)).status).toBe(202);
    });

    it('needs a source that is committed', async () => {
      const { from, to } = await pair();
      await expectRefusal(to.beginCopyFromURL(from.url), 404, 'BlobNotFound');
      await stage(from, 'a1');
      await expectRefusal(to.beginCopyFromURL(from.url), 404, 'BlobNotFound');
    });
  });

  onLmdb((running) => {
    it('refuses sources that it cannot copy from, with the reason', async () => {
      const container = await running.newContainer();
      const from = container.getBlockBlobClient('from');
      await from.upload('x', 1);
      const copy = (source: string, headers: RawRequest['headers'] = {}) =>
        running.request('PUT', `/${container.containerName}/to`, {
          headers: { 'x-ms-copy-source': source, ...headers },
        });
      for (const [source, why] of [[`${from.url}?versionid=2020-01-01T00:00:00.0000000Z`, 'versionid']] as const) {
        const answer = await copy(source);
        expectError(answer, 501, 'NotImplemented');
        expect(answer.text).toContain(why);
      }
      const elsewhere = await copy('https://example.blob.core.windows.net/c/b');
      expectError(elsewhere, 403, 'CannotVerifyCopySource');
      expect(elsewhere.text).toContain('--copy-from https://example.blob.core.windows.net');
      expectError(await copy(from.url.replace('devstoreaccount1', 'other')), 404, 'CannotVerifyCopySource');
      expectError(await copy(`${from.url}?sv=2020-02-10&sr=b&sig=AAAA`), 403, 'CannotVerifyCopySource');
      const host = new URL(from.url).host;
      for (const source of ['from', '/c/from', 'ftp://x/y', `http://${host}`, `http://${host}/devstoreaccount1/c`]) {
        expectError(await copy(source), 400, 'InvalidHeaderValue', { HeaderName: 'x-ms-copy-source' });
      }
      expectError(await copy(from.url, { 'x-ms-requires-sync': 'maybe' }), 400, 'InvalidHeaderValue');
      expectError(await copy(from.url, { 'x-ms-seal-blob': 'true' }), 409, 'InvalidBlobType');
      expect((await copy(from.url.replace('127.0.0.1', 'localhost'))).status).toBe(202);
    });

    it('accepts the host of its account as this server, whatever its domain', async () => {
      const container = await running.newContainer();
      const { containerName } = container;
      const from = container.getBlockBlobClient('from');
      await from.upload('bytes', 5);
      const copy = (source: string) =>
        running.request('PUT', `/${containerName}/to`, { headers: { 'x-ms-copy-source': source } });
      const sas = new URL(
        await from.generateSasUrl({
          permissions: BlobSASPermissions.parse('r'),
          expiresOn: new Date(Date.now() + 3_600_000),
        }),
      ).search;
      for (const host of [
        'https://devstoreaccount1.blob.core.windows.net',
        'http://DevStoreAccount1.blob.localhost:9',
        'https://devstoreaccount1-secondary.blob.core.windows.net',
      ]) {
        for (const query of ['', sas]) {
          await container.deleteBlob('to').catch(() => {});
          const source = `${host}/${containerName}/from`;
          expect((await copy(`${source}${query}`)).status, source).toBe(202);
          expect((await container.getBlobClient('to').downloadToBuffer()).toString()).toBe('bytes');
          expect((await container.getBlobClient('to').getProperties()).copySource).toBe(source);
        }
        expectError(await copy(`${host}/${containerName}/none`), 404, 'BlobNotFound');
        expectError(await copy(`${host}/${containerName}`), 400, 'InvalidHeaderValue');
        // The account is in the host, so that the path begins with a container.
        expectError(await copy(`${host}/devstoreaccount1/${containerName}/from`), 404, 'ContainerNotFound');
      }
      expectError(await copy(`https://blob.core.windows.net/devstoreaccount1/c/b`), 403, 'CannotVerifyCopySource');
      expectError(await copy(`https://other.blob.core.windows.net/c/b`), 403, 'CannotVerifyCopySource');
    });

    it('reads a source whose name is percent-encoded', async () => {
      const container = await running.newContainer();
      const from = container.getBlockBlobClient('a folder/ü %2F+?.txt');
      await from.upload('found', 5);
      const to = container.getBlockBlobClient('to');
      await to.beginCopyFromURL(from.url);
      expect(await textOf(to)).toBe('found');
    });

    it('copies between containers, and needs both', async () => {
      const from = (await running.newContainer()).getBlockBlobClient('blob');
      await from.upload('x'.repeat(50_000), 50_000);
      const other = await running.newContainer();
      await other.getBlockBlobClient('blob').beginCopyFromURL(from.url);
      expect((await other.getBlockBlobClient('blob').getProperties()).contentLength).toBe(50_000);
      const nowhere = running.service.getContainerClient('not-there').getBlockBlobClient('blob');
      await expectRefusal(nowhere.beginCopyFromURL(from.url), 404, 'ContainerNotFound');
      await expectRefusal(from.beginCopyFromURL(nowhere.url), 404, 'ContainerNotFound');
      await running.service.deleteContainer(from.containerName);
      expect((await other.getBlockBlobClient('blob').downloadToBuffer()).length).toBe(50_000);
    });
  });
});

describe('Abort Copy Blob', () => {
  onLmdb((running) => {
    it('finds no copy that is under way within an account', async () => {
      const container = await running.newContainer();
      const from = container.getBlockBlobClient('from');
      const to = container.getBlockBlobClient('to');
      await from.upload('x', 1);
      const { copyId } = await (await to.beginCopyFromURL(from.url)).pollUntilDone();
      await expectRefusal(to.abortCopyFromURL(copyId!), 409, 'NoPendingCopyOperation');
      await expectRefusal(from.abortCopyFromURL(copyId!), 409, 'NoPendingCopyOperation');
      await expectRefusal(container.getBlobClient('none').abortCopyFromURL(copyId!), 404, 'BlobNotFound');
      await to.getBlobLeaseClient().acquireLease(-1);
      await expectRefusal(to.abortCopyFromURL(copyId!), 412, 'LeaseIdMissing');
    });

    it('refuses what it does not understand', async () => {
      const container = await running.newContainer();
      const blob = container.getBlockBlobClient('blob');
      await blob.upload('x', 1);
      const abort = (query: string, headers: RawRequest['headers'] = { 'x-ms-copy-action': 'abort' }) =>
        running.request('PUT', `${pathOf(blob)}?comp=copy${query}`, { headers });
      expectError(await abort(''), 400, 'MissingRequiredQueryParameter', { QueryParameterName: 'copyid' });
      expectError(await abort('&copyid=1'), 400, 'InvalidQueryParameterValue');
      expectError(await abort(`&copyid=${randomUUID()}`, {}), 400, 'InvalidHeaderValue');
    });
  });
});
