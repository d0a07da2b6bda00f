/** Properties, metadata and deletion of files. */
import { describe, expect, it } from 'vitest';
import { expectRefusal, onEveryEngine } from '../support/test-server.ts';

onEveryEngine((running) => {
  const newFile = async (length = 0) => {
    const share = await running.newShare();
    const file = share.rootDirectoryClient.getFileClient('File.txt');
    return { share, file, made: await file.create(length, { fileHttpHeaders: { fileContentType: 'text/plain' } }) };
  };

  describe('Get File Properties', () => {
    it('shows length, type, times, ids and lease', async () => {
      const { share, file, made } = await newFile(1_234);
      const found = await share.rootDirectoryClient.getFileClient('FILE.TXT').getProperties();
      expect(found).toMatchObject({
        etag: made.etag,
        contentLength: 1_234,
        contentType: 'text/plain',
        fileType: 'File',
        fileAttributes: 'Archive',
        fileId: made.fileId,
        fileParentId: '0',
        leaseState: 'available',
      });
      await expectRefusal(share.rootDirectoryClient.getFileClient('no').getProperties(), 404, 'ResourceNotFound');
      await expectRefusal(share.getDirectoryClient('no').getFileClient('f').getProperties(), 404, 'ParentNotFound');
      await expectRefusal(file.getProperties({ leaseAccessConditions: { leaseId: LEASE } }), 412, NOT_PRESENT);
    });
  });

  describe('Set File Properties', () => {
    it('sets the HTTP headers, all of them or none', async () => {
      const { file } = await newFile(5);
      await file.setHttpHeaders({ fileContentLanguage: 'de' });
      expect(await file.getProperties()).toMatchObject({
        contentLanguage: 'de',
        contentType: 'application/octet-stream',
        contentLength: 5,
      });
    });

    it('sets times and attributes, and keeps what is not named', async () => {
      const { file, made } = await newFile();
      const creationTime = new Date('2019-05-06T07:08:09Z');
      await file.setProperties({ creationTime });
      const found = await file.getProperties();
      expect(found).toMatchObject({ fileCreatedOn: creationTime, fileAttributes: 'Archive' });
      expect(found.fileLastWriteOn).toEqual(made.fileLastWriteOn);
    });

    it('changes the length', async () => {
      const { file } = await newFile(5);
      await file.uploadRange(Buffer.from('hello'), 0, 5);
      await file.resize(2);
      await file.resize(4);
      expect((await file.downloadToBuffer()).toString()).toBe('he\0\0');
    });
  });

  describe('Get File Metadata', () => {
    it('has the metadata, and the ETag', async () => {
      const { share, file } = await newFile();
      const { etag } = await file.setMetadata({ one: 'a' });
      const answer = await running.request('HEAD', `/${share.name}/file.TXT?comp=metadata`, { of: 'file' });
      expect([answer.status, answer.headers['x-ms-meta-one'], answer.headers.etag]).toEqual([200, 'a', etag]);
      expect(answer.headers['x-ms-type']).toBeUndefined();
    });
  });

  describe('Set File Metadata', () => {
    it('replaces all of it, changes the change time, and not the last write', async () => {
      const { file, made } = await newFile();
      await file.setMetadata({ one: 'a' });
      const { etag } = await file.setMetadata({ two: 'b' });
      const found = await file.getProperties();
      expect([found.metadata, found.etag]).toEqual([{ two: 'b' }, etag]);
      expect(found.fileLastWriteOn).toEqual(made.fileLastWriteOn);
    });
  });

  describe('Delete File', () => {
    it('deletes it, under its lease', async () => {
      const { share, file } = await newFile();
      await file.getShareLeaseClient(LEASE).acquireLease();
      await expectRefusal(file.delete(), 412, 'LeaseIdMissing');
      await expectRefusal(file.setMetadata({ a: '1' }), 412, 'LeaseIdMissing');
      await file.delete({ leaseAccessConditions: { leaseId: LEASE } });
      await expectRefusal(file.delete(), 404, 'ResourceNotFound');
      await share.getDirectoryClient('d').create();
      await expectRefusal(share.rootDirectoryClient.getFileClient('d').delete(), 404, 'ResourceNotFound');
    });
  });
});

const LEASE = 'a81bc81b-dead-4e5d-abff-90865d1e13b1';
const NOT_PRESENT = 'LeaseNotPresentWithFileOperation';
