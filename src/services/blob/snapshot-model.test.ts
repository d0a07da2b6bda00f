import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ACCOUNT, openWorld } from '../../../test/support/blob-storage.ts';
import { createChunkChecker } from '../../content/chunk-check.ts';
import type { Storage } from '../common/storage.ts';
import { check } from '../maintenance/check.ts';
import { deleteBlob, getBlob } from './blobs.ts';
import { deleteContainer } from './containers.ts';
import { copyBlob } from './copies.ts';
import { listBlobs } from './listing.ts';
import { putBlob } from './put-blob.ts';
import { snapshotBlob } from './snapshots.ts';

const NAMES = ['a', 'a/b', 'a/c', 'b'];
const base = (blob: string) => ({ container: 'box', blob, conditions: {}, leaseId: undefined });

/** Blobs and their snapshots as plain bytes, each list from the oldest to the newest. */
interface Model {
  readonly blobs: Map<string, Buffer>;
  readonly snapshots: Map<string, { stamp: bigint; bytes: Buffer }[]>;
}

interface World {
  readonly storage: Storage;
  sweep(): Promise<void>;
}

type Step = (world: World, model: Model) => Promise<void>;

const name = fc.constantFrom(...NAMES);
const content = fc
  .tuple(fc.constantFrom(0, 10, 16 * 1024 + 1), fc.nat(255))
  .map(([length, byte]) => Buffer.alloc(length, byte));
const snapshotsOf = ({ snapshots }: Model, blob: string) => snapshots.get(blob) ?? [];

async function expectOutcome(done: Promise<unknown>, code: string | undefined): Promise<boolean> {
  if (code === undefined) await done;
  else await expect(done).rejects.toMatchObject({ code });
  return code === undefined;
}

const puts = fc.tuple(name, content).map(
  ([blob, bytes]): Step =>
    async ({ storage }, { blobs }) => {
      const whole = bytes.length <= 16 * 1024 ? { whole: bytes } : {};
      const body = {
        length: bytes.length,
        expected: {},
        ...whole,
        bytes: async function* () {
          yield bytes;
        },
      };
      await putBlob(storage, { ...base(blob), content: {}, metadata: [], body });
      blobs.set(blob, bytes);
    },
);

const takes = name.map(
  (blob): Step =>
    async ({ storage }, model) => {
      const bytes = model.blobs.get(blob);
      const done = snapshotBlob(storage, { ...base(blob), metadata: [] });
      if (!(await expectOutcome(done, bytes ? undefined : 'BlobNotFound'))) return;
      const { snapshot: stamp } = await done;
      model.snapshots.set(blob, [...snapshotsOf(model, blob), { stamp, bytes: bytes! }]);
    },
);

const deletes = fc.tuple(name, fc.constantFrom(undefined, 'include' as const, 'only' as const)).map(
  ([blob, snapshots]): Step =>
    async ({ storage }, model) => {
      const missing = model.blobs.has(blob) ? undefined : 'BlobNotFound';
      const refused = snapshots === undefined && snapshotsOf(model, blob).length > 0 ? 'SnapshotsPresent' : undefined;
      const done = deleteBlob(storage, { ...base(blob), snapshots });
      if (!(await expectOutcome(done, missing ?? refused))) return;
      model.snapshots.delete(blob);
      if (snapshots !== 'only') model.blobs.delete(blob);
    },
);

const deletesOne = fc.tuple(name, fc.nat(3)).map(
  ([blob, at]): Step =>
    async ({ storage }, model) => {
      const found = snapshotsOf(model, blob)[at];
      const done = deleteBlob(storage, { ...base(blob), snapshot: found?.stamp ?? 5n });
      if (!(await expectOutcome(done, found ? undefined : 'BlobNotFound'))) return;
      model.snapshots.set(
        blob,
        snapshotsOf(model, blob).filter((one) => one !== found),
      );
    },
);

const promotes = fc.tuple(name, fc.nat(3), name).map(
  ([from, at, to]): Step =>
    async ({ storage }, model) => {
      const found = snapshotsOf(model, from)[at];
      const source = { url: 'http://here/', container: 'box', blob: from, snapshot: found?.stamp ?? 5n };
      const asked = { source, sourceConditions: {}, sourceLeaseId: undefined, metadata: [] };
      const done = copyBlob(storage, { ...base(to), ...asked });
      if (await expectOutcome(done, found ? undefined : 'BlobNotFound')) model.blobs.set(to, found!.bytes);
    },
);

const sweeps = fc.constant<Step>(({ sweep }) => sweep());
const pages = fc.tuple(fc.integer({ min: 1, max: 5 }), fc.constantFrom('', '/'), fc.constantFrom('', 'a')).map(
  ([size, delimiter, prefix]): Step =>
    async ({ storage }, model) =>
      expect(await listAll(storage, size, delimiter, prefix)).toEqual(expectedList(model, delimiter, prefix)),
);

async function listAll(storage: Storage, resultsMax: number, delimiter: string, prefix: string): Promise<string[]> {
  const found: string[] = [];
  let marker: string | undefined;
  do {
    const asked = { container: 'box', prefix, delimiter, marker, resultsMax, uncommitted: false, snapshots: true };
    let count = 0;
    marker = await listBlobs(storage, asked, (items) => {
      count += items.length;
      for (const item of items) found.push('prefix' in item ? item.prefix : `${item.name} ${item.snapshot ?? 'base'}`);
    });
    expect(count).toBeLessThanOrEqual(resultsMax);
  } while (marker !== '');
  return found;
}

function expectedList(model: Model, delimiter: string, prefix: string): string[] {
  const found: string[] = [];
  for (const blob of NAMES) {
    if (!model.blobs.has(blob) || !blob.startsWith(prefix)) continue;
    const end = delimiter === '' ? -1 : blob.indexOf(delimiter, prefix.length);
    if (end >= 0) found.push(blob.slice(0, end + 1));
    else found.push(...snapshotsOf(model, blob).map(({ stamp }) => `${blob} ${stamp}`), `${blob} base`);
  }
  return [...new Set(found)];
}

async function read(storage: Storage, blob: string, snapshot?: bigint): Promise<Buffer> {
  const asked = { range: undefined, rangeMd5: undefined, rangeCrc64: undefined };
  const { bytes } = await getBlob(storage, { ...base(blob), snapshot, ...asked });
  if (Buffer.isBuffer(bytes)) return bytes;
  const buffers: Buffer[] = [];
  for await (const buffer of bytes) buffers.push(Buffer.from(buffer));
  return Buffer.concat(buffers);
}

async function compare(storage: Storage, model: Model): Promise<void> {
  for (const blob of NAMES) {
    const bytes = model.blobs.get(blob);
    if (bytes) expect((await read(storage, blob)).equals(bytes)).toBe(true);
    else await expect(read(storage, blob)).rejects.toMatchObject({ code: 'BlobNotFound' });
    for (const { stamp, bytes: old } of snapshotsOf(model, blob))
      expect((await read(storage, blob, stamp)).equals(old)).toBe(true);
  }
  for (const delimiter of ['', '/'])
    expect(await listAll(storage, 2, delimiter, '')).toEqual(expectedList(model, delimiter, ''));
}

const step = fc.oneof(
  { weight: 4, arbitrary: puts },
  { weight: 8, arbitrary: takes },
  { weight: 3, arbitrary: deletes },
  { weight: 3, arbitrary: deletesOne },
  { weight: 2, arbitrary: promotes },
  { weight: 1, arbitrary: sweeps },
  { weight: 2, arbitrary: pages },
);

describe('Snapshots', () => {
  it('are what plain byte arrays say, whatever is done, and every count is right', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 60 }), async (steps) => {
        const world = await openWorld();
        await world.putContainer();
        const { partition, store, sweeper, extents } = world;
        // Only a step sweeps: until then the mark alone hides what is deleted.
        const storage: Storage = { partition, account: ACCOUNT, content: store, sweeper: { wake: () => {} } };
        const findings = async () => (await check(partition, createChunkChecker(partition, extents))).findings;
        const model: Model = { blobs: new Map(), snapshots: new Map() };
        for (const take of steps) await take({ storage, sweep: world.sweep }, model);
        await compare(storage, model);
        expect(await findings()).toEqual([]);
        await world.sweep();
        await compare(storage, model);
        expect(await findings()).toEqual([]);
        expect((await world.kinds()).v ?? 0).toBe([...model.snapshots.values()].flat().length);
        await deleteContainer(storage, { container: 'box', leaseId: undefined, conditions: {} });
        await sweeper.wake();
        await world.sweep();
        expect(await world.kinds()).toEqual({});
        await world.stop();
        expect(world.failures).toEqual([]);
      }),
      { numRuns: 100 },
    );
  });
});
