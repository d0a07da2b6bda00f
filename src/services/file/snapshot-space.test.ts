import { describe, expect, it, onTestFinished } from 'vitest';
import { bytesOfSeed, inPieces } from '../../../test/support/content-store.ts';
import { openShare, SHARE } from '../../../test/support/file-storage.ts';
import { startCollector } from '../../content/gc/collector.ts';
import { makeMemoryFiles } from '../../extents/memory.ts';
import { openSlotted } from '../../extents/slotted-extents.ts';
import type { Instant } from '../../partition/partition.ts';
import { createFile, deleteFile } from './files.ts';
import { putRange } from './ranges.ts';
import { downloadFile } from './reads.ts';
import { deleteShareSnapshot, snapshotShare } from './share-snapshots.ts';

const FILE_BYTES = 4 << 20;

/** A share with its extents, which `reclaim` frees of all that is not used any more. */
async function openWorld() {
  const files = makeMemoryFiles();
  const world = await openShare((epoch) => openSlotted(files, { epoch, extentBytesMax: 1 << 20 }));
  const { storage } = world;
  const collector = startCollector({
    ...world,
    lowWatermark: world.reads,
    pinnedExtents: world.store.pinnedExtents,
    bounds: { slackBytes: 0, sealBytesMin: 1 },
  });
  onTestFinished(async () => {
    await collector.stop();
    await world.stop();
  });
  const at = (path: string) => ({ share: SHARE, path, leaseId: undefined });
  return {
    create: (path: string) =>
      createFile(storage, { ...at(path), length: FILE_BYTES, content: {}, metadata: [], smb: {} }),
    remove: (path: string) => deleteFile(storage, at(path)),
    async write(path: string, seed: number): Promise<Buffer> {
      const bytes = bytesOfSeed(seed, FILE_BYTES);
      const body = { length: FILE_BYTES, expected: {}, bytes: () => inPieces(bytes, 70_000) };
      const range = `bytes=0-${FILE_BYTES - 1}`;
      await putRange(storage, { ...at(path), range, body, lastWrite: undefined, keepsTimes: false });
      return bytes;
    },
    snapshot: async () => (await snapshotShare(storage, { share: SHARE, metadata: [] })).snapshot,
    forget: (snapshot: Instant) => deleteShareSnapshot(storage, { share: SHARE, leaseId: undefined, snapshot }),
    async read(path: string, snapshot?: Instant): Promise<Buffer> {
      const { bytes } = await downloadFile(storage, { ...at(path), range: undefined, rangeMd5: undefined, snapshot });
      const parts: Buffer[] = [];
      if (Buffer.isBuffer(bytes)) parts.push(bytes);
      else for await (const part of bytes) parts.push(Buffer.from(part));
      return Buffer.concat(parts);
    },
    /** @returns the bytes that the extents have afterwards */
    async reclaim(): Promise<number> {
      await world.sweep();
      expect(world.failures).toEqual([]);
      collector.wake();
      await collector.idle();
      const sizes = await Promise.all((await files.list()).map((name) => files.bytesOf(name)));
      return sizes.reduce((sum, size) => sum + size, 0);
    },
    contentRows: async () => (await world.kinds()).c ?? 0,
  };
}

describe('The bytes of a file that only snapshots show', () => {
  it('are in the extents until the last of these snapshots is deleted', async () => {
    const { create, write, remove, snapshot, forget, read, reclaim, contentRows } = await openWorld();
    await create('f');
    const bytes = await write('f', 1);
    const seconds = [await snapshot(), await snapshot()];
    await remove('f');
    for (const second of seconds) {
      expect(await reclaim()).toBeGreaterThanOrEqual(FILE_BYTES);
      expect((await read('f', second)).equals(bytes)).toBe(true);
      await forget(second);
    }
    expect(await reclaim()).toBe(0);
    expect(await contentRows()).toBe(0);
  });

  it('are in the extents beside those that took their place, until the snapshot is deleted', async () => {
    const { create, write, snapshot, forget, read, reclaim } = await openWorld();
    await create('f');
    const before = await write('f', 1);
    const alone = await reclaim();
    const second = await snapshot();
    const after = await write('f', 2);
    expect(await reclaim()).toBeGreaterThanOrEqual(2 * FILE_BYTES);
    expect((await read('f', second)).equals(before)).toBe(true);
    await forget(second);
    expect(await reclaim()).toBe(alone);
    expect((await read('f')).equals(after)).toBe(true);
  });
});
