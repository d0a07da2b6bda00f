import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { ExtentFiles } from '../../extents/extent-files.ts';
import { type ChunkLocation, type ChunkName, CorruptChunk, type Extents } from '../../extents/extents.ts';
import { makeMemoryFiles } from '../../extents/memory.ts';
import { openSlotted } from '../../extents/slotted-extents.ts';
import { decodeKey, encodeKey } from '../../partition/keys.ts';
import { openMemory } from '../../partition/memory/engine.ts';
import type { Partition } from '../../partition/partition.ts';
import { openPartition } from '../../partition/transact.ts';
import { decodeCounter } from '../../partition/values.ts';
import { takeOverEpoch } from '../membership/epochs.ts';
import { chunkKey, decodeChunk, encodeChunk, liveBytesIn, liveBytesKey } from '../rows.ts';
import { type ActiveReads, createActiveReads } from './active-reads.ts';
import { type CollectorOptions, startCollector } from './collector.ts';

const EXTENT_BYTES = 512 << 10;
const BOUNDS = { slackBytes: 768 << 10, sealBytesMin: 128 << 10 };
/** An open extent, and what a file storedBytes more than its bytes. */
const MARGIN = BOUNDS.slackBytes + 2 * EXTENT_BYTES;
const ACCOUNTS = [7n, 8n];

type Step =
  | { do: 'put'; account: number; bytes: number }
  | { do: 'upload'; account: number; bytes: number }
  | { do: 'commit' | 'unpin' | 'remove' | 'read' | 'end'; which: number }
  | { do: 'abort'; bytes: number }
  | { do: 'wake' | 'settle' | 'restart' };
const bytes = fc.integer({ min: 1, max: 150 << 10 });
const account = fc.integer({ min: 0, max: 1 });
const which = fc.nat({ max: 1_000 });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('put' as const), account, bytes }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('upload' as const), account, bytes }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('remove' as const), which }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('commit' as const, 'unpin' as const), which }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('read' as const, 'end' as const), which }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('abort' as const), bytes }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constantFrom('wake' as const, 'wake' as const, 'settle' as const) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const) }) },
);

describe('The collector', () => {
  it('loses nothing that is live or being read, and reclaims the rest', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 40, maxLength: 150 }), async (steps) => {
        const world = newWorld();
        let process = await world.start();
        for (const next of steps) {
          if (next.do === 'restart') {
            await process.stop();
            process = await world.start();
          } else await process.act(next);
          await world.expectLive(process);
          await process.expectReads();
        }
        await process.finish();
        await world.expectLive(process);
        await world.expectCounters();
        const live = world.liveBytes();
        expect(await world.storedBytes()).toBeLessThanOrEqual(1.3 * live + MARGIN);
      }),
      { numRuns: 25 },
    );
  });

  it('loses and leaks nothing when it is killed at any point', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ bytes, keep: fc.boolean() }), { minLength: 30, maxLength: 80 }),
        fc.integer({ min: 0, max: 120 }),
        fc.boolean(),
        async (puts, stepsBefore, completesStep) => {
          const world = newWorld();
          const victim = await world.start({ stepsBefore, completesStep });
          for (const { bytes: size } of puts) await victim.act({ do: 'put', account: 0, bytes: size });
          const gone = puts.filter(({ keep }) => !keep).length;
          for (let i = 0; i < gone; i++) await victim.act({ do: 'remove', which: i * 7 });
          await victim.runUntilKilled();
          const successor = await world.start();
          await world.expectLive(successor);
          await successor.finish();
          await world.expectLive(successor);
          await world.expectCounters();
          expect(await world.storedBytes()).toBeLessThanOrEqual(1.3 * world.liveBytes() + MARGIN);
        },
      ),
      { numRuns: 25 },
    );
  });

  it('asks for the size of a sealed extent once', async () => {
    const world = newWorld();
    const asked: string[] = [];
    const { bytesOf } = world.files;
    world.files.bytesOf = (name) => {
      asked.push(name);
      return bytesOf(name);
    };
    const process = await world.start();
    for (let i = 0; i < 40; i++) await process.act({ do: 'put', account: 0, bytes: 100 << 10 });
    await process.act({ do: 'settle' });
    const [open, ...others] = (await process.extents.list()).filter(({ open }) => open).map(({ name }) => name);
    expect(others).toEqual([]);
    const sealed = asked.filter((name) => name !== open);
    expect(sealed.length).toBeGreaterThan(5);
    expect(new Set(sealed).size).toBe(sealed.length);
    asked.length = 0;
    for (let i = 0; i < 5; i++) await process.act({ do: 'settle' });
    expect(asked).toEqual(Array(5).fill(open));
    await process.stop();
  });

  it('makes no survey on its timer before something has changed, if no other process writes', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    const world = newWorld();
    let surveys = 0;
    const { list } = world.files;
    world.files.list = () => {
      surveys++;
      return list();
    };
    const process = await world.start();
    /** Whether the timer led to a survey. */
    const surveyedAgain = async () => {
      surveys = 0;
      vi.advanceTimersByTime(2_000);
      await process.idle();
      return surveys > 0;
    };
    for (let i = 0; i < 12; i++) await process.act({ do: 'put', account: 0, bytes: 100 << 10 });
    await process.act({ do: 'settle' });
    for (let i = 0; i < 5; i++) expect(await surveyedAgain()).toBe(false);
    for (const step of [
      { do: 'put', account: 0, bytes: 10 },
      { do: 'remove', which: 3 },
      { do: 'abort', bytes: 10 },
      { do: 'upload', account: 0, bytes: 10 },
      { do: 'unpin', which: 0 },
    ] as const) {
      await process.act(step);
      expect(await surveyedAgain(), step.do).toBe(true);
      expect(await surveyedAgain(), step.do).toBe(false);
    }
    await process.stop();
    world.isOwner = false;
    const other = await world.start();
    await other.act({ do: 'settle' });
    surveys = 0;
    vi.advanceTimersByTime(2_000);
    await other.idle();
    expect(surveys).toBe(1);
    await other.stop();
  });

  it('waits for a read that began earlier, and for no other', async () => {
    const world = newWorld();
    const process = await world.start();
    for (let i = 0; i < 12; i++) await process.act({ do: 'put', account: 0, bytes: 100 << 10 });
    const early = process.reads.begin();
    for (let i = 0; i < 12; i++) await process.act({ do: 'remove', which: 0 });
    await process.act({ do: 'settle' });
    const before = await process.extents.list();
    expect(before.length).toBeGreaterThan(2);
    const late = process.reads.begin();
    early.end();
    await new Promise(setImmediate);
    await process.act({ do: 'settle' });
    expect(await process.extents.list()).toEqual([]);
    late.end();
    await process.stop();
  });

  it('keeps bytes that no row names yet until their upload is released', async () => {
    const world = newWorld();
    const process = await world.start();
    for (let i = 0; i < 20; i++) await process.act({ do: 'upload', account: 0, bytes: 100 << 10 });
    await process.act({ do: 'settle' });
    for (let i = 0; i < 10; i++) await process.act({ do: 'commit', which: 0 });
    await process.act({ do: 'settle' });
    await world.expectLive(process);
    expect(await world.storedBytes()).toBeGreaterThan(20 * (100 << 10));
    for (let i = 0; i < 10; i++) await process.act({ do: 'unpin', which: 0 });
    await process.act({ do: 'settle' });
    await world.expectLive(process);
    expect(await world.storedBytes()).toBeLessThan(13 * (100 << 10));
    await process.stop();
  });

  it('keeps the bytes of accounts that this server was not started with', async () => {
    const world = newWorld();
    const process = await world.start();
    for (let i = 0; i < 8; i++) await process.act({ do: 'put', account: i % 2, bytes: 150 << 10 });
    await process.finish();
    await world.expectLive(process);
  });

  it('does not bring back a chunk that is removed while it is copied', async () => {
    const world = newWorld();
    const process = await world.start();
    for (let i = 0; i < 40; i++) await process.act({ do: 'put', account: 0, bytes: 100 << 10 });
    await removeMany(process, world);
    const copied: ChunkName[] = [];
    world.onBegin = async (name) => {
      const chunk = world.chunks.get(String(name.number));
      if (copied.push(name) % 2 === 0 && chunk) await process.removeChunk(chunk);
    };
    await process.act({ do: 'settle' });
    expect(copied.length).toBeGreaterThan(3);
    await world.expectLive(process);
    await world.expectCounters();
    await process.stop();
  });

  it('tells the copies of a chunk apart that are in one extent because a commit failed', async () => {
    const world = newWorld();
    world.bounds = { slackBytes: 0, sealBytesMin: 128 << 10 };
    const process = await world.start();
    for (let i = 0; i < 40; i++) await process.act({ do: 'put', account: 0, bytes: 60 << 10 });
    await removeMany(process, world);
    world.failures = 3;
    for (let i = 0; i < 4; i++) await process.act({ do: 'settle' });
    expect(world.failures).toBe(0);
    // The extent of the copies is sealed, and has few enough live bytes to be compacted in its turn.
    for (let i = 0; i < 20; i++) await process.act({ do: 'put', account: 0, bytes: 60 << 10 });
    await process.finish();
    await world.expectLive(process);
    await world.expectCounters();
  });

  it('leaves a corrupt chunk where it is, reports it once, and goes on with the others', async () => {
    const world = newWorld();
    const process = await world.start();
    for (let i = 0; i < 40; i++) await process.act({ do: 'put', account: 0, bytes: 100 << 10 });
    const corruptChunk = [...world.chunks.values()][1]!;
    world.corrupt.add(String(corruptChunk.name.number));
    const { extent } = await world.locationOf(corruptChunk.name);
    await removeMany(process, world);
    for (let i = 0; i < 3; i++) await process.act({ do: 'settle' });
    expect(process.corruptions).toEqual([expect.stringContaining('planted')]);
    expect((await world.locationOf(corruptChunk.name)).extent).toBe(extent);
    expect((await process.extents.list()).length).toBeLessThan(7);
    await process.stop();
  });

  it('reports bytes that are needed and cannot be found', async () => {
    const world = newWorld();
    const process = await world.start();
    for (let i = 0; i < 40; i++) await process.act({ do: 'put', account: 0, bytes: 100 << 10 });
    const [hidden, lost] = [[...world.chunks.values()][1]!, [...world.chunks.values()][39]!];
    world.hidden.add(String(hidden.name.number));
    const gone = (await world.locationOf(lost.name)).extent;
    await removeMany(process, world);
    await world.files.remove(gone);
    for (let i = 0; i < 3; i++) await process.act({ do: 'settle' });
    const { extent } = await world.locationOf(hidden.name);
    expect([...process.corruptions].sort()).toEqual([
      expect.stringMatching(`^${100 << 10} bytes in extent ${extent} are needed and cannot be found`),
      expect.stringMatching(`^extent ${gone} is missing, and \\d+ bytes`),
    ]);
    await process.stop();
  });

  it('does not copy small chunks again and again for the sake of their headers', async () => {
    const world = newWorld();
    const process = await world.start();
    for (let i = 0; i < 6_000; i++) await process.act({ do: 'put', account: 0, bytes: 1 });
    const list = await process.extents.list();
    const before = world.begun;
    await process.act({ do: 'settle' });
    expect(world.begun).toBe(before);
    expect((await process.extents.list()).map(({ name }) => name)).toEqual(list.map(({ name }) => name));
    // It still reclaims what can be reclaimed.
    for (const [i, chunk] of [...world.chunks.values()].entries()) if (i % 10 > 0) await process.removeChunk(chunk);
    await process.act({ do: 'settle' });
    expect(await world.storedBytes()).toBeLessThan(2 * EXTENT_BYTES);
    await world.expectLive(process);
    await process.stop();
  });
});

/** Removes all chunks of each extent but the second, and of the last extent all but one. */
async function removeMany(process: Process, world: World): Promise<void> {
  for (const [i, chunk] of [...world.chunks.values()].entries())
    if (i % 5 !== 1 && i < 39) await process.removeChunk(chunk);
}

interface LiveChunk {
  readonly name: ChunkName;
  readonly data: Buffer;
}

interface Kill {
  /** Steps before the kill. */
  readonly stepsBefore: number;
  /** Whether the step at which the process is killed still happens. */
  readonly completesStep: boolean;
}

/** What outlives a process: rows and files, and a model of them. */
function newStore(partition: Partition) {
  const files: ExtentFiles = makeMemoryFiles();
  const chunks = new Map<string, LiveChunk>();
  let numbers = 0n;
  const world = {
    files,
    chunks,
    corrupt: new Set<string>(),
    hidden: new Set<string>(),
    begun: 0,
    bounds: BOUNDS,
    isOwner: true,
    onBegin: undefined as ((name: ChunkName) => Promise<void>) | undefined,
    /** Commits of the collector that are to fail. */
    failures: 0,
    async locationOf(name: ChunkName): Promise<ChunkLocation> {
      return decodeChunk((await partition.read((at) => at.get(chunkKey(name.account, name))))!).place;
    },
    /** Holds at any moment, while the collector works. */
    async expectLive({ extents, reads }: { extents: Extents; reads: ActiveReads }): Promise<void> {
      for (const { name, data } of chunks.values()) {
        if (world.corrupt.has(String(name.number))) continue;
        const read = reads.begin();
        const place = await world.locationOf(name);
        expect((await extents.read(name, place, 0, data.length)).equals(data)).toBe(true);
        read.end();
      }
    },
    async expectCounters(): Promise<void> {
      const counted = new Map<string, number>();
      for (const { name, data } of chunks.values()) {
        const key = `${name.account} ${(await world.locationOf(name)).extent}`;
        counted.set(key, (counted.get(key) ?? 0) + data.length);
      }
      const stored = new Map<string, number>();
      for (const id of ACCOUNTS) {
        const rows = await partition.read((at) => at.scan(liveBytesIn(id), { limit: 1_000 }));
        for (const row of rows) stored.set(`${id} ${decodeKey(row.key)[2]}`, Number(decodeCounter(row)));
      }
      expect(stored).toEqual(counted);
    },
    liveBytes: () => [...chunks.values()].reduce((sum, { data }) => sum + data.length, 0),
    async storedBytes(): Promise<number> {
      const sizes = await Promise.all((await files.list()).map((name) => files.bytesOf(name)));
      return sizes.reduce((sum, size) => sum + size, 0);
    },
    newNumber: () => ++numbers,
  };
  return world;
}

function newWorld() {
  const partition = openPartition(openMemory());
  const world = newStore(partition);
  return Object.assign(world, { start: (kill?: Kill) => startProcess(world, partition, kill) });
}

type World = ReturnType<typeof newStore>;
type Process = Awaited<ReturnType<typeof startProcess>>;

async function startProcess(world: World, partition: Partition, kill?: Kill) {
  const epoch = await takeOverEpoch(partition);
  const extents = withFaults(world, openSlotted(world.files, { epoch, extentBytesMax: EXTENT_BYTES }));
  const reads = createActiveReads();
  const pinned: (LiveChunk & { place: ChunkLocation })[] = [];
  const running: { chunk: LiveChunk; place: ChunkLocation; end(): void }[] = [];
  const corruptions: string[] = [];
  const killed = createKiller(kill);
  const options: CollectorOptions = {
    partition: killed.of(failing(world, partition), ['transact']),
    extents: killed.of(extents, ['begin', 'remove', 'seal']),
    epoch,
    lowWatermark: reads,
    pinnedExtents: () => new Set(pinned.map(({ place }) => place.extent)),
    bounds: world.bounds,
    isOwner: world.isOwner,
    onFailure(error) {
      if ((error as Error).message !== 'planted failure') throw error;
    },
    onCorruption: ({ message }) => corruptions.push(message),
  };
  const collector = startCollector(options);

  async function upload(owner: bigint, size: number): Promise<void> {
    const name = { account: owner, epoch, number: world.newNumber() };
    const data = Buffer.alloc(size, String(name.number));
    const writer = await extents.begin(name, size);
    const chunk = { name, data, place: writer.place };
    pinned.push(chunk);
    await writer.write([data]);
    await writer.finish();
  }

  async function commit({ name, data, place }: LiveChunk & { place: ChunkLocation }): Promise<void> {
    await partition.transact(encodeKey([name.account, 'test']), async (tx) => {
      tx.put(chunkKey(name.account, name), encodeChunk({ place, refs: 1 }));
      tx.add(liveBytesKey(name.account, place.extent), BigInt(place.length));
    });
    world.chunks.set(String(name.number), { name, data });
  }

  async function removeChunk({ name }: LiveChunk): Promise<void> {
    world.chunks.delete(String(name.number));
    await partition.transact(encodeKey([name.account, 'test']), async (tx) => {
      const row = (await tx.get(chunkKey(name.account, name)))!;
      const { place } = decodeChunk(row);
      tx.remove(row.key);
      tx.add(liveBytesKey(name.account, place.extent), BigInt(-place.length));
    });
  }

  const pick = <T>(from: Iterable<T>, at: number): T | undefined => {
    const all = [...from];
    return all[at % all.length];
  };

  const process = {
    extents,
    reads,
    corruptions,
    removeChunk,
    idle: collector.idle,
    async act(step: Exclude<Step, { do: 'restart' }>): Promise<void> {
      switch (step.do) {
        case 'put':
          await upload(ACCOUNTS[step.account]!, step.bytes);
          return process.act({ do: 'commit', which: pinned.length - 1 });
        case 'upload':
          return upload(ACCOUNTS[step.account]!, step.bytes);
        case 'commit': {
          const chunk = pick(pinned, step.which);
          if (!chunk) return;
          await commit(chunk);
          pinned.splice(pinned.indexOf(chunk), 1);
          return;
        }
        case 'unpin':
          pinned.splice(step.which % Math.max(pinned.length, 1), 1);
          return;
        case 'remove': {
          const chunk = pick(world.chunks.values(), step.which);
          if (chunk) await removeChunk(chunk);
          return;
        }
        case 'read': {
          const read = reads.begin();
          const chunk = pick(world.chunks.values(), step.which);
          if (chunk) running.push({ chunk, place: await world.locationOf(chunk.name), end: read.end });
          else read.end();
          return;
        }
        case 'end':
          for (const { end } of running.splice(step.which % Math.max(running.length, 1), 1)) end();
          return;
        case 'abort': {
          const name = { account: ACCOUNTS[0]!, epoch, number: world.newNumber() };
          const writer = await extents.begin(name, step.bytes);
          await writer.write([Buffer.alloc(Math.floor(step.bytes / 2), 'x')]);
          writer.abandon();
          return;
        }
        case 'wake':
          collector.wake();
          return;
        case 'settle':
          collector.wake();
          await collector.idle();
      }
    },
    async expectReads(): Promise<void> {
      for (const { chunk, place } of running) {
        expect((await extents.read(chunk.name, place, 0, place.length)).equals(chunk.data)).toBe(true);
      }
    },
    /** Ends all reads and uploads; the collector does what it can. */
    async finish(): Promise<void> {
      for (const { end } of running.splice(0)) end();
      pinned.length = 0;
      await process.act({ do: 'settle' });
      await collector.stop();
    },
    async stop(): Promise<void> {
      await collector.stop();
      for (const { end } of running.splice(0)) end();
      pinned.length = 0;
    },
    async runUntilKilled(): Promise<void> {
      collector.wake();
      await Promise.race([collector.idle(), killed.kill]);
    },
  };
  return process;
}

/** Bytes of some chunks cannot be read, headers of others cannot be found. */
function withFaults(world: World, extents: Extents): Extents {
  return {
    ...extents,
    async begin(name, length) {
      world.begun++;
      await world.onBegin?.(name);
      return extents.begin(name, length);
    },
    async read(name, place, from, to) {
      if (world.corrupt.has(String(name.number))) throw new CorruptChunk('planted');
      return extents.read(name, place, from, to);
    },
    async *walk(extent) {
      for await (const slot of extents.walk(extent)) if (!world.hidden.has(String(slot.name.number))) yield slot;
    },
  };
}

function failing(world: World, partition: Partition): Partition {
  return {
    ...partition,
    transact(...given) {
      if (world.failures === 0) return partition.transact(...given);
      world.failures--;
      return Promise.reject(new Error('planted failure'));
    },
  };
}

/** After its last step a killed process does nothing, and no promise of it settles. */
function createKiller(kill: Kill | undefined) {
  let left = kill?.stepsBefore ?? Infinity;
  let onKilled = () => {};
  const isKilled = new Promise<void>((resolve) => {
    onKilled = resolve;
  });
  return {
    kill: isKilled,
    of<T extends object>(object: T, steps: readonly (keyof T)[]): T {
      const wrapped = { ...object };
      for (const name of steps) {
        const real = object[name] as (...given: unknown[]) => Promise<unknown>;
        const step = async (...given: unknown[]) => {
          if (left-- > 0) return real(...given);
          if (left === -1 && kill?.completesStep) await real(...given);
          onKilled();
          return new Promise(() => {});
        };
        wrapped[name] = step as T[keyof T];
      }
      return wrapped;
    },
  };
}
