import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ACCOUNT, CONTAINER, openWorld } from '../../../test/support/blob-storage.ts';
import { localSources } from '../../../test/support/local-sources.ts';
import { createChunkChecker } from '../../content/chunk-check.ts';
import type { BlockChoice, BlockSource } from '../../rules/block-list.ts';
import type { Storage } from '../common/storage.ts';
import type { SentContent } from '../common/upload.ts';
import { check } from '../maintenance/check.ts';
import { deleteBlob, getBlob } from './blobs.ts';
import { putBlockList } from './block-lists.ts';
import { getBlockList, putBlock } from './blocks.ts';
import { createContainer, deleteContainer } from './containers.ts';
import { copyBlob } from './copies.ts';
import { putBlob } from './put-blob.ts';
import { decodeUncommitted, encodeUncommitted, uncommittedKey } from './rows.ts';

const NAMES = ['one', 'two', 'three'];
const IDS = ['a', 'b', 'c'].map((text) => Buffer.from(text).toString('base64'));

const base = (blob: string) => ({ container: 'box', blob, conditions: {}, leaseId: undefined });

function sent(bytes: Buffer): SentContent {
  const small = bytes.length <= 16 * 1024;
  return {
    length: bytes.length,
    expected: {},
    ...(small ? { whole: bytes } : {}),
    async *bytes() {
      for (let from = 0; from < bytes.length; from += 7_001) yield bytes.subarray(from, from + 7_001);
    },
  };
}

interface ModelBlob {
  bytes: Buffer;
  blocks: { id: string; bytes: Buffer }[];
}

/** Blobs and blocks as plain byte arrays. */
interface Model {
  readonly blobs: Map<string, ModelBlob>;
  readonly uncommitted: Map<string, Map<string, Buffer>>;
}

type Step = (storage: Storage, model: Model) => Promise<void>;

const name = fc.constantFrom(...NAMES);
const content = fc
  .tuple(fc.constantFrom(0, 1, 100, 16 * 1024, 16 * 1024 + 1, 100_000), fc.nat(255))
  .map(([length, byte]) => Buffer.alloc(length, byte));

const puts = fc.tuple(name, content).map(
  ([blob, bytes]): Step =>
    async (storage, model) => {
      await putBlob(storage, { ...base(blob), content: {}, metadata: [], body: sent(bytes) });
      model.blobs.set(blob, { bytes, blocks: [] });
      model.uncommitted.delete(blob);
    },
);

const blocks = fc.tuple(name, fc.constantFrom(...IDS), fc.integer({ min: 1, max: 50 }), fc.nat(255)).map(
  ([blob, id, length, byte]): Step =>
    async (storage, model) => {
      const bytes = Buffer.alloc(length, byte);
      await putBlock(storage, { ...base(blob), blockId: id, wantsMd5: false, body: sent(bytes) });
      const uncommitted = model.uncommitted.get(blob) ?? new Map<string, Buffer>();
      model.uncommitted.set(blob, uncommitted.set(id, bytes));
    },
);

const source = fc.constantFrom<BlockSource>('Committed', 'Uncommitted', 'Latest', 'Latest', 'Latest', 'Latest');
const choice = fc.record({ source, id: fc.constantFrom(...IDS) });
/** Lists of more than 400 blocks are long lists. */
const choices = fc.oneof(
  fc.array(choice, { maxLength: 4 }),
  fc
    .tuple(fc.array(choice, { minLength: 1, maxLength: 3 }), fc.integer({ min: 401, max: 1_000 }))
    .map(([few, length]) => Array.from({ length }, (_, at) => few[at % few.length]!)),
);

const lists = fc.tuple(name, choices).map(
  ([blob, chosen]): Step =>
    async (storage, model) => {
      const uncommitted = model.uncommitted.get(blob);
      const committed = model.blobs.get(blob)?.blocks ?? [];
      const found = chosen.map(({ source, id }) => {
        const older = committed.find((block) => block.id === id)?.bytes;
        const newer = uncommitted?.get(id);
        const bytes = { Committed: older, Uncommitted: newer, Latest: newer ?? older }[source];
        return bytes && { id, bytes };
      });
      const done = putBlockList(storage, { ...base(blob), content: {}, metadata: [], blocks: chosen });
      if (found.includes(undefined)) {
        await expect(done).rejects.toMatchObject({ code: 'InvalidBlockList' });
        return;
      }
      await done;
      const all = found as { id: string; bytes: Buffer }[];
      model.blobs.set(blob, { bytes: Buffer.concat(all.map(({ bytes }) => bytes)), blocks: all });
      model.uncommitted.delete(blob);
    },
);

const copies = fc.tuple(name, name).map(
  ([from, to]): Step =>
    async (storage, model) => {
      const source = { url: 'http://here/', service: 'blob' as const, container: 'box', item: from };
      const asked = { source, sourceConditions: {}, sourceLeaseId: undefined, metadata: [] };
      const done = copyBlob(storage, { ...base(to), ...asked });
      const found = model.blobs.get(from);
      if (!found) {
        await expect(done).rejects.toMatchObject({ code: 'BlobNotFound' });
        return;
      }
      await done;
      model.blobs.set(to, found);
      model.uncommitted.delete(to);
    },
);

const deletes = name.map(
  (blob): Step =>
    async (storage, model) => {
      const done = deleteBlob(storage, base(blob));
      if (model.blobs.delete(blob) || model.uncommitted.has(blob)) await done;
      else await expect(done).rejects.toMatchObject({ code: 'BlobNotFound' });
      model.uncommitted.delete(blob);
    },
);

const step = fc.oneof(
  { weight: 2, arbitrary: puts },
  { weight: 8, arbitrary: blocks },
  { weight: 6, arbitrary: lists },
  { weight: 2, arbitrary: copies },
  { weight: 1, arbitrary: deletes },
);

async function open() {
  const world = await openWorld();
  await world.putContainer();
  const { partition, store, sweeper, extents } = world;
  const storage: Storage = { partition, account: ACCOUNT, content: store, sources: localSources, sweeper };
  const findings = async () => (await check(partition, createChunkChecker(partition, extents))).findings;
  return { world, storage, findings };
}

async function read(storage: Storage, blob: string): Promise<Buffer> {
  const asked = { range: undefined, rangeMd5: undefined, rangeCrc64: undefined };
  const { bytes } = await getBlob(storage, { ...base(blob), ...asked });
  if (Buffer.isBuffer(bytes)) return bytes;
  const buffers: Buffer[] = [];
  for await (const buffer of bytes) buffers.push(Buffer.from(buffer));
  return Buffer.concat(buffers);
}

async function compare(storage: Storage, { blobs, uncommitted }: Model): Promise<void> {
  for (const blob of NAMES) {
    const found = blobs.get(blob);
    if (found) expect((await read(storage, blob)).equals(found.bytes)).toBe(true);
    else await expect(read(storage, blob)).rejects.toMatchObject({ code: 'BlobNotFound' });
    if (!found && !uncommitted.has(blob)) continue;
    const asked = { ...base(blob), type: 'all' as const };
    const lists = await getBlockList(storage, asked, (some) => some.map(({ id }) => id));
    expect(lists.committed!.flat()).toEqual((found?.blocks ?? []).map(({ id }) => id));
    expect(lists.uncommitted!.flat()).toEqual([...(uncommitted.get(blob)?.keys() ?? [])].sort());
  }
}

describe('An upload', () => {
  it('does not go into another container that got the same name during the upload', async () => {
    const { world, storage } = await open();
    const bytes = Buffer.alloc(100_000, 1);
    const body = (): SentContent => ({
      length: bytes.length,
      expected: {},
      async *bytes() {
        yield bytes.subarray(0, 50_000);
        await deleteContainer(storage, { container: 'box', conditions: {}, leaseId: undefined });
        await createContainer(storage, { container: 'box', metadata: [], access: undefined });
        yield bytes.subarray(50_000);
      },
    });
    const put = putBlob(storage, { ...base('blob'), content: {}, metadata: [], body: body() });
    await expect(put).rejects.toMatchObject({ code: 'ContainerNotFound' });
    const block = putBlock(storage, { ...base('blob'), blockId: IDS[0]!, body: body(), wantsMd5: false });
    await expect(block).rejects.toMatchObject({ code: 'ContainerNotFound' });
    await world.stop();
  });
});

describe('Blobs and their blocks', () => {
  it('are what plain byte arrays say, whatever is done, and every count is right', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
        const { world, storage, findings } = await open();
        const model: Model = { blobs: new Map(), uncommitted: new Map() };
        for (const take of steps) await take(storage, model);
        await compare(storage, model);
        expect(await findings()).toEqual([]);
        await world.sweep();
        await compare(storage, model);
        expect(await findings()).toEqual([]);
        await deleteContainer(storage, { container: 'box', leaseId: undefined, conditions: {} });
        await world.sweep();
        expect(await world.kinds()).toEqual({});
        await world.stop();
        expect(world.failures).toEqual([]);
      }),
      { numRuns: 60 },
    );
  });

  it('are at most 100,000 uncommitted ones', async () => {
    const { world, storage } = await open();
    const put = (id: string) =>
      putBlock(storage, { ...base('one'), blockId: id, wantsMd5: false, body: sent(Buffer.from('x')) });
    await put(IDS[0]!);
    await world.act(async (tx) => {
      const blocks = decodeUncommitted((await tx.get(uncommittedKey(ACCOUNT, CONTAINER, 'one')))!);
      tx.put(uncommittedKey(ACCOUNT, CONTAINER, 'one'), encodeUncommitted({ ...blocks, count: 99_999 }));
    });
    await put(IDS[1]!);
    await expect(put(IDS[2]!)).rejects.toMatchObject({ code: 'BlockCountExceedsLimit', status: 409 });
    await put(IDS[1]!);
    await world.stop();
  });

  describe('in a long list', () => {
    const chosen = (from: BlockSource) =>
      Array.from({ length: 1_500 }, (_, at) => ({ source: from, id: IDS[at % IDS.length]! }));
    const put = (storage: Storage, id: string, text: string) =>
      putBlock(storage, { ...base('one'), blockId: id, wantsMd5: false, body: sent(Buffer.from(text)) });
    const commit = (storage: Storage, blocks: readonly BlockChoice[]) =>
      putBlockList(storage, { ...base('one'), content: {}, metadata: [], blocks });

    /** Runs `other` before the list's transaction number `at`. */
    async function overtaken(from: BlockSource, at: number, other: (storage: Storage) => Promise<unknown>) {
      const { world, storage, findings } = await open();
      for (const id of IDS) await put(storage, id, 'a');
      if (from === 'Committed') await commit(storage, chosen('Latest'));
      let count = 0;
      const partition: Storage['partition'] = {
        ...storage.partition,
        async transact(queueKey, fn) {
          if (count++ === at) await other(storage);
          return storage.partition.transact(queueKey, fn);
        },
      };
      const done = await commit({ ...storage, partition }, chosen(from)).catch((error: unknown) => error);
      expect(count).toBeGreaterThan(at);
      const text = (await read(storage, 'one')).toString();
      await world.sweep();
      expect(await findings()).toEqual([]);
      await world.stop();
      return { done, text };
    }

    // One begins the pending content, four write manifest pages, one swaps it in.
    for (const at of [0, 1, 3, 5]) {
      it(`are replaced in all of it or in nothing: before transaction ${at}`, async () => {
        const { text } = await overtaken('Latest', at, (storage) => put(storage, IDS[1]!, 'B'));
        expect(text).toBe('aBa'.repeat(500));
      });

      it(`are those of the blob as it is when the list takes effect: before transaction ${at}`, async () => {
        const whole = { content: {}, metadata: [], body: sent(Buffer.from('whole')) };
        const { done, text } = await overtaken('Committed', at, (storage) =>
          putBlob(storage, { ...base('one'), ...whole }),
        );
        expect(done).toMatchObject({ code: 'InvalidBlockList' });
        expect(text).toBe('whole');
      });

      it(`are the latest: a new one counts although the list had found an older: before transaction ${at}`, async () => {
        const { text } = await overtaken('Latest', at, async (storage) => {
          await commit(storage, chosen('Latest').slice(0, 3));
          await put(storage, IDS[0]!, 'N');
        });
        expect(text).toBe('Naa'.repeat(500));
      });
    }

    it('are the latest also where it had found committed ones only', async () => {
      const { world, storage } = await open();
      for (const id of IDS) await put(storage, id, 'a');
      await commit(storage, chosen('Latest'));
      await put(storage, IDS[0]!, 'N');
      let count = 0;
      const partition: Storage['partition'] = {
        ...storage.partition,
        async transact(queueKey, fn) {
          if (count++ === 5) await put(storage, IDS[1]!, 'M');
          return storage.partition.transact(queueKey, fn);
        },
      };
      await commit({ ...storage, partition }, chosen('Latest'));
      expect((await read(storage, 'one')).toString()).toBe('NMa'.repeat(500));
      await world.stop();
    });
  });
});
