import { describe, expect, it } from 'vitest';
import { openShare, SHARE } from '../../../test/support/file-storage.ts';
import { ALL_RIGHTS, RIGHTS } from '../../rules/file/access-mask.ts';
import { ALL } from '../../rules/file/share-mode.ts';
import { createDirectory } from './directories.ts';
import { createFile, getFile } from './files.ts';
import { listThroughHandle, parsePattern } from './handle-listing.ts';
import { listHandles } from './handle-lists.ts';
import { readHandlePath, viewHandle } from './handle-properties.ts';
import { renameThroughHandle } from './handle-rename.ts';
import { type OpenInput, openNode } from './open-node.ts';
import type { Handle } from './open-rows.ts';
import { snapshotShare } from './share-snapshots.ts';
import { shortNameOf } from './short-names.ts';
import { openInSnapshot } from './snapshot-handles.ts';

async function openWorld() {
  const { storage, share } = await openShare();
  const open = async (path: string, changes: Partial<OpenInput> = {}) =>
    (
      await openNode(storage, {
        ...{ share: SHARE, path, disposition: 'openIf', kind: 'any', rights: ALL_RIGHTS, shareMode: ALL },
        ...{ deletesOnClose: false, smb: {}, client: { session: '1', ip: '192.0.2.1:445' } },
        ...changes,
      })
    ).handle;
  const shortName = async (handle: Handle) => shortNameOf(share.id, (await viewHandle(storage, handle)).node);
  const search = async (directory: string, pattern: string) => {
    const found: string[] = [];
    const input = { pattern: parsePattern(pattern), after: undefined, dotsSent: 2 };
    await listThroughHandle(storage, await open(directory), input, ({ name }) => found.push(name) > 0);
    return found;
  };
  await createDirectory(storage, { share: SHARE, path: 'a directory', metadata: [], smb: {} });
  return { storage, open, shortName, search };
}

describe('The short name of a file', () => {
  it('leads to it, in any case, also through the short names of directories, and after it was renamed', async () => {
    const { storage, open, shortName } = await openWorld();
    const file = await open('a directory/a file.html');
    const directory = (await shortName(await open('a directory', { rights: RIGHTS.readAttributes })))!;
    const name = (await shortName(file))!;
    const found = await open(`${directory.toLowerCase()}/${name.toLowerCase()}`, { disposition: 'open' });
    expect(await readHandlePath(storage, found)).toEqual(['a directory', 'a file.html']);
    await renameThroughHandle(storage, file, {
      ...{ path: `${directory}/another file`, replaces: false, ignoresReadOnly: false },
    });
    expect(await readHandlePath(storage, await open(`a directory/${name}`))).toEqual(['a directory', 'another file']);
    await expect(open(name, { disposition: 'open' })).rejects.toMatchObject({ code: 'ResourceNotFound' });
  });

  it('is taken: what is created under it is the file, and List Handles has the other name', async () => {
    const { storage, open, shortName } = await openWorld();
    const file = await open('a file.html');
    const name = (await shortName(file))!;
    const exclusive = open(name, { disposition: 'create' });
    await expect(exclusive).rejects.toMatchObject({ code: 'ResourceAlreadyExists' });
    expect((await open(name)).node).toBe(file.node);
    const target = { share: SHARE, path: '', snapshot: undefined, isRecursive: true, max: 10, marker: undefined };
    const { handles } = await listHandles(storage, target as never);
    expect(handles.map(({ path }) => path)).toEqual(['a file.html', 'a file.html']);
  });

  it('gives way to a file that has it as its name, and is none of REST', async () => {
    const { storage, open, shortName } = await openWorld();
    const file = await open('a file.html');
    const name = (await shortName(file))!;
    const target = { share: SHARE, path: name, leaseId: undefined };
    await expect(getFile(storage, { ...target, snapshot: undefined })).rejects.toMatchObject({
      code: 'ResourceNotFound',
    });
    await createFile(storage, { ...target, length: 0, content: {}, metadata: [], smb: {} });
    expect(await readHandlePath(storage, await open(name))).toEqual([name]);
    expect((await open(name)).node).not.toBe(file.node);
  });

  it('is found by a search for it alone', async () => {
    const { open, shortName, search } = await openWorld();
    const name = (await shortName(await open('a directory/a file.html')))!;
    expect(await search('a directory', name)).toEqual(['a file.html']);
    expect(await search('', name)).toEqual([]);
    expect(await search('a directory', '000000~1.000')).toEqual([]);
  });

  it('leads to it in a snapshot', async () => {
    const { storage, open, shortName } = await openWorld();
    const name = (await shortName(await open('a directory/a file.html')))!;
    const { snapshot: second } = await snapshotShare(storage, { share: SHARE, metadata: [] });
    const { node } = await openInSnapshot(storage, { share: SHARE, path: `a directory/${name}`, second });
    expect(node.name).toBe('a file.html');
  });
});
