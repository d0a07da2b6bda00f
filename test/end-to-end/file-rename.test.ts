/** Rename Directory and Rename File. */
import { FileSystemAttributes, ShareLeaseClient } from '@azure/storage-file-share';
import { describe, expect, it } from 'vitest';
import { expectError, expectRefusal, filesAt, onEveryEngine } from '../support/test-server.ts';

const [LEASE, OTHER_LEASE] = ['a81bc81b-dead-4e5d-abff-90865d1e13b1', 'a81bc81b-dead-4e5d-abff-90865d1e13b2'];

onEveryEngine((running) => {
  const newTree = async () => {
    const { name } = await running.newShare();
    // The SDK's rename leaves out the account in the path: only with the account in the host it finds the share.
    const files = filesAt('http://devstoreaccount1.file.localhost', () => new URL(running.files.url));
    const share = files.getShareClient(name);
    const root = share.rootDirectoryClient;
    for (const path of ['a', 'a/b', 'c']) await share.getDirectoryClient(path).create();
    await share.getDirectoryClient('a/b').getFileClient('f').create(3);
    await share.getDirectoryClient('a/b').getFileClient('f').uploadRange(Buffer.from('abc'), 0, 3);
    const file = (path: string) => root.getFileClient(path);
    return { share, root, file, directory: (path: string) => share.getDirectoryClient(path) };
  };

  describe('Rename Directory', () => {
    it('moves all that is below, under the same ids', async () => {
      const { directory, file } = await newTree();
      const before = await directory('a').getProperties();
      const inner = await file('a/b/f').getProperties();
      await directory('a').rename('c/New');
      await expectRefusal(directory('a').getProperties(), 404, 'ResourceNotFound');
      const after = await directory('c/new').getProperties();
      expect([after.fileId, after.fileCreatedOn]).toEqual([before.fileId, before.fileCreatedOn]);
      expect(after.fileParentId).toBe((await directory('c').getProperties()).fileId);
      expect(after.etag).not.toBe(before.etag);
      expect(await file('c/new/b/f').getProperties()).toMatchObject({ fileId: inner.fileId, etag: inner.etag });
      expect((await file('c/new/b/f').downloadToBuffer()).toString()).toBe('abc');
    });

    it('changes the case of a name', async () => {
      const { share, directory } = await newTree();
      await directory('a').rename('A');
      const names = [];
      for await (const { name } of share.rootDirectoryClient.listFilesAndDirectories()) names.push(name);
      expect(names).toEqual(['A', 'c']);
    });

    it('makes no cycle', async () => {
      const { directory, file } = await newTree();
      await expectRefusal(directory('a').rename('a/b/x'), 400, 'InvalidInput');
      await expectRefusal(directory('a').rename('a/x'), 400, 'InvalidInput');
      expect((await file('a/b/f').getProperties()).contentLength).toBe(3);
    });

    it('replaces a file if it may, and never a directory', async () => {
      const { directory, file } = await newTree();
      await file('x').create(1);
      await expectRefusal(directory('a').rename('x'), 409, 'ResourceAlreadyExists');
      await expectRefusal(directory('a').rename('c', { replaceIfExists: true }), 409, 'ResourceAlreadyExists');
      await directory('a').rename('x', { replaceIfExists: true });
      expect((await directory('x/b').getProperties()).fileId).toBeDefined();
      await expectRefusal(file('x').getProperties(), 404, 'ResourceNotFound');
    });

    it('finds neither a file nor a missing directory', async () => {
      const { directory } = await newTree();
      await expectRefusal(directory('a/b/f').rename('y'), 404, 'ResourceNotFound');
      await expectRefusal(directory('no').rename('y'), 404, 'ResourceNotFound');
      await expectRefusal(directory('no/no').rename('y'), 404, 'ParentNotFound');
      await expectRefusal(directory('a').rename('no/y'), 404, 'ParentNotFound');
    });

    it('takes a source in the same share only', async () => {
      const { share } = await newTree();
      const other = await running.newShare();
      await other.getDirectoryClient('a').create();
      for (const source of [other.getDirectoryClient('a').url, 'nonsense', `${share.url}/`]) {
        const headers = { 'x-ms-file-rename-source': source };
        const path = `/${share.name}/new?restype=directory&comp=rename`;
        expectError(await running.request('PUT', path, { of: 'file', headers }), 400, 'InvalidHeaderValue');
      }
    });
  });

  describe('Rename File', () => {
    it('keeps the bytes, the id and the times, but the change time; metadata and type are set if they are named', async () => {
      const { file } = await newTree();
      const before = await file('a/b/f').getProperties();
      await file('a/b/f').rename('c/g', { metadata: { a: '1' }, contentType: 'text/html' });
      const after = await file('c/g').getProperties();
      expect(after).toMatchObject({ fileId: before.fileId, metadata: { a: '1' }, contentType: 'text/html' });
      expect([after.fileLastWriteOn, after.fileCreatedOn]).toEqual([before.fileLastWriteOn, before.fileCreatedOn]);
      expect((await file('c/g').downloadToBuffer()).toString()).toBe('abc');
    });

    it('replaces a file if it may, a read-only one only if it is told to', async () => {
      const { file } = await newTree();
      const readOnly = Object.assign(new FileSystemAttributes(), { readonly: true });
      await file('x').create(9, { fileAttributes: readOnly });
      await expectRefusal(file('a/b/f').rename('x'), 409, 'ResourceAlreadyExists');
      await expectRefusal(file('a/b/f').rename('x', { replaceIfExists: true }), 409, 'ReadOnlyAttribute');
      await file('a/b/f').rename('x', { replaceIfExists: true, ignoreReadOnly: true });
      expect((await file('x').downloadToBuffer()).toString()).toBe('abc');
    });

    it('needs the leases of both files', async () => {
      const { file } = await newTree();
      await file('x').create(9);
      await new ShareLeaseClient(file('a/b/f'), LEASE).acquireLease();
      await new ShareLeaseClient(file('x'), OTHER_LEASE).acquireLease();
      const rename = (source?: string, destination?: string) =>
        file('a/b/f').rename('x', {
          replaceIfExists: true,
          ...(source && { sourceLeaseAccessConditions: { leaseId: source } }),
          ...(destination && { destinationLeaseAccessConditions: { leaseId: destination } }),
        });
      await expectRefusal(rename(), 412, 'LeaseIdMissing');
      await expectRefusal(rename(LEASE), 412, 'LeaseIdMissing');
      await expectRefusal(rename(OTHER_LEASE, OTHER_LEASE), 412, 'LeaseIdMismatchWithFileOperation');
      await rename(LEASE, OTHER_LEASE);
      expect(await file('x').getProperties()).toMatchObject({ contentLength: 3, leaseState: 'leased' });
    });
  });
});
