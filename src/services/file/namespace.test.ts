import { describe, expect, it } from 'vitest';
import { openShare, SHARE } from '../../../test/support/file-storage.ts';
import type { Storage } from '../common/storage.ts';
import { createDirectory, deleteDirectory, getDirectory, setDirectoryMetadata } from './directories.ts';
import { createFile, deleteFile, getFile, setFileMetadata } from './files.ts';
import { ROOT } from './rows.ts';

const share = SHARE;
const makeDirectory = (storage: Storage, path: string) =>
  createDirectory(storage, { share, path, metadata: [], smb: {} });
const makeFile = (storage: Storage, path: string, length = 0) =>
  createFile(storage, { share, path, leaseId: undefined, length, content: {}, metadata: [], smb: {} });
const file = (path: string) => ({ share, path, leaseId: undefined });

describe('the namespace of a share', () => {
  it('finds nodes by names in any case, and keeps the names as given', async () => {
    const { storage } = await openShare();
    const made = await makeDirectory(storage, 'Docs');
    const readme = await makeFile(storage, 'DOCS/ReadMe.txt', 7);
    expect(await getDirectory(storage, { share, path: 'docs' })).toMatchObject({
      id: made.id,
      name: 'Docs',
      parent: ROOT,
    });
    expect((await getFile(storage, file('docs/readme.TXT'))).file).toEqual(readme);
    expect(readme).toMatchObject({ name: 'ReadMe.txt', parent: made.id, length: 7 });
  });

  it('has a root, which can be neither created nor deleted', async () => {
    const { storage } = await openShare();
    expect(await getDirectory(storage, { share, path: '' })).toMatchObject({ id: ROOT, parent: ROOT });
    await expect(makeDirectory(storage, '')).rejects.toMatchObject({ code: 'ResourceAlreadyExists' });
    await expect(deleteDirectory(storage, { share, path: '' })).rejects.toMatchObject({ status: 400 });
    await expect(makeFile(storage, '')).rejects.toMatchObject({ status: 400 });
  });

  it('says whether the directory or the last name is missing', async () => {
    const { storage } = await openShare();
    await makeFile(storage, 'f');
    await expect(getFile(storage, file('a'))).rejects.toMatchObject({ code: 'ResourceNotFound' });
    await expect(getFile(storage, file('a/b'))).rejects.toMatchObject({ code: 'ParentNotFound' });
    await expect(makeFile(storage, 'a/b')).rejects.toMatchObject({ code: 'ParentNotFound' });
    await expect(makeDirectory(storage, 'f/b')).rejects.toMatchObject({ code: 'ParentNotFound' });
    await expect(getDirectory(storage, { share, path: 'f' })).rejects.toMatchObject({ code: 'ResourceNotFound' });
    await expect(getDirectory(storage, { share: 'other', path: 'f' })).rejects.toMatchObject({ code: 'ShareNotFound' });
  });

  it('has one node of a name, whatever its kind', async () => {
    const { storage } = await openShare();
    await makeDirectory(storage, 'd');
    await makeFile(storage, 'f');
    await expect(makeDirectory(storage, 'D')).rejects.toMatchObject({ code: 'ResourceAlreadyExists' });
    await expect(makeDirectory(storage, 'F')).rejects.toMatchObject({ code: 'ResourceTypeMismatch' });
    await expect(makeFile(storage, 'd')).rejects.toMatchObject({ code: 'ResourceTypeMismatch' });
  });

  it('replaces a file under its id, its case and its lease', async () => {
    const { storage } = await openShare();
    const first = await makeFile(storage, 'F', 5);
    await setFileMetadata(storage, { ...file('f'), metadata: [['a', '1']] });
    const second = await makeFile(storage, 'f', 9);
    expect(second).toMatchObject({ id: first.id, length: 9, metadata: {} });
    expect(second.etag).not.toBe(first.etag);
  });

  it('deletes directories that are empty', async () => {
    const { storage, kinds } = await openShare();
    const before = await kinds();
    await makeDirectory(storage, 'd');
    await makeFile(storage, 'd/f');
    await expect(deleteDirectory(storage, { share, path: 'd' })).rejects.toMatchObject({ code: 'DirectoryNotEmpty' });
    await deleteFile(storage, file('d/f'));
    await deleteDirectory(storage, { share, path: 'd' });
    await expect(getDirectory(storage, { share, path: 'd' })).rejects.toMatchObject({ code: 'ResourceNotFound' });
    expect(await kinds()).toEqual({ ...before, z: 1 });
  });

  it('gives a node another ETag when it is written', async () => {
    const { storage } = await openShare();
    const made = await makeDirectory(storage, 'd');
    const changed = await setDirectoryMetadata(storage, { share, path: 'D', metadata: [['a', '1']] });
    expect(changed.etag).not.toBe(made.etag);
    expect(await getDirectory(storage, { share, path: 'd' })).toEqual({ ...changed, metadata: { a: '1' } });
  });
});
