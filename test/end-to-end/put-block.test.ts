import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { blocksOf, commit, id, pathOf, stage, textOf } from '../support/blocks.ts';
import { answerTo, expectError, expectRefusal, listXml, onEveryEngine, onLmdb } from '../support/test-server.ts';

const MIB = 1 << 20;
const DAY_SECONDS = 24 * 3600;
const md5 = (body: string | Uint8Array) => createHash('md5').update(body).digest('base64');

describe('Put Block', () => {
  onEveryEngine((running) => {
    const newBlob = async () => (await running.newContainer()).getBlockBlobClient('blob');

    it('creates a blob of uncommitted blocks, which cannot be read', async () => {
      const blob = await newBlob();
      await stage(blob, 'a', 'b');
      expect(await blocksOf(blob)).toEqual({ committed: [], uncommitted: ['a', 'b'] });
      await expectRefusal(blob.download(), 404, 'BlobNotFound');
      await expectRefusal(blob.getProperties(), 404, 'BlobNotFound');
      await expectRefusal(blob.setMetadata({ a: '1' }), 404, 'BlobNotFound');
      await expectRefusal(blob.setHTTPHeaders({}), 404, 'BlobNotFound');
      expect(await listXml(running, blob.containerName)).not.toContain('<Blob>');
      await blob.upload('whole', 5, { conditions: { ifNoneMatch: '*' } });
    });

    it('does not change a committed blob or its ETag', async () => {
      const blob = await newBlob();
      const { etag } = await blob.upload('whole', 5);
      await stage(blob, 'a');
      expect((await blob.getProperties()).etag).toBe(etag);
      expect(await textOf(blob)).toBe('whole');
    });

    it('replaces a block with the same id', async () => {
      const blob = await newBlob();
      await blob.stageBlock(id('a'), 'older', 5);
      await blob.stageBlock(id('a'), 'new', 3);
      const { uncommittedBlocks } = await blob.getBlockList('uncommitted');
      expect(uncommittedBlocks).toEqual([{ name: id('a'), size: 3 }]);
      await blob.commitBlockList([id('a')]);
      expect(await textOf(blob)).toBe('new');
    });

    it('accepts a block that is larger than a chunk', async () => {
      const blob = await newBlob();
      const bytes = randomBytes(20 * MIB + 1);
      await blob.stageBlock(id('a'), bytes, bytes.length);
      await blob.commitBlockList([id('a')]);
      expect((await blob.downloadToBuffer()).equals(bytes)).toBe(true);
    });

    it('wants ids of one length, in bytes, among the uncommitted blocks', async () => {
      const blob = await newBlob();
      await blob.stageBlock(id('0'), 'x', 1);
      await expectRefusal(blob.stageBlock(id('10'), 'x', 1), 400, 'InvalidBlobOrBlock');
      await blob.commitBlockList([id('0')]);
      await blob.stageBlock(id('10'), 'x', 1);
    });

    it('needs the lease id while the blob is leased, committed or not', async () => {
      const blob = await newBlob();
      await stage(blob, 'a');
      const lease = blob.getBlobLeaseClient();
      await lease.acquireLease(-1);
      await expectRefusal(blob.stageBlock(id('b'), 'b', 1), 412, 'LeaseIdMissing');
      const other = { conditions: { leaseId: randomUUID() } };
      await expectRefusal(blob.stageBlock(id('b'), 'b', 1, other), 412, 'LeaseIdMismatchWithBlobOperation');
      const own = { conditions: { leaseId: lease.leaseId } };
      await blob.stageBlock(id('b'), 'b', 1, own);
      await blob.commitBlockList([id('a'), id('b')], own);
      expect(await blob.getProperties()).toMatchObject({ leaseState: 'leased', leaseDuration: 'infinite' });
      await expectRefusal(blob.stageBlock(id('c'), 'c', 1), 412, 'LeaseIdMissing');
    });

    it('is forgotten seven days after the last block', async () => {
      const blob = await newBlob();
      await blob.stageBlock(id('a'), 'a', 1);
      await running.server.clock.advance(6 * DAY_SECONDS);
      await blob.stageBlock(id('b'), 'b', 1);
      await running.server.clock.advance(7 * DAY_SECONDS - 60);
      expect(await blocksOf(blob)).toEqual({ committed: [], uncommitted: ['a', 'b'] });
      await running.server.clock.advance(120);
      await expectRefusal(blob.getBlockList('all'), 404, 'BlobNotFound');
      expectError(await commit(running, blob, [['Uncommitted', 'a']]), 400, 'InvalidBlockList');
      const listed = await listXml(running, blob.containerName, '&include=uncommittedblobs');
      expect(listed).not.toContain('<Blob>');
      await blob.stageBlock(id('long'), 'x', 1);
      expect(await blocksOf(blob)).toEqual({ committed: [], uncommitted: ['long'] });
    });
  });

  onLmdb((running) => {
    const newBlob = async () => (await running.newContainer()).getBlockBlobClient('blob');

    it('answers with the checksum that was sent, or the CRC64', async () => {
      const blob = await newBlob();
      const put = (headers: Record<string, string>) =>
        running.request('PUT', `${pathOf(blob)}?comp=block&blockid=${id('a')}`, { headers, body: 'Hello World' });
      const plain = await put({});
      expect(plain.status).toBe(201);
      expect(plain.headers).toMatchObject({
        'x-ms-content-crc64': 'YeJLfssylmU=',
        'x-ms-request-server-encrypted': 'true',
        'content-length': '0',
      });
      expect(plain.headers).not.toHaveProperty('content-md5');
      expect(plain.headers).not.toHaveProperty('etag');
      const sent = await put({ 'Content-MD5': md5('Hello World') });
      expect(sent.headers['content-md5']).toBe(md5('Hello World'));
      expect(sent.headers).not.toHaveProperty('x-ms-content-crc64');
      const older = await put({ 'x-ms-version': '2018-11-09' });
      expect(older.headers['content-md5']).toBe(md5('Hello World'));
      expect(older.headers).not.toHaveProperty('x-ms-content-crc64');
    });

    it('verifies the bytes by the checksum, and stores nothing that does not match', async () => {
      const blob = await newBlob();
      const put = (headers: Record<string, string>, body: string | Buffer) =>
        running.request('PUT', `${pathOf(blob)}?comp=block&blockid=${id('a')}`, { headers, body });
      for (const body of ['Hello World', randomBytes(MIB)]) {
        expectError(await put({ 'Content-MD5': md5('other') }, body), 400, 'Md5Mismatch');
        expectError(await put({ 'x-ms-content-crc64': 'AAAAAAAAAAA=' }, body), 400, 'Crc64Mismatch');
      }
      await expectRefusal(blob.getBlockList('all'), 404, 'BlobNotFound');
    });

    it('refuses an id that is none', async () => {
      const blob = await newBlob();
      const put = (query: string) => running.request('PUT', `${pathOf(blob)}?comp=block${query}`, { body: 'x' });
      expectError(await put(''), 400, 'MissingRequiredQueryParameter', { QueryParameterName: 'blockid' });
      const long = Buffer.alloc(65).toString('base64');
      for (const value of ['', 'a', 'a-b_', long]) {
        expectError(await put(`&blockid=${encodeURIComponent(value)}`), 400, 'InvalidQueryParameterValue', {
          QueryParameterName: 'blockid',
        });
      }
      const longest = Buffer.alloc(64).toString('base64');
      expect((await put(`&blockid=${encodeURIComponent(longest)}`)).status).toBe(201);
    });

    it.each(['If-Match', 'If-None-Match', 'If-Modified-Since', 'If-Unmodified-Since'])(
      'takes no conditions, and says so instead of passing %s over',
      async (name) => {
        const blob = await newBlob();
        const headers = { [name]: name.endsWith('Match') ? '*' : 'Fri, 01 Jan 2021 00:00:00 GMT' };
        const path = `${pathOf(blob)}?comp=block&blockid=${id('a')}`;
        expectError(await running.request('PUT', path, { headers, body: 'x' }), 400, 'ConditionHeadersNotSupported');
        const list = await running.request('GET', `${pathOf(blob)}?comp=blocklist`, { headers });
        expectError(list, 400, 'ConditionHeadersNotSupported');
      },
    );

    it('refuses an empty block', async () => {
      const blob = await newBlob();
      const answer = await running.request('PUT', `${pathOf(blob)}?comp=block&blockid=${id('a')}`);
      expectError(answer, 400, 'InvalidHeaderValue', { HeaderName: 'Content-Length', HeaderValue: '0' });
    });

    it.each([
      ['2025-07-05', 4000],
      ['2019-07-07', 100],
      ['2015-12-11', 4],
    ])('answers 413 in version %s for more than %i MiB, before the body is sent', async (version, mebibytes) => {
      const blob = await newBlob();
      const length = mebibytes * MIB + 1;
      const headers = { 'x-ms-version': version, 'Content-Length': length };
      const answer = await answerTo(running, 'PUT', `${pathOf(blob)}?comp=block&blockid=${id('a')}`, headers);
      expect(answer).toMatch(/^HTTP\/1\.1 413 /);
      expect(answer).toContain(`<MaxLimit>${length - 1}</MaxLimit>`);
    });

    it('decides before the body on Expect: 100-continue', async () => {
      const blob = await newBlob();
      await stage(blob, 'a');
      const headers = { 'Content-Length': 5, Expect: '100-continue' };
      const ask = (blockId: string, more: Record<string, string> = {}) =>
        answerTo(running, 'PUT', `${pathOf(blob)}?comp=block&blockid=${id(blockId)}`, { ...headers, ...more });
      expect(await ask('long')).toMatch(/^HTTP\/1\.1 400 [\s\S]*InvalidBlobOrBlock/);
      expect(await ask('b', { 'x-ms-lease-id': randomUUID() })).toMatch(/^HTTP\/1\.1 412 /);
    });

    it('needs a container', async () => {
      const blob = running.service.getContainerClient('not-there').getBlockBlobClient('blob');
      await expectRefusal(blob.stageBlock(id('a'), 'a', 1), 404, 'ContainerNotFound');
    });

    it('accepts concurrent blocks, each once', async () => {
      const blob = await newBlob();
      const names = Array.from({ length: 100 }, (_, at) => String(at).padStart(3, '0'));
      await Promise.all(names.map((name) => blob.stageBlock(id(name), name, 3)));
      expect((await blocksOf(blob)).uncommitted).toEqual(names);
      await blob.commitBlockList(names.toReversed().map(id));
      expect(await textOf(blob)).toBe(names.toReversed().join(''));
      expect(await blocksOf(blob)).toEqual({ committed: names.toReversed(), uncommitted: [] });
    });
  });
});
