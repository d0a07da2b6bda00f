import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { answerTo, expectError, expectRefusal, onEveryEngine, onLmdb } from '../support/test-server.ts';

const TYPE = { 'x-ms-blob-type': 'BlockBlob' };
const MIB = 1 << 20;

const md5 = (body: string | Uint8Array) => createHash('md5').update(body).digest('base64');

describe('Put Blob', () => {
  onEveryEngine((running) => {
    it('stores bytes, headers and metadata', async () => {
      const container = await running.newContainer();
      const blob = container.getBlockBlobClient('folder/blob.txt');
      const bytes = randomBytes(100_000);
      const made = await blob.uploadData(bytes, {
        metadata: { Owner: 'me', empty_: 'x' },
        blobHTTPHeaders: {
          blobContentType: 'text/plain; charset=utf-8',
          blobContentEncoding: 'identity',
          blobContentLanguage: 'de',
          blobContentDisposition: 'attachment; filename="a b"',
          blobCacheControl: 'no-store',
        },
      });
      expect(made._response.status).toBe(201);
      expect(made.etag).toMatch(/^"0x[0-9A-F]{15,16}"$/);
      const found = await blob.downloadToBuffer();
      expect(found.equals(bytes)).toBe(true);
      expect(await blob.getProperties()).toMatchObject({
        contentLength: 100_000,
        contentType: 'text/plain; charset=utf-8',
        contentEncoding: 'identity',
        contentLanguage: 'de',
        contentDisposition: 'attachment; filename="a b"',
        cacheControl: 'no-store',
        blobType: 'BlockBlob',
        accessTier: 'Hot',
        etag: made.etag,
        lastModified: made.lastModified,
        metadata: { owner: 'me', empty_: 'x' },
      });
    });

    it('answers as the service does', async () => {
      const { containerName } = await running.newContainer();
      const answer = await running.request('PUT', `/${containerName}/blob`, { headers: TYPE, body: 'Hello World' });
      expect(answer.status).toBe(201);
      expect(answer.headers).toMatchObject({
        'content-length': '0',
        'content-md5': 'sQqNsWTgdUEFt6mb5y4/5Q==',
        'x-ms-content-crc64': 'YeJLfssylmU=',
        'x-ms-request-server-encrypted': 'true',
        server: 'Windows-Azure-Blob/1.0 Microsoft-HTTPAPI/2.0',
      });
      expect(answer.headers['last-modified']).toMatch(/ GMT$/);
    });

    it('gives every write an ETag of its own, and keeps the time of creation', async () => {
      const blob = (await running.newContainer()).getBlockBlobClient('blob');
      const etags = new Set<string>();
      let created: Date | undefined;
      for (let at = 0; at < 20; at++) {
        etags.add((await blob.upload('same', 4)).etag!);
        const { createdOn } = await blob.getProperties();
        created ??= createdOn!;
        expect(createdOn).toEqual(created);
      }
      expect(etags.size).toBe(20);
    });

    it('replaces bytes, headers and metadata of an older blob', async () => {
      const blob = (await running.newContainer()).getBlockBlobClient('blob');
      await blob.upload('older', 5, { metadata: { a: '1' }, blobHTTPHeaders: { blobContentType: 'text/html' } });
      await blob.upload('new', 3);
      expect((await blob.downloadToBuffer()).toString()).toBe('new');
      expect(await blob.getProperties()).toMatchObject({ metadata: {}, contentType: 'application/octet-stream' });
    });

    it('accepts empty blobs, and blobs larger than a row', async () => {
      const container = await running.newContainer();
      await container.uploadBlockBlob('empty', '', 0);
      expect(await container.getBlobClient('empty').getProperties()).toMatchObject({ contentLength: 0 });
      expect((await container.getBlobClient('empty').downloadToBuffer()).length).toBe(0);
      for (const length of [16 << 10, (16 << 10) + 1, 2 * MIB, 20 * MIB + 7]) {
        const bytes = randomBytes(length);
        const put = await container.uploadBlockBlob('large', bytes, length);
        expect(Buffer.from(put.response.contentMD5!).toString('base64')).toBe(md5(bytes));
        expect((await container.getBlobClient('large').downloadToBuffer()).equals(bytes)).toBe(true);
        expect(await container.getBlobClient('large').getProperties()).toMatchObject({ contentLength: length });
      }
    });

    it('honours conditions', async () => {
      const blob = (await running.newContainer()).getBlockBlobClient('blob');
      const put = (conditions: object) => blob.upload('x', 1, { conditions });
      await expectRefusal(put({ ifMatch: '*' }), 412, 'ConditionNotMet');
      const { etag, lastModified } = await put({ ifNoneMatch: '*' });
      await expectRefusal(put({ ifNoneMatch: '*' }), 409, 'BlobAlreadyExists');
      await expectRefusal(put({ ifNoneMatch: etag }), 412, 'ConditionNotMet');
      await expectRefusal(put({ ifMatch: '"0x1"' }), 412, 'ConditionNotMet');
      await expectRefusal(put({ ifModifiedSince: lastModified }), 412, 'ConditionNotMet');
      await expectRefusal(put({ ifUnmodifiedSince: new Date(0) }), 412, 'ConditionNotMet');
      await put({ ifMatch: etag });
      await expectRefusal(put({ ifMatch: etag }), 412, 'ConditionNotMet');
      await expectRefusal(put({ ifMatch: '*', ifNoneMatch: '*' }), 400, 'MultipleConditionHeadersNotSupported');
    });

    it('refuses a write without the lease id while leased, and keeps the lease with it', async () => {
      const blob = (await running.newContainer()).getBlockBlobClient('blob');
      await blob.upload('1', 1);
      const lease = blob.getBlobLeaseClient();
      await lease.acquireLease(-1);
      await expectRefusal(blob.upload('2', 1), 412, 'LeaseIdMissing');
      const other = { leaseId: randomUUID() };
      await expectRefusal(blob.upload('2', 1, { conditions: other }), 412, 'LeaseIdMismatchWithBlobOperation');
      await blob.upload('2', 1, { conditions: { leaseId: lease.leaseId } });
      expect(await blob.getProperties()).toMatchObject({ leaseState: 'leased', leaseDuration: 'infinite' });
    });

    it('lets the id of the lease lift If-None-Match: *', async () => {
      const blob = (await running.newContainer()).getBlockBlobClient('blob');
      await blob.upload('1', 1);
      const lease = blob.getBlobLeaseClient();
      await lease.acquireLease(15);
      await blob.upload('2', 1, { conditions: { ifNoneMatch: '*', leaseId: lease.leaseId } });
      await expectRefusal(blob.upload('3', 1, { conditions: { ifNoneMatch: '*' } }), 412, 'LeaseIdMissing');
    });

    it('refuses a lease id for a blob that does not exist', async () => {
      const blob = (await running.newContainer()).getBlockBlobClient('blob');
      const conditions = { leaseId: randomUUID() };
      await expectRefusal(blob.upload('1', 1, { conditions }), 412, 'LeaseNotPresentWithBlobOperation');
    });

    it('needs a container', async () => {
      const container = running.service.getContainerClient('not-there');
      await expectRefusal(container.uploadBlockBlob('blob', 'x', 1), 404, 'ContainerNotFound');
      const answer = await running.request('PUT', '/no--name/blob', { headers: TYPE, body: 'x' });
      expectError(answer, 400, 'InvalidResourceName');
    });
  });

  onLmdb((running) => {
    it('verifies the body by each checksum in the request', async () => {
      const container = await running.newContainer();
      const path = `/${container.containerName}/blob`;
      const put = (headers: Record<string, string>) =>
        running.request('PUT', path, { headers: { ...TYPE, ...headers }, body: 'Hello World' });
      const right = 'sQqNsWTgdUEFt6mb5y4/5Q==';
      for (const name of ['Content-MD5', 'x-ms-blob-content-md5']) {
        const details = { UserSpecifiedMd5: md5('other'), ServerCalculatedMd5: right };
        expectError(await put({ [name]: md5('other') }), 400, 'Md5Mismatch', details);
        expectError(await put({ [name]: 'AAAAAAAAAAA=' }), 400, 'InvalidMd5');
        expectError(await put({ [name]: 'short' }), 400, 'InvalidHeaderValue', { HeaderName: name.toLowerCase() });
      }
      const crc64 = { UserSpecifiedCrc64: 'AAAAAAAAAAA=', ServerCalculatedCrc64: 'YeJLfssylmU=' };
      expectError(await put({ 'x-ms-content-crc64': 'AAAAAAAAAAA=' }), 400, 'Crc64Mismatch', crc64);
      expectError(await put({ 'x-ms-content-crc64': '?' }), 400, 'InvalidHeaderValue');
      expect(await container.getBlobClient('blob').exists()).toBe(false);
      const both = { 'Content-MD5': right, 'x-ms-content-crc64': 'YeJLfssylmU=' };
      expectError(await put(both), 400, 'BothCrc64AndMd5HeaderPresent');
      const ownIsWrong = { 'Content-MD5': right, 'x-ms-blob-content-md5': md5('other') };
      expectError(await put(ownIsWrong), 400, 'Md5Mismatch', { UserSpecifiedMd5: md5('other') });
      expect((await put({ 'Content-MD5': md5('other'), 'x-ms-blob-content-md5': right })).status).toBe(201);
      expect((await put({ 'x-ms-blob-content-md5': right, 'x-ms-content-crc64': 'YeJLfssylmU=' })).status).toBe(201);
      expect((await put({ 'Content-MD5': right })).status).toBe(201);
      expect((await put({ 'x-ms-content-crc64': 'YeJLfssylmU=' })).status).toBe(201);
    });

    it('verifies a streamed body by its checksums, too, and keeps the old blob on a mismatch', async () => {
      const container = await running.newContainer();
      await container.uploadBlockBlob('blob', 'older', 5);
      const bytes = randomBytes(3 * MIB);
      const put = (headers: Record<string, string>) =>
        running.request('PUT', `/${container.containerName}/blob`, { headers: { ...TYPE, ...headers }, body: bytes });
      expectError(await put({ 'Content-MD5': md5('other') }), 400, 'Md5Mismatch', { ServerCalculatedMd5: md5(bytes) });
      expectError(await put({ 'x-ms-content-crc64': 'AAAAAAAAAAA=' }), 400, 'Crc64Mismatch');
      expect((await container.getBlobClient('blob').downloadToBuffer()).toString()).toBe('older');
      expect((await put({ 'Content-MD5': md5(bytes) })).status).toBe(201);
    });

    it.each([
      ['2025-07-05', 5000],
      ['2019-12-12', 5000],
      ['2019-07-07', 256],
      ['2016-05-31', 256],
      ['2015-12-11', 64],
    ])('answers 413 in version %s for more than %i MiB, before the body is sent', async (version, mebibytes) => {
      const { containerName } = await running.newContainer();
      const length = mebibytes * MIB + 1;
      const headers = { ...TYPE, 'x-ms-version': version, 'Content-Length': length };
      const answer = await answerTo(running, 'PUT', `/${containerName}/blob`, headers);
      expect(answer).toMatch(/^HTTP\/1\.1 413 /);
      expect(answer).toContain('RequestBodyTooLarge');
      expect(answer).toContain(`<MaxLimit>${length - 1}</MaxLimit>`);
    });

    it('answers 411 without a length', async () => {
      const { containerName } = await running.newContainer();
      const headers = { ...TYPE, 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' };
      const answer = await running.request('PUT', `/${containerName}/blob`, { headers, body: 'x' });
      expectError(answer, 411, 'MissingContentLengthHeader');
    });

    it('asks for the type of the blob', async () => {
      const { containerName } = await running.newContainer();
      const path = `/${containerName}/blob`;
      expectError(await running.request('PUT', path, { body: 'x' }), 400, 'MissingRequiredHeader', {
        HeaderName: 'x-ms-blob-type',
      });
      const headers = { 'x-ms-blob-type': 'Round' };
      expectError(await running.request('PUT', path, { headers, body: 'x' }), 400, 'InvalidHeaderValue');
    });

    it('stores nothing of an upload that is cut off, and goes on', async () => {
      const container = await running.newContainer();
      const blob = container.getBlockBlobClient('blob');
      await blob.upload('whole', 5);
      const socket = running.socket();
      socket.write(running.head('PUT', `/${container.containerName}/blob`, { ...TYPE, 'Content-Length': 20 * MIB }));
      socket.write(Buffer.alloc(9 * MIB));
      await blob.getProperties();
      socket.destroy();
      await once(socket, 'close');
      expect((await blob.downloadToBuffer()).toString()).toBe('whole');
      await blob.upload('again', 5);
    });

    it('decides before the body on Expect: 100-continue', async () => {
      const container = await running.newContainer();
      const headers = { ...TYPE, 'Content-Length': 5, Expect: '100-continue' };
      const path = `/${container.containerName}/blob`;
      const refused = await answerTo(running, 'PUT', path, { ...headers, 'If-Match': '"0x1"' });
      expect(refused).toMatch(/^HTTP\/1\.1 412 /);
      expect(refused).toContain('ConditionNotMet');

      const socket = running.socket();
      socket.write(running.head('PUT', path, headers));
      const [first] = await once(socket, 'data');
      expect(String(first)).toBe('HTTP/1.1 100 Continue\r\n\r\n');
      socket.write('bytes');
      const [second] = await once(socket, 'data');
      expect(String(second)).toMatch(/^HTTP\/1\.1 201 /);
      socket.destroy();
      expect((await container.getBlobClient('blob').downloadToBuffer()).toString()).toBe('bytes');
    });

    it('refuses metadata that is none', async () => {
      const { containerName } = await running.newContainer();
      const put = (headers: Record<string, string | string[]>) =>
        running.request('PUT', `/${containerName}/blob`, { headers: { ...TYPE, ...headers }, body: '' });
      expectError(await put({ 'x-ms-meta-': 'x' }), 400, 'EmptyMetadataKey');
      for (const name of ['1a', 'a-b', 'a.b']) {
        expectError(await put({ [`x-ms-meta-${name}`]: 'x' }), 400, 'InvalidMetadata');
      }
      expectError(await put({ 'x-ms-meta-a': ['1', '2'] }), 400, 'InvalidMetadata');
      expectError(await put({ 'x-ms-meta-a': 'x'.repeat(8 * 1024) }), 400, 'MetadataTooLarge');
      expect((await put({ 'x-ms-meta-a': 'x'.repeat(8 * 1024 - 1) })).status).toBe(201);
    });

    it.each([
      ['x-ms-encryption-key', 'AAAA'],
      ['x-ms-encryption-scope', 'scope'],
      ['x-ms-immutability-policy-mode', 'unlocked'],
      ['x-ms-legal-hold', 'true'],
    ])('refuses %s, which is not built, instead of ignoring it', async (name, value) => {
      const container = await running.newContainer();
      const headers = { ...TYPE, [name]: value };
      const answer = await running.request('PUT', `/${container.containerName}/blob`, { headers, body: 'x' });
      expectError(answer, 501, 'NotImplemented');
      expect(answer.text).toContain(name);
      expect(await container.getBlobClient('blob').exists()).toBe(false);
    });

    it('checks in the order of the service: the lease before the conditions', async () => {
      const blob = (await running.newContainer()).getBlockBlobClient('blob');
      await blob.upload('1', 1);
      await blob.getBlobLeaseClient().acquireLease(-1);
      await expectRefusal(blob.upload('2', 1, { conditions: { ifMatch: '"0x1"' } }), 412, 'LeaseIdMissing');
    });
  });
});
