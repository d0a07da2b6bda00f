import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Killed } from '../../../test/support/killable-partition.ts';
import { missing, startCluster } from '../../../test/support/postgres-cluster.ts';
import { type SectorChange, SectorHistory } from '../../../test/support/sector-history.ts';
import {
  comparable,
  openShareWorld,
  type Picture,
  type Pictured,
  type ShareWorld,
} from '../../../test/support/share-world.ts';
import { openLmdb } from '../../partition/lmdb/engine.ts';
import { openMemory } from '../../partition/memory/engine.ts';
import type { Engine, Instant } from '../../partition/partition.ts';
import { openPostgres } from '../../partition/postgres/engine.ts';
import { StorageError } from '../common/errors.ts';
import type { Storage } from '../common/storage.ts';
import { copyFile } from './copies.ts';
import {
  createDirectory,
  deleteDirectory,
  getDirectory,
  setDirectoryMetadata,
  setDirectoryProperties,
} from './directories.ts';
import { createFile, deleteFile, getFile, setFileMetadata, setFileProperties } from './files.ts';
import type { File } from './node-rows.ts';
import { clearFileRange, putRange } from './ranges.ts';
import { renameNode } from './rename.ts';
import { deleteShareSnapshot, snapshotShare } from './share-snapshots.ts';

const SECTOR = 512;
const PAGE = 1 << 20;
/** Sectors of three map pages: reads of a file take more than one lookup. */
const FILE_BYTES = 2 * PAGE + 4 * SECTOR;

const aPath = fc.array(fc.constantFrom('a', 'b', 'B'), { minLength: 1, maxLength: 2 }).map((names) => names.join('/'));
const anOffset = fc.tuple(fc.nat({ max: 2 }), fc.nat({ max: 3 * SECTOR })).map(([page, at]) => page * PAGE + at);
const aRange = {
  path: aPath,
  from: anOffset,
  length: fc.integer({ min: 1, max: 3 * SECTOR }),
  seed: fc.nat({ max: 255 }),
};
/** Whole sectors, which a clear releases. */
const someSectors = {
  path: aPath,
  from: fc.tuple(fc.nat({ max: 1 }), fc.nat({ max: 1 })).map(([page, sector]) => page * PAGE + sector * SECTOR),
  length: fc.integer({ min: 1, max: 3 }).map((sectors) => sectors * SECTOR),
};
const kind = <Kind extends string>(name: Kind) => fc.constant(name);
const aStep = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: kind('mkdir'), path: aPath }) },
  { weight: 4, arbitrary: fc.record({ kind: kind('create'), path: aPath }) },
  { weight: 8, arbitrary: fc.record({ kind: kind('write'), ...aRange }) },
  { weight: 2, arbitrary: fc.record({ kind: kind('clear'), ...aRange }) },
  { weight: 4, arbitrary: fc.record({ kind: kind('clear'), ...someSectors }) },
  { weight: 2, arbitrary: fc.record({ kind: kind('resize'), path: aPath, length: anOffset }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('rm' as const, 'rmdir' as const), path: aPath }) },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constantFrom('mv' as const, 'mvdir' as const), path: aPath, to: aPath }),
  },
  { weight: 2, arbitrary: fc.record({ kind: kind('describe'), path: aPath, seed: fc.nat({ max: 9 }) }) },
  { weight: 2, arbitrary: fc.record({ kind: kind('restore'), path: aPath, to: aPath, which: fc.nat({ max: 9 }) }) },
  { weight: 6, arbitrary: fc.record({ kind: kind('snapshot') }) },
  { weight: 3, arbitrary: fc.record({ kind: kind('forget'), which: fc.nat({ max: 9 }) }) },
  { weight: 3, arbitrary: fc.record({ kind: kind('sweep') }) },
);
type Step = typeof aStep extends fc.Arbitrary<infer T> ? T : never;
const aKill = fc.option(fc.record({ commits: fc.nat({ max: 3 }), isAfter: fc.boolean() }), { freq: 3, nil: undefined });

interface Taken {
  readonly second: Instant;
  readonly moment: number;
  readonly picture: Picture;
}

/** One share, and what is known of it without looking at its snapshots. */
class History {
  readonly share: string;
  readonly world: ShareWorld;
  taken: Taken[] = [];
  #moment = 0;
  /** By the ids of contents. */
  readonly #contents = new Map<string, SectorHistory>();

  constructor(world: ShareWorld, share: string) {
    this.world = world;
    this.share = share;
  }

  async step(step: Step, client: Storage): Promise<void> {
    this.#moment++;
    try {
      await this.#perform(step, client);
    } catch (error) {
      if (error instanceof Killed) throw error;
      if (!(error instanceof StorageError)) throw error;
    }
  }

  async #perform(step: Step, client: Storage): Promise<void> {
    const { share, world } = this;
    const at = (path: string) => ({ share, path, leaseId: undefined, metadata: [], smb: {} });
    const noLeases = { sourceLeaseId: undefined, destinationLeaseId: undefined, ignoresReadOnly: true };
    switch (step.kind) {
      case 'mkdir':
        await createDirectory(client, at(step.path));
        return;
      case 'create':
        await createFile(client, { ...at(step.path), length: FILE_BYTES, content: {} });
        return;
      case 'write': {
        const { from, length, seed } = step;
        const body = {
          length,
          expected: {},
          bytes: async function* () {
            yield Buffer.alloc(length, seed);
          },
        };
        const range = `bytes=${from}-${from + length - 1}`;
        const input = { ...at(step.path), range, lastWrite: undefined, keepsTimes: false, body };
        await this.#change(
          step.path,
          () => putRange(client, input),
          (sectors, moment) => sectors.write(moment, from, from + length),
        );
        return;
      }
      case 'clear': {
        const { from, length } = step;
        const range = `bytes=${from}-${from + length - 1}`;
        const input = { ...at(step.path), range, lastWrite: undefined, keepsTimes: false };
        await this.#change(
          step.path,
          () => clearFileRange(client, input),
          (sectors, moment) => sectors.clear(moment, from, from + length),
        );
        return;
      }
      case 'resize':
        await this.#change(
          step.path,
          () => setFileProperties(client, { ...at(step.path), length: step.length, content: undefined }),
          (sectors, moment) => sectors.truncate(moment, step.length),
        );
        return;
      case 'rm':
        return deleteFile(client, at(step.path));
      case 'rmdir':
        return deleteDirectory(client, at(step.path));
      case 'mv':
      case 'mvdir': {
        const source = { path: step.path, keepsTrailingDots: undefined };
        await renameNode(client, step.kind === 'mv' ? 'file' : 'directory', {
          ...{ ...at(step.to), source, ...noLeases, replaces: true },
        });
        return;
      }
      case 'describe': {
        const metadata = [['key', String(step.seed)]] as const;
        if (step.seed % 2 === 0) await setFileMetadata(client, { ...at(step.path), metadata });
        else if (step.seed % 3 === 0)
          await setDirectoryProperties(client, { ...at(step.path), smb: { attributes: 2 } });
        else await setDirectoryMetadata(client, { ...at(step.path), metadata });
        return;
      }
      case 'restore': {
        const from = this.taken[step.which % Math.max(1, this.taken.length)];
        const { path: item } = step;
        const source = { url: 'http://here', service: 'file', container: share, item, snapshot: from?.second } as const;
        const copied = await this.#file(item, from?.second);
        const before = copied?.contentId === undefined ? undefined : this.#contents.get(copied.contentId);
        await this.#change(
          step.to,
          () => copyFile(client, { ...at(step.to), source, ignoresReadOnly: true }),
          (_, moment, contentId) => {
            if (contentId && before) this.#contents.set(contentId, before.copy(from?.moment ?? moment, moment));
          },
        );
        return;
      }
      case 'snapshot': {
        const picture = await world.picture(share);
        const { snapshot: second } = await snapshotShare(client, { share, metadata: [] });
        this.taken.push({ second, picture, moment: this.#moment });
        return;
      }
      case 'forget': {
        const gone = this.taken[step.which % Math.max(1, this.taken.length)];
        if (!gone) return;
        await deleteShareSnapshot(client, { share, snapshot: gone.second, leaseId: undefined });
        this.taken = this.taken.filter((each) => each !== gone);
        return;
      }
      case 'sweep':
        await world.sweep();
    }
  }

  /** After a kill: the last commit of the step happened or not. */
  async recover(): Promise<void> {
    const { share, world } = this;
    const seconds = await world.snapshots(share);
    this.taken = this.taken.filter(({ second }) => seconds.includes(second));
    const unknown = seconds.filter((second) => !this.taken.some((each) => each.second === second));
    for (const second of unknown)
      this.taken.push({ second, moment: this.#moment, picture: await world.picture(share) });
  }

  async #file(path: string, snapshot?: Instant) {
    try {
      return (await getFile(this.world.client(), { share: this.share, path, leaseId: undefined, snapshot })).file;
    } catch (error) {
      if (error instanceof StorageError) return undefined;
      throw error;
    }
  }

  /** The model follows if the file has changed, whether the step has told so or was killed. */
  async #change(
    path: string,
    run: () => Promise<unknown>,
    follow: (sectors: SectorHistory, moment: number, contentId: string | undefined) => void,
  ): Promise<void> {
    const before = await this.#file(path);
    try {
      await run();
    } finally {
      this.world.killAt(undefined);
      const after = await this.#file(path);
      if (after && after.etag !== before?.etag) follow(this.#sectorsOf(after.contentId), this.#moment, after.contentId);
    }
  }

  #sectorsOf(contentId = ''): SectorHistory {
    const known = this.#contents.get(contentId) ?? new SectorHistory();
    if (contentId !== '') this.#contents.set(contentId, known);
    return known;
  }

  /** Every snapshot shows what the share had, and every two differ by what was done between them. */
  async verify(): Promise<void> {
    const { world, share, taken } = this;
    expect(await world.snapshots(share)).toEqual(taken.map(({ second }) => second));
    const show = (picture: Picture) => [...picture].sort().map(([path, each]) => [path, comparable(each)]);
    for (const { second, picture } of taken) expect(show(await world.picture(share, second))).toEqual(show(picture));
    const now = { second: undefined, moment: Infinity, picture: await world.picture(share) };
    for (const { second, picture } of taken) {
      const names = new Set([...picture.keys()].map((path) => path.toLowerCase()));
      for (const [path, { kind }] of now.picture)
        if (!names.has(path.toLowerCase())) expect(await this.#isShown(path, kind, second), path).toBe(false);
    }
    for (const [i, earlier] of taken.entries())
      for (const later of [taken[i + 1], now]) if (later) await this.#verifyChanges(earlier, later);
  }

  async #isShown(path: string, kind: string, snapshot: Instant): Promise<boolean> {
    const at = { share: this.share, path, snapshot, leaseId: undefined };
    try {
      await (kind === 'file' ? getFile : getDirectory)(this.world.client(), at);
      return true;
    } catch (error) {
      if (error instanceof StorageError && error.status === 404) return false;
      throw error;
    }
  }

  async #verifyChanges(earlier: Taken, later: Omit<Taken, 'second'> & { second: Instant | undefined }) {
    const before = new Map([...earlier.picture.values()].map((each) => [each.id, each]));
    for (const [path, after] of later.picture) {
      const then = before.get(after.id);
      if (after.kind !== 'file' || then?.kind !== 'file') continue;
      const changes = await this.world.changes(this.share, path, earlier.second, later.second);
      // What was there, with the changes, is what is there.
      const bytes = Buffer.alloc(after.bytes!.length);
      then.bytes!.copy(bytes);
      for (const { from, to, isWritten } of changes) {
        if (isWritten) after.bytes!.copy(bytes, from, from, to);
        else bytes.fill(0, from, to);
      }
      expect(bytes.equals(after.bytes!), `the changes of ${path}`).toBe(true);
      const found = changes.flatMap(({ from, to, isWritten }) =>
        Array.from({ length: Math.ceil((to - from) / SECTOR) }, (_, i) => ({ sector: from / SECTOR + i, isWritten })),
      );
      const expected = this.#expectedChanges(then, after, earlier.moment, later.moment)
        .filter(({ sector }) => sector * SECTOR < after.bytes!.length)
        .sort((one, other) => one.sector - other.sector);
      expect(found, `the changes of ${path}`).toEqual(expected);
    }
  }

  /** Of one content its changes; of a content that was replaced, all that is written now, and what was written only before. */
  #expectedChanges(then: Pictured, now: Pictured, after: number, upTo: number): SectorChange[] {
    const [before, content] = [contentOf(then), contentOf(now)];
    if (before === undefined || before === content)
      return this.#sectorsOf(content).changes(before === undefined ? -1 : after, upTo);
    const is = new Set(now.written);
    return [
      ...now.written!.map((sector) => ({ sector, isWritten: true })),
      ...then.written!.filter((sector) => !is.has(sector)).map((sector) => ({ sector, isWritten: false })),
    ];
  }
}

const contentOf = ({ properties }: Pictured) => (properties as Pick<File, 'contentId'>).contentId;

const PREPARED: readonly Step[] = [
  { kind: 'mkdir', path: 'a' },
  { kind: 'create', path: 'a/a' },
  { kind: 'write', path: 'a/a', from: 0, length: 700, seed: 1 },
  { kind: 'create', path: 'b' },
  { kind: 'write', path: 'b', from: PAGE - 512, length: 1_024, seed: 2 },
  { kind: 'snapshot' },
];

/** What the second snapshot shows was written right before it, and the first one is deleted. */
const KEPT: readonly Step[] = [
  { kind: 'write', path: 'b', from: 0, length: 512, seed: 3 },
  { kind: 'snapshot' },
  { kind: 'write', path: 'b', from: 0, length: 512, seed: 4 },
  { kind: 'forget', which: 0 },
];

interface Opened {
  readonly engines: readonly Engine[];
  readonly drop?: () => Promise<void>;
}

const engines: Record<string, { histories: number; open: () => Promise<Opened> }> = {
  memory: { histories: 40, open: async () => ({ engines: [openMemory()] }) },
  LMDB: {
    histories: 15,
    async open() {
      const location = await mkdtemp(join(tmpdir(), 'holdfast-snapshots-'));
      return { engines: [await openLmdb({ location })], drop: () => rm(location, { recursive: true, force: true }) };
    },
  },
  ...(missing
    ? {}
    : {
        'PostgreSQL, as three processes': {
          histories: 8,
          async open() {
            const { url, drop } = await startCluster();
            return { engines: await Promise.all([1, 2, 3].map(() => openPostgres({ url }))), drop };
          },
        },
      }),
};

describe.each(Object.entries(engines))('Snapshots of a share on %s', (_, { histories, open }) => {
  let opened: Opened;
  let world: ShareWorld;

  beforeAll(async () => {
    opened = await open();
    world = await openShareWorld(opened.engines);
  });
  afterAll(async () => {
    for (const engine of opened.engines) await engine.close();
    await opened.drop?.();
  });

  it('show what a copy of the whole tree would, whatever is done and wherever it ends', async () => {
    const steps = fc.array(fc.record({ step: aStep, kill: aKill }), { maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(steps, async (planned) => {
        const history = new History(world, await world.newShare());
        for (const step of PREPARED) await history.step(step, world.client());
        for (const [i, { step, kill }] of planned.entries()) {
          world.killAt(kill && { ...kill });
          try {
            await history.step(step, world.client(i));
          } catch (error) {
            if (!(error instanceof Killed)) throw error;
            await world.restart();
            await history.recover();
          }
          world.killAt(undefined);
        }
        await history.verify();
        await world.settle();
        expect(await world.findings()).toEqual([]);
        await history.verify();
        // Space comes back with the last snapshot that shows something.
        for (let left = history.taken.length; left > 0; left--)
          await history.step({ kind: 'forget', which: left * 7 }, world.client());
        await world.settle();
        expect(await world.findings()).toEqual([]);
        for (const kept of ['h', 'S', 'N', 'o']) expect(await world.rows(kept)).toEqual([]);
        await world.dropShare(history.share);
        await world.settle();
        for (const left of ['c', 'M', 'k', 'j', 'd', 'z']) expect(await world.rows(left)).toEqual([]);
      }),
      // A history that fails leaves its share behind: the next ones would find its rows.
      { numRuns: histories, endOnFailure: true, examples: [[KEPT.map((step) => ({ step, kill: undefined }))]] },
    );
  }, 300_000);
});
