/** Copies from a URL as rows: shared chunks, their references, and a source whose chunks are gone before the commit. */
import { describe, expect, it } from 'vitest';
import { ACCOUNT, openWorld } from '../../../test/support/blob-storage.ts';
import { localSources } from '../../../test/support/local-sources.ts';
import { createChunkChecker } from '../../content/chunk-check.ts';
import { DanglingReference } from '../../content/content.ts';
import { keysUnder } from '../../partition/keys.ts';
import type { Storage } from '../common/storage.ts';
import type { SentContent } from '../common/upload.ts';
import { check } from '../maintenance/check.ts';
import { deleteBlob, getBlob } from './blobs.ts';
import { putBlockList } from './block-lists.ts';
import { copyBlobFromUrl, putBlobFromUrl, putBlockFromUrl } from './from-url.ts';
import { putBlob } from './put-blob.ts';

const LENGTH = 20 << 20;
const BLOCK_ID = 'YQ==';
const base = (blob: string) => ({ container: 'box', blob, conditions: {}, leaseId: undefined });
const sent = (bytes: Buffer): SentContent => ({
  ...{ length: bytes.length, expected: {} },
  async *bytes() {
    yield bytes;
  },
});
const put = (storage: Storage, blob: string, bytes: Buffer) =>
  putBlob(storage, { ...base(blob), content: {}, metadata: [], body: sent(bytes) });

const from = {
  source: { url: 'http://here/', service: 'blob' as const, container: 'box', item: 'from' },
  ...{ sourceConditions: {}, sourceHashes: {}, sourceBytesMax: LENGTH },
};

async function open() {
  const world = await openWorld();
  await world.putContainer();
  const { partition, store, extents } = world;
  // The test wakes the sweeper itself.
  const storage: Storage = {
    partition,
    account: ACCOUNT,
    content: store,
    sources: localSources,
    sweeper: { ...world.sweeper, wake() {} },
  };
  const count = async (kind: string) =>
    (await partition.read((at) => at.scan(keysUnder([ACCOUNT, kind]), { limit: 1_000 }))).length;
  return {
    world,
    storage,
    chunks: () => count('k'),
    findings: async () => (await check(partition, createChunkChecker(partition, extents))).findings,
  };
}

async function read(storage: Storage, blob: string): Promise<Buffer> {
  const asked = { range: undefined, rangeMd5: undefined, rangeCrc64: undefined };
  const { bytes } = await getBlob(storage, { ...base(blob), ...asked });
  const buffers: Buffer[] = [];
  for await (const buffer of Buffer.isBuffer(bytes) ? [bytes] : bytes) buffers.push(Buffer.from(buffer));
  return Buffer.concat(buffers);
}

type Copy = (storage: Storage) => Promise<unknown>;
const COPIES: Record<string, Copy> = {
  putBlobFromUrl: (storage) =>
    putBlobFromUrl(storage, { ...base('to'), ...from, content: {}, metadata: [], copiesProperties: true }),
  copyBlobFromUrl: (storage) => copyBlobFromUrl(storage, { ...base('to'), ...from, metadata: [], wantsMd5: false }),
  putBlockFromUrl: async (storage) => {
    await putBlockFromUrl(storage, { ...base('to'), ...from, blockId: BLOCK_ID, wantsMd5: false });
    const blocks = [{ source: 'Latest', id: BLOCK_ID }] as const;
    await putBlockList(storage, { ...base('to'), content: {}, metadata: [], blocks });
  },
};

describe.each(Object.entries(COPIES))('%s within an account', (_, copy) => {
  it('writes no chunk, and the last blob that names a chunk takes it along', async () => {
    const { world, storage, chunks, findings } = await open();
    const bytes = Buffer.alloc(LENGTH, 'some bytes ');
    await put(storage, 'from', bytes);
    const before = await chunks();
    await copy(storage);
    await copy(storage);
    await world.sweep();
    expect(await chunks()).toBe(before);
    expect(await findings()).toEqual([]);
    await deleteBlob(storage, base('from'));
    await world.sweep();
    expect((await read(storage, 'to')).equals(bytes)).toBe(true);
    expect(await findings()).toEqual([]);
    await deleteBlob(storage, base('to'));
    await world.sweep();
    expect(await chunks()).toBe(0);
    await world.stop();
  });

  it('reads the source again if its chunks are gone before the commit', async () => {
    const { world, storage, findings } = await open();
    const [old, fresh] = [Buffer.alloc(LENGTH, 'old '), Buffer.alloc(LENGTH - 1, 'fresh ')];
    await put(storage, 'from', old);
    let overwrites = 1;
    const overtaken: Storage = {
      ...storage,
      content: {
        ...storage.content,
        async increfChunks(tx, account, chunkRefs) {
          if (overwrites-- > 0) {
            await put(storage, 'from', fresh);
            throw new DanglingReference('gone');
          }
          return storage.content.increfChunks(tx, account, chunkRefs);
        },
      },
    };
    await copy(overtaken);
    expect((await read(storage, 'to')).equals(fresh)).toBe(true);
    await world.sweep();
    expect(await findings()).toEqual([]);
    await world.stop();
  });
});
