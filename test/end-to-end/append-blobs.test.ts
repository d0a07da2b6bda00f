import { createHash, randomBytes, randomUUID } from 'node:crypto';
import type { AppendBlobClient, AppendBlobRequestConditions, ContainerClient } from '@azure/storage-blob';
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

const MIB = 1 << 20;
const md5 = (body: string | Uint8Array) => createHash('md5').update(body).digest();
const append = (blob: AppendBlobClient, text: string) => blob.appendBlock(text, Buffer.byteLength(text));
const textOf = async (blob: AppendBlobClient) => (await blob.downloadToBuffer()).toString();
const pathOf = (blob: AppendBlobClient) => `/${blob.containerName}/${blob.name}`;

async function newBlob(running: Running, text?: string): Promise<AppendBlobClient> {
  const blob = (await running.newContainer()).getAppendBlobClient('log');
  await blob.create();
  if (text !== undefined) await append(blob, text);
  return blob;
}

async function startSas(blob: AppendBlobClient, permissions: string): Promise<string> {
  const { BlobSASPermissions } = await import('@azure/storage-blob');
  const expiresOn = new Date(Date.now() + 3_600_000);
  return blob.generateSasUrl({ permissions: BlobSASPermissions.parse(permissions), expiresOn });
}

describe('Put Blob (append blob)', () => {
  onEveryEngine((running) => {
    it('creates an empty blob with its headers, metadata and tags', async () => {
      const container = await running.newContainer();
      const blob = container.getAppendBlobClient('log');
      const blobHTTPHeaders = { blobContentType: 'text/plain', blobCacheControl: 'no-store', blobContentMD5: md5('x') };
      const made = await blob.create({ blobHTTPHeaders, metadata: { a: '1' }, tags: { t: 'v' } });
      expect(made).toMatchObject({ isServerEncrypted: true });
      const found = await blob.getProperties();
      expect(found).toMatchObject({
        blobType: 'AppendBlob',
        blobCommittedBlockCount: 0,
        contentLength: 0,
        contentType: 'text/plain',
        cacheControl: 'no-store',
        metadata: { a: '1' },
        tagCount: 1,
        etag: made.etag,
      });
      expect(found.isSealed).toBeUndefined();
      expect(found.accessTier).toBeUndefined();
      expect(Buffer.from(found.contentMD5!)).toEqual(md5('x'));
      expect(await textOf(blob)).toBe('');
      const xml = await listXml(running, container.containerName);
      expect(elementOf(xml, 'BlobType')).toBe('AppendBlob');
      expect(xml).not.toContain('AccessTier');
    });

    it('empties an append blob that exists', async () => {
      const blob = await newBlob(running, 'old');
      await blob.seal();
      await blob.create();
      const found = await blob.getProperties();
      expect(found).toMatchObject({ contentLength: 0, blobCommittedBlockCount: 0 });
      expect(found.isSealed).toBeUndefined();
      await append(blob, 'new');
      expect(await textOf(blob)).toBe('new');
    });

    it('honours conditions and the lease of the blob that it replaces', async () => {
      const blob = await newBlob(running, 'old');
      await expectRefusal(blob.create({ conditions: { ifNoneMatch: '*' } }), 409, 'BlobAlreadyExists');
      await expectRefusal(blob.create({ conditions: { ifMatch: '"0x1"' } }), 412, 'ConditionNotMet');
      const { leaseId } = await blob.getBlobLeaseClient().acquireLease(-1);
      await expectRefusal(blob.create(), 412, 'LeaseIdMissing');
      await blob.create({ conditions: { leaseId: leaseId! } });
      expect((await blob.getProperties()).leaseState).toBe('leased');
    });

    it('has no content and no tier', async () => {
      const { containerName } = await running.newContainer();
      const headers = { 'x-ms-blob-type': 'AppendBlob' };
      const withBody = await running.request('PUT', `/${containerName}/log`, { headers, body: 'abc' });
      expectError(withBody, 400, 'InvalidHeaderValue');
      const tiered = await running.request('PUT', `/${containerName}/log`, {
        headers: { ...headers, 'x-ms-access-tier': 'Hot' },
      });
      expectError(tiered, 400, 'InvalidHeaderValue');
    });
  });
});

describe('Append Block', () => {
  onEveryEngine((running) => {
    it('adds bytes at the end, and says where and as which block', async () => {
      const blob = await newBlob(running);
      const first = await append(blob, 'one ');
      expect(first).toMatchObject({ blobAppendOffset: '0', blobCommittedBlockCount: 1 });
      const second = await append(blob, 'two');
      expect(second).toMatchObject({ blobAppendOffset: '4', blobCommittedBlockCount: 2 });
      expect(second.etag).not.toBe(first.etag);
      expect(await blob.getProperties()).toMatchObject({
        contentLength: 7,
        blobCommittedBlockCount: 2,
        etag: second.etag,
      });
      expect(await textOf(blob)).toBe('one two');
    });

    it('adds bytes of any length, which are read back by any range', async () => {
      const blob = await newBlob(running);
      const pieces = [10, 5_000, 3 * MIB + 7, 1, 70_000, 4096, 4097, MIB - 3].map((length) => randomBytes(length));
      for (const piece of pieces) await blob.appendBlock(piece, piece.length);
      const all = Buffer.concat(pieces);
      expect((await blob.downloadToBuffer()).equals(all)).toBe(true);
      for (const [from, count] of [
        [0, 1],
        [9, 3],
        [5_009, 2],
        [MIB - 1, 2],
        [3 * MIB, MIB + 50_000],
        [all.length - 1, 1],
      ] as const) {
        const found = await blob.downloadToBuffer(from, count);
        expect(found.equals(all.subarray(from, from + count))).toBe(true);
      }
      await expectRefusal(blob.download(all.length), 416, 'InvalidRange');
    });

    it('keeps hundreds of small appends in order', async () => {
      const blob = await newBlob(running);
      const lines = Array.from({ length: 300 }, (_, i) => `line ${i} ${'x'.repeat(i % 500)}\n`);
      for (const line of lines) await append(blob, line);
      expect(await textOf(blob)).toBe(lines.join(''));
      expect(await blob.getProperties()).toMatchObject({ blobCommittedBlockCount: 300 });
    });

    it('compares the position and the size', async () => {
      const blob = await newBlob(running, 'four');
      const at = (appendPosition: number) => blob.appendBlock('x', 1, { conditions: { appendPosition } });
      await expectRefusal(at(3), 412, 'AppendPositionConditionNotMet');
      await expectRefusal(at(5), 412, 'AppendPositionConditionNotMet');
      await at(4);
      const upTo = (maxSize: number) => blob.appendBlock('yz', 2, { conditions: { maxSize } });
      await expectRefusal(upTo(6), 412, 'MaxBlobSizeConditionNotMet');
      await upTo(7);
      await expectRefusal(upTo(7), 412, 'MaxBlobSizeConditionNotMet');
      expect(await textOf(blob)).toBe('fourxyz');
      for (const name of ['x-ms-blob-condition-appendpos', 'x-ms-blob-condition-maxsize']) {
        for (const value of ['-1', 'x', '1.5']) {
          const answer = await running.request('PUT', `${pathOf(blob)}?comp=appendblock`, {
            headers: { [name]: value },
            body: 'x',
          });
          expectError(answer, 400, 'InvalidHeaderValue', { HeaderName: name });
        }
      }
    });

    it('honours conditions and leases', async () => {
      const blob = await newBlob(running, 'a');
      const { etag, lastModified } = await blob.getProperties();
      const earlier = new Date(lastModified!.getTime() - 3_600_000);
      const with_ = (conditions: AppendBlobRequestConditions) => blob.appendBlock('b', 1, { conditions });
      await expectRefusal(with_({ ifMatch: '"0x1"' }), 412, 'ConditionNotMet');
      await expectRefusal(with_({ ifNoneMatch: etag! }), 412, 'ConditionNotMet');
      await expectRefusal(with_({ ifNoneMatch: '*' }), 412, 'ConditionNotMet');
      await expectRefusal(with_({ ifUnmodifiedSince: earlier }), 412, 'ConditionNotMet');
      await expectRefusal(with_({ ifModifiedSince: lastModified! }), 412, 'ConditionNotMet');
      await expectRefusal(with_({ tagConditions: "a = 'b'" }), 412, 'ConditionNotMet');
      await with_({ ifMatch: etag! });
      const lease = blob.getBlobLeaseClient();
      const { leaseId } = await lease.acquireLease(-1);
      await expectRefusal(with_({}), 412, 'LeaseIdMissing');
      await expectRefusal(with_({ leaseId: randomUUID() }), 412, 'LeaseIdMismatchWithBlobOperation');
      await with_({ leaseId: leaseId! });
      await lease.releaseLease();
      await expectRefusal(with_({ leaseId: leaseId! }), 412, 'LeaseNotPresentWithBlobOperation');
      expect(await textOf(blob)).toBe('abb');
    });

    it('verifies hashes, of short and long bodies', async () => {
      const blob = await newBlob(running);
      for (const length of [5, 5_000, 50_000]) {
        const body = randomBytes(length);
        const wrong = { transactionalContentMD5: md5('other') };
        await expectRefusal(blob.appendBlock(body, length, wrong), 400, 'Md5Mismatch');
        const right = await blob.appendBlock(body, length, { transactionalContentMD5: md5(body) });
        expect(Buffer.from(right.contentMD5!)).toEqual(md5(body));
        expect(right.xMsContentCrc64).toBeUndefined();
        const { xMsContentCrc64 } = await blob.appendBlock(body, length);
        expect(xMsContentCrc64).toHaveLength(8);
      }
      expect((await blob.getProperties()).blobCommittedBlockCount).toBe(6);
    });

    it('needs a body, and a blob that exists and is an append blob', async () => {
      const blob = await newBlob(running);
      const path = `${pathOf(blob)}?comp=appendblock`;
      expectError(await running.request('PUT', path, { body: '' }), 400, 'InvalidHeaderValue');
      const container = running.service.getContainerClient(blob.containerName);
      await expectRefusal(append(container.getAppendBlobClient('none'), 'x'), 404, 'BlobNotFound');
      await container.getBlockBlobClient('block').upload('x', 1);
      await expectRefusal(append(container.getAppendBlobClient('block'), 'x'), 409, 'InvalidBlobType');
      const missing = running.service.getContainerClient('missing').getAppendBlobClient('log');
      await expectRefusal(append(missing, 'x'), 404, 'ContainerNotFound');
    });

    it('takes 100 MiB since 2022-11-02, and 4 MiB before', async () => {
      const blob = await newBlob(running);
      const path = `${pathOf(blob)}?comp=appendblock`;
      for (const [version, length] of [
        ['2021-12-02', 4 * MIB + 1],
        ['2022-11-02', 100 * MIB + 1],
      ] as const) {
        const answer = await answerTo(running, 'PUT', path, { 'x-ms-version': version, 'Content-Length': length });
        expect(answer).toContain('HTTP/1.1 413');
        expect(answer).toContain('RequestBodyTooLarge');
      }
    });

    it('is permitted by a signature that permits to add', async () => {
      const blob = await newBlob(running);
      const send = async (permissions: string) =>
        (await fetch(`${await startSas(blob, permissions)}&comp=appendblock`, { method: 'PUT', body: 'x' })).status;
      expect(await send('a')).toBe(201);
      expect(await send('w')).toBe(201);
      expect(await send('c')).toBe(403);
      expect(await send('r')).toBe(403);
    });

    it('of many clients at once loses nothing, and gives every append an offset of its own', async () => {
      const blob = await newBlob(running);
      const clients = 16;
      const rounds = 12;
      const offsets = new Map<number, string>();
      await Promise.all(
        Array.from({ length: clients }, async (_, client) => {
          for (let round = 0; round < rounds; round++) {
            const text = `${client}:${round};`.padEnd(client % 4 === 0 ? 5_000 : 20 + client * 30, '.');
            const { blobAppendOffset } = await append(blob, text);
            offsets.set(Number(blobAppendOffset), text);
          }
        }),
      );
      expect(offsets.size).toBe(clients * rounds);
      const expected = [...offsets].sort(([a], [b]) => a - b).map(([, text]) => text);
      expect(await textOf(blob)).toBe(expected.join(''));
      expect((await blob.getProperties()).blobCommittedBlockCount).toBe(clients * rounds);
    });

    it('with a position lets one of several clients through', async () => {
      const blob = await newBlob(running);
      for (let round = 0; round < 5; round++) {
        const results = await Promise.allSettled(
          Array.from({ length: 8 }, () => blob.appendBlock('x', 1, { conditions: { appendPosition: round } })),
        );
        expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      }
      expect(await textOf(blob)).toBe('xxxxx');
    });
  });
});

describe('Append Block From URL', () => {
  onEveryEngine((running) => {
    it('adds bytes of another blob, under the same conditions as Append Block', async () => {
      const blob = await newBlob(running, 'a');
      const container = running.service.getContainerClient(blob.containerName);
      const source = container.getAppendBlobClient('source');
      await source.create();
      const bytes = randomBytes(2 * MIB + 5);
      await source.appendBlock(bytes, bytes.length);
      const url = await startSas(source, 'r');
      const first = await blob.appendBlockFromURL(url, 10, 100);
      expect(first).toMatchObject({ blobAppendOffset: '1', blobCommittedBlockCount: 2 });
      await blob.appendBlockFromURL(url, 0, bytes.length);
      const expected = Buffer.concat([Buffer.from('a'), bytes.subarray(10, 110), bytes]);
      expect((await blob.downloadToBuffer()).equals(expected)).toBe(true);
      const under = (conditions: AppendBlobRequestConditions) => blob.appendBlockFromURL(url, 0, 5, { conditions });
      await expectRefusal(under({ appendPosition: 0 }), 412, 'AppendPositionConditionNotMet');
      await expectRefusal(under({ maxSize: expected.length + 4 }), 412, 'MaxBlobSizeConditionNotMet');
      await expectRefusal(under({ ifMatch: '"0x1"' }), 412, 'ConditionNotMet');
      const sourceConditions = { ifMatch: '"0x1"' };
      await expectRefusal(blob.appendBlockFromURL(url, 0, 5, { sourceConditions }), 412, 'CannotVerifyCopySource');
      const sourceContentMD5 = md5('other');
      await expectRefusal(blob.appendBlockFromURL(url, 0, 5, { sourceContentMD5 }), 400, 'Md5Mismatch');
      await blob.seal();
      await expectRefusal(under({}), 409, 'BlobIsSealed');
    });
  });
});

describe('Append Blob Seal', () => {
  onEveryEngine((running) => {
    it('ends all appends, and can be repeated', async () => {
      const blob = await newBlob(running, 'abc');
      const { etag } = await blob.getProperties();
      const sealed = await blob.seal();
      expect(sealed.etag).not.toBe(etag);
      await expectRefusal(append(blob, 'x'), 409, 'BlobIsSealed');
      expect((await blob.seal()).etag).toBe(sealed.etag);
      expect(await blob.getProperties()).toMatchObject({ isSealed: true, contentLength: 3, etag: sealed.etag });
      const xml = await listXml(running, blob.containerName);
      expect(elementOf(xml, 'Sealed')).toBe('true');
      await blob.setMetadata({ a: '1' });
      expect(await blob.getProperties()).toMatchObject({ isSealed: true, metadata: { a: '1' } });
    });

    it('honours the position, conditions, leases and the type of the blob', async () => {
      const blob = await newBlob(running, 'abc');
      await expectRefusal(blob.seal({ conditions: { appendPosition: 2 } }), 412, 'AppendPositionConditionNotMet');
      await expectRefusal(blob.seal({ conditions: { ifMatch: '"0x1"' } }), 412, 'ConditionNotMet');
      const { leaseId } = await blob.getBlobLeaseClient().acquireLease(-1);
      await expectRefusal(blob.seal(), 412, 'LeaseIdMissing');
      await blob.seal({ conditions: { leaseId: leaseId!, appendPosition: 3 } });
      const container = running.service.getContainerClient(blob.containerName);
      await container.getBlockBlobClient('block').upload('x', 1);
      await expectRefusal(container.getAppendBlobClient('block').seal(), 409, 'InvalidBlobType');
      await expectRefusal(container.getAppendBlobClient('none').seal(), 404, 'BlobNotFound');
    });
  });
});

describe('An append blob', () => {
  onEveryEngine((running) => {
    const blobs = async () => {
      const container = await running.newContainer();
      return { container, blob: await filled(container, 'log', 'abc') };
    };

    it('is copied as it is, sealed or not, and the copy goes its own way', async () => {
      const { container, blob } = await blobs();
      const copy = container.getAppendBlobClient('copy');
      await (await copy.beginCopyFromURL(blob.url)).pollUntilDone();
      await append(blob, 'd');
      await append(copy, 'e');
      expect(await textOf(blob)).toBe('abcd');
      expect(await textOf(copy)).toBe('abce');
      expect(await copy.getProperties()).toMatchObject({ blobType: 'AppendBlob', blobCommittedBlockCount: 2 });
      await blob.seal();
      await (await copy.beginCopyFromURL(blob.url)).pollUntilDone();
      expect(await copy.getProperties()).toMatchObject({ isSealed: true, copyStatus: 'success', copyProgress: '4/4' });
      await expectRefusal(append(copy, 'x'), 409, 'BlobIsSealed');
      const open = await filled(container, 'open', 'xyz');
      await (await copy.beginCopyFromURL(open.url, { sealBlob: true })).pollUntilDone();
      expect((await copy.getProperties()).isSealed).toBe(true);
      expect((await open.getProperties()).isSealed).toBeUndefined();
      await (await blob.beginCopyFromURL(blob.url)).pollUntilDone();
      expect(await textOf(blob)).toBe('abcd');
    });

    it('can be the source of From URL operations', async () => {
      const { container, blob } = await blobs();
      const url = await startSas(blob, 'r');
      const block = container.getBlockBlobClient('block');
      await block.syncUploadFromURL(url);
      expect((await block.downloadToBuffer()).toString()).toBe('abc');
      expect((await block.getProperties()).blobType).toBe('BlockBlob');
    });

    it('keeps its type: other kinds of writes are refused', async () => {
      const { container, blob } = await blobs();
      const asBlock = container.getBlockBlobClient('log');
      await expectRefusal(asBlock.upload('x', 1), 409, 'InvalidBlobType');
      await expectRefusal(asBlock.stageBlock('AAAA', 'x', 1), 409, 'InvalidBlobType');
      await expectRefusal(asBlock.commitBlockList([]), 409, 'InvalidBlobType');
      await expectRefusal(asBlock.getBlockList('all'), 409, 'InvalidBlobType');
      await expectRefusal(asBlock.setAccessTier('Cool'), 409, 'InvalidBlobType');
      const block = container.getBlockBlobClient('block');
      await block.upload('x', 1);
      await expectRefusal(container.getAppendBlobClient('block').create(), 409, 'InvalidBlobType');
      await expectRefusal(block.beginCopyFromURL(blob.url), 409, 'InvalidBlobType');
      await container.getBlockBlobClient('staged').stageBlock('AAAA', 'x', 1);
      await expectRefusal(container.getAppendBlobClient('staged').create(), 409, 'InvalidBlobType');
      await blob.delete();
      await asBlock.upload('x', 1);
    });

    it('has snapshots, which no append changes', async () => {
      const { blob } = await blobs();
      const { snapshot } = await blob.createSnapshot();
      await append(blob, 'd'.repeat(6_000));
      await blob.seal();
      const old = blob.withSnapshot(snapshot!) as AppendBlobClient;
      expect(await textOf(old)).toBe('abc');
      const found = await old.getProperties();
      expect(found).toMatchObject({ contentLength: 3, blobCommittedBlockCount: 1 });
      expect(found.isSealed).toBeUndefined();
      await expectRefusal(append(old, 'x'), 400, 'InvalidQueryParameterValue');
      await blob.create({});
      expect(await textOf(old)).toBe('abc');
      await expectRefusal(blob.delete(), 409, 'SnapshotsPresent');
      await old.delete();
      await blob.delete();
    });

    it('keeps its content when only its properties change', async () => {
      const { blob } = await blobs();
      await blob.setHTTPHeaders({ blobContentType: 'text/x-log' });
      await blob.setTags({ a: 'b' });
      await append(blob, 'd');
      const found = await blob.getProperties();
      expect(found).toMatchObject({ contentType: 'text/x-log', tagCount: 1, blobCommittedBlockCount: 2 });
      expect(await textOf(blob)).toBe('abcd');
    });

    it('is one state for a reader, while others append and replace it', async () => {
      const container = await running.newContainer();
      const blob = await filled(container, 'log', 'a'.repeat(20 * MIB));
      let isDone = false;
      const writer = (async () => {
        for (let i = 0; i < 12; i++) {
          await blob.appendBlock('b'.repeat(3_000), 3_000);
          if (i % 4 === 3) await blob.create();
          if (i % 4 === 3) await blob.appendBlock('a'.repeat(18 * MIB), 18 * MIB);
        }
        isDone = true;
      })();
      let reads = 0;
      while (!isDone && reads < 50) {
        const { contentLength, readableStreamBody } = await blob.download();
        const pieces: Buffer[] = [];
        for await (const piece of readableStreamBody!) pieces.push(Buffer.from(piece as Buffer));
        const bytes = Buffer.concat(pieces);
        expect(bytes.length).toBe(contentLength);
        const as = bytes.indexOf('b') < 0 ? bytes.length : bytes.indexOf('b');
        expect(bytes.subarray(0, as).equals(Buffer.alloc(as, 'a'))).toBe(true);
        expect(bytes.subarray(as).equals(Buffer.alloc(bytes.length - as, 'b'))).toBe(true);
        reads++;
      }
      await writer;
      expect(reads).toBeGreaterThan(0);
    }, 120_000);
  });

  onLmdb((running) => {
    it('leaves a store in which `check` finds nothing', async () => {
      const container = await running.newContainer();
      const blob = await filled(container, 'log', 'x'.repeat(5 * MIB));
      for (let i = 0; i < 80; i++) await append(blob, `line ${i}\n`);
      await (await container.getAppendBlobClient('copy').beginCopyFromURL(blob.url)).pollUntilDone();
      await blob.create();
      expect((await check(running.where)).findings).toEqual([]);
    });
  });
});

async function filled(container: ContainerClient, name: string, text: string): Promise<AppendBlobClient> {
  const blob = container.getAppendBlobClient(name);
  await blob.create();
  await append(blob, text);
  return blob;
}
