/** Create, Get, Set and Delete Directory, its metadata, and the times that follow its entries. */
import { describe, expect, it } from 'vitest';
import { expectError, expectRefusal, onEveryEngine } from '../support/test-server.ts';

onEveryEngine((running) => {
  describe('Create Directory', () => {
    it('makes a directory with metadata, an id and the id of its parent', async () => {
      const share = await running.newShare();
      const parent = share.getDirectoryClient('Outer');
      const made = await parent.create({ metadata: { one: 'a' } });
      const inner = await parent.getDirectoryClient('inner').create();
      expect(made).toMatchObject({ fileParentId: '0', fileAttributes: 'Directory' });
      expect(inner.fileParentId).toBe(made.fileId);
      const found = await share.getDirectoryClient('OUTER').getProperties();
      expect(found).toMatchObject({ etag: made.etag, fileId: made.fileId, metadata: { one: 'a' } });
    });

    it('says what is in its way', async () => {
      const share = await running.newShare();
      await share.getDirectoryClient('d').create();
      await share.rootDirectoryClient.getFileClient('f').create(0);
      await expectRefusal(share.getDirectoryClient('D').create(), 409, 'ResourceAlreadyExists');
      await expectRefusal(share.getDirectoryClient('F').create(), 409, 'ResourceTypeMismatch');
      await expectRefusal(share.getDirectoryClient('x/y').create(), 404, 'ParentNotFound');
      await expectRefusal(share.getDirectoryClient('f/y').create(), 404, 'ParentNotFound');
      await expectRefusal(running.files.getShareClient('none').getDirectoryClient('d').create(), 404, 'ShareNotFound');
    });

    it.each([
      ['a%3Ab', 'InvalidResourceName'],
      ['a%7Cb', 'InvalidResourceName'],
      ['a%2A', 'InvalidResourceName'],
      ['a%01', 'InvalidResourceName'],
      ['con', 'InvalidResourceName'],
      ['a//b', 'InvalidResourceName'],
      ['n'.repeat(256), 'InvalidFileOrDirectoryPathName'],
      [`${'n'.repeat(250)}/`.repeat(9), 'InvalidFileOrDirectoryPathName'],
      ['d/'.repeat(251), 'InvalidFileOrDirectoryPathName'],
    ])('refuses the path %s', async (path, code) => {
      const share = await running.newShare();
      const answer = await running.request('PUT', `/${share.name}/${path}?restype=directory`, { of: 'file' });
      expectError(answer, 400, code);
    });

    it('cuts off dots at the end of names, unless it is told to keep them', async () => {
      const share = await running.newShare();
      await share.getDirectoryClient('a...').create();
      await expectRefusal(share.getDirectoryClient('a').create(), 409, 'ResourceAlreadyExists');
      const headers = { 'x-ms-allow-trailing-dot': 'true' };
      const path = `/${share.name}/a.?restype=directory`;
      expect((await running.request('PUT', path, { of: 'file', headers })).status).toBe(201);
      const names = [];
      for await (const { name } of share.rootDirectoryClient.listFilesAndDirectories()) names.push(name);
      expect(names).toEqual(['a', 'a.']);
    });
  });

  describe('Get Directory Properties', () => {
    it('has the root directory of a share', async () => {
      const share = await running.newShare();
      expect(await share.rootDirectoryClient.getProperties()).toMatchObject({ fileId: '0', fileParentId: '0' });
    });

    it('finds no file, and says whether the parent is missing', async () => {
      const share = await running.newShare();
      await share.rootDirectoryClient.getFileClient('f').create(0);
      await expectRefusal(share.getDirectoryClient('f').getProperties(), 404, 'ResourceNotFound');
      await expectRefusal(share.getDirectoryClient('x').getProperties(), 404, 'ResourceNotFound');
      await expectRefusal(share.getDirectoryClient('x/y').getProperties(), 404, 'ParentNotFound');
    });

    it('refuses conditions', async () => {
      const share = await running.newShare();
      const headers = { 'If-Match': '*' };
      const answer = await running.request('GET', `/${share.name}?restype=directory`, { of: 'file', headers });
      expectError(answer, 400, 'ConditionHeadersNotSupported');
    });
  });

  describe('the times of a directory', () => {
    it('follow its entries, until they are set, and the ETag stays', async () => {
      const share = await running.newShare();
      const directory = share.getDirectoryClient('d');
      const made = await directory.create();
      await directory.getFileClient('f').create(0);
      const followed = await directory.getProperties();
      expect(followed.fileLastWriteOn!.getTime()).toBeGreaterThanOrEqual(made.fileLastWriteOn!.getTime());
      expect(followed.etag).toBe(made.etag);
      const lastWriteTime = new Date('2020-01-02T03:04:05Z');
      await directory.setProperties({ lastWriteTime });
      expect((await directory.getProperties()).fileLastWriteOn).toEqual(lastWriteTime);
      await directory.setMetadata({ a: '1' });
      expect((await directory.getProperties()).fileLastWriteOn).toEqual(lastWriteTime);
      await directory.getFileClient('f').delete();
      const { fileLastWriteOn, fileCreatedOn } = await directory.getProperties();
      expect(fileLastWriteOn!.getTime()).toBeGreaterThanOrEqual(followed.fileLastWriteOn!.getTime());
      expect(fileCreatedOn).toEqual(made.fileCreatedOn);
    });
  });

  describe('Set Directory Properties', () => {
    it('sets what is named, and keeps everything else', async () => {
      const share = await running.newShare();
      const directory = share.getDirectoryClient('d');
      const made = await directory.create({ metadata: { one: 'a' } });
      const creationTime = new Date('2019-05-06T07:08:09Z');
      const set = await directory.setProperties({ creationTime });
      const found = await directory.getProperties();
      expect(found).toMatchObject({ etag: set.etag, fileCreatedOn: creationTime, metadata: { one: 'a' } });
      expect([found.fileLastWriteOn, found.filePermissionKey]).toEqual([made.fileLastWriteOn, made.filePermissionKey]);
      expect(set.etag).not.toBe(made.etag);
      await share.rootDirectoryClient.setProperties({ creationTime });
      expect((await share.rootDirectoryClient.getProperties()).fileCreatedOn).toEqual(creationTime);
    });
  });

  describe('Get Directory Metadata', () => {
    it('has the metadata, and the ETag', async () => {
      const share = await running.newShare();
      const { etag } = await share.getDirectoryClient('d').create({ metadata: { three: 'c' } });
      const answer = await running.request('GET', `/${share.name}/d?restype=directory&comp=metadata`, { of: 'file' });
      expect([answer.status, answer.headers['x-ms-meta-three'], answer.headers.etag]).toEqual([200, 'c', etag]);
    });
  });

  describe('Set Directory Metadata', () => {
    it('replaces all of it, and gives another ETag', async () => {
      const share = await running.newShare();
      const directory = share.getDirectoryClient('d');
      const made = await directory.create({ metadata: { one: 'a', two: 'b' } });
      const { etag } = await directory.setMetadata({ three: 'c' });
      const found = await directory.getProperties();
      expect([found.metadata, found.etag]).toEqual([{ three: 'c' }, etag]);
      expect(etag).not.toBe(made.etag);
    });
  });

  describe('Delete Directory', () => {
    it('deletes an empty one, and no other', async () => {
      const share = await running.newShare();
      const directory = share.getDirectoryClient('d');
      await directory.create();
      await directory.getFileClient('f').create(0);
      await expectRefusal(directory.delete(), 409, 'DirectoryNotEmpty');
      await directory.getFileClient('f').delete();
      await directory.delete();
      await expectRefusal(directory.delete(), 404, 'ResourceNotFound');
      await expectRefusal(share.rootDirectoryClient.delete(), 400, 'InvalidUri');
    });
  });
});
