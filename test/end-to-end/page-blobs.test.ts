import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { BlobSASPermissions, type PageBlobClient, type PageBlobRequestConditions } from '@azure/storage-blob';
import { check } from 'holdfast';
import { describe, expect, it } from 'vitest';
import {
  answerTo,
  elementOf,
  expectError,
  expectRefusal,
  listXml,
  onEveryEngine,
  onLmdb,
  type Running,
} from '../support/test-server.ts';

const PAGE = 512;
const MIB = 1 << 20;
const TIB = 2 ** 40;
const md5 = (body: string | Uint8Array) => createHash('md5').update(body).digest();
const pathOf = (blob: PageBlobClient) => `/${blob.containerName}/${blob.name}`;
const pages = (count: number, fill: string) => Buffer.alloc(count * PAGE, fill);
const put = (blob: PageBlobClient, page: number, count: number, fill: string) =>
  blob.uploadPages(pages(count, fill), page * PAGE, count * PAGE);

async function newBlob(running: Running, length = 16 * PAGE): Promise<PageBlobClient> {
  const blob = (await running.newContainer()).getPageBlobClient('disk');
  await blob.create(length);
  return blob;
}

/** First page and number of pages of each range. */
async function rangesOf(blob: PageBlobClient, ...args: [offset?: number, count?: number]): Promise<[number, number][]> {
  const found: [number, number][] = [];
  for await (const { pageRange } of blob.listPageRanges(...args).byPage() as AsyncIterable<{
    pageRange?: { start: number; end: number }[];
  }>)
    for (const { start, end } of pageRange ?? []) found.push([start / PAGE, (end + 1 - start) / PAGE]);
  return found;
}

const signed = (blob: PageBlobClient) =>
  blob.generateSasUrl({ permissions: BlobSASPermissions.parse('r'), expiresOn: new Date(Date.now() + 3_600_000) });

describe('Put Blob (page blob)', () => {
  onEveryEngine((running) => {
    it('creates a blob of zeros with its headers, metadata, tags and sequence number', async () => {
      const container = await running.newContainer();
      const blob = container.getPageBlobClient('disk');
      const made = await blob.create(4 * PAGE, {
        blobHTTPHeaders: { blobContentType: 'application/x-disk' },
        metadata: { a: '1' },
        tags: { t: 'v' },
        blobSequenceNumber: 7,
      });
      const found = await blob.getProperties();
      expect(found).toMatchObject({
        blobType: 'PageBlob',
        contentLength: 4 * PAGE,
        blobSequenceNumber: 7,
        contentType: 'application/x-disk',
        metadata: { a: '1' },
        tagCount: 1,
        etag: made.etag,
      });
      expect(found.accessTier).toBeUndefined();
      expect((await blob.downloadToBuffer()).equals(Buffer.alloc(4 * PAGE))).toBe(true);
      const xml = await listXml(running, container.containerName);
      expect(elementOf(xml, 'BlobType')).toBe('PageBlob');
      expect(elementOf(xml, 'x-ms-blob-sequence-number')).toBe('7');
      expect(xml).not.toContain('AccessTier');
    });

    it('makes 8 TiB as fast as none, and reads zeros anywhere in them', async () => {
      const blob = await newBlob(running, 8 * TIB);
      await put(blob, 0, 1, 'a');
      await blob.uploadPages(pages(1, 'b'), 8 * TIB - PAGE, PAGE);
      expect((await blob.downloadToBuffer(5 * TIB, 3 * MIB)).equals(Buffer.alloc(3 * MIB))).toBe(true);
      expect((await blob.downloadToBuffer(8 * TIB - 2 * PAGE, 2 * PAGE)).toString('latin1')).toBe(
        '\0'.repeat(PAGE) + 'b'.repeat(PAGE),
      );
      expect(await rangesOf(blob)).toEqual([
        [0, 1],
        [(8 * TIB) / PAGE - 1, 1],
      ]);
      await blob.clearPages(0, 8 * TIB);
      expect(await rangesOf(blob)).toEqual([]);
    });

    it('needs a length of whole pages, up to 8 TiB', async () => {
      const blob = (await running.newContainer()).getPageBlobClient('disk');
      for (const length of [1, 511, 513, 8 * TIB + 1, 8 * TIB + PAGE])
        await expectRefusal(blob.create(length), 400, 'InvalidHeaderValue');
      const headers = { 'x-ms-blob-type': 'PageBlob' };
      expectError(await running.request('PUT', pathOf(blob), { headers }), 400, 'MissingRequiredHeader');
      const sized = { ...headers, 'x-ms-blob-content-length': '512' };
      for (const number of ['-1', 'x', '9223372036854775808']) {
        const withNumber = { ...sized, 'x-ms-blob-sequence-number': number };
        expectError(await running.request('PUT', pathOf(blob), { headers: withNumber }), 400, 'InvalidHeaderValue');
      }
      expectError(
        await running.request('PUT', pathOf(blob), { headers: sized, body: 'abc' }),
        400,
        'InvalidHeaderValue',
      );
      await blob.create(0);
      expect(await rangesOf(blob)).toEqual([]);
      expect((await blob.getProperties()).contentLength).toBe(0);
    });

    it('clears a page blob that exists, and no other blob', async () => {
      const blob = await newBlob(running);
      await put(blob, 0, 4, 'a');
      await blob.create(2 * PAGE);
      expect(await rangesOf(blob)).toEqual([]);
      expect((await blob.getProperties()).contentLength).toBe(2 * PAGE);
      const container = running.service.getContainerClient(blob.containerName);
      await container.getBlockBlobClient('block').upload('x', 1);
      await container.getAppendBlobClient('log').create();
      await expectRefusal(container.getPageBlobClient('block').create(PAGE), 409, 'InvalidBlobType');
      await expectRefusal(container.getPageBlobClient('log').create(PAGE), 409, 'InvalidBlobType');
      await expectRefusal(container.getAppendBlobClient('disk').create(), 409, 'InvalidBlobType');
      await expectRefusal(container.getBlockBlobClient('disk').upload('x', 1), 409, 'InvalidBlobType');
    });
  });
});

describe('Put Page, Clear Page and Put Page From URL', () => {
  onEveryEngine((running) => {
    it('writes whole pages, which replace what was there', async () => {
      const blob = await newBlob(running);
      const first = await put(blob, 0, 4, 'a');
      expect(first).toMatchObject({ blobSequenceNumber: 0, isServerEncrypted: true });
      const second = await put(blob, 2, 4, 'b');
      expect(second.etag).not.toBe(first.etag);
      const expected = 'a'.repeat(2 * PAGE) + 'b'.repeat(4 * PAGE) + '\0'.repeat(10 * PAGE);
      expect((await blob.downloadToBuffer()).toString('latin1')).toBe(expected);
      expect((await blob.downloadToBuffer(PAGE + 1, 700)).toString('latin1')).toBe(
        expected.slice(PAGE + 1, PAGE + 701),
      );
      expect(await blob.getProperties()).toMatchObject({ etag: second.etag, contentLength: 16 * PAGE });
    });

    it('writes up to 4 MiB, at any page', async () => {
      const blob = await newBlob(running, 10 * MIB);
      const bytes = randomBytes(4 * MIB);
      const offset = 3 * MIB + 7 * PAGE;
      await blob.uploadPages(bytes, offset, bytes.length);
      expect((await blob.downloadToBuffer(offset, bytes.length)).equals(bytes)).toBe(true);
      const all = await blob.downloadToBuffer();
      expect(all.subarray(0, offset).equals(Buffer.alloc(offset))).toBe(true);
      const headers = {
        'x-ms-page-write': 'update',
        'x-ms-range': `bytes=0-${4 * MIB + PAGE - 1}`,
        'Content-Length': 4 * MIB + PAGE,
      };
      expect(await answerTo(running, 'PUT', `${pathOf(blob)}?comp=page`, headers)).toContain('413');
    });

    it('refuses ranges that are not pages of the blob', async () => {
      const blob = await newBlob(running, 4 * PAGE);
      const send = (range: string | undefined, length: number, more = {}) =>
        running.request('PUT', `${pathOf(blob)}?comp=page`, {
          headers: { 'x-ms-page-write': 'update', ...(range !== undefined && { 'x-ms-range': range }), ...more },
          body: Buffer.alloc(length),
        });
      for (const range of [
        'bytes=0-510',
        'bytes=1-512',
        'bytes=0-512',
        'bytes=512-',
        'bytes=-512',
        'bytes=a-b',
        'pages=0-511',
      ])
        expectError(await send(range, 512), 416, 'InvalidPageRange');
      expectError(await send('bytes=1536-2559', 1024), 416, 'InvalidPageRange');
      expectError(await send('bytes=2048-2559', 512), 416, 'InvalidPageRange');
      expectError(await send(undefined, 512), 400, 'MissingRequiredHeader');
      expectError(await send('bytes=0-511', 1024), 400, 'InvalidHeaderValue');
      expectError(await send('bytes=0-1023', 512), 400, 'InvalidHeaderValue');
      expectError(await send('bytes=0-511', 512, { 'x-ms-page-write': 'erase' }), 400, 'InvalidHeaderValue');
      expect((await send('bytes=0-511', 512)).status).toBe(201);
      const container = running.service.getContainerClient(blob.containerName);
      await container.getBlockBlobClient('block').upload('x', 1);
      await expectRefusal(put(container.getPageBlobClient('block'), 0, 1, 'a'), 409, 'InvalidBlobType');
      await expectRefusal(put(container.getPageBlobClient('none'), 0, 1, 'a'), 404, 'BlobNotFound');
    });

    it('honours conditions, leases and hashes', async () => {
      const blob = await newBlob(running);
      const { etag } = await blob.getProperties();
      const under = (conditions: PageBlobRequestConditions) => blob.uploadPages(pages(1, 'x'), 0, PAGE, { conditions });
      await expectRefusal(under({ ifMatch: '"0x1"' }), 412, 'ConditionNotMet');
      await expectRefusal(under({ ifNoneMatch: etag! }), 412, 'ConditionNotMet');
      await expectRefusal(under({ tagConditions: "a = 'b'" }), 412, 'ConditionNotMet');
      await under({ ifMatch: etag! });
      const { leaseId } = await blob.getBlobLeaseClient().acquireLease(-1);
      await expectRefusal(under({}), 412, 'LeaseIdMissing');
      await expectRefusal(under({ leaseId: randomUUID() }), 412, 'LeaseIdMismatchWithBlobOperation');
      await under({ leaseId: leaseId! });
      await expectRefusal(blob.clearPages(0, PAGE), 412, 'LeaseIdMissing');
      await blob.getBlobLeaseClient(leaseId!).releaseLease();
      for (const count of [1, 20]) {
        const body = randomBytes(count * PAGE);
        const larger = await newBlob(running, 20 * PAGE);
        const wrong = { transactionalContentMD5: md5('other') };
        await expectRefusal(larger.uploadPages(body, 0, body.length, wrong), 400, 'Md5Mismatch');
        const right = await larger.uploadPages(body, 0, body.length, { transactionalContentMD5: md5(body) });
        expect(Buffer.from(right.contentMD5!)).toEqual(md5(body));
        expect((await larger.uploadPages(body, 0, body.length)).xMsContentCrc64).toHaveLength(8);
      }
    });

    /** Conditions on a blob whose number is 5, and whether it meets them. */
    const SEQUENCE_CONDITIONS: readonly [PageBlobRequestConditions, boolean][] = [
      [{ ifSequenceNumberLessThanOrEqualTo: 4 }, false],
      [{ ifSequenceNumberLessThanOrEqualTo: 5 }, true],
      [{ ifSequenceNumberLessThanOrEqualTo: 6 }, true],
      [{ ifSequenceNumberLessThan: 4 }, false],
      [{ ifSequenceNumberLessThan: 5 }, false],
      [{ ifSequenceNumberLessThan: 6 }, true],
      [{ ifSequenceNumberEqualTo: 4 }, false],
      [{ ifSequenceNumberEqualTo: 5 }, true],
      [{ ifSequenceNumberEqualTo: 6 }, false],
      [{ ifSequenceNumberLessThanOrEqualTo: 5, ifSequenceNumberLessThan: 6, ifSequenceNumberEqualTo: 5 }, true],
      [{ ifSequenceNumberLessThan: 9, ifSequenceNumberEqualTo: 6 }, false],
    ];

    it('compares the sequence number', async () => {
      const blob = await newBlob(running);
      await blob.updateSequenceNumber('update', 5);
      const source = running.service.getContainerClient(blob.containerName).getPageBlobClient('source');
      await source.create(PAGE);
      const url = await signed(source);
      for (const [conditions, isMet] of SEQUENCE_CONDITIONS)
        for (const act of [
          () => blob.uploadPages(pages(1, 'x'), 0, PAGE, { conditions }),
          () => blob.clearPages(0, PAGE, { conditions }),
          () => blob.uploadPagesFromURL(url, 0, 0, PAGE, { conditions }),
        ])
          if (isMet) await act();
          else await expectRefusal(act(), 412, 'SequenceNumberConditionNotMet');
      for (const name of ['le', 'lt', 'eq'])
        for (const value of ['-1', 'x', '9223372036854775808']) {
          const write = { 'x-ms-page-write': 'update', 'x-ms-range': 'bytes=0-511' };
          const headers = { ...write, [`x-ms-if-sequence-number-${name}`]: value };
          const answer = await running.request('PUT', `${pathOf(blob)}?comp=page`, {
            headers,
            body: Buffer.alloc(512),
          });
          expectError(answer, 400, 'InvalidInput');
        }
    });

    it('of many clients at once leaves each page with the bytes of one of them', async () => {
      const blob = await newBlob(running, MIB);
      const writers = 12;
      await Promise.all(
        Array.from({ length: writers }, async (_, writer) => {
          for (let round = 0; round < 8; round++)
            await put(
              blob,
              (writer * 7 + round * 13) % 60,
              3 + ((writer + round) % 20),
              String.fromCharCode(97 + writer),
            );
        }),
      );
      const all = await blob.downloadToBuffer();
      for (let page = 0; page < 90; page++) {
        const bytes = all.subarray(page * PAGE, (page + 1) * PAGE);
        expect(bytes.every((byte) => byte === bytes[0])).toBe(true);
      }
      await blob.clearPages(0, MIB);
      expect((await blob.downloadToBuffer()).equals(Buffer.alloc(MIB))).toBe(true);
    });

    it('reads and writes like an array of bytes', async () => {
      const blob = await newBlob(running, 3 * MIB);
      const model = Buffer.alloc(3 * MIB);
      for (let i = 0; i < 60; i++) {
        const count = i % 5 === 0 ? 900 : 1 + (i % 9);
        const page = (i * 997) % (6144 - count);
        if (i % 4 === 3) {
          await blob.clearPages(page * PAGE, count * PAGE);
          model.fill(0, page * PAGE, (page + count) * PAGE);
        } else {
          const bytes = randomBytes(count * PAGE);
          await blob.uploadPages(bytes, page * PAGE, bytes.length);
          bytes.copy(model, page * PAGE);
        }
      }
      expect((await blob.downloadToBuffer()).equals(model)).toBe(true);
    });
  });
});

describe('Get Page Ranges', () => {
  onEveryEngine((running) => {
    it('lists what was written and not cleared; neighbours are one range', async () => {
      const blob = await newBlob(running);
      expect(await rangesOf(blob)).toEqual([]);
      await put(blob, 0, 1, 'a');
      await put(blob, 1, 1, 'b');
      await put(blob, 4, 6, 'c');
      await blob.clearPages(6 * PAGE, PAGE);
      await put(blob, 15, 1, '\0');
      expect(await rangesOf(blob)).toEqual([
        [0, 2],
        [4, 2],
        [7, 3],
        [15, 1],
      ]);
      expect(await rangesOf(blob, 5 * PAGE, 3 * PAGE)).toEqual([
        [5, 1],
        [7, 1],
      ]);
      expect(await rangesOf(blob, 2 * PAGE, PAGE)).toEqual([]);
      const answer = await running.request('GET', `${pathOf(blob)}?comp=pagelist`, {
        headers: { 'x-ms-range': 'bytes=100-600' },
      });
      expect(answer.text).toContain('<PageList><PageRange><Start>0</Start><End>1023</End></PageRange></PageList>');
      expect(answer.headers['x-ms-blob-content-length']).toBe(String(16 * PAGE));
      const beyond = { headers: { 'x-ms-range': `bytes=${16 * PAGE}-` } };
      expectError(await running.request('GET', `${pathOf(blob)}?comp=pagelist`, beyond), 416, 'InvalidRange');
    });

    it('comes in pages, with markers of the form that Azure has', async () => {
      const blob = await newBlob(running);
      for (const page of [0, 2, 4, 6, 8]) await put(blob, page, 1, 'a');
      const list = (query: string) => running.request('GET', `${pathOf(blob)}?comp=pagelist${query}`);
      const first = await list('&maxresults=2');
      expect(elementOf(first.text, 'NextMarker')).toBe('2!16!MDAwMDA0ITIwNDgh');
      const found: number[] = [];
      let marker: string | undefined = '';
      do {
        const { text } = await list(`&maxresults=2&marker=${encodeURIComponent(marker!)}`);
        for (const [, start] of text.matchAll(/<Start>(\d+)</g)) found.push(Number(start) / PAGE);
        marker = elementOf(text, 'NextMarker');
      } while (marker);
      expect(found).toEqual([0, 2, 4, 6, 8]);
      expectError(await list('&marker=nonsense'), 400, 'InvalidQueryParameterValue');
      expectError(await list('&marker=2!16!MDAwMDA5ITIwNDgh'), 400, 'InvalidQueryParameterValue');
      expectError(await list('&maxresults=0'), 400, 'OutOfRangeQueryParameterValue');
    });

    it('honours conditions and leases, and is for page blobs', async () => {
      const blob = await newBlob(running);
      const { etag } = await blob.getProperties();
      const under = (conditions: PageBlobRequestConditions) => blob.getPageRanges(0, PAGE, { conditions });
      await under({ ifMatch: etag! });
      await expectRefusal(under({ ifMatch: '"0x1"' }), 412, 'ConditionNotMet');
      await expectRefusal(under({ leaseId: randomUUID() }), 412, 'LeaseNotPresentWithBlobOperation');
      const container = running.service.getContainerClient(blob.containerName);
      await container.getBlockBlobClient('block').upload('x', 1);
      await expectRefusal(container.getPageBlobClient('block').getPageRanges(), 409, 'InvalidBlobType');
    });
  });
});

describe('Set Blob Properties', () => {
  onEveryEngine((running) => {
    it('resizes a page blob: what is cut off does not come back', async () => {
      const blob = await newBlob(running, 200 * MIB);
      const bytes = randomBytes(MIB);
      for (let i = 0; i < 70; i++) await put(blob, i * 2048 + 2000, 96, 'x');
      await blob.uploadPages(bytes, 0, MIB);
      const { blobSequenceNumber } = await blob.resize(MIB / 2);
      expect(blobSequenceNumber).toBe(0);
      await blob.resize(150 * MIB);
      expect(
        (await blob.downloadToBuffer(0, 2 * MIB)).equals(
          Buffer.concat([bytes.subarray(0, MIB / 2), Buffer.alloc(1.5 * MIB)]),
        ),
      ).toBe(true);
      expect(await rangesOf(blob)).toEqual([[0, 1024]]);
      await put(blob, 2001, 1, 'y');
      expect(await rangesOf(blob)).toEqual([
        [0, 1024],
        [2001, 1],
      ]);
      await expectRefusal(blob.resize(100), 400, 'InvalidHeaderValue');
    });

    it('leaves the headers of the blob alone when it only resizes or counts', async () => {
      const blob = await newBlob(running);
      await blob.setHTTPHeaders({ blobContentType: 'application/x-disk' });
      await blob.resize(8 * PAGE);
      await blob.updateSequenceNumber('increment');
      expect(await blob.getProperties()).toMatchObject({
        contentType: 'application/x-disk',
        contentLength: 8 * PAGE,
        blobSequenceNumber: 1,
      });
    });

    it('changes the sequence number', async () => {
      const blob = await newBlob(running);
      const number = async () => (await blob.getProperties()).blobSequenceNumber;
      expect((await blob.updateSequenceNumber('update', 6)).blobSequenceNumber).toBe(6);
      await blob.updateSequenceNumber('max', 3);
      expect(await number()).toBe(6);
      await blob.updateSequenceNumber('max', 9);
      expect(await number()).toBe(9);
      await blob.updateSequenceNumber('increment');
      expect(await number()).toBe(10);
      const send = (headers: Record<string, string>) =>
        running.request('PUT', `${pathOf(blob)}?comp=properties`, { headers });
      const [action, sent] = ['x-ms-sequence-number-action', 'x-ms-blob-sequence-number'];
      expect((await send({ [action]: 'update', [sent]: '9223372036854775807' })).headers[sent]).toBe(
        '9223372036854775807',
      );
      expectError(await send({ [action]: 'increment' }), 409, 'SequenceNumberIncrementTooLarge');
      expectError(await send({ [action]: 'increment', [sent]: '1' }), 400, 'InvalidHeaderValue');
      expectError(await send({ [action]: 'update' }), 400, 'MissingRequiredHeader');
      expectError(await send({ [sent]: '1' }), 400, 'MissingRequiredHeader');
      expectError(await send({ [action]: 'double', [sent]: '1' }), 400, 'InvalidHeaderValue');
      expectError(await send({ [action]: 'update', [sent]: '-1' }), 400, 'InvalidHeaderValue');
      const container = running.service.getContainerClient(blob.containerName);
      await container.getBlockBlobClient('block').upload('x', 1);
      await expectRefusal(container.getPageBlobClient('block').resize(PAGE), 409, 'InvalidBlobType');
    });
  });
});

/** First page, number of pages, and whether they were written or cleared. */
async function changesIn(running: Running, blob: PageBlobClient, query: string, headers = {}): Promise<string[]> {
  const { status, text } = await running.request('GET', `${pathOf(blob)}?comp=pagelist&${query}`, { headers });
  expect([status, text]).toEqual([200, expect.any(String)]);
  return [...text.matchAll(/<(Page|Clear)Range><Start>(\d+)<\/Start><End>(\d+)</g)].map(
    ([, kind, start, end]) => `${kind} ${Number(start) / PAGE}+${(Number(end) + 1 - Number(start)) / PAGE}`,
  );
}

describe('A snapshot of a page blob', () => {
  onEveryEngine((running) => {
    it('keeps its bytes, ranges, length and sequence number, whatever is written to the blob', async () => {
      const blob = await newBlob(running, 3 * MIB);
      const bytes = randomBytes(MIB);
      await blob.uploadPages(bytes, PAGE, MIB);
      await put(blob, 5000, 2, 'a');
      await blob.updateSequenceNumber('update', 4);
      const { snapshot } = await blob.createSnapshot();
      await put(blob, 0, 100, 'b');
      await blob.clearPages(MIB, MIB);
      await blob.resize(PAGE);
      await blob.updateSequenceNumber('increment');
      const old = blob.withSnapshot(snapshot!);
      const expected = Buffer.alloc(3 * MIB);
      bytes.copy(expected, PAGE);
      expected.fill('a', 5000 * PAGE, 5002 * PAGE);
      expect((await old.downloadToBuffer()).equals(expected)).toBe(true);
      expect(await rangesOf(old)).toEqual([
        [1, 2048],
        [5000, 2],
      ]);
      expect(await old.getProperties()).toMatchObject({ contentLength: 3 * MIB, blobSequenceNumber: 4 });
      expect((await blob.downloadToBuffer()).equals(pages(1, 'b'))).toBe(true);
      await expectRefusal(put(old, 0, 1, 'x'), 400, 'InvalidQueryParameterValue');
      const copy = running.service.getContainerClient(blob.containerName).getPageBlobClient('copy');
      await (await copy.beginCopyFromURL(old.url)).pollUntilDone();
      expect((await copy.downloadToBuffer()).equals(expected)).toBe(true);
      await (await blob.beginCopyFromURL(old.url)).pollUntilDone();
      expect((await blob.downloadToBuffer()).equals(expected)).toBe(true);
      expect((await old.downloadToBuffer()).equals(expected)).toBe(true);
    });

    it('is compared with another one, or with the blob, exactly to the page', async () => {
      const blob = await newBlob(running);
      await put(blob, 0, 3, 'a');
      const { snapshot: first } = await blob.createSnapshot();
      await put(blob, 0, 1, 'b');
      await blob.clearPages(PAGE, PAGE);
      const { snapshot: second } = await blob.createSnapshot();
      await put(blob, 2, 2, 'c');
      const since = (time: string | undefined, more = '') =>
        changesIn(running, blob, `prevsnapshot=${encodeURIComponent(time!)}${more}`);
      expect(await since(first)).toEqual(['Page 0+1', 'Clear 1+1', 'Page 2+2']);
      expect(await since(second)).toEqual(['Page 2+2']);
      expect(await since(first, `&snapshot=${encodeURIComponent(second!)}`)).toEqual(['Page 0+1', 'Clear 1+1']);
      const previous = { 'x-ms-previous-snapshot-url': blob.withSnapshot(first!).url };
      expect(await changesIn(running, blob, '', previous)).toEqual(['Page 0+1', 'Clear 1+1', 'Page 2+2']);
      expect(await since(first, '&maxresults=2')).toEqual(['Page 0+1', 'Clear 1+1']);
      const ask = (query: string, headers = {}) =>
        running.request('GET', `${pathOf(blob)}?comp=pagelist&${query}`, { headers });
      const newer = `prevsnapshot=${encodeURIComponent(second!)}&snapshot=${encodeURIComponent(first!)}`;
      expectError(await ask(newer), 400, 'PreviousSnapshotCannotBeNewer');
      expectError(await ask('prevsnapshot=2020-01-01T00%3A00%3A00.0000000Z'), 409, 'PreviousSnapshotNotFound');
      const elsewhere = { 'x-ms-previous-snapshot-url': blob.withSnapshot(first!).url.replace('disk', 'other') };
      expectError(await ask('', elsewhere), 400, 'InvalidHeaderValue');
      await blob.create(16 * PAGE);
      expectError(await ask(`prevsnapshot=${encodeURIComponent(first!)}`), 409, 'BlobOverwritten');
      expect((await blob.withSnapshot(first!).downloadToBuffer(0, 3 * PAGE)).equals(pages(3, 'a'))).toBe(true);
    });

    it('is one state, while others write, and its deletion leaves the other snapshots alone', async () => {
      const blob = await newBlob(running, MIB);
      let isDone = false;
      const letters = 'abcdefghij';
      const writing = (async () => {
        for (const letter of letters) await put(blob, 0, 2048, letter);
        isDone = true;
      })();
      const snapshots: string[] = [];
      while (!isDone) snapshots.push((await blob.createSnapshot()).snapshot!);
      await writing;
      for (const [i, snapshot] of snapshots.entries()) if (i % 2 === 0) await blob.withSnapshot(snapshot).delete();
      for (const [i, snapshot] of snapshots.entries()) {
        if (i % 2 === 0) continue;
        const bytes = await blob.withSnapshot(snapshot).downloadToBuffer();
        expect(bytes.equals(Buffer.alloc(MIB, bytes[0]))).toBe(true);
      }
      await expectRefusal(
        snapshots.length > 1 ? blob.delete() : Promise.reject({ statusCode: 409, code: 'SnapshotsPresent' }),
        409,
        'SnapshotsPresent',
      );
      await blob.delete({ deleteSnapshots: 'include' });
    });
  });

  onLmdb((running) => {
    it('leaves a store in which `check` finds nothing', async () => {
      const blob = await newBlob(running, 4 * MIB);
      const snapshots: string[] = [];
      for (let i = 0; i < 12; i++) {
        await put(blob, i * 100, 150, String.fromCharCode(97 + i));
        if (i % 3 === 0) await blob.clearPages(i * 50 * PAGE, 300 * PAGE);
        snapshots.push((await blob.createSnapshot()).snapshot!);
        if (i % 4 === 3) await blob.withSnapshot(snapshots[i - 2]!).delete();
      }
      await blob.create(MIB);
      expect((await check(running.where)).findings).toEqual([]);
      expect((await blob.withSnapshot(snapshots[11]!).downloadToBuffer(1100 * PAGE, PAGE)).equals(pages(1, 'l'))).toBe(
        true,
      );
      await blob.delete({ deleteSnapshots: 'include' });
      await expect.poll(async () => (await check(running.where)).findings, { timeout: 20_000 }).toEqual([]);
    });
  });
});

describe('A page blob', () => {
  onEveryEngine((running) => {
    it('is copied with its ranges and its sequence number, and the copy goes its own way', async () => {
      const blob = await newBlob(running, 5 * MIB);
      await put(blob, 0, 20, 'a');
      await put(blob, 8000, 1, 'b');
      await blob.updateSequenceNumber('update', 3);
      const copy = running.service.getContainerClient(blob.containerName).getPageBlobClient('copy');
      await (await copy.beginCopyFromURL(blob.url)).pollUntilDone();
      await put(blob, 1, 1, 'c');
      await put(copy, 2, 1, 'd');
      expect(await copy.getProperties()).toMatchObject({
        blobType: 'PageBlob',
        contentLength: 5 * MIB,
        blobSequenceNumber: 3,
      });
      expect(await rangesOf(copy)).toEqual([
        [0, 20],
        [8000, 1],
      ]);
      expect((await copy.downloadToBuffer(0, 3 * PAGE)).toString()).toBe('a'.repeat(2 * PAGE) + 'd'.repeat(PAGE));
      expect((await blob.downloadToBuffer(0, 3 * PAGE)).toString()).toBe(
        'a'.repeat(PAGE) + 'c'.repeat(PAGE) + 'a'.repeat(PAGE),
      );
    });

    it('takes pages from a URL', async () => {
      const blob = await newBlob(running, MIB);
      const bytes = randomBytes(300 * PAGE);
      await blob.uploadPages(bytes, 0, bytes.length);
      const other = running.service.getContainerClient(blob.containerName).getPageBlobClient('other');
      await other.create(MIB);
      const url = await signed(blob);
      const small = await other.uploadPagesFromURL(url, PAGE, 0, 2 * PAGE);
      expect(small.blobSequenceNumber).toBe(0);
      await other.uploadPagesFromURL(url, 0, 10 * PAGE, 300 * PAGE);
      expect((await other.downloadToBuffer(0, 2 * PAGE)).equals(bytes.subarray(PAGE, 3 * PAGE))).toBe(true);
      expect((await other.downloadToBuffer(10 * PAGE, bytes.length)).equals(bytes)).toBe(true);
      const under = (conditions: PageBlobRequestConditions) =>
        other.uploadPagesFromURL(url, 0, 0, PAGE, { conditions });
      await expectRefusal(under({ ifMatch: '"0x1"' }), 412, 'ConditionNotMet');
      await expectRefusal(under({ ifSequenceNumberEqualTo: 4 }), 412, 'SequenceNumberConditionNotMet');
      const source = (sourceConditions: PageBlobRequestConditions) =>
        other.uploadPagesFromURL(url, 0, 0, PAGE, { sourceConditions });
      await expectRefusal(source({ ifMatch: '"0x1"' }), 412, 'CannotVerifyCopySource');
      await expectRefusal(other.uploadPagesFromURL(url, 0, 1, PAGE), 416, 'InvalidPageRange');
      const wrong = { sourceContentMD5: md5('other') };
      await expectRefusal(other.uploadPagesFromURL(url, 0, 0, PAGE, wrong), 400, 'Md5Mismatch');
    });
  });

  onLmdb((running) => {
    it('leaves a store in which `check` finds nothing', async () => {
      const blob = await newBlob(running, 300 * MIB);
      for (let i = 0; i < 90; i++) await put(blob, i * 2048 + i, 10 + i, 'x');
      await (
        await running.service
          .getContainerClient(blob.containerName)
          .getPageBlobClient('copy')
          .beginCopyFromURL(blob.url)
      ).pollUntilDone();
      await blob.clearPages(0, 200 * MIB);
      await blob.resize(250 * MIB);
      await put(blob, 5, 1, 'y');
      expect((await check(running.where)).findings).toEqual([]);
    });
  });
});

describe('The tier of a page blob', () => {
  onLmdb((running) => {
    it('is set when the blob is created, by Set Blob Tier and by Copy Blob, and shown once it is set', async () => {
      const container = await running.newContainer();
      const blob = container.getPageBlobClient('disk');
      await blob.create(4 * PAGE);
      const { etag, accessTier } = await blob.getProperties();
      expect(accessTier).toBeUndefined();
      await blob.setAccessTier('P10');
      const found = await blob.getProperties();
      expect(found).toMatchObject({ accessTier: 'P10', etag });
      expect(found.accessTierInferred).toBeUndefined();
      expect(await listXml(running, blob.containerName)).toContain('<AccessTier>P10</AccessTier><LeaseStatus>');
      await put(blob, 0, 1, 'x');
      await blob.updateSequenceNumber('increment');
      expect((await blob.getProperties()).accessTier).toBe('P10');
      await blob.create(4 * PAGE, { tier: 'P20' });
      expect((await blob.getProperties()).accessTier).toBe('P20');
      const copy = container.getPageBlobClient('copy');
      const send = (tier: string) =>
        running.request('PUT', pathOf(copy), { headers: { 'x-ms-copy-source': blob.url, 'x-ms-access-tier': tier } });
      expect((await send('P30')).status).toBe(202);
      expect((await copy.getProperties()).accessTier).toBe('P30');
      await (await copy.beginCopyFromURL(blob.url)).pollUntilDone();
      expect((await copy.getProperties()).accessTier).toBeUndefined();
      expectError(await send('Hot'), 400, 'InvalidBlobTier');
    });

    it('is never lowered, and never too small for the length', async () => {
      const blob = await newBlob(running, 33 * 2 ** 30);
      await expectRefusal(blob.setAccessTier('P4'), 409, 'BlobTierInadequateForContentLength');
      await blob.setAccessTier('P6');
      await blob.setAccessTier('P6');
      await expectRefusal(blob.setAccessTier('P4'), 409, 'CannotChangeToLowerTier');
      await expectRefusal(blob.resize(65 * 2 ** 30), 409, 'ContentLengthLargerThanTierLimit');
      await blob.resize(64 * 2 ** 30);
      await blob.setAccessTier('P80');
      await blob.resize(2 * TIB);
      await expectRefusal(blob.create(33 * 2 ** 30, { tier: 'P4' }), 409, 'ContentLengthLargerThanTierLimit');
    });

    it('is another one than that of a block blob, and append blobs have none', async () => {
      const container = await running.newContainer();
      const page = container.getPageBlobClient('page');
      await expectRefusal(page.create(PAGE, { tier: 'Hot' as 'P4' }), 400, 'InvalidBlobTier');
      const headers = { 'x-ms-blob-type': 'PageBlob', 'x-ms-blob-content-length': '512', 'x-ms-access-tier': 'P5' };
      expectError(await running.request('PUT', pathOf(page), { headers }), 400, 'InvalidHeaderValue', {
        ...{ HeaderName: 'x-ms-access-tier', HeaderValue: 'P5' },
      });
      await page.create(PAGE);
      await expectRefusal(page.setAccessTier('Hot'), 409, 'InvalidBlobType');
      const append = container.getAppendBlobClient('append');
      await append.create();
      await expectRefusal(append.setAccessTier('P10'), 400, 'InvalidBlobTier');
      const copyOf = (from: { url: string }, tier: string) =>
        running.request('PUT', `/${container.containerName}/copy`, {
          headers: { 'x-ms-copy-source': from.url, 'x-ms-access-tier': tier },
        });
      expectError(await copyOf(append, 'P10'), 400, 'InvalidBlobTier');
      expectError(await copyOf(append, 'Cool'), 400, 'InvalidBlobTier');
    });
  });
});
