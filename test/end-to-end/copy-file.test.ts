/** Copy File, Abort Copy File and Put Range From URL; and copies of files onto blobs. */
import { randomBytes, randomUUID } from 'node:crypto';
import { BlobSASPermissions } from '@azure/storage-blob';
import {
  FileSASPermissions,
  FileSystemAttributes,
  type ShareFileClient,
  ShareServiceClient,
  StorageSharedKeyCredential,
} from '@azure/storage-file-share';
import { check } from 'holdfast';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { CopyOrigin } from '../support/copy-origin.ts';
import { accountKey, expectError, expectRefusal, onEveryEngine, type Running } from '../support/test-server.ts';

const MIB = 1 << 20;
const OTHER = { name: 'other', keys: [Buffer.from('a key').toString('base64')] };

const origin = await CopyOrigin.start();
afterAll(() => origin.stop());
afterEach(() => origin.resume());

const expiresOn = new Date(Date.now() + 3_600_000);
const signed = (file: ShareFileClient) =>
  file.generateSasUrl({ permissions: FileSASPermissions.parse('r'), expiresOn });

async function ended(file: ShareFileClient) {
  for (;;) {
    const found = await file.getProperties();
    if (found.copyStatus !== 'pending') return found;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const start = { accounts: [{ name: 'devstoreaccount1', keys: [accountKey] }, OTHER], copyFrom: [origin.url] };

onEveryEngine(
  (running: Running) => {
    async function newFile(bytes?: Buffer, length = bytes?.length): Promise<ShareFileClient> {
      const share = await running.newShare();
      const file = share.rootDirectoryClient.getFileClient(`f-${randomUUID()}`);
      if (length === undefined) return file;
      await file.create(length);
      for (let at = 0; bytes && at < bytes.length; at += 4 * MIB) {
        const part = bytes.subarray(at, at + 4 * MIB);
        await file.uploadRange(part, at, part.length);
      }
      return file;
    }
    /** Behind one address for several processes, a port says nothing: a host in Azure's form names the service. */
    function across(url: string, service: 'blob' | 'file'): string {
      if (running.engine !== 'PostgreSQL') return url;
      const { port, pathname, search } = new URL(url);
      return `http://devstoreaccount1.${service}.localhost:${port}${pathname.replace('/devstoreaccount1', '')}${search}`;
    }
    async function newBlob(bytes: Buffer) {
      const blob = (await running.newContainer()).getBlockBlobClient('from');
      await blob.uploadData(bytes, { metadata: { of: 'blob' }, blobHTTPHeaders: { blobContentType: 'text/x' } });
      return blob;
    }

    describe('Copy File', () => {
      it('of a file of the account is complete at once, with bytes, ranges, metadata and headers', async () => {
        const from = await newFile(Buffer.from('Hello'), 5_000_000);
        await from.setMetadata({ a: '1' });
        await from.setHttpHeaders({ fileContentType: 'text/plain' });
        const to = await newFile();
        const { copyId, copyStatus } = await to.startCopyFromURL(from.url);
        expect(copyStatus).toBe('success');
        const found = await to.getProperties();
        expect(found).toMatchObject({ copyId, copyStatus, copyProgress: '5000000/5000000', copySource: from.url });
        expect([found.metadata, found.contentType, found.contentLength]).toEqual([{ a: '1' }, 'text/plain', 5_000_000]);
        expect((await to.getRangeList()).rangeList).toEqual([{ start: 0, end: 511 }]);
        await from.uploadRange('Other', 0, 5);
        expect((await to.downloadToBuffer(0, 5)).toString()).toBe('Hello');
        await to.uploadRange('Mine!', 0, 5);
        expect((await from.downloadToBuffer(0, 5)).toString()).toBe('Other');
        expect((await to.getProperties()).copyId).toBeUndefined();
      });

      it('of an empty file, and onto itself', async () => {
        const from = await newFile(undefined, 0);
        const to = await newFile(Buffer.from('Hello'));
        await to.startCopyFromURL(from.url);
        expect((await to.getProperties()).contentLength).toBe(0);
        const own = await newFile(Buffer.from('Hello'));
        await own.startCopyFromURL(own.url);
        expect((await own.downloadToBuffer()).toString()).toBe('Hello');
      });

      it('takes attributes, times and permission of the source, of the request, or new ones', async () => {
        const from = await newFile();
        const attributes = FileSystemAttributes.parse('Hidden|Archive');
        const then = new Date('2019-10-05T14:48:00Z');
        await from.create(5, { fileAttributes: attributes, creationTime: then, lastWriteTime: then });
        const to = await newFile();
        await to.startCopyFromURL(from.url, {
          copyFileSmbInfo: {
            fileAttributes: 'source',
            fileCreationTime: 'source',
            fileLastWriteTime: 'source',
            filePermissionCopyMode: 'source',
          },
        });
        const [source, copied] = [await from.getProperties(), await to.getProperties()];
        expect(copied).toMatchObject({
          fileAttributes: source.fileAttributes,
          fileCreatedOn: then,
          fileLastWriteOn: then,
          filePermissionKey: source.filePermissionKey,
        });
        const plain = await newFile();
        await plain.startCopyFromURL(from.url);
        const found = await plain.getProperties();
        expect(found.fileAttributes).toBe('Archive');
        expect(found.fileCreatedOn!.getTime()).toBeGreaterThan(then.getTime());
      });

      it('refuses a read-only file unless it is to be ignored, and a source that is not there', async () => {
        const from = await newFile(Buffer.from('Hello'));
        const to = await newFile();
        await to.create(3, { fileAttributes: FileSystemAttributes.parse('ReadOnly') });
        await expectRefusal(to.startCopyFromURL(from.url), 409, 'ReadOnlyAttribute');
        await to.startCopyFromURL(from.url, { copyFileSmbInfo: { ignoreReadOnly: true } });
        expect((await to.downloadToBuffer()).toString()).toBe('Hello');
        await expectRefusal(to.startCopyFromURL(`${from.url}x`), 404, 'CannotVerifyCopySource');
        await expectRefusal((await newFile()).startCopyFromURL(`${from.url}x`), 404, 'CannotVerifyCopySource');
      });

      it.each([0, 10, 3_000, 20 * MIB])('of a blob of %d bytes goes on in the background', async (length) => {
        const bytes = randomBytes(length);
        const blob = await newBlob(bytes);
        const to = await newFile();
        const { copyStatus } = await to.startCopyFromURL(across(blob.url, 'blob'));
        expect(copyStatus).toBe('pending');
        const found = await ended(to);
        expect(found).toMatchObject({ copyStatus: 'success', contentLength: length, metadata: { of: 'blob' } });
        expect(found.contentType).toBe('text/x');
        expect(Buffer.compare(length ? await to.downloadToBuffer() : Buffer.alloc(0), bytes)).toBe(0);
        await to.delete();
      });

      // The processes that share a store have the accounts of the store.
      if (running.engine !== 'PostgreSQL')
        it('of a file of another account needs a signature', async () => {
          const url = running.server.fileUrl.replace('devstoreaccount1', OTHER.name);
          const service = new ShareServiceClient(url, new StorageSharedKeyCredential(OTHER.name, OTHER.keys[0]!));
          const share = service.getShareClient(`s-${randomUUID()}`);
          await share.create();
          const from = share.rootDirectoryClient.getFileClient('from');
          const bytes = randomBytes(18 * MIB);
          await from.uploadData(bytes);
          const to = await newFile();
          await expectRefusal(to.startCopyFromURL(from.url), 401, 'CannotVerifyCopySource');
          await to.startCopyFromURL(
            await from.generateSasUrl({ permissions: FileSASPermissions.parse('r'), expiresOn }),
          );
          expect((await ended(to)).copyStatus).toBe('success');
          expect(Buffer.compare(await to.downloadToBuffer(), bytes)).toBe(0);
        });

      it('of another server shows its progress, refuses changes meanwhile, and is aborted', async () => {
        const bytes = randomBytes(20 * MIB);
        const url = origin.put(`/${randomUUID()}`, { bytes, stallsAt: 18 * MIB });
        const to = await newFile(Buffer.from('before'));
        const { copyId } = await to.startCopyFromURL(url, { metadata: { a: '1' } });
        for (;;) {
          const { copyProgress } = await to.getProperties();
          if (copyProgress === `${16 * MIB}/${20 * MIB}`) break;
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
        for (const change of [
          () => to.uploadRange('Hello', 0, 5),
          () => to.create(5),
          () => to.delete(),
          () => to.setMetadata({}),
          () => to.startCopyFromURL(url),
        ])
          await expectRefusal(change(), 409, 'PendingCopyOperation');
        const renamed = await running.request('PUT', `/${to.shareName}/moved?comp=rename`, {
          of: 'file',
          headers: { 'x-ms-file-rename-source': to.url },
        });
        expectError(renamed, 409, 'PendingCopyOperation');
        const { etag } = await to.getProperties();
        const abort = `/${to.shareName}/${to.path}?comp=copy&copyid=`;
        const headers = { 'x-ms-copy-action': 'abort' };
        const other = await running.request('PUT', abort + randomUUID(), { of: 'file', headers });
        expectError(other, 409, 'CopyIdMismatch');
        await to.abortCopyFromURL(copyId!);
        const found = await to.getProperties();
        expect(found).toMatchObject({ copyStatus: 'aborted', contentLength: 0, metadata: { a: '1' } });
        expect(found.etag).not.toBe(etag);
        await expectRefusal(to.abortCopyFromURL(copyId!), 409, 'NoPendingCopyOperation');
        await to.create(5);
        await to.uploadRange('after', 0, 5);
        expect((await to.downloadToBuffer()).toString()).toBe('after');
      });

      it('counts against the quota from its start to its end', async () => {
        const share = await running.newShare();
        await share.setProperties({ quotaInGB: 1 });
        const big = share.rootDirectoryClient.getFileClient('big');
        await big.create(2 ** 30 - 10);
        const blob = await newBlob(Buffer.from('eleven more'));
        const to = share.rootDirectoryClient.getFileClient('to');
        await expectRefusal(to.startCopyFromURL(across(blob.url, 'blob')), 400, 'ShareSizeLimitReached');
        await big.resize(2 ** 30 - 11);
        await to.startCopyFromURL(across(blob.url, 'blob'));
        await ended(to);
        await expectRefusal(big.resize(2 ** 30 - 10), 400, 'ShareSizeLimitReached');
        await to.delete();
        await big.resize(2 ** 30);
      });
    });

    describe('Put Range From URL', () => {
      it('takes bytes of a file, and of a blob', async () => {
        const from = await newFile(randomBytes(10_000));
        const bytes = await from.downloadToBuffer();
        const to = await newFile(undefined, 3_000);
        const written = await to.uploadRangeFromURL(await signed(from), 700, 1_000, 2_000);
        expect(Buffer.from(written.xMsContentCrc64!)).toHaveLength(8);
        expect((await to.downloadToBuffer()).subarray(1_000)).toEqual(bytes.subarray(700, 2_700));
        const blob = await newBlob(Buffer.from('Hello World'));
        const url = await blob.generateSasUrl({ permissions: BlobSASPermissions.parse('r'), expiresOn });
        await to.uploadRangeFromURL(across(url, 'blob'), 6, 0, 5);
        expect((await to.downloadToBuffer(0, 6)).toString()).toBe('World\0');
      });

      it('refuses a source without its credential, other lengths, too many bytes and a failed condition', async () => {
        const from = await newFile(Buffer.from('Hello'));
        const to = await newFile(undefined, 10 * MIB);
        await expectRefusal(to.uploadRangeFromURL(from.url, 0, 0, 5), 401, 'CannotVerifyCopySource');
        const url = await signed(from);
        await expectRefusal(to.uploadRangeFromURL(url, 0, 0, 6), 409, 'CannotVerifyCopySource');
        const range = `bytes=0-${5 * MIB - 1}`;
        const tooLong = {
          'x-ms-copy-source': url,
          'x-ms-write': 'update',
          'x-ms-range': range,
          'x-ms-source-range': range,
        };
        const path = `/${to.shareName}/${to.path}?comp=range`;
        expectError(await running.request('PUT', path, { of: 'file', headers: tooLong }), 413, 'RequestBodyTooLarge');
        await expectRefusal(to.uploadRangeFromURL(url, 0, 10 * MIB - 2, 5), 416, 'InvalidRange');
        const { xMsContentCrc64 } = await to.uploadRangeFromURL(url, 0, 0, 5);
        const same = { sourceConditions: { sourceIfNoneMatchCrc64: xMsContentCrc64! } };
        await expectRefusal(to.uploadRangeFromURL(url, 0, 0, 5, same), 412, 'ConditionNotMet');
        await to.uploadRangeFromURL(url, 0, 0, 5, { sourceConditions: { sourceIfMatchCrc64: xMsContentCrc64! } });
      });

      it('judges the length of the source before the range of the file', async () => {
        const source = await signed(await newFile(Buffer.alloc(1_024)));
        const short = await newFile(Buffer.alloc(1_024));
        await expectRefusal(short.uploadRangeFromURL(source, 0, 0, 1_025), 409, 'CannotVerifyCopySource');
        await expectRefusal(short.uploadRangeFromURL(source, 0, 1_000, 1_024), 416, 'InvalidRange');
      });
    });

    describe('A file', () => {
      it('is a source of Copy Blob, Put Blob From URL and Put Block From URL', async () => {
        const bytes = randomBytes(18 * MIB);
        const from = await newFile(bytes);
        const container = await running.newContainer();
        const copied = container.getBlockBlobClient('copied');
        const poller = await copied.beginCopyFromURL(across(from.url, 'file'), { intervalInMs: 20 });
        expect((await poller.pollUntilDone()).copyStatus).toBe('success');
        expect(Buffer.compare(await copied.downloadToBuffer(), bytes)).toBe(0);
        const put = container.getBlockBlobClient('put');
        await put.syncUploadFromURL(across(await signed(from), 'file'));
        expect(Buffer.compare(await put.downloadToBuffer(), bytes)).toBe(0);
        const staged = container.getBlockBlobClient('staged');
        await staged.stageBlockFromURL(
          Buffer.from('1').toString('base64'),
          across(await signed(from), 'file'),
          7,
          1_000,
        );
        await staged.commitBlockList([Buffer.from('1').toString('base64')]);
        expect(Buffer.compare(await staged.downloadToBuffer(), bytes.subarray(7, 1_007))).toBe(0);
      });

      it('is a source of blobs when it is empty, as an empty append blob is, and when it was never written', async () => {
        const container = await running.newContainer();
        const append = container.getAppendBlobClient('append');
        await append.create();
        const permissions = BlobSASPermissions.parse('r');
        const sources = [
          across(await signed(await newFile(undefined, 0)), 'file'),
          await append.generateSasUrl({ permissions, expiresOn }),
        ];
        for (const [number, source] of sources.entries()) {
          const put = container.getBlockBlobClient(`empty-${number}`);
          await put.syncUploadFromURL(source);
          expect((await put.getProperties()).contentLength).toBe(0);
        }
        const zeros = container.getBlockBlobClient('zeros');
        await zeros.syncUploadFromURL(across(await signed(await newFile(undefined, 1_000)), 'file'));
        expect((await zeros.downloadToBuffer()).equals(Buffer.alloc(1_000))).toBe(true);
      });
    });

    it('leaves a store in which the check finds nothing', async () => {
      if (running.engine !== 'LMDB') return;
      await running.server.stop();
      const { findings } = await check(running.where);
      expect(findings).toEqual([]);
    });
  },
  { start },
);
