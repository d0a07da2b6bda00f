import { describe, expect, it } from 'vitest';
import { openShare, SHARE } from '../../../test/support/file-storage.ts';
import { removeEpoch } from '../../content/membership/epochs.ts';
import { ALL } from '../../rules/file/share-mode.ts';
import { createDirectory } from './directories.ts';
import { createFile, getFile } from './files.ts';
import { forceCloseHandles, listHandles } from './handle-lists.ts';
import { requireHandle, setDeletePending } from './handles.ts';
import { openNode } from './open-node.ts';

const ALL_RIGHTS = 0x1_0003;
const NOTHING_MORE = { marker: undefined, resultsMax: undefined, snapshot: undefined };

/** Handles on files in two directories, on one of the directories, and on the root. */
async function openWorld() {
  const world = await openShare();
  const { storage } = world;
  const open = async (path: string, deletesOnClose = false) => {
    const { handle } = await openNode(storage, {
      ...{ share: SHARE, path, disposition: 'open', kind: 'any', rights: ALL_RIGHTS, shareMode: ALL, smb: {} },
      ...{ deletesOnClose, client: { session: '77', ip: '192.0.2.1:50123', name: 'desk' } },
    });
    return handle;
  };
  for (const path of ['a', 'a/b', 'c']) await createDirectory(storage, { share: SHARE, path, metadata: [], smb: {} });
  for (const path of ['a/b/one', 'c/two']) {
    const input = { share: SHARE, path, leaseId: undefined, metadata: [], smb: {} };
    await createFile(storage, { ...input, length: 0, content: {} });
  }
  const opened = ['', 'a', 'a/b/one', 'a/b/one', 'c/two'];
  const handles = [];
  for (const path of opened) handles.push(await open(path));
  const list = async (path: string, isRecursive = false, resultsMax?: number, marker?: string) => {
    const page = await listHandles(storage, { share: SHARE, path, ...NOTHING_MORE, isRecursive, resultsMax, marker });
    return { ...page, paths: page.handles.map((handle) => handle.path).sort() };
  };
  const close = (path: string, handleId: string, isRecursive = false) =>
    forceCloseHandles(storage, { share: SHARE, path, ...NOTHING_MORE, isRecursive, handleId });
  return { ...world, open, handles, list, close };
}

describe('The handles on a path', () => {
  it('are those on the file or directory itself, or also on all below it', async () => {
    const { list, handles } = await openWorld();
    expect((await list('')).paths).toEqual(['']);
    expect((await list('a')).paths).toEqual(['a']);
    expect((await list('a/b')).paths).toEqual([]);
    expect((await list('A/b/ONE')).paths).toEqual(['a/b/one', 'a/b/one']);
    expect((await list('a', true)).paths).toEqual(['a', 'a/b/one', 'a/b/one']);
    expect((await list('', true)).paths).toEqual(['', 'a', 'a/b/one', 'a/b/one', 'c/two']);
    const [two] = (await list('c/two')).handles;
    expect(two).toMatchObject({ id: handles[4]!.id, session: '77', ip: '192.0.2.1:50123', name: 'desk', access: ALL });
    await expect(list('none')).rejects.toMatchObject({ code: 'ResourceNotFound' });
  });

  it('come in pages, each once', async () => {
    const { list, handles } = await openWorld();
    for (const size of [1, 2, 4, 5]) {
      const found: bigint[] = [];
      let marker: string | undefined;
      do {
        const page = await list('', true, size, marker);
        expect(page.handles.length).toBeLessThanOrEqual(size);
        found.push(...page.handles.map(({ id }) => id));
        marker = page.nextMarker;
      } while (marker);
      expect(found.toSorted()).toEqual(handles.map(({ id }) => id).toSorted());
    }
    await expect(list('', true, 1, 'none')).rejects.toMatchObject({ code: 'InvalidQueryParameterValue' });
  });

  it('are gone with the process that held them', async () => {
    const { list, act, epoch } = await openWorld();
    await act((tx) => removeEpoch(tx, epoch));
    expect((await list('', true)).paths).toEqual([]);
  });
});

describe('Force Close Handles', () => {
  it('closes one by its id, all, or all below: their holders find them closed', async () => {
    const { list, close, handles, storage, partition } = await openWorld();
    expect(await close('a/b/one', handles[2]!.id.toString())).toEqual({ closed: 1, failed: 0, nextMarker: '' });
    expect(await close('a/b/one', handles[2]!.id.toString())).toMatchObject({ closed: 0 });
    expect(await close('c', handles[4]!.id.toString())).toMatchObject({ closed: 0 });
    const use = partition.read((at) => requireHandle(at, storage, handles[2]!));
    await expect(use).rejects.toMatchObject({ code: 'HandleClosed' });
    expect(await close('', '*')).toMatchObject({ closed: 1 });
    expect(await close('a', '*', true)).toMatchObject({ closed: 2 });
    expect((await list('', true)).paths).toEqual(['c/two']);
  });

  it('takes the id of a handle, and below a directory alone', async () => {
    const { close } = await openWorld();
    for (const id of ['', 'x', '-1', '1'.repeat(21)])
      await expect(close('a', id)).rejects.toMatchObject({ code: 'InvalidHeaderValue' });
    await expect(close('c/two', '*', true)).rejects.toMatchObject({ code: 'InvalidHeaderValue' });
  });

  it('forgets that a handle was to delete its file, and completes a deletion that was asked for', async () => {
    const { close, open, handles, storage } = await openWorld();
    const file = { share: SHARE, path: 'c/two', leaseId: undefined };
    await open('c/two', true);
    expect(await close('c/two', '*')).toMatchObject({ closed: 2 });
    await getFile(storage, file);
    const handle = await open('c/two');
    await setDeletePending(storage, handle, true);
    await expect(getFile(storage, file)).rejects.toMatchObject({ code: 'SMBDeletePending' });
    expect(await close('c/two', '*')).toMatchObject({ closed: 1 });
    await expect(getFile(storage, file)).rejects.toMatchObject({ code: 'ResourceNotFound' });
    expect(handles).toHaveLength(5);
  });
});
