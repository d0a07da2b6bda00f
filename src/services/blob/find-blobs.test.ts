import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ACCOUNT, openWorld } from '../../../test/support/blob-storage.ts';
import { localSources } from '../../../test/support/local-sources.ts';
import { createChunkChecker } from '../../content/chunk-check.ts';
import type { MaybePromise, PagedSnapshot } from '../../partition/partition.ts';
import { encodeText } from '../../partition/values.ts';
import type { Storage } from '../common/storage.ts';
import type { SentContent } from '../common/upload.ts';
import { check } from '../maintenance/check.ts';
import { deleteBlob } from './blobs.ts';
import { createContainer, deleteContainer, renameContainer } from './containers.ts';
import { copyBlob } from './copies.ts';
import { findBlobs } from './find-blobs.ts';
import { putBlob } from './put-blob.ts';
import { taggedNameKey } from './rows.ts';
import { taggedContainerKey, tagKey } from './tag-index.ts';
import { setBlobTags } from './tags.ts';

type TagSet = Readonly<Record<string, string>>;
type Comparison = readonly [key: string, operator: '=' | '<' | '<=' | '>' | '>=', value: string];

const CONTAINERS = ['box', 'chest', 'drawer'];
const NAMES = ['a', 'b/c', 'd', '\ud83d\ude00'];
const BYTES = Buffer.from('x');
const BODY: SentContent = { length: 1, expected: {}, whole: BYTES, bytes: async function* () {} };
const container = fc.constantFrom(...CONTAINERS);
const name = fc.constantFrom(...NAMES);
const key = fc.constantFrom('k', 'K', 'k ');
const value = fc.constantFrom('', '1', '10', '2');
const tagSet = fc.dictionary(key, value, { maxKeys: 3 });
const operator = fc.constantFrom<Comparison[1]>('=', '=', '=', '<', '<=', '>', '>=');
const query = fc.array(fc.tuple(key, operator, value), { minLength: 1, maxLength: 3 });

const path = (one: string, blob: string) => ({ container: one, blob, conditions: {}, leaseId: undefined });
const headerOf = (tags: TagSet) => new URLSearchParams(tags).toString();

/** By container and name: a blob and its tags. */
type Model = Map<string, Map<string, TagSet>>;
type Step = (storage: Storage, model: Model) => Promise<void>;

const put = fc.tuple(container, name, fc.option(tagSet)).map(
  ([one, blob, tags]): Step =>
    async (storage, model) => {
      const sent = tags ? { tags: headerOf(tags) } : {};
      await putBlob(storage, { ...path(one, blob), content: {}, metadata: [], body: BODY, ...sent });
      model.get(one)!.set(blob, tags ?? {});
    },
);
const set = fc.tuple(container, name, tagSet).map(
  ([one, blob, tags]): Step =>
    async (storage, model) => {
      if (!model.get(one)!.has(blob)) return;
      await setBlobTags(storage, { ...path(one, blob), tags: Object.entries(tags) });
      model.get(one)!.set(blob, tags);
    },
);
const copy = fc.tuple(container, name, container, name, tagSet).map(
  ([from, source, one, blob, tags]): Step =>
    async (storage, model) => {
      if (!model.get(from)!.has(source)) return;
      const copied = {
        source: { url: '', service: 'blob' as const, container: from, item: source },
        sourceConditions: {},
        sourceLeaseId: undefined,
      };
      await copyBlob(storage, { ...path(one, blob), ...copied, metadata: [], tags: headerOf(tags) });
      model.get(one)!.set(blob, tags);
    },
);
const remove = fc.tuple(container, name).map(
  ([one, blob]): Step =>
    async (storage, model) => {
      if (model.get(one)!.delete(blob)) await deleteBlob(storage, path(one, blob));
    },
);
const replace = container.map(
  (one): Step =>
    async (storage, model) => {
      await deleteContainer(storage, { container: one, leaseId: undefined, conditions: {} });
      await createContainer(storage, { container: one, metadata: [], access: undefined });
      model.get(one)!.clear();
    },
);
const rename = container.map(
  (one): Step =>
    async (storage, model) => {
      await renameContainer(storage, { source: one, container: 'aside', sourceLeaseId: undefined });
      const moved = new Map([...model].map(([name, blobs]) => [name === one ? 'aside' : name, blobs]));
      expect((await find(storage, `k >= ''`, 5)).sort()).toEqual(expected(moved, [['k', '>=', '']]));
      await renameContainer(storage, { source: 'aside', container: one, sourceLeaseId: undefined });
    },
);
const step = fc.oneof(
  ...[put, set, copy].map((arbitrary) => ({ weight: 4, arbitrary })),
  { weight: 2, arbitrary: remove },
  { weight: 1, arbitrary: replace },
  { weight: 1, arbitrary: rename },
);

const COMPARE: Readonly<Record<Comparison[1], (found: string, value: string) => boolean>> = {
  '=': (found, wanted) => found === wanted,
  '<': (found, wanted) => found < wanted,
  '<=': (found, wanted) => found <= wanted,
  '>': (found, wanted) => found > wanted,
  '>=': (found, wanted) => found >= wanted,
};

/** Looks at every blob. */
function expected(model: Model, comparisons: readonly Comparison[], only?: string): string[] {
  const found: string[] = [];
  for (const [one, blobs] of model) {
    if (only !== undefined && one !== only) continue;
    for (const [blob, tags] of blobs) {
      const meets = ([tag, how, wanted]: Comparison) => tag in tags && COMPARE[how](tags[tag]!, wanted);
      if (comparisons.every(meets)) found.push(`${one} ${blob}`);
    }
  }
  return found.sort();
}

async function find(storage: Storage, where: string, resultsMax: number, only?: string): Promise<string[]> {
  const found: string[] = [];
  for (let marker: string | undefined; marker !== ''; ) {
    const before = found.length;
    marker = await findBlobs(storage, { where, marker, resultsMax, container: only }, (blobs) => {
      for (const blob of blobs) found.push(`${blob.container} ${blob.name}`);
    });
    expect(found.length - before).toBeLessThanOrEqual(resultsMax);
  }
  return found;
}

async function open() {
  const world = await openWorld();
  const { partition, store, sweeper, extents } = world;
  const storage: Storage = { partition, account: ACCOUNT, content: store, sources: localSources, sweeper };
  const findings = async () => (await check(partition, createChunkChecker(partition, extents))).findings;
  return { world, storage, findings };
}

describe('Find Blobs by Tags', () => {
  it('finds what a look at every blob finds, after any writes, in pages of any size', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 25 }),
        fc.array(fc.tuple(query, fc.integer({ min: 1, max: 5 }), fc.option(container)), { maxLength: 6 }),
        async (steps, queries) => {
          const { world, storage, findings } = await open();
          const model: Model = new Map(CONTAINERS.map((one) => [one, new Map()]));
          for (const one of CONTAINERS)
            await createContainer(storage, { container: one, metadata: [], access: undefined });
          for (const run of steps) {
            await run(storage, model);
            expect((await find(storage, `k >= ''`, 5)).sort()).toEqual(expected(model, [['k', '>=', '']]));
          }
          for (const [comparisons, resultsMax, only] of queries) {
            const where = comparisons.map(([tag, how, wanted]) => `"${tag}" ${how} '${wanted}'`).join(' AND ');
            const scoped = only === null ? where : `@container = '${only}' AND ${where}`;
            const wanted = expected(model, comparisons, only ?? undefined);
            expect((await find(storage, scoped, resultsMax)).sort()).toEqual(wanted);
            if (only !== null) expect((await find(storage, where, resultsMax, only)).sort()).toEqual(wanted);
          }
          expect(await findings()).toEqual([]);
          for (const one of CONTAINERS)
            await deleteContainer(storage, { container: one, leaseId: undefined, conditions: {} });
          await world.sweep();
          expect(await findings()).toEqual([]);
          const { t, T, U } = await world.kinds();
          expect([t, T, U]).toEqual([undefined, undefined, undefined]);
          await world.stop();
          expect(world.failures).toEqual([]);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('reads its result and the containers that have the key, and nothing else', async () => {
    const { world, storage } = await open();
    for (let at = 0; at < 40; at++) {
      const one = `box-${at}`;
      await createContainer(storage, { container: one, metadata: [], access: undefined });
      for (let blob = 0; blob < 25; blob++) {
        const tags = at % 10 === 0 ? `common=${blob}&kind=all` : 'other=1';
        await putBlob(storage, { ...path(one, `blob${blob}`), content: {}, metadata: [], body: BODY, tags });
      }
    }
    let rows = 0;
    const counted = { ...storage, partition: { ...storage.partition, read: countedRead } } as Storage;
    function countedRead<T>(fn: (at: PagedSnapshot) => MaybePromise<T>): Promise<T> {
      return storage.partition.read((at) =>
        fn({
          now: at.now,
          get: (wanted) => at.get(wanted),
          scan: () => Promise.reject(new Error('a scan')),
          async getMany(keys) {
            rows += keys.length;
            return at.getMany(keys);
          },
          async page(range, options) {
            const page = await at.page(range, options);
            rows += page.rows.length;
            return page;
          },
        }),
      );
    }
    expect(await find(counted, `common = '7'`, 100)).toHaveLength(4);
    // Of the containers: the counter and the name; of the blobs: the index entry.
    expect(rows).toBe(4 * 2 + 4);
    rows = 0;
    expect(await find(counted, `common > '7'`, 100)).toHaveLength(4 * 2);
    expect(rows).toBe(4 * 2 + 8);
    rows = 0;
    expect(await find(counted, `common = '7' AND kind > ''`, 100)).toHaveLength(4);
    // The second tag stands in the record.
    expect(rows).toBe(4 * 2 + 4 * 2);
    rows = 0;
    expect(await find(counted, `kind = 'all' AND common = '7'`, 100)).toHaveLength(4);
    expect(rows).toBeLessThan(4 * 2 + 4 * 25);
    await world.stop();
  });
});

describe('The index of tags', () => {
  it('loses the tags of a blob that is overwritten, and counts each blob once', async () => {
    const { world, storage, findings } = await open();
    await world.putContainer();
    for (const tags of ['k=1&l=1', 'k=2', 'k=2&l=3', '', 'k=1']) {
      await putBlob(storage, { ...path('box', 'a'), content: {}, metadata: [], body: BODY, tags });
      expect(await findings()).toEqual([]);
    }
    expect(await world.kinds()).toMatchObject({ t: 1, T: 1, U: 1 });
    await world.stop();
  });
});

describe('The check of the index of tags', () => {
  it.each([
    ['is not in the index', (tx, id) => tx.remove(tagKey(ACCOUNT, id, 'k', '1', 'a'))],
    ['a tag that no blob has', (tx, id) => tx.put(tagKey(ACCOUNT, id, 'k', '2', 'a'), Buffer.from('\x01{}'))],
    ['it counts 2 blobs and there are 1', (tx, id) => tx.add(taggedContainerKey(ACCOUNT, 'k', id), 1n)],
    ['its container does not exist', (tx, id) => tx.add(taggedContainerKey(ACCOUNT, 'k', id + 1n), 1n)],
    ['its container has another name', (tx, id) => tx.put(taggedNameKey(ACCOUNT, id), encodeText('other'))],
  ] as [string, (tx: import('../../partition/partition.ts').Transaction, id: bigint) => void][])(
    'finds: %s',
    async (fault, damage) => {
      const { world, storage, findings } = await open();
      await world.putContainer();
      await putBlob(storage, { ...path('box', 'a'), content: {}, metadata: [], body: BODY, tags: 'k=1' });
      expect(await findings()).toEqual([]);
      await world.act((tx) => damage(tx, 40n));
      expect((await findings()).join()).toContain(fault);
      await world.stop();
    },
  );
});
