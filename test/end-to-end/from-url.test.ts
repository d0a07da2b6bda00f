/** Put Block From URL, Put Blob From URL and Copy Blob From URL. */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import {
  BlobSASPermissions,
  BlobServiceClient,
  type BlockBlobClient,
  StorageSharedKeyCredential,
} from '@azure/storage-blob';
import { check } from 'holdfast';
import { describe, expect, it } from 'vitest';
import { blocksOf, id, pathOf, stage, textOf } from '../support/blocks.ts';
import {
  type Answer,
  accountKey,
  expectError,
  expectRefusal,
  onEngine,
  onEveryEngine,
  onLmdb,
  type RawRequest,
  type Running,
} from '../support/test-server.ts';

const MIB = 1 << 20;
const OTHER = { name: 'other', keys: [Buffer.from('a key').toString('base64')] };
const md5 = (bytes: Uint8Array) => new Uint8Array(createHash('md5').update(bytes).digest());

/** The URL of a blob with a signature that permits reading, or what is given. */
const signed = (blob: BlockBlobClient, permissions = 'r') =>
  blob.generateSasUrl({
    permissions: BlobSASPermissions.parse(permissions),
    expiresOn: new Date(Date.now() + 3_600_000),
  });

async function pair(running: Running) {
  const container = await running.newContainer();
  return { from: container.getBlockBlobClient('from'), to: container.getBlockBlobClient('sub/to') };
}

/** The three operations, as raw requests. */
const OPERATIONS = {
  'Put Block From URL': { query: '?comp=block&blockid=AAAA', headers: {}, status: 201 },
  'Put Blob From URL': { query: '', headers: { 'x-ms-blob-type': 'BlockBlob' }, status: 201 },
  'Copy Blob From URL': { query: '', headers: { 'x-ms-requires-sync': 'true' }, status: 202 },
} as const;
type Name = keyof typeof OPERATIONS;
const NAMES = Object.keys(OPERATIONS) as Name[];

function ask(
  running: Running,
  name: Name,
  to: BlockBlobClient,
  source: string,
  headers: RawRequest['headers'] = {},
  body = '',
): Promise<Answer> {
  const { query, headers: own } = OPERATIONS[name];
  return running.request('PUT', `${pathOf(to)}${query}`, {
    headers: { 'x-ms-copy-source': source, ...own, ...headers },
    body,
  });
}

describe('Put Block From URL', () => {
  onEveryEngine((running) => {
    it.each([10, 100_000, 20 * MIB])('makes a block of a whole blob of %i bytes', async (length) => {
      const { from, to } = await pair(running);
      const bytes = randomBytes(length);
      await from.uploadData(bytes, { maxSingleShotSize: 64 * MIB });
      await to.stageBlockFromURL(id('a'), await signed(from));
      await to.commitBlockList([id('a')]);
      await from.delete();
      expect((await to.downloadToBuffer()).equals(bytes)).toBe(true);
      expect(await blocksOf(to)).toEqual({ committed: ['a'], uncommitted: [] });
    });

    it('makes blocks of ranges, on and across the borders of chunks and blocks', async () => {
      const { from, to } = await pair(running);
      const bytes = randomBytes(20 * MIB + 5);
      await from.uploadData(bytes, { maxSingleShotSize: 4 * MIB, blockSize: 9 * MIB });
      const url = await signed(from);
      const ranges = [
        [0, 8 * MIB],
        [8 * MIB, MIB],
        [3, 70_000],
        [8 * MIB - 7, 14],
        [9 * MIB - 100_000, 10 * MIB],
        [20 * MIB, 5],
        [20 * MIB + 4, 1],
      ] as const;
      for (const [at, [offset, count]] of ranges.entries()) await to.stageBlockFromURL(id(`${at}`), url, offset, count);
      await to.commitBlockList(ranges.map((_, at) => id(`${at}`)));
      await from.delete();
      const expected = Buffer.concat(ranges.map(([offset, count]) => bytes.subarray(offset, offset + count)));
      expect((await to.downloadToBuffer()).equals(expected)).toBe(true);
      // A part of a part: the references are cut again.
      const third = running.service.getContainerClient(to.containerName).getBlockBlobClient('third');
      await third.stageBlockFromURL(id('x'), await signed(to), 8 * MIB + 10, 9 * MIB);
      await third.commitBlockList([id('x')]);
      await to.delete();
      expect((await third.downloadToBuffer()).equals(expected.subarray(8 * MIB + 10, 17 * MIB + 10))).toBe(true);
    });

    it('replaces a block of the same id, with the bytes of its own blob too', async () => {
      const { from, to } = await pair(running);
      await from.upload('x'.repeat(50_000), 50_000);
      const url = await signed(from);
      await to.stageBlockFromURL(id('a'), url, 0, 10_000);
      await to.stageBlockFromURL(id('a'), url, 0, 20_000);
      await to.stageBlock(id('b'), 'bb', 2);
      await to.stageBlockFromURL(id('b'), url, 1, 3);
      await to.commitBlockList([id('a'), id('b'), id('a')]);
      expect((await to.getProperties()).contentLength).toBe(40_003);
      await to.stageBlockFromURL(id('c'), await signed(to), 5, 10);
      await to.commitBlockList([id('c'), id('a')]);
      expect(await textOf(to)).toBe('x'.repeat(20_010));
    });

    it('copies the bytes of more blocks than one commit can name', async () => {
      const { from, to } = await pair(running);
      const ids = Array.from({ length: 650 }, (_, at) => id(String(at).padStart(4, '0')));
      await Promise.all(ids.map((one, at) => from.stageBlock(one, `<${at}>`, `<${at}>`.length)));
      await from.commitBlockList(ids);
      await to.stageBlockFromURL(id('a'), await signed(from));
      await to.commitBlockList([id('a')]);
      expect(await textOf(to)).toBe(await textOf(from));
    });
  });

  onLmdb((running) => {
    it('answers with the hash of the bytes, and verifies that of the request', async () => {
      const { from, to } = await pair(running);
      const bytes = randomBytes(100_000);
      await from.uploadData(bytes);
      const url = await signed(from);
      const plain = await to.stageBlockFromURL(id('abc'), url);
      expect(plain.xMsContentCrc64).toHaveLength(8);
      const part = bytes.subarray(5, 50_005);
      const hashed = await to.stageBlockFromURL(id('abc'), url, 5, 50_000, { sourceContentMD5: md5(part) });
      expect(Buffer.from(hashed.contentMD5!).equals(md5(part))).toBe(true);
      const wrong = to.stageBlockFromURL(id('abc'), url, 5, 50_000, { sourceContentMD5: md5(bytes) });
      await expectRefusal(wrong, 400, 'Md5Mismatch');
      const { headers } = await ask(running, 'Put Block From URL', to, url, { 'x-ms-source-range': 'bytes=5-50004' });
      const crc64 = String(headers['x-ms-content-crc64']);
      const sent = { 'x-ms-source-range': 'bytes=5-50004', 'x-ms-source-content-crc64': crc64 };
      expect((await ask(running, 'Put Block From URL', to, url, sent)).status).toBe(201);
      const other = { 'x-ms-source-content-crc64': crc64 };
      expectError(await ask(running, 'Put Block From URL', to, url, other), 400, 'Crc64Mismatch');
      const old = await ask(running, 'Put Block From URL', to, url, { 'x-ms-version': '2018-11-09' });
      expect(old.headers['content-md5']).toBe(Buffer.from(md5(bytes)).toString('base64'));
      expect(old.headers['x-ms-content-crc64']).toBeUndefined();
    });

    it('refuses ranges that the source does not have, and ranges that it cannot read', async () => {
      const { from, to } = await pair(running);
      await from.upload('0123456789', 10);
      const url = await signed(from);
      const copy = (range: string) => ask(running, 'Put Block From URL', to, url, { 'x-ms-source-range': range });
      expectError(await copy('bytes=10-11'), 416, 'CannotVerifyCopySource');
      for (const range of ['bytes=-5', '0-5', 'bytes=5-4', 'bytes=0-1,3-4']) {
        expectError(await copy(range), 400, 'InvalidHeaderValue', { HeaderName: 'x-ms-source-range' });
      }
      expect((await copy('bytes=8-')).status).toBe(201);
      await from.upload('', 0);
      expectError(await ask(running, 'Put Block From URL', to, url), 400, 'InvalidHeaderValue');
      expectError(await copy('bytes=0-0'), 416, 'CannotVerifyCopySource');
    });

    it('honours the lease of the target and the length of block ids', async () => {
      const { from, to } = await pair(running);
      await from.upload('x'.repeat(50_000), 50_000);
      const url = await signed(from);
      await stage(to, 'a1');
      await expectRefusal(to.stageBlockFromURL(id('longer'), url), 400, 'InvalidBlobOrBlock');
      const lease = to.getBlobLeaseClient();
      await lease.acquireLease(60);
      await expectRefusal(to.stageBlockFromURL(id('b'), url), 412, 'LeaseIdMissing');
      await to.stageBlockFromURL(id('b'), url, 0, 5, { conditions: { leaseId: lease.leaseId } });
    });
  });
});

describe('Put Blob From URL', () => {
  onEveryEngine((running) => {
    it.each([0, 10, 100_000, 20 * MIB])('makes a blob of a blob of %i bytes', async (length) => {
      const { from, to } = await pair(running);
      const bytes = randomBytes(length);
      await from.uploadData(bytes, {
        maxSingleShotSize: 64 * MIB,
        metadata: { a: '1' },
        blobHTTPHeaders: { blobContentType: 'text/plain', blobContentLanguage: 'es' },
      });
      await to.syncUploadFromURL(await signed(from), { conditions: { ifNoneMatch: '*' } });
      await from.upload('other', 5);
      expect((await to.downloadToBuffer()).equals(bytes)).toBe(true);
      const found = await to.getProperties();
      expect(found).toMatchObject({ contentLength: length, contentType: 'text/plain', contentLanguage: 'es' });
      expect(found.metadata).toEqual({ a: '1' });
      expect(Buffer.from(found.contentMD5!).equals(md5(bytes))).toBe(true);
      expect(found.copyId).toBeUndefined();
    });
  });

  onLmdb((running) => {
    it('takes the content headers of the request before those of the source, or none of the source', async () => {
      const { from, to } = await pair(running);
      const blobHTTPHeaders = {
        blobContentType: 'text/plain',
        blobContentLanguage: 'es',
        blobCacheControl: 'no-store',
      };
      await from.uploadData(Buffer.from('x'), { blobHTTPHeaders, metadata: { a: '1' } });
      const url = await signed(from);
      await to.syncUploadFromURL(url, { blobHTTPHeaders: { blobContentType: 'text/html' }, metadata: { b: '2' } });
      expect(await to.getProperties()).toMatchObject({
        contentType: 'text/html',
        contentLanguage: 'es',
        cacheControl: 'no-store',
        metadata: { b: '2' },
      });
      await to.syncUploadFromURL(url, { copySourceBlobProperties: false });
      const bare = await to.getProperties();
      expect(bare.contentType).toBe('application/octet-stream');
      expect(bare.contentLanguage).toBeUndefined();
      expect(Buffer.from(bare.contentMD5!).equals(md5(Buffer.from('x')))).toBe(true);
    });

    it.each(['Put Blob From URL', 'Copy Blob From URL'] as const)('puts the blob into a tier: %s', async (name) => {
      const { from, to } = await pair(running);
      await from.uploadData(Buffer.from('x'), { tier: 'Cold' });
      const source = await signed(from);
      const { status } = OPERATIONS[name];
      expect((await ask(running, name, to, source)).status).toBe(status);
      // The tier of the source is not copied.
      expect((await to.getProperties()).accessTier).toBe('Hot');
      expect((await ask(running, name, to, source, { 'x-ms-access-tier': 'Cool' })).status).toBe(status);
      expect((await to.getProperties()).accessTier).toBe('Cool');
      expect(await textOf(to)).toBe('x');
      expectError(await ask(running, name, to, source, { 'x-ms-access-tier': 'Warm' }), 400, 'InvalidHeaderValue');
    });

    it('makes a blob without blocks of one that has blocks, with the MD5 of its bytes', async () => {
      const { from, to } = await pair(running);
      await stage(from, 'a1', 'b2');
      await from.commitBlockList([id('a'), id('b')]);
      await to.syncUploadFromURL(await signed(from));
      expect(await blocksOf(to)).toEqual({ committed: [], uncommitted: [] });
      expect(await textOf(to)).toBe('a1b2');
      expect(Buffer.from((await to.getProperties()).contentMD5!).equals(md5(Buffer.from('a1b2')))).toBe(true);
    });
  });
});

describe('Copy Blob From URL', () => {
  onEveryEngine((running) => {
    it.each([0, 10, 100_000, 20 * MIB])('copies a blob of %i bytes, with its properties', async (length) => {
      const { from, to } = await pair(running);
      const bytes = randomBytes(length);
      await from.uploadData(bytes, {
        maxSingleShotSize: 4 * MIB,
        blockSize: 4 * MIB,
        metadata: { a: '1' },
        blobHTTPHeaders: { blobContentType: 'text/plain', blobCacheControl: 'no-store' },
      });
      const copied = await to.syncCopyFromURL(await signed(from));
      expect(copied).toMatchObject({ copyStatus: 'success', copyId: expect.stringMatching(/^[0-9a-f-]{36}$/) });
      expect(copied.xMsContentCrc64).toHaveLength(8);
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
      await from.delete();
      expect((await to.downloadToBuffer()).equals(bytes)).toBe(true);
      expect(await blocksOf(to)).toEqual({ committed: [], uncommitted: [] });
    });
  });

  onLmdb((running) => {
    it('stores the metadata of the request instead of that of the source', async () => {
      const { from, to } = await pair(running);
      await from.upload('x', 1, { metadata: { a: '1', b: '2' } });
      await to.syncCopyFromURL(await signed(from), { metadata: { c: '3' } });
      expect((await to.getProperties()).metadata).toEqual({ c: '3' });
    });

    it.each([1, 100_000])('copies a blob of %i bytes onto itself', async (length) => {
      const { from } = await pair(running);
      await from.upload('x'.repeat(length), length);
      await from.syncCopyFromURL(await signed(from));
      expect(await textOf(from)).toBe('x'.repeat(length));
    });

    it('has a lease that ends, unlike Copy Blob', async () => {
      const { from, to } = await pair(running);
      await from.upload('x', 1);
      await to.upload('y', 1);
      const lease = to.getBlobLeaseClient();
      await lease.acquireLease(60);
      await to.syncCopyFromURL(await signed(from), { conditions: { leaseId: lease.leaseId } });
      expect(await textOf(to)).toBe('x');
    });

    it('takes sources of up to 256 MiB', async () => {
      const { from, to } = await pair(running);
      const block = Buffer.alloc(64 * MIB, 'x');
      await from.stageBlock(id('a'), block, block.length);
      await from.stageBlock(id('b'), 'x', 1);
      await from.commitBlockList([id('a'), id('a'), id('a'), id('a')]);
      expect((await to.syncCopyFromURL(await signed(from))).copyStatus).toBe('success');
      await stage(from, 'b1');
      await from.commitBlockList([id('a'), id('a'), id('a'), id('a'), id('b')]);
      await expectRefusal(to.syncCopyFromURL(await signed(from)), 409, 'CannotVerifyCopySource');
      await to.syncUploadFromURL(await signed(from));
      expect((await to.getProperties()).contentLength).toBe(256 * MIB + 2);
    });
  });
});

describe.each(NAMES)('The source of %s', (name) => {
  const { status } = OPERATIONS[name];

  onLmdb((running) => {
    const copy = (to: BlockBlobClient, source: string, headers?: RawRequest['headers']) =>
      ask(running, name, to, source, headers);

    it('needs an authorization of its own, also for the owner of the account', async () => {
      const { from, to } = await pair(running);
      await from.upload('x', 1);
      expectError(await copy(to, from.url), 401, 'CannotVerifyCopySource');
      expectError(await copy(to, from.url, { 'x-ms-version': '2018-11-09' }), 404, 'CannotVerifyCopySource');
      expectError(await copy(to, await signed(from, 'w')), 403, 'CannotVerifyCopySource');
      expectError(await copy(to, `${await signed(from)}x`), 403, 'CannotVerifyCopySource');
      expect((await copy(to, await signed(from))).status).toBe(status);
      const container = running.service.getContainerClient(from.containerName);
      await container.setAccessPolicy('blob');
      expect((await copy(to, from.url)).status).toBe(status);
      await container.setAccessPolicy(undefined);
      expectError(await copy(to, from.url), 401, 'CannotVerifyCopySource');
      const authorization = { 'x-ms-copy-source-authorization': 'SharedKey a:b' };
      expectError(await copy(to, from.url, authorization), 400, 'InvalidHeaderValue');
    });

    it('is the only content: a body is refused', async () => {
      const { from, to } = await pair(running);
      await from.uploadData(Buffer.from('x'));
      expectError(await ask(running, name, to, await signed(from), {}, 'a body'), 400, 'InvalidHeaderValue');
      expect(await to.exists()).toBe(false);
    });

    it.each(NAMES)('is not in the archive: %s', async (name) => {
      const { from, to } = await pair(running);
      await from.uploadData(Buffer.from('x'));
      const source = await signed(from);
      await from.setAccessTier('Archive');
      expectError(await ask(running, name, to, source), 409, 'CannotVerifyCopySource');
      expect(await to.exists()).toBe(false);
    });

    it('must exist', async () => {
      const { from, to } = await pair(running);
      expectError(await copy(to, await signed(from)), 404, 'CannotVerifyCopySource');
      await stage(from, 'a1');
      expectError(await copy(to, await signed(from)), 404, 'CannotVerifyCopySource');
    });

    it('meets its conditions, or the answer has the status of its read', async () => {
      const { from, to } = await pair(running);
      await from.upload('x', 1);
      const url = await signed(from);
      const { etag, lastModified } = await from.getProperties();
      const modified = lastModified!.toUTCString();
      const past = new Date(0).toUTCString();
      for (const [header, value, expected] of [
        ['match', etag!, status],
        ['match', '"0x1"', 412],
        ['none-match', '"0x1"', status],
        ['none-match', etag!, 304],
        ['modified-since', past, status],
        ['modified-since', modified, 304],
        ['unmodified-since', modified, status],
        ['unmodified-since', past, 412],
      ] as const) {
        const answer = await copy(to, url, { [`x-ms-source-if-${header}`]: value });
        expect(answer.status, `${header} ${value}`).toBe(expected);
        if (expected !== status) expect(answer.headers['x-ms-error-code']).toBe('CannotVerifyCopySource');
      }
    });

    it('is on this server: others are refused, unless they are named', async () => {
      const { from, to } = await pair(running);
      await from.upload('x', 1);
      const url = await signed(from);
      for (const source of ['https://example.com/c/b', url.replace(/:\d+\//, ':1/')]) {
        const answer = await copy(to, source);
        expectError(answer, 403, 'CannotVerifyCopySource');
        expect(answer.text).toContain(`--copy-from ${new URL(source).origin}.`);
      }
      for (const source of ['from', '/c/from', 'ftp://x/y']) {
        expectError(await copy(to, source), 400, 'InvalidHeaderValue', { HeaderName: 'x-ms-copy-source' });
      }
      expectError(await copy(to, `${url}&snapshot=2020-01-01T00:00:00.0000000Z`), 404, 'CannotVerifyCopySource');
      const unknown = from.url.replace('/devstoreaccount1/', '/unknown/');
      expectError(await copy(to, unknown), 404, 'CannotVerifyCopySource');
      expect((await copy(to, url.replace('127.0.0.1', 'localhost'))).status).toBe(status);
    });

    it('does not mind conditions that the target fails', async () => {
      const { from, to } = await pair(running);
      await from.upload('x', 1);
      const leaseId = { 'x-ms-lease-id': randomUUID() };
      expectError(await copy(to, await signed(from), leaseId), 412, 'LeaseNotPresentWithBlobOperation');
      const there = running.service.getContainerClient('not-there').getBlockBlobClient('blob');
      expectError(await copy(there, await signed(from)), 404, 'ContainerNotFound');
      const condition = { 'If-Match': '"0x1"' };
      const refused = await copy(to, await signed(from), condition);
      if (name === 'Put Block From URL') expectError(refused, 400, 'ConditionHeadersNotSupported');
      else expectError(refused, 412, 'ConditionNotMet');
    });
  });
});

describe('A source in another account', () => {
  onEngine(
    'LMDB',
    (running) => {
      it.each([10, 100_000, 20 * MIB])('is copied from, %i bytes, with its own signature', async (length) => {
        const { to } = await pair(running);
        const bytes = randomBytes(length);
        const from = await blobOfOther(running);
        await from.uploadData(bytes, { maxSingleShotSize: 64 * MIB, metadata: { a: '1' } });
        const url = await signed(from);
        expectError(await ask(running, 'Copy Blob From URL', to, from.url), 401, 'CannotVerifyCopySource');
        await to.syncCopyFromURL(url);
        expect((await to.downloadToBuffer()).equals(bytes)).toBe(true);
        expect((await to.getProperties()).metadata).toEqual({ a: '1' });
        await to.syncUploadFromURL(url);
        expect((await to.downloadToBuffer()).equals(bytes)).toBe(true);
        await to.stageBlockFromURL(id('a'), url, 1, 8);
        await to.commitBlockList([id('a')]);
        expect((await to.downloadToBuffer()).equals(bytes.subarray(1, 9))).toBe(true);
        await from.delete();
        expect((await check(running.where)).findings).toEqual([]);
      });

      it('is copied as one of its states while it is overwritten', async () => {
        const { to } = await pair(running);
        const from = await blobOfOther(running);
        const bytesOf = (number: number) => Buffer.alloc(3 * MIB, `${number};`);
        await from.uploadData(bytesOf(100));
        const url = await signed(from);
        let isDone = false;
        const writer = async () => {
          for (let number = 101; !isDone; number++) await from.uploadData(bytesOf(number));
        };
        const copier = async () => {
          for (let at = 0; at < 15; at++) {
            await to.syncUploadFromURL(url);
            const found = await to.downloadToBuffer();
            expect(found.equals(bytesOf(Number.parseInt(found.subarray(0, 3).toString(), 10)))).toBe(true);
          }
        };
        const writing = writer();
        await copier().finally(() => {
          isDone = true;
        });
        await writing;
      });
    },
    { start: { accounts: [{ name: 'devstoreaccount1', keys: [accountKey] }, OTHER] } },
  );
});

async function blobOfOther(running: Running): Promise<BlockBlobClient> {
  const url = running.server.blobUrl.replace('devstoreaccount1', OTHER.name);
  const service = new BlobServiceClient(url, new StorageSharedKeyCredential(OTHER.name, OTHER.keys[0]!));
  const container = service.getContainerClient(`c-${randomUUID()}`);
  await container.create();
  return container.getBlockBlobClient('from');
}
