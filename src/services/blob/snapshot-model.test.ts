import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ACCOUNT, openWorld } from '../../../test/support/blob-storage.ts';
import { localSources } from '../../../test/support/local-sources.ts';
import { createChunkChecker } from '../../content/chunk-check.ts';
import { setServiceProperties } from '../common/service-properties.ts';
import type { Storage } from '../common/storage.ts';
import type { SentContent } from '../common/upload.ts';
import { check } from '../maintenance/check.ts';
import { appendBlock, createAppendBlob } from './append-blobs.ts';
import { deleteBlob, getBlob } from './blobs.ts';
import { deleteContainer } from './containers.ts';
import { copyBlob } from './copies.ts';
import { type ListedBlob, listBlobs } from './listing.ts';
import { clearPages, createPageBlob, putPage } from './page-blobs.ts';
import { putBlob } from './put-blob.ts';
import { snapshotBlob } from './snapshots.ts';
import { undeleteBlob } from './undelete.ts';

const NAMES = ['a', 'a/b', 'b'];
const DAY = 24n * 3600n * 10_000_000n;
const base = (blob: string) => ({ container: 'box', blob, conditions: {}, leaseId: undefined });

type InPlaceType = 'append' | 'page';

/** A blob, a snapshot or a deleted one; `n` is in its metadata. */
interface State {
  readonly n: number;
  readonly bytes: Buffer;
  /** Undefined: a block blob. */
  readonly type?: InPlaceType | undefined;
  /** The day from which on it is gone; undefined: it is not deleted. */
  readonly until?: number | undefined;
}

/** What there is, as plain values. */
interface Model {
  n: number;
  day: number;
  policy: { days?: number | undefined; allowsPermanentDelete: boolean };
  readonly blobs: Map<string, State>;
  /** Snapshots and replaced states, from the oldest to the newest. */
  readonly states: Map<string, readonly State[]>;
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

const isThere = ({ day }: Model, { until }: State) => until === undefined || day < until;
const isLive = ({ until }: State) => until === undefined;
const statesOf = (model: Model, blob: string) => (model.states.get(blob) ?? []).filter((one) => isThere(model, one));
const snapshotsOf = (model: Model, blob: string) => statesOf(model, blob).filter(isLive);
const liveBlob = ({ blobs }: Model, blob: string) => {
  const found = blobs.get(blob);
  return found && isLive(found) ? found : undefined;
};
const deletedNow = ({ day, policy: { days } }: Model) => (days === undefined ? undefined : day + days);

/** Whatever was there is replaced. */
function replace(model: Model, blob: string, next: State): void {
  const { blobs, states } = model;
  const old = blobs.get(blob);
  const until = old && (old.until ?? deletedNow(model));
  if (old && until !== undefined) states.set(blob, [...statesOf(model, blob), { ...old, until }]);
  blobs.set(blob, next);
}

async function expectOutcome(done: Promise<unknown>, code: string | undefined): Promise<boolean> {
  if (code === undefined) await done;
  else await expect(done).rejects.toMatchObject({ code });
  return code === undefined;
}

const puts = fc.tuple(name, content).map(
  ([blob, bytes]): Step =>
    async ({ storage }, model) => {
      const n = ++model.n;
      const body = sent(bytes);
      const done = putBlob(storage, { ...base(blob), content: {}, metadata: [['n', String(n)]], body });
      if (await expectOutcome(done, refusalOfType(model, blob, undefined))) replace(model, blob, { n, bytes });
    },
);

/** A blob keeps its type as long as it exists. */
function refusalOfType(model: Model, blob: string, type: InPlaceType | undefined): string | undefined {
  const found = liveBlob(model, blob);
  return found && found.type !== type ? 'InvalidBlobType' : undefined;
}

const PAGE = 512;
const DISK_PAGES = 40;

/** Mostly those of one type, or else most requests would be refused. */
const logs = fc.constantFrom('a', 'a', 'a', 'a', 'b');
const disks = fc.constantFrom('b', 'b', 'b', 'b', 'a');

const creates = fc.oneof(fc.tuple(logs, fc.constant('append')), fc.tuple(disks, fc.constant('page'))).map(
  ([blob, type]): Step =>
    async ({ storage }, model) => {
      const n = ++model.n;
      const bytes = Buffer.alloc(type === 'page' ? DISK_PAGES * PAGE : 0);
      const asked = { ...base(blob), content: {}, metadata: [['n', String(n)]] as const };
      const done =
        type === 'append'
          ? createAppendBlob(storage, asked)
          : createPageBlob(storage, { ...asked, length: bytes.length, sequenceNumber: undefined });
      if (await expectOutcome(done, refusalOfType(model, blob, type))) replace(model, blob, { n, bytes, type });
    },
);

/** The blob stays what it is but for its bytes: no state of it is kept. */
async function changes(model: Model, blob: string, type: InPlaceType, done: Promise<unknown>, bytes: () => Buffer) {
  const found = liveBlob(model, blob);
  const refused = found ? refusalOfType(model, blob, type) : 'BlobNotFound';
  if (await expectOutcome(done, refused)) model.blobs.set(blob, { ...found!, bytes: bytes() });
}

const appends = fc.tuple(logs, fc.constantFrom(1, 100, 6_000, 20_000), fc.nat(255)).map(
  ([blob, length, byte]): Step =>
    async ({ storage }, model) => {
      const bytes = Buffer.alloc(length, byte);
      const asked = { ...base(blob), append: {}, wantsMd5: false, body: sent(bytes) };
      const after = () => Buffer.concat([liveBlob(model, blob)!.bytes, bytes]);
      await changes(model, blob, 'append', appendBlock(storage, asked), after);
    },
);

const writes = fc
  .tuple(disks, fc.nat(DISK_PAGES - 20), fc.constantFrom(1, 3, 20), fc.option(fc.nat(255), { freq: 2 }))
  .map(
    ([blob, first, pages, byte]): Step =>
      async ({ storage }, model) => {
        const bytes = Buffer.alloc(pages * PAGE, byte ?? 0);
        const range = `bytes=${first * PAGE}-${(first + pages) * PAGE - 1}`;
        const asked = { ...base(blob), range, sequence: {} };
        const done =
          byte === null
            ? clearPages(storage, asked)
            : putPage(storage, { ...asked, wantsMd5: false, body: sent(bytes) });
        await changes(model, blob, 'page', done, () => {
          const next = Buffer.from(liveBlob(model, blob)!.bytes);
          bytes.copy(next, first * PAGE);
          return next;
        });
      },
  );

function sent(bytes: Buffer): SentContent {
  return {
    ...{ length: bytes.length, expected: {}, ...(bytes.length <= 16 * 1024 && { whole: bytes }) },
    async *bytes() {
      yield bytes;
    },
  };
}

const takes = name.map(
  (blob): Step =>
    async ({ storage }, model) => {
      const found = liveBlob(model, blob);
      const n = ++model.n;
      const done = snapshotBlob(storage, { ...base(blob), metadata: [['n', String(n)]] });
      if (!(await expectOutcome(done, found ? undefined : 'BlobNotFound'))) return;
      model.states.set(blob, [...statesOf(model, blob), { ...found!, n }]);
    },
);

const deletes = fc.tuple(name, fc.constantFrom(undefined, 'include' as const, 'only' as const)).map(
  ([blob, snapshots]): Step =>
    async ({ storage }, model) => {
      const found = liveBlob(model, blob);
      const has = snapshotsOf(model, blob).length > 0;
      const refused = has ? { undefined: 'SnapshotsPresent' } : { only: 'BlobNotFound' };
      const done = deleteBlob(storage, { ...base(blob), snapshots });
      if (!(await expectOutcome(done, found ? refused[String(snapshots) as never] : 'BlobNotFound'))) return;
      const until = deletedNow(model);
      expect(await done).toEqual({ isPermanent: until === undefined });
      const left = statesOf(model, blob).map((one) => ({ ...one, until: one.until ?? until }));
      model.states.set(blob, until === undefined ? left.filter((one) => !isLive(one)) : left);
      if (snapshots === 'only') return;
      if (until === undefined) model.blobs.delete(blob);
      else model.blobs.set(blob, { ...found!, until });
    },
);

const deletesOne = fc.tuple(name, fc.nat(3)).map(
  ([blob, at]): Step =>
    async ({ storage }, model) => {
      const found = snapshotsOf(model, blob)[at];
      const done = deleteBlob(storage, { ...base(blob), snapshot: await stampOf(storage, found) });
      if (!(await expectOutcome(done, found ? undefined : 'BlobNotFound'))) return;
      const until = deletedNow(model);
      const others = statesOf(model, blob).map((one) => (one === found ? { ...one, until } : one));
      model.states.set(blob, until === undefined ? others.filter(({ n }) => n !== found!.n) : others);
    },
);

const removals = fc.tuple(name, fc.nat(3)).map(
  ([blob, at]): Step =>
    async ({ storage }, model) => {
      const found = statesOf(model, blob)[at];
      const done = deleteBlob(storage, { ...base(blob), snapshot: await stampOf(storage, found), permanent: true });
      const isAllowed = found && !isLive(found) && model.policy.allowsPermanentDelete;
      const refused = isAllowed ? undefined : 'BlobOperationNotSupported';
      if (!(await expectOutcome(done, found ? refused : 'BlobNotFound'))) return;
      model.states.set(
        blob,
        statesOf(model, blob).filter((one) => one !== found),
      );
    },
);

const undeletes = name.map(
  (blob): Step =>
    async ({ storage }, model) => {
      const found = model.blobs.get(blob);
      const done = undeleteBlob(storage, { container: 'box', blob });
      if (!(await expectOutcome(done, found && isThere(model, found) ? undefined : 'BlobNotFound'))) return;
      model.blobs.set(blob, { ...found!, until: undefined });
      model.states.set(
        blob,
        statesOf(model, blob).map((one) => ({ ...one, until: undefined })),
      );
    },
);

const promotes = fc.tuple(name, fc.nat(3), name).map(
  ([from, at, to]): Step =>
    async ({ storage }, model) => {
      const found = snapshotsOf(model, from)[at];
      const n = ++model.n;
      const source = {
        url: 'http://here/',
        service: 'blob' as const,
        container: 'box',
        item: from,
        snapshot: await stampOf(storage, found),
      };
      const asked = { source, sourceConditions: {}, sourceLeaseId: undefined };
      const done = copyBlob(storage, { ...base(to), ...asked, metadata: [['n', String(n)]] });
      const refused = found ? refusalOfType(model, to, found.type) : 'BlobNotFound';
      if (await expectOutcome(done, refused)) replace(model, to, { ...found!, n });
    },
);

const policies = fc.tuple(fc.constantFrom(undefined, 1, 2, 3), fc.boolean()).map(
  ([days, allowsPermanentDelete]): Step =>
    async ({ storage }, model) => {
      model.policy = { days, allowsPermanentDelete };
      await setServiceProperties(storage, 'blob', { deleteRetention: model.policy });
    },
);

const days = fc.constant<Step>(async ({ storage }, model) => {
  await storage.partition.clock.advance(DAY);
  model.day++;
  for (const [blob, state] of model.blobs) if (!isThere(model, state)) model.blobs.delete(blob);
});

const sweeps = fc.constant<Step>(({ sweep }) => sweep());
const pages = fc.tuple(fc.integer({ min: 1, max: 5 }), fc.constantFrom('', '/'), fc.constantFrom('', 'a')).map(
  ([size, delimiter, prefix]): Step =>
    async ({ storage }, model) => {
      for (const shown of SHOWN)
        expect(await listAll(storage, size, delimiter, prefix, shown)).toEqual(
          expectedList(model, delimiter, prefix, shown),
        );
    },
);

interface Shown {
  readonly snapshots: boolean;
  readonly deleted: boolean;
  readonly onlyDeleted: boolean;
}
const SHOWN: readonly Shown[] = [
  { snapshots: false, deleted: false, onlyDeleted: false },
  { snapshots: true, deleted: false, onlyDeleted: false },
  { snapshots: false, deleted: true, onlyDeleted: false },
  { snapshots: true, deleted: true, onlyDeleted: false },
  { snapshots: true, deleted: true, onlyDeleted: true },
  { snapshots: false, deleted: false, onlyDeleted: true },
];
const ALL = SHOWN[3]!;

async function listItems(storage: Storage, resultsMax: number, delimiter: string, prefix: string, shown: Shown) {
  const found: (ListedBlob | { prefix: string })[] = [];
  let marker: string | undefined;
  do {
    const asked = { container: 'box', prefix, delimiter, marker, resultsMax, uncommitted: false, ...shown };
    let count = 0;
    marker = await listBlobs(storage, asked, (items) => {
      count += items.length;
      found.push(...items);
    });
    expect(count).toBeLessThanOrEqual(resultsMax);
  } while (marker !== '');
  return found;
}

async function stampOf(storage: Storage, state: State | undefined): Promise<bigint> {
  const items = state ? await listItems(storage, 5_000, '', '', ALL) : [];
  for (const item of items) if ('name' in item && item.blob!.metadata.n === String(state!.n)) return item.snapshot!;
  return 5n;
}

async function listAll(...given: Parameters<typeof listItems>): Promise<string[]> {
  return (await listItems(...given)).map((item) => {
    if ('prefix' in item) return item.prefix;
    const { name: blob, snapshot, deletion } = item;
    const days = deletion ? ` deleted ${deletion.remainingDays}` : '';
    return `${blob} ${snapshot === undefined ? 'base' : 'snapshot'} ${item.blob!.metadata.n}${days}`;
  });
}

function expectedList(model: Model, delimiter: string, prefix: string, shown: Shown): string[] {
  const found: string[] = [];
  const withDeleted = shown.deleted || shown.onlyDeleted;
  const isShown = (one: State) => isThere(model, one) && (isLive(one) ? !shown.onlyDeleted : withDeleted);
  const text = (blob: string, what: string, { n, until }: State) =>
    `${blob} ${what} ${n}${until === undefined ? '' : ` deleted ${until - model.day - 1}`}`;
  for (const blob of NAMES) {
    if (!blob.startsWith(prefix)) continue;
    const own = model.blobs.get(blob);
    const states = shown.snapshots ? statesOf(model, blob).filter(isShown) : [];
    const end = delimiter === '' ? -1 : blob.indexOf(delimiter, prefix.length);
    // What is under a common prefix shows it by its blob.
    if (end >= 0) found.push(...(own && isShown(own) ? [blob.slice(0, end + 1)] : []));
    else {
      found.push(...states.map((one) => text(blob, 'snapshot', one)));
      if (own && isShown(own)) found.push(text(blob, 'base', own));
    }
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
    const found = liveBlob(model, blob);
    if (found) expect((await read(storage, blob)).equals(found.bytes)).toBe(true);
    else await expect(read(storage, blob)).rejects.toMatchObject({ code: 'BlobNotFound' });
    for (const state of statesOf(model, blob)) {
      const done = read(storage, blob, await stampOf(storage, state));
      if (isLive(state)) expect((await done).equals(state.bytes)).toBe(true);
      else await expect(done).rejects.toMatchObject({ code: 'BlobNotFound' });
    }
  }
  for (const delimiter of ['', '/'])
    for (const shown of SHOWN)
      expect(await listAll(storage, 2, delimiter, '', shown)).toEqual(expectedList(model, delimiter, '', shown));
}

const step = fc.oneof(
  { weight: 4, arbitrary: puts },
  { weight: 8, arbitrary: takes },
  { weight: 5, arbitrary: deletes },
  { weight: 3, arbitrary: deletesOne },
  { weight: 1, arbitrary: removals },
  { weight: 5, arbitrary: undeletes },
  { weight: 2, arbitrary: promotes },
  { weight: 1, arbitrary: policies },
  { weight: 1, arbitrary: days },
  { weight: 1, arbitrary: sweeps },
  { weight: 1, arbitrary: pages },
);

const stepInPlace = fc.oneof(
  { weight: 6, arbitrary: creates },
  { weight: 10, arbitrary: appends },
  { weight: 16, arbitrary: writes },
  { weight: 30, arbitrary: step },
);

describe('Snapshots and deleted blobs', { timeout: 120_000 }, () => {
  it.each([
    ['', step, 100],
    [', with append and page blobs', stepInPlace, 60],
  ] as const)('are what plain values say, whatever is done, and every count is right%s', async (_, each, numRuns) => {
    await fc.assert(
      fc.asyncProperty(policies, fc.array(each, { minLength: 5, maxLength: 60, size: 'max' }), async (first, steps) => {
        const world = await openWorld();
        await world.putContainer();
        const { partition, store, extents } = world;
        // Only a step sweeps: until then a mark alone says what is deleted.
        const storage: Storage = {
          partition,
          account: ACCOUNT,
          content: store,
          sources: localSources,
          sweeper: { wake: () => {} },
        };
        const findings = async () => (await check(partition, createChunkChecker(partition, extents))).findings;
        const policy = { allowsPermanentDelete: false };
        const model: Model = { n: 0, day: 0, policy, blobs: new Map(), states: new Map() };
        for (const take of [first, ...steps]) await take({ storage, sweep: world.sweep }, model);
        await compare(storage, model);
        expect(await findings()).toEqual([]);
        await world.sweep();
        await compare(storage, model);
        expect(await findings()).toEqual([]);
        const kinds = await world.kinds();
        const all = NAMES.flatMap((blob) => statesOf(model, blob));
        expect([kinds.v ?? 0, kinds.V ?? 0]).toEqual([
          all.filter(isLive).length,
          all.filter((one) => !isLive(one)).length,
        ]);
        await deleteContainer(storage, { container: 'box', leaseId: undefined, conditions: {} });
        await world.sweep();
        expect(Object.keys(await world.kinds()).filter((kind) => kind !== 's')).toEqual([]);
        await world.stop();
        expect(world.failures).toEqual([]);
      }),
      { numRuns },
    );
  });
});
