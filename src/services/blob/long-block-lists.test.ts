/** Long lists that have each block once: their chunk references are handed over, and no chunk row is written. */
import { describe, expect, it } from 'vitest';
import { ACCOUNT, openWorld } from '../../../test/support/blob-storage.ts';
import { localSources } from '../../../test/support/local-sources.ts';
import { createChunkChecker } from '../../content/chunk-check.ts';
import { keysUnder } from '../../partition/keys.ts';
import type { BlockSource } from '../../rules/block-list.ts';
import type { Storage } from '../common/storage.ts';
import type { SentContent } from '../common/upload.ts';
import { check } from '../maintenance/check.ts';
import { deleteBlob, getBlob } from './blobs.ts';
import { putBlockList } from './block-lists.ts';
import { putBlock } from './blocks.ts';
import { copyBlob } from './copies.ts';
import { putBlob } from './put-blob.ts';

const BLOCKS = 500;
const idOf = (at: number) => Buffer.from(String(at).padStart(4, '0')).toString('base64');
const base = (blob: string) => ({ container: 'box', blob, conditions: {}, leaseId: undefined });
const sent = (text: string): SentContent => ({
  ...{ length: text.length, expected: {}, whole: Buffer.from(text) },
  async *bytes() {
    yield Buffer.from(text);
  },
});

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
  const rowsOf = (kind: string) => partition.read((at) => at.scan(keysUnder([ACCOUNT, kind]), { limit: 10_000 }));
  return {
    world,
    storage,
    findings: async () => (await check(partition, createChunkChecker(partition, extents))).findings,
    /** Changes whenever one of their rows is written. */
    chunks: async () => (await rowsOf('k')).map(({ key, version }) => `${key} ${version}`),
    rowsOf,
  };
}

const put = (storage: Storage, at: number, text: string) =>
  putBlock(storage, { ...base('one'), blockId: idOf(at), wantsMd5: false, body: sent(text) });

async function putAll(storage: Storage): Promise<void> {
  for (let at = 0; at < BLOCKS; at++) await put(storage, at, 'a');
}

const commit = (storage: Storage, source: BlockSource, count = BLOCKS) => {
  const blocks = Array.from({ length: count }, (_, at) => ({ source, id: idOf(at) }));
  return putBlockList(storage, { ...base('one'), content: {}, metadata: [], blocks });
};

async function read(storage: Storage, blob: string): Promise<string> {
  const asked = { range: undefined, rangeMd5: undefined, rangeCrc64: undefined };
  const { bytes } = await getBlob(storage, { ...base(blob), ...asked });
  const buffers: Buffer[] = [];
  for await (const buffer of Buffer.isBuffer(bytes) ? [bytes] : bytes) buffers.push(Buffer.from(buffer));
  return Buffer.concat(buffers).toString();
}

const copy = (storage: Storage) => {
  const source = { url: 'http://here/', service: 'blob' as const, container: 'box', item: 'one' };
  return copyBlob(storage, { ...base('two'), source, sourceConditions: {}, sourceLeaseId: undefined, metadata: [] });
};

type World = Awaited<ReturnType<typeof open>>;

/** Nothing is wrong, swept or not; and nothing is left once the blobs are gone. */
async function expectSound({ world, storage, findings }: World): Promise<void> {
  expect(await findings()).toEqual([]);
  await world.sweep();
  expect(await findings()).toEqual([]);
  for (const blob of ['one', 'two']) await deleteBlob(storage, base(blob)).catch(() => {});
  await world.sweep();
  expect(await world.kinds()).toEqual({ n: 1, p: 1 });
  expect(world.failures).toEqual([]);
  await world.stop();
}

describe('A long list that has each block once', () => {
  it('takes over the references of uncommitted blocks, and of the same list again', async () => {
    const opened = await open();
    const { world, storage, findings, chunks } = opened;
    await putAll(storage);
    const before = await chunks();
    expect(before).toHaveLength(BLOCKS);
    for (const source of ['Uncommitted', 'Latest', 'Committed'] as const) {
      await commit(storage, source);
      expect(await findings()).toEqual([]);
      await world.sweep();
      expect(await chunks()).toEqual(before);
    }
    expect(await read(storage, 'one')).toBe('a'.repeat(BLOCKS));
    await expectSound(opened);
  });

  it('takes over those of committed blocks and of new ones after them', async () => {
    const opened = await open();
    const { storage, chunks } = opened;
    await putAll(storage);
    await commit(storage, 'Latest');
    await put(storage, BLOCKS, 'N');
    const before = await chunks();
    await commit(storage, 'Latest', BLOCKS + 1);
    expect(await chunks()).toEqual(before);
    expect(await read(storage, 'one')).toBe(`${'a'.repeat(BLOCKS)}N`);
    await expectSound(opened);
  });

  it('leaves a content that it shares with a copy to the copy', async () => {
    const opened = await open();
    const { storage } = opened;
    await putAll(storage);
    await commit(storage, 'Latest');
    await copy(storage);
    await commit(storage, 'Committed');
    await deleteBlob(storage, base('one'));
    await opened.world.sweep();
    expect(await read(storage, 'two')).toBe('a'.repeat(BLOCKS));
    await expectSound(opened);
  });

  it('releases blocks that it does not name', async () => {
    const opened = await open();
    await putAll(opened.storage);
    await put(opened.storage, BLOCKS, 'N');
    await commit(opened.storage, 'Latest');
    await opened.world.sweep();
    expect(await opened.chunks()).toHaveLength(BLOCKS);
    await commit(opened.storage, 'Latest', BLOCKS - 1);
    await opened.world.sweep();
    expect(await opened.chunks()).toHaveLength(BLOCKS - 1);
    await expectSound(opened);
  });

  it('is not one that has a block twice in the place of another', async () => {
    const opened = await open();
    const { storage } = opened;
    await putAll(storage);
    for (const source of ['Uncommitted', 'Committed'] as const) {
      const blocks = Array.from({ length: BLOCKS }, (_, at) => ({ source, id: idOf(at % (BLOCKS - 1)) }));
      await putBlockList(storage, { ...base('one'), content: {}, metadata: [], blocks });
      await opened.world.sweep();
      expect(await opened.chunks()).toHaveLength(BLOCKS - 1);
    }
    await expectSound(opened);
  });

  it('may be read on from the old content, whose rows wait for the reader', async () => {
    const opened = await open();
    const { world, storage } = opened;
    await putAll(storage);
    await commit(storage, 'Latest');
    const asked = { range: undefined, rangeMd5: undefined, rangeCrc64: undefined };
    const { bytes } = await getBlob(storage, { ...base('one'), ...asked });
    await commit(storage, 'Committed');
    await deleteBlob(storage, base('one'));
    await world.sweep();
    let text = '';
    for await (const buffer of bytes as AsyncIterable<Buffer>) text += buffer.toString();
    expect(text).toBe('a'.repeat(BLOCKS));
    await expectSound(opened);
  });

  // One begins the pending content, two write manifest pages, one swaps it in.
  describe.each([0, 1, 2, 3])('overtaken before its transaction %i', (at) => {
    it.each<[string, BlockSource, (storage: Storage) => Promise<unknown>, string | undefined]>([
      [
        'a block that is replaced',
        'Uncommitted',
        (storage) => put(storage, 7, 'B'),
        `aaaaaaaB${'a'.repeat(BLOCKS - 8)}`,
      ],
      ['another block', 'Uncommitted', (storage) => put(storage, BLOCKS, 'N'), 'a'.repeat(BLOCKS)],
      ['the same list', 'Latest', (storage) => commit(storage, 'Latest'), 'a'.repeat(BLOCKS)],
      ['a deletion', 'Uncommitted', (storage) => deleteBlob(storage, base('one')), undefined],
      ['a copy', 'Committed', copy, 'a'.repeat(BLOCKS)],
      [
        'another content',
        'Committed',
        (storage) => putBlob(storage, { ...base('one'), content: {}, metadata: [], body: sent('whole') }),
        'whole',
      ],
    ])('by %s counts nothing twice and nothing too little', async (_, source, other, text) => {
      const opened = await open();
      const { storage } = opened;
      await putAll(storage);
      if (source === 'Committed') await commit(storage, 'Latest');
      let count = 0;
      const partition: Storage['partition'] = {
        ...storage.partition,
        async transact(queueKey, fn) {
          if (count++ === at) await other(storage);
          return storage.partition.transact(queueKey, fn);
        },
      };
      await commit({ ...storage, partition }, source).catch((error) => expect(error.code).toBe('InvalidBlockList'));
      expect(count).toBeGreaterThan(at);
      expect(await read(storage, 'one').catch(({ code }) => (code === 'BlobNotFound' ? undefined : code))).toBe(text);
      await expectSound(opened);
    });
  });
});
