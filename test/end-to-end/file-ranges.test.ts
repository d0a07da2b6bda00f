/** Create File, Get File, Put Range, List Ranges. */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import type { ShareFileClient } from '@azure/storage-file-share';
import { describe, expect, it } from 'vitest';
import { segmentsOf, structuredHeaders, structuredMessage } from '../support/structured-messages.mjs';
import { expectError, expectRefusal, onEveryEngine, type Running } from '../support/test-server.ts';

const elementsOf = (xml: string, name: string): string[] =>
  [...xml.matchAll(new RegExp(`<${name}>([^<]*)</${name}>`, 'g'))].map((match) => match[1]!);
const md5Of = (bytes: Uint8Array | string): string => createHash('md5').update(bytes).digest('base64');

onEveryEngine((running: Running) => {
  /** A file with a name of its own. */
  async function newFile(length?: number): Promise<ShareFileClient> {
    const share = await running.newShare();
    const file = share.rootDirectoryClient.getFileClient(`f-${randomUUID()}`);
    if (length !== undefined) await file.create(length);
    return file;
  }
  const pathOf = (file: ShareFileClient): string => `/${file.shareName}/${file.path}`;
  const put = (file: ShareFileClient, query: string, headers: Record<string, string>, body?: string | Buffer) =>
    running.request('PUT', `${pathOf(file)}${query}`, { of: 'file', headers, ...(body !== undefined && { body }) });
  const read = async (file: ShareFileClient): Promise<Buffer> => file.downloadToBuffer();
  const rangesOf = async (file: ShareFileClient) => (await file.getRangeList()).rangeList;

  describe('Create File', () => {
    it('makes a file of zeros of any length, which costs nothing', async () => {
      const file = await newFile(4 * 2 ** 40);
      const { contentLength, contentType } = await file.getProperties();
      expect([contentLength, contentType]).toEqual([4 * 2 ** 40, 'application/octet-stream']);
      expect(await rangesOf(file)).toEqual([]);
      const end = await file.download(4 * 2 ** 40 - 5, 5);
      expect(end.contentRange).toBe(`bytes ${4 * 2 ** 40 - 5}-${4 * 2 ** 40 - 1}/${4 * 2 ** 40}`);
    });

    it('refuses a length that is missing, too large or no number', async () => {
      const file = await newFile();
      const type = { 'x-ms-type': 'file' };
      expectError(await put(file, '', type), 400, 'MissingRequiredHeader', { HeaderName: 'x-ms-content-length' });
      for (const length of [String(4 * 2 ** 40 + 1), '-1', 'x'])
        expectError(await put(file, '', { ...type, 'x-ms-content-length': length }), 400, 'InvalidHeaderValue');
    });

    it('replaces a file, with its bytes', async () => {
      const file = await newFile(5);
      await file.uploadRange('Hello', 0, 5);
      await file.create(7);
      expect(await read(file)).toEqual(Buffer.alloc(7));
      expect(await rangesOf(file)).toEqual([]);
    });

    it.each([11, 5_000, 100_000])('writes a body of %d bytes in the same step', async (length) => {
      const file = await newFile();
      const body = randomBytes(length);
      const headers = { 'x-ms-type': 'file', 'x-ms-content-length': String(length + 3) };
      const { status, headers: answered } = await put(file, '', headers, body);
      expect([status, answered['content-md5']]).toEqual([201, md5Of(body)]);
      expect(await read(file)).toEqual(Buffer.concat([body, Buffer.alloc(3)]));
    });

    it('refuses a body that is longer than the file, or has another MD5, and makes no file', async () => {
      const file = await newFile();
      const headers = { 'x-ms-type': 'file', 'x-ms-content-length': '3' };
      expectError(await put(file, '', headers, 'four'), 400, 'InvalidHeaderValue', { HeaderName: 'Content-Length' });
      expectError(await put(file, '', { ...headers, 'content-md5': md5Of('two') }, 'one'), 400, 'Md5Mismatch');
      await expectRefusal(file.getProperties(), 404, 'ResourceNotFound');
    });
  });

  describe('Put Range', () => {
    it('writes bytes anywhere in the file', async () => {
      const file = await newFile(10);
      await file.uploadRange('Hello', 0, 5);
      await file.uploadRange('World', 5, 5);
      expect((await read(file)).toString()).toBe('HelloWorld');
      await file.uploadRange('xy', 3, 2);
      expect((await read(file)).toString()).toBe('HelxyWorld');
    });

    it.each([5_000, 100_000, 4 << 20])('writes %d bytes at once, and answers with their MD5', async (length) => {
      const file = await newFile(length + 1_000);
      const bytes = randomBytes(length);
      const { contentMD5, isServerEncrypted } = await file.uploadRange(bytes, 777, length);
      expect([Buffer.from(contentMD5!).toString('base64'), isServerEncrypted]).toEqual([md5Of(bytes), true]);
      const expected = Buffer.alloc(length + 1_000);
      bytes.copy(expected, 777);
      expect(Buffer.compare(await read(file), expected)).toBe(0);
    });

    it('gives the file another ETag', async () => {
      const file = await newFile(5);
      const { etag } = await file.getProperties();
      const written = await file.uploadRange('Hello', 0, 5);
      const found = await file.getProperties();
      expect(written.etag).not.toBe(etag);
      expect([found.etag, found.lastModified]).toEqual([written.etag, written.lastModified]);
    });

    it('changes the time of the last write, unless it is to be preserved', async () => {
      const file = await newFile(5);
      const before = await file.getProperties();
      const preserved = await file.uploadRange('Hello', 0, 5, { fileLastWrittenMode: 'Preserve' });
      expect(preserved.fileLastWriteTime).toEqual(before.fileLastWriteOn);
      const kept = await file.clearRange(0, 5, { fileLastWrittenMode: 'Preserve' });
      expect(kept.fileLastWriteTime).toEqual(before.fileLastWriteOn);
      await running.server.clock.advance(5);
      const now = await file.uploadRange('Hello', 0, 5, { fileLastWrittenMode: 'Now' });
      expect(now.fileLastWriteTime!.getTime()).toBeGreaterThan(before.fileLastWriteOn!.getTime());
      const found = await file.getProperties();
      expect([found.fileLastWriteOn, found.fileChangeOn]).toEqual([now.fileLastWriteTime, now.fileLastWriteTime]);
      expect(found.fileCreatedOn).toEqual(before.fileCreatedOn);
    });

    it('changes no time in versions before 2021-06-08', async () => {
      const file = await newFile(5);
      const before = await file.getProperties();
      await running.server.clock.advance(5);
      const headers = { 'x-ms-write': 'update', 'x-ms-range': 'bytes=0-4', 'x-ms-version': '2021-04-10' };
      const answer = await put(file, '?comp=range', headers, 'Hello');
      expect([answer.status, answer.headers['x-ms-file-last-write-time']]).toEqual([201, undefined]);
      const found = await file.getProperties();
      expect([found.fileLastWriteOn, found.fileChangeOn]).toEqual([before.fileLastWriteOn, before.fileChangeOn]);
    });

    it('never makes a file longer', async () => {
      const file = await newFile(5);
      await expectRefusal(file.uploadRange('Hello!', 0, 6), 416, 'InvalidRange');
      await expectRefusal(file.clearRange(3, 3), 416, 'InvalidRange');
      expect(await read(file)).toEqual(Buffer.alloc(5));
    });

    it.each([
      [{}, 'MissingRequiredHeader', 'x-ms-range'],
      [{ 'x-ms-range': 'bytes=0-' }, 'InvalidHeaderValue', 'x-ms-range'],
      [{ 'x-ms-range': 'bytes=3-1' }, 'InvalidHeaderValue', 'x-ms-range'],
      [{ 'x-ms-range': 'bytes=0-3' }, 'InvalidHeaderValue', 'Content-Length'],
      [
        { 'x-ms-range': 'bytes=0-4', 'x-ms-file-last-write-time': 'Later' },
        'InvalidHeaderValue',
        'x-ms-file-last-write-time',
      ],
    ])('refuses the headers %j', async (headers, code, header) => {
      const file = await newFile(5);
      const answer = await put(
        file,
        '?comp=range',
        { 'x-ms-write': 'update', ...headers } as Record<string, string>,
        'Hello',
      );
      expectError(answer, 400, code, { HeaderName: header });
    });

    it('refuses more than 4 MiB, and another MD5', async () => {
      const file = await newFile(8 << 20);
      const headers = { 'x-ms-write': 'update', 'x-ms-range': `bytes=0-${4 << 20}` };
      expectError(await put(file, '?comp=range', headers, Buffer.alloc((4 << 20) + 1)), 413, 'RequestBodyTooLarge');
      const small = { 'x-ms-write': 'update', 'x-ms-range': 'bytes=0-4', 'content-md5': md5Of('other') };
      expectError(await put(file, '?comp=range', small, 'Hello'), 400, 'Md5Mismatch');
      expect(await rangesOf(file)).toEqual([]);
    });

    it('refuses a read-only file, a directory and a file that is not there', async () => {
      const file = await newFile();
      await expectRefusal(file.uploadRange('Hello', 0, 5), 404, 'ResourceNotFound');
      const headers = { 'x-ms-type': 'file', 'x-ms-content-length': '5', 'x-ms-file-attributes': 'ReadOnly' };
      expect((await put(file, '', headers)).status).toBe(201);
      await expectRefusal(file.uploadRange('Hello', 0, 5), 409, 'ReadOnlyAttribute');
      expect(await read(file)).toEqual(Buffer.alloc(5));
    });

    it('takes conditions as an error', async () => {
      const file = await newFile(5);
      const headers = { 'x-ms-write': 'update', 'x-ms-range': 'bytes=0-4', 'if-match': '*' };
      expectError(await put(file, '?comp=range', headers, 'Hello'), 400, 'ConditionHeadersNotSupported');
      const copy = { 'x-ms-copy-source': file.url, 'x-ms-source-if-match': '*' };
      expectError(await put(file, '', copy), 400, 'ConditionHeadersNotSupported');
    });
  });

  describe('Put Range (clear)', () => {
    it('leaves zeros, in a part of a sector, too', async () => {
      const file = await newFile(10);
      await file.uploadRange('HelloWorld', 0, 10);
      await file.clearRange(1, 8);
      expect((await read(file)).toString()).toBe(`H${'\0'.repeat(8)}d`);
      expect(await rangesOf(file)).toEqual([{ start: 0, end: 9 }]);
    });

    it('releases whole sectors, and writes zeros where it reaches a part of one', async () => {
      const file = await newFile(513);
      await file.uploadRange('Hello', 0, 5);
      await file.clearRange(0, 513);
      expect(await rangesOf(file)).toEqual([{ start: 512, end: 512 }]);
      expect(await read(file)).toEqual(Buffer.alloc(513));
    });

    it('refuses a body', async () => {
      const file = await newFile(5);
      const headers = { 'x-ms-write': 'clear', 'x-ms-range': 'bytes=0-4' };
      expectError(await put(file, '?comp=range', headers, 'Hello'), 400, 'InvalidHeaderValue');
    });

    it('clears a terabyte in one step', async () => {
      const file = await newFile(2 ** 40);
      for (let i = 0; i < 70; i++) await file.uploadRange('x', i * 2 ** 33, 1);
      await file.clearRange(512, 2 ** 40 - 512);
      expect(await rangesOf(file)).toEqual([{ start: 0, end: 511 }]);
    });
  });

  describe('List Ranges', () => {
    it('has whole sectors, up to the end of the file, and joins neighbours', async () => {
      const file = await newFile(2_049);
      await file.uploadRange('World', 1_023, 5);
      expect(await rangesOf(file)).toEqual([{ start: 512, end: 1_535 }]);
      await file.uploadRange('x', 2_048, 1);
      expect(await rangesOf(file)).toEqual([
        { start: 512, end: 1_535 },
        { start: 2_048, end: 2_048 },
      ]);
    });

    it('lists a range only, and comes in pages if it is asked to', async () => {
      const file = await newFile(20_480);
      for (const at of [0, 1_024, 2_048, 4_096]) await file.uploadRange('x', at + 7, 1);
      const list = async (query: string, headers = {}) => {
        const path = `${pathOf(file)}?comp=rangelist${query}`;
        const answer = await running.request('GET', path, { of: 'file', headers });
        expect([answer.status, answer.headers['x-ms-content-length']]).toEqual([200, '20480']);
        return answer.text;
      };
      const starts = (xml: string) => elementsOf(xml, 'Start').map(Number);
      expect(starts(await list('', { 'x-ms-range': 'bytes=1030-2050' }))).toEqual([1_024, 2_048]);
      const first = await list('&maxresults=3');
      expect(starts(first)).toEqual([0, 1_024, 2_048]);
      const marker = encodeURIComponent(elementsOf(first, 'NextMarker')[0]!);
      expect(starts(await list(`&maxresults=3&marker=${marker}`))).toEqual([4_096]);
      expect(await list('')).not.toContain('NextMarker');
    });

    it('refuses a range that begins after the end', async () => {
      const file = await newFile(10);
      const headers = { 'x-ms-range': 'bytes=10-12' };
      const answer = await running.request('GET', `${pathOf(file)}?comp=rangelist`, { of: 'file', headers });
      expectError(answer, 416, 'InvalidRange');
    });
  });

  describe('Get File', () => {
    it('has the properties, and 206 for a range', async () => {
      const file = await newFile();
      await file.create(5, {
        fileHttpHeaders: {
          fileContentType: 'text/plain',
          fileCacheControl: 'no-cache',
          fileContentMD5: Buffer.alloc(16, 1),
        },
        metadata: { one: 'a' },
      });
      await file.uploadRange('Hello', 0, 5);
      const whole = await running.request('GET', pathOf(file), { of: 'file' });
      expect([whole.status, whole.text, whole.headers['content-md5']]).toEqual([
        200,
        'Hello',
        'AQEBAQEBAQEBAQEBAQEBAQ==',
      ]);
      expect(whole.headers).toMatchObject({
        'content-type': 'text/plain',
        'cache-control': 'no-cache',
        'x-ms-meta-one': 'a',
        'x-ms-type': 'File',
        'x-ms-server-encrypted': 'true',
        'x-ms-lease-state': 'available',
        'x-ms-lease-status': 'unlocked',
        'x-ms-file-attributes': 'Archive',
        'accept-ranges': 'bytes',
      });
      const headers = { range: 'bytes=1-3' };
      const part = await running.request('GET', pathOf(file), { of: 'file', headers });
      expect([part.status, part.text, part.headers['content-range']]).toEqual([206, 'ell', 'bytes 1-3/5']);
      expect(part.headers['content-md5']).toBeUndefined();
      expect(part.headers['x-ms-content-md5']).toBe('AQEBAQEBAQEBAQEBAQEBAQ==');
    });

    it('has the MD5 of a range of at most 4 MiB', async () => {
      const file = await newFile(5 << 20);
      await file.uploadRange('Hello', 0, 5);
      const { contentMD5 } = await file.download(0, 3, { rangeGetContentMD5: true });
      expect(Buffer.from(contentMD5!).toString('base64')).toBe(md5Of('Hel'));
      await expectRefusal(file.download(0, (4 << 20) + 1, { rangeGetContentMD5: true }), 400, 'OutOfRangeInput');
      const headers = { 'x-ms-range-get-content-md5': 'true' };
      expectError(await running.request('GET', pathOf(file), { of: 'file', headers }), 400, 'InvalidHeaderValue');
    });

    it('refuses a range that begins after the end', async () => {
      const file = await newFile(0);
      const headers = { 'x-ms-range': 'bytes=0-4' };
      const answer = await running.request('GET', pathOf(file), { of: 'file', headers });
      expectError(answer, 416, 'InvalidRange');
      expect(answer.headers['content-range']).toBe('bytes */0');
    });

    it('shows one state of the file, whatever is written meanwhile', async () => {
      const length = 40 << 20;
      const file = await newFile(length);
      const piece = (seed: number) => Buffer.alloc(4 << 20, seed);
      for (let at = 0; at < length; at += 4 << 20) await file.uploadRange(piece(1), at, 4 << 20);
      const { readableStreamBody } = await file.download();
      for (let at = 0; at < length; at += 4 << 20) await file.uploadRange(piece(2), at, 4 << 20);
      const found = new Set<number>();
      let bytes = 0;
      for await (const buffer of readableStreamBody as unknown as AsyncIterable<Buffer>) {
        bytes += buffer.length;
        for (let at = 0; at < buffer.length; at += 4_096) found.add(buffer[at]!);
      }
      expect([bytes, [...found]]).toEqual([length, [1]]);
    });
  });

  describe('Structured bodies', () => {
    const CHECKED = { contentChecksumAlgorithm: 'StorageCrc64' } as const;

    it.each([1, 5_000, 100_000, 4 << 20])(
      "of %d bytes go up and down by Microsoft's client, which verifies them",
      async (length) => {
        const bytes = randomBytes(length);
        const file = await newFile(length + 1);
        await file.uploadRange(bytes, 1, length, CHECKED);
        expect(Buffer.compare(await file.downloadToBuffer(1, length, CHECKED), bytes)).toBe(0);
      },
    );

    it('are the first bytes of a new file', async () => {
      const file = await newFile();
      const bytes = randomBytes(3_000);
      const body = structuredMessage(segmentsOf(bytes, 1_000));
      const headers = { 'x-ms-type': 'file', 'x-ms-content-length': '3000', ...structuredHeaders(bytes.length) };
      const answer = await put(file, '', headers, body);
      expect([answer.status, answer.headers['x-ms-structured-body']]).toEqual([201, 'XSM/1.0; properties=crc64']);
      expect(Buffer.compare(await read(file), bytes)).toBe(0);
    });

    it('with a wrong checksum write nothing', async () => {
      const file = await newFile(5);
      const body = structuredMessage(segmentsOf(Buffer.from('Hello'), 5));
      body[body.length - 1]! ^= 1;
      const headers = { 'x-ms-write': 'update', 'x-ms-range': 'bytes=0-4', ...structuredHeaders(5) };
      expect((await put(file, '?comp=range', headers, body)).status).toBe(400);
      expect(await rangesOf(file)).toEqual([]);
    });
  });

  describe('Parallel uploads', () => {
    it('of many ranges leave every byte', async () => {
      const bytes = randomBytes(9_999_999);
      const file = await newFile();
      await file.uploadData(bytes, { rangeSize: 300_001, concurrency: 8 });
      expect(Buffer.compare(await read(file), bytes)).toBe(0);
    });
  });
});
