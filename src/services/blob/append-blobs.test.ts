import { describe, expect, it } from 'vitest';
import { ACCOUNT, CONTAINER, openWorld } from '../../../test/support/blob-storage.ts';
import type { Storage } from '../common/storage.ts';
import { appendBlock, createAppendBlob } from './append-blobs.ts';
import { decodeBlobRecord, encodeBlobRecord } from './blob-record.ts';
import { blobKey, recordFrom } from './rows.ts';

const base = { container: 'box', blob: 'log', conditions: {}, leaseId: undefined };

describe('An append blob', () => {
  it('takes 50,000 blocks, and no more', async () => {
    const world = await openWorld();
    await world.putContainer();
    const { partition, store, sweeper } = world;
    const storage: Storage = { partition, account: ACCOUNT, content: store, sweeper };
    const append = () => {
      const whole = Buffer.from('x');
      const body = { length: 1, expected: {}, whole, bytes: async function* () {} };
      return appendBlock(storage, { ...base, append: {}, wantsMd5: false, body });
    };
    await createAppendBlob(storage, { ...base, content: {}, metadata: [] });
    await append();
    await world.act(async (tx) => {
      const key = blobKey(ACCOUNT, CONTAINER, 'log');
      const blob = decodeBlobRecord((await tx.get(key))!);
      tx.put(key, encodeBlobRecord({ ...recordFrom(blob), append: { blocks: 49_999 } }));
    });
    expect(await append()).toMatchObject({ written: { result: { blocks: 50_000, offset: 1 } } });
    await expect(append()).rejects.toMatchObject({ code: 'BlockCountExceedsLimit', status: 409 });
    await world.stop();
  });
});
