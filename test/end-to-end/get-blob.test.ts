import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { crc64 } from '../support/structured-messages.mjs';
import { expectError, expectRefusal, onEveryEngine, onLmdb } from '../support/test-server.ts';

const MIB = 1 << 20;

describe('Get Blob', () => {
  onEveryEngine((running) => {
    it('answers with the bytes and all that is known of the blob', async () => {
      const container = await running.newContainer();
      const { etag, lastModified } = (
        await container.uploadBlockBlob('blob', 'Hello World', 11, { metadata: { Key: 'Value' } })
      ).response;
      const answer = await running.request('GET', `/${container.containerName}/blob`);
      expect(answer.status).toBe(200);
      expect(answer.text).toBe('Hello World');
      expect(answer.headers).toMatchObject({
        'content-length': '11',
        'content-type': 'application/octet-stream',
        'content-md5': 'sQqNsWTgdUEFt6mb5y4/5Q==',
        'accept-ranges': 'bytes',
        etag,
        'last-modified': lastModified!.toUTCString(),
        'x-ms-creation-time': lastModified!.toUTCString(),
        'x-ms-blob-type': 'BlockBlob',
        'x-ms-lease-state': 'available',
        'x-ms-lease-status': 'unlocked',
        'x-ms-server-encrypted': 'true',
      });
      expect(answer.headers).not.toHaveProperty('x-ms-lease-duration');
      expect(answer.headers).not.toHaveProperty('content-range');
    });

    it('answers with a range, and with the MD5 of the whole beside it', async () => {
      const container = await running.newContainer();
      const bytes = randomBytes(10_000);
      const blob = container.getBlockBlobClient('blob');
      await blob.upload(bytes, bytes.length);
      const part = await blob.download(1_000, 500);
      expect(part._response.status).toBe(206);
      expect(part.contentRange).toBe('bytes 1000-1499/10000');
      expect(part.contentMD5).toBeUndefined();
      expect(Buffer.from(part.blobContentMD5!)).toEqual(createHash('md5').update(bytes).digest());
      expect((await blob.downloadToBuffer(1_000, 500)).equals(bytes.subarray(1_000, 1_500))).toBe(true);
      expect((await blob.download(9_999)).contentRange).toBe('bytes 9999-9999/10000');
      // An end beyond the end of the blob is cut off.
      expect((await blob.download(9_000, 5_000)).contentRange).toBe('bytes 9000-9999/10000');
    });

    it('gives the MD5 or CRC64 of a range when asked for it', async () => {
      const blob = (await running.newContainer()).getBlockBlobClient('blob');
      await blob.upload('>>Hello World<<', 15);
      const withMd5 = await blob.download(2, 11, { rangeGetContentMD5: true });
      expect(Buffer.from(withMd5.contentMD5!).toString('base64')).toBe('sQqNsWTgdUEFt6mb5y4/5Q==');
      const withCrc64 = await blob.download(2, 11, { rangeGetContentCrc64: true });
      expect(Buffer.from(withCrc64.contentCrc64!).toString('base64')).toBe('YeJLfssylmU=');
    });

    it('reads any stretch of a blob of many chunks, with its hash up to 4 MiB', async () => {
      const blob = (await running.newContainer()).getBlockBlobClient('blob');
      const bytes = randomBytes(20 * MIB);
      await blob.upload(bytes, bytes.length);
      const edges = [0, 1, 65_535, 65_536, 8 * MIB - 1, 8 * MIB, 8 * MIB + 1, 16 * MIB - 5, bytes.length - 1];
      for (const from of edges) {
        for (const length of [1, 100_000, 9 * MIB]) {
          const part = await blob.downloadToBuffer(from, Math.min(length, bytes.length - from));
          expect(part.equals(bytes.subarray(from, from + length))).toBe(true);
        }
      }
      const hashed = await blob.download(5 * MIB, 4 * MIB, { rangeGetContentMD5: true });
      const md5 = createHash('md5').update(bytes.subarray(5 * MIB, 9 * MIB));
      expect(Buffer.from(hashed.contentMD5!).toString('base64')).toBe(md5.digest('base64'));
      expect(hashed.contentLength).toBe(4 * MIB);
      const tooLong = blob.download(0, 4 * MIB + 1, { rangeGetContentMD5: true });
      await expectRefusal(tooLong, 400, 'OutOfRangeInput');
      const tooLongForCrc64 = blob.download(0, 4 * MIB + 1, { rangeGetContentCrc64: true });
      await expectRefusal(tooLongForCrc64, 400, 'OutOfRangeInput');
      // The end is cut off first: what is left may be short enough.
      const { contentCrc64 } = await blob.download(19 * MIB, 9 * MIB, { rangeGetContentCrc64: true });
      expect(Buffer.from(contentCrc64!)).toEqual(crc64(bytes.subarray(19 * MIB)));
      await expectRefusal(blob.download(bytes.length), 416, 'InvalidRange');
    });

    it('goes on with the old content when the blob is overwritten, or deleted, in the middle', async () => {
      const blob = (await running.newContainer()).getBlockBlobClient('blob');
      const bytes = randomBytes(30 * MIB);
      await blob.upload(bytes, bytes.length);
      const first = (await blob.download()).readableStreamBody!;
      await once(first, 'readable');
      await blob.upload(Buffer.alloc(MIB), MIB);
      const second = (await blob.download()).readableStreamBody!;
      await blob.delete();
      expect(Buffer.concat(await (first as Readable).toArray()).equals(bytes)).toBe(true);
      expect(Buffer.concat(await (second as Readable).toArray()).equals(Buffer.alloc(MIB))).toBe(true);
    });

    it('answers 304 without a body to a client that has the newest state', async () => {
      const container = await running.newContainer();
      const { etag, lastModified } = (await container.uploadBlockBlob('blob', 'x', 1)).response;
      const get = (headers: Record<string, string>) =>
        running.request('GET', `/${container.containerName}/blob`, { headers });
      for (const headers of [{ 'If-None-Match': etag! }, { 'If-Modified-Since': lastModified!.toUTCString() }]) {
        const answer = await get(headers);
        expect([answer.status, answer.text]).toEqual([304, '']);
        expect(answer.headers['x-ms-error-code']).toBe('ConditionNotMet');
        for (const name of ['etag', 'last-modified', 'content-type']) expect(answer.headers).not.toHaveProperty(name);
      }
      expectError(await get({ 'If-Match': '"0x1"' }), 412, 'ConditionNotMet');
      expectError(await get({ 'If-Unmodified-Since': new Date(0).toUTCString() }), 412, 'ConditionNotMet');
      expect((await get({ 'If-Match': `"0x1", ${etag}` })).status).toBe(200);
    });

    it('reports whether the blob or the container is missing', async () => {
      const container = await running.newContainer();
      await expectRefusal(container.getBlobClient('blob').download(), 404, 'BlobNotFound');
      const nowhere = running.service.getContainerClient('not-there').getBlobClient('blob');
      await expectRefusal(nowhere.download(), 404, 'ContainerNotFound');
      const conditions = { ifMatch: '"0x8D0000000000000"' };
      await expectRefusal(container.getBlobClient('blob').download(0, 1, { conditions }), 404, 'BlobNotFound');
    });

    it('needs no lease id, but refuses a wrong one', async () => {
      const blob = (await running.newContainer()).getBlockBlobClient('blob');
      await blob.upload('x', 1);
      const get = (leaseId?: string) => blob.download(0, 1, leaseId ? { conditions: { leaseId } } : {});
      await expectRefusal(get(randomUUID()), 412, 'LeaseNotPresentWithBlobOperation');
      const { leaseId } = await blob.getBlobLeaseClient().acquireLease(15);
      expect((await get()).leaseDuration).toBe('fixed');
      await get(leaseId);
      await expectRefusal(get(randomUUID()), 412, 'LeaseIdMismatchWithBlobOperation');
      await expectRefusal(get('no-guid'), 400, 'InvalidHeaderValue');
      await running.server.clock.advance(15);
      await expectRefusal(get(leaseId), 412, 'LeaseLost');
    });
  });

  onLmdb((running) => {
    it('answers 409 rather than with bytes that are not those which were put', async () => {
      const container = await running.newContainer();
      const blob = container.getBlockBlobClient('blob');
      const bytes = randomBytes(12 * MIB);
      await blob.upload(bytes, bytes.length);
      damage(join(running.folder!, 'extents'), bytes.subarray(0, 64));
      await expectRefusal(blob.download(0, 1), 409, 'DataCorrupted');
      await expectRefusal(blob.download(0, MIB, { rangeGetContentMD5: true }), 409, 'DataCorrupted');
      const rest = await blob.downloadToBuffer(MIB, 11 * MIB);
      expect(rest.equals(bytes.subarray(MIB))).toBe(true);
      // Later in the stream there is no other way to say it than to break off.
      damage(join(running.folder!, 'extents'), bytes.subarray(6 * MIB, 6 * MIB + 64));
      const { readableStreamBody } = await blob.download(MIB, 11 * MIB);
      await expect((readableStreamBody as Readable).toArray()).rejects.toThrow();
    });

    it('reads ranges as HTTP writes them, x-ms-range before Range', async () => {
      const container = await running.newContainer();
      await container.uploadBlockBlob('blob', '0123456789', 10);
      await container.uploadBlockBlob('empty', '', 0);
      const get = async (range: string, name = 'Range', blob = 'blob') => {
        const answer = await running.request('GET', `/${container.containerName}/${blob}`, {
          headers: { [name]: range },
        });
        return [answer.status, answer.status < 300 ? answer.text : answer.headers['content-range']];
      };
      expect(await get('bytes=2-4')).toEqual([206, '234']);
      expect(await get('bytes=7-')).toEqual([206, '789']);
      expect(await get('bytes=0-99', 'x-ms-range')).toEqual([206, '0123456789']);
      expect(await get('bytes=10-')).toEqual([416, 'bytes */10']);
      expect(await get('bytes=0-', 'Range', 'empty')).toEqual([416, 'bytes */0']);
      const both = { Range: 'bytes=0-0', 'x-ms-range': 'bytes=1-1' };
      const answer = await running.request('GET', `/${container.containerName}/blob`, { headers: both });
      expect(answer.text).toBe('1');
    });

    it('hashes nothing that is no range', async () => {
      const container = await running.newContainer();
      await container.uploadBlockBlob('blob', 'x', 1);
      for (const HeaderName of ['x-ms-range-get-content-md5', 'x-ms-range-get-content-crc64']) {
        const headers = { [HeaderName]: 'true' };
        const answer = await running.request('GET', `/${container.containerName}/blob`, { headers });
        expectError(answer, 400, 'InvalidHeaderValue', { HeaderName });
        const off = { headers: { [HeaderName]: 'false' } };
        expect((await running.request('GET', `/${container.containerName}/blob`, off)).status).toBe(200);
      }
      const both = {
        ...{ 'x-ms-range-get-content-md5': 'true', 'x-ms-range-get-content-crc64': 'true' },
        Range: 'bytes=0-2',
      };
      const refused = await running.request('GET', `/${container.containerName}/blob`, { headers: both });
      expectError(refused, 400, 'InvalidHeaderValue', { HeaderName: 'x-ms-range-get-content-crc64' });
    });

    it('refuses versions, which are not built', async () => {
      const container = await running.newContainer();
      await container.uploadBlockBlob('blob', 'x', 1);
      const path = `/${container.containerName}/blob?versionid=2022-05-23T20:10:08.4782043Z`;
      expectError(await running.request('GET', path), 501, 'NotImplemented');
    });
  });
});

/** Flips a bit where these bytes lie. */
function damage(folder: string, bytes: Buffer): void {
  for (const name of readdirSync(folder)) {
    const file = join(folder, name);
    const at = readFileSync(file).indexOf(bytes);
    if (at < 0) continue;
    const descriptor = openSync(file, 'r+');
    writeSync(descriptor, Buffer.from([bytes[0]! ^ 1]), 0, 1, at);
    closeSync(descriptor);
    return;
  }
  throw new Error('these bytes are in no extent');
}
