import { describe, expect, it } from 'vitest';
import { openShare, SHARE } from '../../../test/support/file-storage.ts';
import type { Instant } from '../../partition/partition.ts';
import { createFile, deleteFile, getFile, setFileMetadata } from './files.ts';
import { deleteShareSnapshot, snapshotShare } from './share-snapshots.ts';

async function openWorld() {
  const { storage, sweep } = await openShare();
  const file = { share: SHARE, path: 'f', leaseId: undefined };
  return {
    sweep,
    create: (length: number) => createFile(storage, { ...file, length, content: {}, metadata: [], smb: {} }),
    remove: () => deleteFile(storage, file),
    label: (text: string) => setFileMetadata(storage, { ...file, metadata: [['label', text]] }),
    snapshot: async () => (await snapshotShare(storage, { share: SHARE, metadata: [] })).snapshot,
    forget: (snapshot: Instant) => deleteShareSnapshot(storage, { share: SHARE, leaseId: undefined, snapshot }),
    at: (snapshot?: Instant) => getFile(storage, { ...file, snapshot }),
  };
}

describe('History', () => {
  it('shows a file in each snapshot as it was, however often it changed since', async () => {
    const { create, label, snapshot, forget, at, sweep } = await openWorld();
    await create(0);
    const seconds: Instant[] = [];
    for (let i = 0; i < 4; i++) {
      await label(`${i}`);
      await label(`${i} again`);
      seconds.push(await snapshot());
    }
    await label('now');
    const labelAt = async (second: Instant) => (await at(second)).file.metadata.label;
    expect(await Promise.all(seconds.map(labelAt))).toEqual(['0 again', '1 again', '2 again', '3 again']);
    // The row before the current one is kept no more.
    await forget(seconds[3]!);
    await sweep();
    expect(await Promise.all(seconds.slice(0, 3).map(labelAt))).toEqual(['0 again', '1 again', '2 again']);
  });

  it('shows the file that had the name in each snapshot, or none', async () => {
    const { create, remove, snapshot, at } = await openWorld();
    const before = await snapshot();
    await create(1);
    const first = await snapshot();
    await remove();
    await create(2);
    const second = await snapshot();
    await remove();
    const between = await snapshot();
    await create(3);
    const lengthAt = async (snapshot: Instant) => (await at(snapshot)).file.length;
    expect(await Promise.all([first, second].map(lengthAt))).toEqual([1, 2]);
    for (const none of [before, between]) await expect(at(none)).rejects.toMatchObject({ code: 'ResourceNotFound' });
  });
});
