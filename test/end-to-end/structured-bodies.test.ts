/** x-ms-structured-body: Put Blob, Put Block and Get Blob. */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { id } from '../support/blocks.ts';
import { crc64, segmentsOf, structuredHeaders, structuredMessage } from '../support/structured-messages.mjs';
import { answerTo, expectError, onEveryEngine, onLmdb } from '../support/test-server.ts';

const MIB = 1 << 20;
const TYPE = { 'x-ms-blob-type': 'BlockBlob' };
const STRUCTURED = { 'x-ms-structured-body': 'XSM/1.0; properties=crc64' };
const CHECKED = { contentChecksumAlgorithm: 'StorageCrc64' } as const;
const md5 = (bytes: Uint8Array) => createHash('md5').update(bytes).digest('base64');

describe('Structured bodies', () => {
  onEveryEngine((running) => {
    const newBlob = async () => (await running.newContainer()).getBlockBlobClient('blob');
    const put = (path: string, body: Uint8Array, headers: Record<string, string>) =>
      running.request('PUT', path, { headers: { ...TYPE, ...headers }, body });

    it.each([1, 1_000, 16 << 10, (16 << 10) + 1, 4 * MIB, 9 * MIB + 5])(
      "upload and download %i bytes by Microsoft's client, which verifies them",
      async (length) => {
        const blob = await newBlob();
        const bytes = randomBytes(length);
        await blob.upload(bytes, length, CHECKED);
        expect((await blob.downloadToBuffer()).equals(bytes)).toBe(true);
        expect((await blob.downloadToBuffer(0, length, CHECKED)).equals(bytes)).toBe(true);
        const from = length >> 1;
        const rest = await blob.downloadToBuffer(from, length - from, CHECKED);
        expect(rest.equals(bytes.subarray(from))).toBe(true);
        const { contentLength, contentMD5 } = await blob.getProperties();
        expect([contentLength, Buffer.from(contentMD5!).toString('base64')]).toEqual([length, md5(bytes)]);
      },
    );

    it('upload blocks by a stream', async () => {
      const blob = await newBlob();
      const bytes = randomBytes(5 * MIB + 1);
      await blob.uploadStream(Readable.from([bytes]), 2 * MIB, 2, CHECKED);
      expect((await blob.downloadToBuffer()).equals(bytes)).toBe(true);
    });

    it('are confirmed, and described as their content is', async () => {
      const { containerName } = await running.newContainer();
      const content = Buffer.from('structured content');
      const body = structuredMessage(segmentsOf(content, 5));
      const headers = { ...structuredHeaders(content.length), 'x-ms-blob-content-md5': md5(content) };
      const blob = await put(`/${containerName}/blob`, body, headers);
      const sums = { 'content-md5': md5(content), 'x-ms-content-crc64': crc64(content).toString('base64') };
      expect([blob.status, blob.headers]).toMatchObject([201, { ...STRUCTURED, ...sums }]);
      const path = `/${containerName}/blocks?comp=block&blockid=${encodeURIComponent(id('a'))}`;
      const block = await put(path, body, structuredHeaders(content.length));
      const sum = { 'x-ms-content-crc64': sums['x-ms-content-crc64'] };
      expect([block.status, block.headers]).toMatchObject([201, { ...STRUCTURED, ...sum }]);
      const got = await running.request('GET', `/${containerName}/blob`);
      expect(got.text).toBe(content.toString());
      expect(got.headers).not.toHaveProperty('x-ms-structured-body');
    });

    it('may be empty', async () => {
      const { containerName } = await running.newContainer();
      const path = `/${containerName}/blob`;
      const empty = structuredMessage([Buffer.alloc(0)]);
      expect((await put(path, empty, structuredHeaders(0))).status).toBe(201);
      const answer = await running.request('GET', path, { headers: STRUCTURED });
      expect([answer.status, answer.headers['x-ms-structured-content-length']]).toEqual([200, '0']);
      expect(answer.bytes.equals(empty)).toBe(true);
      const manySegments = structuredMessage(Array.from({ length: 2_000 }, () => Buffer.alloc(0)));
      expect((await put(path, manySegments, structuredHeaders(0))).status).toBe(201);
      expect((await running.request('GET', path)).bytes.length).toBe(0);
      // A client that rounds the number of segments up has none of a content without bytes.
      const noSegment = structuredMessage([]);
      expect((await put(path, noSegment, structuredHeaders(0))).status).toBe(201);
      expect((await running.request('GET', path)).bytes.length).toBe(0);
      noSegment[noSegment.length - 1]! ^= 1;
      expectError(await put(path, noSegment, structuredHeaders(0)), 400, 'Crc64Mismatch');
    });

    it('are answered for a range, with the hash of the range beside it', async () => {
      const blob = await newBlob();
      const content = randomBytes(6 * MIB);
      await blob.upload(content, content.length);
      const path = `/${blob.containerName}/blob`;
      const get = (headers: Record<string, string>) =>
        running.request('GET', path, { headers: { ...STRUCTURED, ...headers } });
      const part = content.subarray(MIB - 7, 6 * MIB - 3);
      const answer = await get({ 'x-ms-range': `bytes=${MIB - 7}-${6 * MIB - 4}` });
      expect(answer.bytes.equals(structuredMessage(segmentsOf(part, 4 * MIB)))).toBe(true);
      expect([answer.status, answer.headers]).toMatchObject([
        206,
        {
          ...structuredHeaders(part.length),
          'content-length': String(answer.bytes.length),
          'content-range': `bytes ${MIB - 7}-${6 * MIB - 4}/${content.length}`,
          'x-ms-blob-content-md5': md5(content),
        },
      ]);
      const hashed = await get({ 'x-ms-range': 'bytes=1-4', 'x-ms-range-get-content-md5': 'true' });
      expect(hashed.headers['content-md5']).toBe(md5(content.subarray(1, 5)));
      expect(hashed.bytes.equals(structuredMessage([content.subarray(1, 5)]))).toBe(true);
    });

    it.each([
      ['in memory', 100, 33],
      ['in memory, of many segments', 5_000, 1],
      ['streamed', 300_000, 100_000],
    ])('are refused with a wrong checksum, length or version: %s', async (_, length, segmentBytes) => {
      const container = await running.newContainer();
      const content = randomBytes(length);
      const right = structuredMessage(segmentsOf(content, segmentBytes));
      const change = (at: number) => {
        const body = Buffer.from(right);
        body[at < 0 ? body.length + at : at]! ^= 1;
        return body;
      };
      const path = `/${container.containerName}/blob`;
      const headers = structuredHeaders(length);
      expectError(await put(path, change(23), headers), 400, 'Crc64Mismatch');
      expectError(await put(path, change(-9), headers), 400, 'Crc64Mismatch');
      expectError(await put(path, change(-1), headers), 400, 'Crc64Mismatch', {
        ServerCalculatedCrc64: crc64(content).toString('base64'),
      });
      for (const at of [0, 1, 9, 11, 13, 22]) {
        expectError(await put(path, change(at), headers), 400, 'InvalidStructuredMessage');
      }
      expectError(await put(path, right.subarray(0, -1), headers), 400, 'InvalidStructuredMessage');
      expectError(await put(path, right, structuredHeaders(length - 1)), 400, 'InvalidStructuredMessage');
      expectError(await put(path, content, headers), 400, 'InvalidStructuredMessage');
      const block = `/${container.containerName}/b?comp=block&blockid=${encodeURIComponent(id('a'))}`;
      expectError(await put(block, change(-1), headers), 400, 'Crc64Mismatch');
      const wrongMd5 = { ...headers, 'x-ms-blob-content-md5': md5(right) };
      expectError(await put(path, right, wrongMd5), 400, 'Md5Mismatch', { ServerCalculatedMd5: md5(content) });
      for await (const { name } of container.listBlobsFlat({ includeUncommitedBlobs: true })) expect(name).toBe('none');
      expect((await put(path, right, headers)).status).toBe(201);
      expect((await container.getBlobClient('blob').downloadToBuffer()).equals(content)).toBe(true);
    });
  });

  onLmdb((running) => {
    const put = async (headers: Record<string, string | undefined>) => {
      const { containerName } = await running.newContainer();
      const body = structuredMessage([Buffer.from('abc')]);
      return running.request('PUT', `/${containerName}/blob`, { headers: { ...TYPE, ...headers }, body });
    };

    it('need headers that belong together', async () => {
      const names = ['x-ms-structured-body', 'x-ms-structured-content-length'] as const;
      for (const HeaderName of names) {
        const headers = { ...structuredHeaders(3), [HeaderName]: undefined };
        expectError(await put(headers), 400, 'MissingRequiredHeader', { HeaderName });
      }
      for (const type of ['XSM/2.0; properties=crc64', 'XSM/1.0', 'XSM/1.0; properties=md5', '']) {
        const details = { HeaderName: 'x-ms-structured-body' };
        expectError(
          await put({ ...structuredHeaders(3), 'x-ms-structured-body': type }),
          400,
          'InvalidHeaderValue',
          details,
        );
      }
      for (const length of ['-3', '3.0', 'three', '1e1', '']) {
        const headers = { ...structuredHeaders(3), 'x-ms-structured-content-length': length };
        expectError(await put(headers), 400, 'InvalidHeaderValue', { HeaderName: 'x-ms-structured-content-length' });
      }
      for (const name of ['Content-MD5', 'x-ms-content-crc64']) {
        const value = name === 'Content-MD5' ? md5(Buffer.from('abc')) : crc64(Buffer.from('abc')).toString('base64');
        const details = { HeaderName: name.toLowerCase() };
        expectError(await put({ ...structuredHeaders(3), [name]: value }), 400, 'InvalidHeaderValue', details);
      }
      const { containerName } = await running.newContainer();
      const get = { headers: { 'x-ms-structured-body': 'XSM/9' } };
      expectError(await running.request('GET', `/${containerName}/blob`, get), 400, 'InvalidHeaderValue');
    });

    it('have limits for their content, not for the message, before the body is sent', async () => {
      const { containerName } = await running.newContainer();
      const bytesMax = 5_000 * MIB;
      const refusal = async (content: number, message: number) => {
        const headers = { ...TYPE, ...structuredHeaders(content), 'Content-Length': message, Expect: '100-continue' };
        return answerTo(running, 'PUT', `/${containerName}/blob`, headers);
      };
      expect(await refusal(bytesMax + 1, bytesMax + 40)).toMatch(/^HTTP\/1\.1 413 [\s\S]*<MaxLimit>5242880000</);
      expect(await refusal(3, bytesMax + (2 << 20))).toMatch(/^HTTP\/1\.1 413 /);
    });

    it('store nothing when the connection ends within them', async () => {
      const container = await running.newContainer();
      const blob = container.getBlockBlobClient('blob');
      await blob.upload('whole', 5);
      const body = structuredMessage([randomBytes(4 * MIB), randomBytes(MIB)]);
      const headers = { ...TYPE, ...structuredHeaders(5 * MIB), 'Content-Length': body.length };
      const socket = running.socket();
      socket.write(running.head('PUT', `/${container.containerName}/blob`, headers));
      socket.write(body.subarray(0, -1));
      await blob.getProperties();
      socket.destroy();
      await once(socket, 'close');
      expect((await blob.downloadToBuffer()).toString()).toBe('whole');
    });
  });
});
