import { describe, expect, it } from 'vitest';
import { openShare, SHARE } from '../../../test/support/file-storage.ts';
import { addEpoch, removeEpoch } from '../../content/membership/epochs.ts';
import { Owner } from '../../content/membership/owner.ts';
import { orphanedOwners } from '../../content/membership/owner-rows.ts';
import { HIDDEN, READ_ONLY } from '../../rules/file/attributes.ts';
import { ALL, DELETE, READ, WRITE } from '../../rules/file/share-mode.ts';
import { createDirectory, deleteDirectory } from './directories.ts';
import { leaseFile } from './file-leases.ts';
import { createFile, deleteFile, getFile } from './files.ts';
import { closeHandle, requireHandle, setDeletePending } from './handles.ts';
import { listDirectory } from './listing.ts';
import { type OpenInput, openNode } from './open-node.ts';
import { decodeOpens, handlesIn, idFromHandleKey, nodeFromOpensKey, opensIn } from './open-rows.ts';
import { renameNode } from './rename.ts';
import { readUsage } from './usage.ts';

const RIGHTS = [0x80, 0x1, 0x2, 0x3, 0x1_0000, 0x1_0001, 0x1_0002, 0x1_0003];
const AT = { share: SHARE, leaseId: undefined };
const NEW = { metadata: [], smb: {} };

async function openWorld() {
  const world = await openShare();
  const { storage } = world;
  const open = (path: string, changes: Partial<OpenInput> & { access?: number } = {}) => {
    const { access = READ, ...rest } = changes;
    return openNode(storage, {
      ...{ share: SHARE, path, disposition: 'open', kind: 'any', rights: RIGHTS[access]!, shareMode: ALL },
      ...{ deletesOnClose: false, smb: {}, client: { session: '1', ip: '192.0.2.1:445' } },
      ...rest,
    });
  };
  const names = async (path = '') => {
    const found: string[] = [];
    const input = {
      share: SHARE,
      path,
      prefix: undefined,
      marker: undefined,
      resultsMax: undefined,
      isExtended: false,
    };
    const add = (entries: readonly { name: string }[]) => found.push(...entries.map(({ name }) => name));
    await listDirectory(storage, input, { begin() {}, add, end() {} });
    return found;
  };
  return {
    ...world,
    open,
    names,
    create: (path: string, length = 0, attributes?: number) =>
      createFile(storage, {
        ...AT,
        ...NEW,
        path,
        length,
        content: {},
        smb: attributes === undefined ? {} : { attributes },
      }),
    makeDirectory: (path: string) => createDirectory(storage, { share: SHARE, path, ...NEW }),
    rename: (kind: 'file' | 'directory', from: string, to: string) =>
      renameNode(storage, kind, {
        ...{ share: SHARE, path: to, source: { path: from }, replaces: true, ignoresReadOnly: false, ...NEW },
        ...{ sourceLeaseId: undefined, destinationLeaseId: undefined },
      }),
    opens: () => world.partition.read((at) => at.scan(opensIn(world.share), { limit: 10 })),
    usage: () => world.partition.read((at) => readUsage(at, world.share)),
  };
}

const code = (run: Promise<unknown>): Promise<string> =>
  run.then(
    () => 'done',
    (error) => error.code ?? Promise.reject(error),
  );

describe('An open', () => {
  it('does what its disposition says of a name that is taken, and of one that is free', async () => {
    const { open, create } = await openWorld();
    await create('taken');
    const seen: Record<string, string[]> = {};
    for (const disposition of ['supersede', 'open', 'create', 'openIf', 'overwrite', 'overwriteIf'] as const) {
      const outcomes = [];
      for (const path of ['taken', `free-${disposition}`]) {
        const opened = open(path, { disposition });
        outcomes.push(
          await opened.then(
            ({ action }) => action,
            (error) => error.code,
          ),
        );
      }
      seen[disposition] = outcomes;
    }
    expect(seen).toEqual({
      supersede: ['superseded', 'created'],
      open: ['opened', 'ResourceNotFound'],
      create: ['ResourceAlreadyExists', 'created'],
      openIf: ['opened', 'created'],
      overwrite: ['overwritten', 'ResourceNotFound'],
      overwriteIf: ['overwritten', 'created'],
    });
  });

  it('empties a file that it overwrites: its bytes do not count any more, and its id stays', async () => {
    const { open, create, usage } = await openWorld();
    const { id } = await create('a', 1000);
    expect(await usage()).toBe(1000n);
    const { node } = await open('a', { disposition: 'overwrite', access: WRITE });
    expect(node).toMatchObject({ id, length: 0 });
    expect(await usage()).toBe(0n);
  });

  it('finds what it wants or nothing: a directory is no file', async () => {
    const { open, create, makeDirectory } = await openWorld();
    await create('file');
    await makeDirectory('directory');
    expect(await code(open('file', { kind: 'directory' }))).toBe('ResourceTypeMismatch');
    expect(await code(open('directory', { kind: 'file' }))).toBe('ResourceTypeMismatch');
    expect(await code(open('directory', { disposition: 'overwrite' }))).toBe('ResourceTypeMismatch');
    expect(await code(open('none/file'))).toBe('ParentNotFound');
    expect((await open('', { kind: 'directory' })).node.kind).toBe('directory');
    expect((await open('made', { kind: 'directory', disposition: 'create' })).node.kind).toBe('directory');
  });

  it('stands beside others by access and share mode', async () => {
    const { open, create, storage } = await openWorld();
    await create('a');
    const { handle } = await open('a', { access: WRITE, shareMode: READ });
    expect(await code(open('a', { access: WRITE, shareMode: WRITE }))).toBe('SharingViolation');
    expect(await code(open('a', { access: READ, shareMode: READ }))).toBe('SharingViolation');
    const reader = await open('a', { access: READ, shareMode: WRITE });
    expect(await code(open('a', { access: 0, shareMode: 0 }))).toBe('done');
    for (const closed of [handle, reader.handle, handle]) await closeHandle(storage, closed);
    expect(await code(open('a', { access: ALL, shareMode: 0 }))).toBe('done');
  });

  it('of a file that does not share its writing is refused what overwrites', async () => {
    const { open, create } = await openWorld();
    await create('a');
    await open('a', { access: READ, shareMode: READ });
    expect(await code(open('a', { access: READ, disposition: 'overwriteIf' }))).toBe('SharingViolation');
    expect(await code(open('a', { access: READ, disposition: 'supersede' }))).toBe('SharingViolation');
  });

  it('of a read-only file does not write, and does not delete on close', async () => {
    const { open, create } = await openWorld();
    await create('a', 0, READ_ONLY);
    expect(await code(open('a', { access: WRITE }))).toBe('AccessDenied');
    expect(await code(open('a', { disposition: 'overwrite' }))).toBe('AccessDenied');
    expect(await code(open('a', { access: DELETE, deletesOnClose: true }))).toBe('CannotDelete');
    expect(await code(open('a', { access: DELETE }))).toBe('done');
    expect(await code(open('a', { deletesOnClose: true }))).toBe('AccessDenied');
  });

  it('overwrites a hidden file only if it names the attribute', async () => {
    const { open, create } = await openWorld();
    await create('a', 0, HIDDEN);
    expect(await code(open('a', { disposition: 'overwrite' }))).toBe('AccessDenied');
    const { node } = await open('a', { disposition: 'overwrite', smb: { attributes: HIDDEN } });
    expect(node.attributes).toBe(HIDDEN | 0x20);
  });

  it('does not write or delete while REST holds a lease, and reads', async () => {
    const { open, create, storage } = await openWorld();
    await create('a');
    const acquire = { action: 'acquire', seconds: -1, proposedId: undefined, periodSeconds: undefined };
    await leaseFile(storage, { ...AT, path: 'a', ...acquire });
    for (const access of [WRITE, DELETE, READ | WRITE, READ | DELETE, ALL])
      expect(await code(open('a', { access }))).toBe('SharingViolation');
    expect(await code(open('a', { access: READ, shareMode: 0 }))).toBe('done');
  });
});

describe('A file that is marked for deletion', () => {
  it('is deleted by the last close, with its bytes', async () => {
    const { open, create, storage, names, usage, opens } = await openWorld();
    await create('a', 100);
    const one = await open('a', { access: DELETE });
    const other = await open('a');
    await setDeletePending(storage, one.handle, true);
    expect(await names()).toEqual([]);
    expect(await code(open('a'))).toBe('SMBDeletePending');
    expect(await code(getFile(storage, { ...AT, path: 'a' }))).toBe('SMBDeletePending');
    await closeHandle(storage, one.handle);
    expect(await code(getFile(storage, { ...AT, path: 'a' }))).toBe('SMBDeletePending');
    await closeHandle(storage, other.handle);
    expect(await code(getFile(storage, { ...AT, path: 'a' }))).toBe('ResourceNotFound');
    expect(await usage()).toBe(0n);
    expect(await opens()).toEqual([]);
  });

  it('stays if the mark is taken back', async () => {
    const { open, create, storage, names } = await openWorld();
    await create('a');
    const { handle } = await open('a', { access: DELETE });
    await setDeletePending(storage, handle, true);
    await setDeletePending(storage, handle, false);
    await closeHandle(storage, handle);
    expect(await names()).toEqual(['a']);
  });

  it('is marked by the close of a handle that deletes on close, not by its open', async () => {
    const { open, create, storage, names } = await openWorld();
    await create('a');
    const { handle } = await open('a', { access: DELETE, deletesOnClose: true });
    const other = await open('a');
    expect(await names()).toEqual(['a']);
    await closeHandle(storage, handle);
    expect(await names()).toEqual([]);
    await closeHandle(storage, other.handle);
    expect(await code(open('a'))).toBe('ResourceNotFound');
  });

  it('stays if its process dies', async () => {
    const { open, create, storage, names, partition, act, epoch } = await openWorld();
    await create('a');
    const { handle } = await open('a', { access: DELETE, shareMode: 0 });
    await setDeletePending(storage, handle, true);
    await act((tx) => removeEpoch(tx, epoch));
    expect(await names()).toEqual(['a']);
    expect(await code(deleteFile(storage, { ...AT, path: 'a' }))).toBe('done');
    expect(await code(partition.read((at) => requireHandle(at, storage, handle)))).toBe('HandleClosed');
  });

  it('is as before once the process that marked it is gone, although another has it open', async () => {
    for (const isSwept of [false, true]) {
      const { open, create, storage, names, partition, act, epoch, sweeper, opens } = await openWorld();
      const other = await addEpoch(partition, () => Buffer.alloc(0));
      const neighbour = { ...storage, owner: await Owner.claim(partition, other) };
      await create('a');
      const kept = await openNode(neighbour, {
        ...{ share: SHARE, path: 'a', disposition: 'open', kind: 'any', rights: RIGHTS[READ]!, shareMode: ALL },
        ...{ deletesOnClose: false, smb: {}, client: { session: '1', ip: '192.0.2.1:445' } },
      });
      // The handle is closed, and its mark is left.
      const { handle } = await open('a', { access: DELETE, deletesOnClose: true });
      await closeHandle(storage, handle);
      expect(await names()).toEqual([]);
      await act((tx) => removeEpoch(tx, epoch));
      if (isSwept) {
        sweeper.wake();
        await sweeper.idle();
        expect(decodeOpens((await opens())[0]!).markedBy).toEqual([]);
      }
      expect(await names()).toEqual(['a']);
      expect(await code(getFile(storage, { ...AT, path: 'a' }))).toBe('done');
      await closeHandle(neighbour, kept.handle);
      expect(await names()).toEqual(['a']);
    }
  });

  it('of a directory takes no entries, and must have none', async () => {
    const { open, create, storage, makeDirectory, names, rename } = await openWorld();
    await makeDirectory('d');
    await create('file');
    await create('d/a');
    const { handle } = await open('d', { access: DELETE });
    expect(await code(setDeletePending(storage, handle, true))).toBe('DirectoryNotEmpty');
    await deleteFile(storage, { ...AT, path: 'd/a' });
    await setDeletePending(storage, handle, true);
    expect(await code(create('d/b'))).toBe('SMBDeletePending');
    expect(await code(makeDirectory('d/b'))).toBe('SMBDeletePending');
    expect(await code(open('d/b', { disposition: 'create' }))).toBe('SMBDeletePending');
    expect(await code(rename('file', 'file', 'd/b'))).toBe('SMBDeletePending');
    expect(await names()).toEqual(['file']);
    await closeHandle(storage, handle);
    expect(await code(makeDirectory('d'))).toBe('done');
  });
});

describe('A rename', () => {
  it('of a directory is refused while something below it is open', async () => {
    const { open, create, storage, makeDirectory, rename } = await openWorld();
    for (const path of ['a', 'a/b', 'other']) await makeDirectory(path);
    await create('a/b/file');
    const { handle } = await open('a/b/file', { access: 0 });
    expect(await code(rename('directory', 'a', 'c'))).toBe('SharingViolation');
    expect(await code(rename('directory', 'other', 'c'))).toBe('done');
    await closeHandle(storage, handle);
    expect(await code(rename('directory', 'a', 'd'))).toBe('done');
  });

  it('of a file is judged by the share modes of its opens, and moves them', async () => {
    const { open, create, storage, makeDirectory, rename } = await openWorld();
    for (const path of ['a', 'b']) await makeDirectory(path);
    await create('a/file');
    const one = await open('a/file', { shareMode: READ | WRITE });
    expect(await code(rename('file', 'a/file', 'b/file'))).toBe('SharingViolation');
    await closeHandle(storage, one.handle);
    const other = await open('a/file', { shareMode: ALL });
    expect(await code(rename('file', 'a/file', 'b/file'))).toBe('done');
    expect(await code(rename('directory', 'a', 'c'))).toBe('done');
    expect(await code(rename('directory', 'b', 'd'))).toBe('SharingViolation');
    await closeHandle(storage, other.handle);
    expect(await code(deleteDirectory(storage, { share: SHARE, path: 'b' }))).toBe('DirectoryNotEmpty');
  });
});

it('What a process held is removed by the sweeper, and what others hold stays', async () => {
  const { open, create, storage, partition, act, epoch, opens, sweeper } = await openWorld();
  const other = await addEpoch(partition, () => Buffer.alloc(0));
  const neighbour = { ...storage, owner: await Owner.claim(partition, other) };
  for (const path of ['a', 'b', 'c']) await create(path);
  for (const path of ['a', 'b', 'b']) await open(path);
  const kept = await openNode(neighbour, {
    ...{ share: SHARE, path: 'b', disposition: 'open', kind: 'any', rights: RIGHTS[READ]!, shareMode: ALL },
    ...{ deletesOnClose: false, smb: {}, client: { session: '1', ip: '192.0.2.1:445' } },
  });
  await act((tx) => removeEpoch(tx, epoch));
  sweeper.wake();
  await sweeper.idle();
  expect((await opens()).map(({ key }) => nodeFromOpensKey(key))).toEqual([kept.node.id]);
  expect(decodeOpens((await opens())[0]!).groups).toEqual([{ owner: other, access: READ, share: ALL, count: 1 }]);
  const handles = await partition.read((at) => at.scan(handlesIn(storage.account), { limit: 10 }));
  expect(handles.map(({ key }) => idFromHandleKey(key))).toEqual([kept.handle.id]);
  expect(await partition.read(orphanedOwners)).toEqual([]);
});

it('A file has at most 2,000 handles', async () => {
  const { open, create, storage } = await openWorld();
  await create('a');
  const { handle } = await open('a');
  await Promise.all(Array.from({ length: 1_999 }, () => open('a')));
  expect(await code(open('a'))).toBe('HandleLimitExceeded');
  await closeHandle(storage, handle);
  expect(await code(open('a'))).toBe('done');
});
