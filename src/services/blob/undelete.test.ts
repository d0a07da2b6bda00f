import { describe, expect, it } from 'vitest';
import { ACCOUNT, openWorld } from '../../../test/support/blob-storage.ts';
import { createChunkChecker } from '../../content/chunk-check.ts';
import { setServiceProperties } from '../common/service-properties.ts';
import type { Storage } from '../common/storage.ts';
import { check } from '../maintenance/check.ts';
import { deleteBlob } from './blobs.ts';
import { putBlockList } from './block-lists.ts';
import { putBlock } from './blocks.ts';
import { putBlob } from './put-blob.ts';
import { snapshotBlob } from './snapshots.ts';
import { undeleteBlob } from './undelete.ts';

const base = { container: 'box', blob: 'blob', conditions: {}, leaseId: undefined };
const sent = (text: string) => ({
  ...{ length: text.length, expected: {} },
  async *bytes() {
    yield Buffer.from(text);
  },
});

async function open() {
  const world = await openWorld();
  await world.putContainer();
  const { partition, store, extents } = world;
  const storage: Storage = { partition, account: ACCOUNT, content: store, sweeper: { wake: () => {} } };
  await setServiceProperties(storage, 'blob', { deleteRetention: { days: 7, allowsPermanentDelete: false } });
  const findings = async () => (await check(partition, createChunkChecker(partition, extents))).findings;
  const put = () =>
    putBlob(storage, { ...base, content: {}, metadata: [], body: { ...sent('x'), whole: Buffer.from('x') } });
  return { world, storage, findings, put };
}

describe('Undelete Blob', () => {
  it('restores more states than one commit has rows for', async () => {
    const { world, storage, findings, put } = await open();
    for (let i = 0; i < 450; i++) await put();
    expect(await world.kinds()).toMatchObject({ V: 449, i: 450, w: 449 });
    await deleteBlob(storage, base);
    await undeleteBlob(storage, base);
    expect(await world.kinds()).toMatchObject({ b: 1, v: 449, i: 450 });
    expect((await world.kinds()).w).toBeUndefined();
    expect(await findings()).toEqual([]);
    await world.stop();
  });

  it('restores what a long block list has replaced, and a second deletion waits for the first to be carried out', async () => {
    const { world, storage, findings, put } = await open();
    const ids = Array.from({ length: 450 }, (_, at) => Buffer.from(String(at).padStart(4)).toString('base64'));
    for (const blockId of ids) await putBlock(storage, { ...base, blockId, wantsMd5: false, body: sent('x') });
    const list = (source: 'Latest' | 'Committed') =>
      putBlockList(storage, { ...base, content: {}, metadata: [], blocks: ids.map((id) => ({ source, id })) });
    await list('Latest');
    await list('Committed');
    await world.sweep();
    expect(await findings()).toEqual([]);
    await snapshotBlob(storage, { ...base, metadata: [] });
    await deleteBlob(storage, { ...base, snapshots: 'include' });
    await put();
    await snapshotBlob(storage, { ...base, metadata: [] });
    await deleteBlob(storage, { ...base, snapshots: 'include' });
    await undeleteBlob(storage, base);
    await world.sweep();
    expect(await findings()).toEqual([]);
    expect(await world.kinds()).toMatchObject({ b: 1, v: 4 });
    await world.stop();
  });
});
