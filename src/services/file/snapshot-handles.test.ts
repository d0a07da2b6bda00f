import { describe, expect, it } from 'vitest';
import { openShare, SHARE } from '../../../test/support/file-storage.ts';
import { ALL_RIGHTS } from '../../rules/file/access-mask.ts';
import { ALL } from '../../rules/file/share-mode.ts';
import { createDirectory } from './directories.ts';
import { listThroughHandle, parsePattern } from './handle-listing.ts';
import { readHandlePath, viewHandle } from './handle-properties.ts';
import { readRange, writeRange } from './handle-ranges.ts';
import { renameThroughHandle } from './handle-rename.ts';
import { closeHandle } from './handles.ts';
import { type OpenInput, openNode } from './open-node.ts';
import type { Handle } from './open-rows.ts';
import { snapshotShare } from './share-snapshots.ts';
import { listPreviousVersions, openInSnapshot } from './snapshot-handles.ts';

const mode = 'now';

async function openWorld() {
  const { storage } = await openShare();
  const open = async (path: string, changes: Partial<OpenInput> = {}) =>
    (
      await openNode(storage, {
        ...{ share: SHARE, path, disposition: 'openIf', kind: 'any', rights: ALL_RIGHTS, shareMode: ALL },
        ...{ deletesOnClose: false, smb: {}, client: { session: '1', ip: '192.0.2.1:445' } },
        ...changes,
      })
    ).handle;
  const write = (handle: Handle, text: string) =>
    writeRange(storage, handle, { from: 0, bytes: Buffer.from(text), mode });
  const names = async (handle: Handle) => {
    const found: string[] = [];
    const input = { pattern: parsePattern('*'), after: undefined, dotsSent: 2 };
    await listThroughHandle(storage, handle, input, ({ name }) => found.push(name) > 0);
    return found;
  };
  const snapshot = async () => (await snapshotShare(storage, { share: SHARE, metadata: [] })).snapshot;
  const text = async (handle: Handle) => String(await readRange(storage, handle, { from: 0, to: 100 }));
  return { storage, open, write, names, snapshot, text };
}

describe('A previous version', () => {
  it('has the names, bytes and times of its snapshot, whatever was overwritten, renamed or deleted since', async () => {
    const { storage, open, write, names, snapshot, text } = await openWorld();
    await createDirectory(storage, { share: SHARE, path: 'd', metadata: [], smb: {} });
    for (const [path, bytes] of [
      ['d/kept', 'one'],
      ['d/gone', 'two'],
      ['d/moved', 'three'],
    ] as const) {
      const handle = await open(path);
      await write(handle, bytes);
      await closeHandle(storage, handle);
    }
    const second = await snapshot();
    const before = await openInSnapshot(storage, { share: SHARE, path: 'd/kept', second });
    await closeHandle(storage, await open('d/kept', { disposition: 'overwriteIf' }));
    await closeHandle(storage, await open('d/gone', { deletesOnClose: true }));
    const moved = await open('d/moved');
    await write(moved, 'other');
    await renameThroughHandle(storage, moved, { path: 'd/elsewhere', replaces: false, ignoresReadOnly: false });
    const inSnapshot = async (path: string) => (await openInSnapshot(storage, { share: SHARE, path, second })).handle;
    expect(await names(await inSnapshot('d'))).toEqual(['gone', 'kept', 'moved']);
    expect(await text(await inSnapshot('D/KEPT'))).toBe('one');
    expect(await text(await inSnapshot('d/gone'))).toBe('two');
    expect(await text(await inSnapshot('d/moved'))).toBe('three');
    expect(await readHandlePath(storage, await inSnapshot('d/moved'))).toEqual(['d', 'moved']);
    expect((await viewHandle(storage, before.handle)).node.times).toEqual(before.node.times);
    expect(await names(await open('d', { rights: 1 }))).toEqual(['elsewhere', 'kept']);
  });

  it('cannot be changed, and is not found in a second that names no snapshot', async () => {
    const { storage, open, write, snapshot } = await openWorld();
    await write(await open('f'), 'one');
    const second = await snapshot();
    const { handle } = await openInSnapshot(storage, { share: SHARE, path: 'f', second });
    await expect(write(handle, 'x')).rejects.toMatchObject({ code: 'AccessDenied' });
    const at = (other: bigint, path = 'f') => openInSnapshot(storage, { share: SHARE, path, second: other });
    await expect(at(second - 10_000_000n)).rejects.toMatchObject({ code: 'ResourceNotFound' });
    await expect(at(second, 'g')).rejects.toMatchObject({ code: 'ResourceNotFound' });
    expect(await listPreviousVersions(storage, SHARE)).toEqual([second]);
  });
});
