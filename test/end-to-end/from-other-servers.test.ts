/** Put Block From URL, Put Blob From URL and Copy Blob From URL from a server that is named by --copy-from. */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import type { BlockBlobClient } from '@azure/storage-blob';
import { check } from 'holdfast';
import { afterAll, describe, expect, it } from 'vitest';
import { blocksOf, id, pathOf, textOf } from '../support/blocks.ts';
import { CopyOrigin, type Resource } from '../support/copy-origin.ts';
import {
  type Answer,
  expectError,
  expectRefusal,
  onEngine,
  onEveryEngine,
  type RawRequest,
} from '../support/test-server.ts';

const MIB = 1 << 20;
const origin = await CopyOrigin.start();
afterAll(() => origin.stop());
const start = { copyFrom: [origin.url], blobKeepAliveSeconds: 600 };

const md5 = (bytes: Uint8Array) => new Uint8Array(createHash('md5').update(bytes).digest());
const resource = (bytes: Buffer, more: Omit<Resource, 'bytes'> = {}) =>
  origin.put(`/${randomUUID()}`, { bytes, headers: { 'Content-Type': 'text/plain', 'x-ms-meta-a': '1' }, ...more });

const OPERATIONS = {
  'Put Block From URL': { query: '?comp=block&blockid=AAAA', headers: {}, status: 201 },
  'Put Blob From URL': { query: '', headers: { 'x-ms-blob-type': 'BlockBlob' }, status: 201 },
  'Copy Blob From URL': { query: '', headers: { 'x-ms-requires-sync': 'true' }, status: 202 },
} as const;
type Name = keyof typeof OPERATIONS;

describe('From another server', () => {
  onEveryEngine(
    (running) => {
      it.each([0, 10, 100_000, 20 * MIB])('a blob of %i bytes is made, with its properties', async (length) => {
        const bytes = randomBytes(length);
        const to = (await running.newContainer()).getBlockBlobClient('to');
        const expected = { contentLength: length, contentType: 'text/plain', metadata: { a: '1' } };
        const copied = await to.syncCopyFromURL(resource(bytes));
        expect(copied).toMatchObject({ copyStatus: 'success' });
        expect(await to.getProperties()).toMatchObject({ ...expected, copyProgress: `${length}/${length}` });
        if (length > 0) expect((await to.downloadToBuffer()).equals(bytes)).toBe(true);
        await to.syncUploadFromURL(resource(bytes), { blobHTTPHeaders: { blobContentLanguage: 'en' } });
        expect(await to.getProperties()).toMatchObject({ ...expected, contentLanguage: 'en' });
        expect(Buffer.from((await to.getProperties()).contentMD5!).equals(md5(bytes))).toBe(true);
        if (length > 0) expect((await to.downloadToBuffer()).equals(bytes)).toBe(true);
      });

      it('blocks are made of ranges, also of a server that has none', async () => {
        const bytes = randomBytes(9 * MIB);
        const to = (await running.newContainer()).getBlockBlobClient('to');
        await to.stageBlockFromURL(id('a'), resource(bytes));
        await to.stageBlockFromURL(id('b'), resource(bytes), 5, 100_000);
        await to.stageBlockFromURL(id('c'), resource(bytes, { ignoresRanges: true }), 8 * MIB + 1, 10);
        await to.stageBlockFromURL(id('d'), resource(bytes), 9 * MIB - 1, 10);
        await to.commitBlockList(['a', 'b', 'c', 'd'].map(id));
        const parts = [
          bytes,
          bytes.subarray(5, 100_005),
          bytes.subarray(8 * MIB + 1, 8 * MIB + 11),
          bytes.subarray(-1),
        ];
        expect((await to.downloadToBuffer()).equals(Buffer.concat(parts))).toBe(true);
        expect((await blocksOf(to)).committed).toEqual(['a', 'b', 'c', 'd']);
        if (running.engine !== 'memory') expect((await check(running.where)).findings).toEqual([]);
      });
    },
    { start },
  );

  onEngine(
    'LMDB',
    (running) => {
      const newTarget = async () => (await running.newContainer()).getBlockBlobClient('to');
      const ask = (
        name: Name,
        to: BlockBlobClient,
        source: string,
        headers: RawRequest['headers'] = {},
      ): Promise<Answer> =>
        running.request('PUT', `${pathOf(to)}${OPERATIONS[name].query}`, {
          headers: { 'x-ms-copy-source': source, ...OPERATIONS[name].headers, ...headers },
        });

      it('checksums of the request are verified', async () => {
        const bytes = randomBytes(100_000);
        const to = await newTarget();
        await to.stageBlockFromURL(id('a'), resource(bytes), 1, 9, { sourceContentMD5: md5(bytes.subarray(1, 10)) });
        await to.syncUploadFromURL(resource(bytes), { sourceContentMD5: md5(bytes) });
        const wrong = to.syncUploadFromURL(resource(bytes), { sourceContentMD5: md5(Buffer.from('x')) });
        await expectRefusal(wrong, 400, 'Md5Mismatch');
        const small = to.syncCopyFromURL(resource(Buffer.from('y')), { sourceContentMD5: md5(Buffer.from('x')) });
        await expectRefusal(small, 400, 'Md5Mismatch');
        expect((await to.downloadToBuffer()).equals(bytes)).toBe(true);
      });

      describe.each(Object.keys(OPERATIONS) as Name[])('%s', (name) => {
        const { status } = OPERATIONS[name];

        it('sends its own credential of the source, and no other', async () => {
          const to = await newTarget();
          const url = resource(Buffer.from('x'));
          const path = new URL(url).pathname;
          expect((await ask(name, to, url)).status).toBe(status);
          const bearer = { 'x-ms-copy-source-authorization': 'Bearer abc' };
          expect((await ask(name, to, url, bearer)).status).toBe(status);
          expect(origin.requestsFor(path).map(({ headers }) => headers.authorization)).toEqual([
            undefined,
            'Bearer abc',
          ]);
          expectError(
            await ask(name, to, url, { 'x-ms-copy-source-authorization': 'SharedKey a:b' }),
            400,
            'InvalidHeaderValue',
          );
          expect(origin.requestsFor(path)).toHaveLength(2);
        });

        it('answers as the source does', async () => {
          const to = await newTarget();
          const bytes = Buffer.from('x');
          for (const [source, expected] of [
            [`${origin.url}/none`, 404],
            [resource(bytes, { statuses: [401] }), 401],
            [resource(bytes, { statuses: [403] }), 403],
            [resource(bytes, { statuses: [500] }), 409],
            [resource(bytes, { redirectsTo: `${origin.url}/none` }), 409],
            [resource(bytes, { cutsAfter: [0] }), 409],
            [resource(randomBytes(100_000), { cutsAfter: [50_000] }), 409],
            [resource(bytes, { headers: { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' } }), 409],
            [resource(bytes, { headers: { 'x-ms-meta-a-b': 'no name' } }), 400],
          ] as const)
            expectError(await ask(name, to, source), expected, 'CannotVerifyCopySource');
          expect(await to.exists()).toBe(false);
          expect((await check(running.where)).findings).toEqual([]);
        });

        it('meets its conditions, or the answer has the status of its read', async () => {
          const to = await newTarget();
          const etag = '"9dd4e461268c8034f5c8564e155c67a6"';
          const modified = 'Mon, 01 Jan 2024 00:00:00 GMT';
          const past = 'Sun, 31 Dec 2023 00:00:00 GMT';
          const url = resource(Buffer.from('x'), { headers: { 'Last-Modified': modified } });
          for (const [header, value, expected] of [
            ['match', etag, status],
            ['match', '"0x1"', 412],
            ['none-match', '"0x1"', status],
            ['none-match', etag, 304],
            ['modified-since', past, status],
            ['modified-since', modified, 304],
            ['unmodified-since', modified, status],
            ['unmodified-since', past, 412],
          ] as const) {
            const answer = await ask(name, to, url, { [`x-ms-source-if-${header}`]: value });
            expect(answer.status, `${header} ${value}`).toBe(expected);
            if (expected !== status) expect(answer.headers['x-ms-error-code']).toBe('CannotVerifyCopySource');
          }
        });

        it('does not ask the source before the target is checked', async () => {
          const to = await newTarget();
          const url = resource(Buffer.from('x'));
          const lease = { 'x-ms-lease-id': randomUUID() };
          expectError(await ask(name, to, url, lease), 412, 'LeaseNotPresentWithBlobOperation');
          expect(origin.requestsFor(new URL(url).pathname)).toEqual([]);
        });
      });

      it('a source that is too long is refused without reading it', async () => {
        const to = await newTarget();
        const url = resource(Buffer.alloc(257 * MIB), { stallsAt: 10 });
        await expectRefusal(to.syncCopyFromURL(url), 409, 'CannotVerifyCopySource');
        await to.syncCopyFromURL(resource(Buffer.from('x')));
        expect(await textOf(to)).toBe('x');
      });
    },
    { start },
  );
});
