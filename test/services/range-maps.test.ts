import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isFull, measure, type SegmentSource, wantsMerge } from '../../src/content/ranges/map-page.ts';
import type { ContentId } from '../../src/content/rows.ts';
import { openLmdb } from '../../src/partition/lmdb/engine.ts';
import { openMemory } from '../../src/partition/memory/engine.ts';
import type { Engine } from '../../src/partition/partition.ts';
import { openPostgres } from '../../src/partition/postgres/engine.ts';
import { Killed } from '../support/killable-partition.ts';
import { type Cluster, missing, startCluster } from '../support/postgres-cluster.ts';
import {
  bytesOfUnits,
  expectedBytes,
  expectedChanges,
  expectedRanges,
  LENGTH,
  ModelContent,
  type ModelState,
  UNIT,
  UNITS,
  unitBytes,
} from '../support/range-map-model.ts';
import { openRangeWorld, type RangeWorld, type ScatteredPiece } from '../support/range-map-world.ts';

const aUnit = fc.nat(UNITS - 1);
/** Which content, by its place among those that exist. */
const aContent = fc.nat(2);
const aKill = fc.option(fc.record({ commits: fc.nat(3), isAfter: fc.boolean() }), { freq: 6, nil: undefined });
const kind = <Kind extends string>(name: Kind) => fc.constant(name);

const aStep = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: kind('write'),
      content: aContent,
      from: aUnit,
      count: fc.integer({ min: 1, max: 3 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: kind('write'),
      content: aContent,
      from: aUnit,
      count: fc.integer({ min: 100, max: 700 }),
    }),
  },
  // Short writes to one page, until it has to be merged.
  {
    weight: 2,
    arbitrary: fc.record({
      kind: kind('burst'),
      content: aContent,
      from: aUnit,
      count: fc.integer({ min: 5, max: 25 }),
    }),
  },
  // Of one transaction: some follow each other, and some are over others.
  {
    weight: 3,
    arbitrary: fc.record({
      kind: kind('several'),
      content: aContent,
      from: aUnit,
      places: fc.array(fc.nat(9), { minLength: 1, maxLength: 12 }),
    }),
  },
  // At the end; a content that has no room for them is truncated.
  {
    weight: 6,
    arbitrary: fc.record({
      kind: kind('append'),
      content: aContent,
      from: aUnit,
      count: fc.integer({ min: 1, max: 25 }),
      pagesMax: fc.nat(2),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: kind('clear'),
      content: aContent,
      from: aUnit,
      count: fc.integer({ min: 1, max: 600 }),
      pagesMax: fc.nat(2),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: kind('scatter'),
      content: aContent,
      from: aUnit,
      pieces: fc.array(fc.record({ gap: fc.nat(40), count: fc.integer({ min: 1, max: 90 }), clears: fc.boolean() }), {
        minLength: 1,
        maxLength: 8,
      }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: kind('share'),
      content: aContent,
      source: aContent,
      which: fc.option(fc.nat(5), { nil: undefined }),
      from: aUnit,
      to: aUnit,
      count: fc.integer({ min: 1, max: 400 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: kind('truncate'), content: aContent, from: aUnit, pagesMax: fc.nat(2) }) },
  { weight: 4, arbitrary: fc.record({ kind: kind('hold'), content: aContent }) },
  { weight: 3, arbitrary: fc.record({ kind: kind('release'), content: aContent, which: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('fork'), content: aContent, which: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('end'), content: aContent }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('drop'), content: aContent }) },
  { weight: 2, arbitrary: fc.record({ kind: kind('merge'), content: aContent, page: fc.nat(2) }) },
  { weight: 5, arbitrary: fc.record({ kind: kind('sweep') }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('long read'), content: aContent }) },
  { weight: 2, arbitrary: fc.record({ kind: kind('finish read') }) },
);
type Step = typeof aStep extends fc.Arbitrary<infer T> ? T : never;

interface Known {
  readonly id: ContentId;
  readonly model: ModelContent;
  /** Nothing is written any more. */
  isEnded: boolean;
}

interface LongRead {
  readonly state: ModelState;
  finish(): Promise<{ bytes: Buffer }>;
}

const CONTENTS_MAX = 3;

class Run {
  contents: Known[] = [];
  reads: LongRead[] = [];
  readonly #world: RangeWorld;
  #seed = 0;

  constructor(world: RangeWorld) {
    this.#world = world;
  }

  /** The model follows if the step's deciding commit was made, whether a kill came after it or not. */
  async perform(step: Step, kill: { commits: number; isAfter: boolean } | undefined): Promise<void> {
    const world = this.#world;
    const target = 'content' in step ? this.contents[step.content % Math.max(this.contents.length, 1)] : undefined;
    world.hasDecided = false;
    world.killAt(kill && { ...kill });
    let follow = () => {};
    try {
      const carryOut = this.#plan(step, target);
      follow = carryOut.follow;
      await carryOut.run();
    } catch (error) {
      if (!(error instanceof Killed)) throw error;
      await world.restart();
      this.reads = [];
    }
    world.killAt(undefined);
    if (world.hasDecided) follow();
  }

  #plan(step: Step, target: Known | undefined): { run(): Promise<unknown>; follow(): void } {
    const world = this.#world;
    const nothing = { run: async () => {}, follow: () => {} };
    if (step.kind === 'sweep') return { ...nothing, run: () => world.sweep() };
    if (step.kind === 'finish read') return { ...nothing, run: () => this.#finishRead() };
    if (!target) {
      const id = world.newId();
      const known = { id, model: new ModelContent(), isEnded: false };
      const firstSeed = step.kind === 'write' ? ++this.#seed : undefined;
      if (firstSeed !== undefined) known.model.write(0, 1, firstSeed);
      return { run: () => world.create(id, firstSeed), follow: () => this.contents.push(known) };
    }
    const { id, model } = target;
    const held = [...model.held.keys()];
    if (step.kind === 'release') {
      const gen = held[step.which % Math.max(held.length, 1)];
      if (gen === undefined || (target.isEnded && held.length === 1)) return nothing;
      return { run: () => world.release(id, gen), follow: () => model.held.delete(gen) };
    }
    if (step.kind === 'fork') {
      const gen = held[step.which % Math.max(held.length, 1)];
      if (gen === undefined || this.contents.length >= CONTENTS_MAX) return nothing;
      const copy = world.newId();
      const copied = { id: copy, model: model.copy(model.held.get(gen)!), isEnded: false };
      return { run: () => world.fork(id, gen, copy), follow: () => this.contents.push(copied) };
    }
    if (step.kind === 'merge') return { ...nothing, run: () => world.merge(id, step.page) };
    if (step.kind === 'drop') {
      if (this.reads.length > 0) return nothing;
      return {
        run: () => world.drop(id),
        follow: () => (this.contents = this.contents.filter((each) => each !== target)),
      };
    }
    if (target.isEnded) return nothing;
    switch (step.kind) {
      case 'burst':
      case 'write': {
        const seed = ++this.#seed;
        const count = step.kind === 'burst' ? 1 : Math.min(step.count, UNITS - step.from);
        return {
          run: () => world.write(id, step.from, count, seed),
          follow: () => model.write(step.from, count, seed),
        };
      }
      case 'several': {
        const writes = step.places.map((place) => ({ unit: (step.from + place) % UNITS, seed: ++this.#seed }));
        return {
          run: () => world.writeShort(id, writes),
          follow: () => {
            for (const { unit, seed } of writes) model.write(unit, 1, seed);
          },
        };
      }
      case 'append': {
        const { end } = model;
        const seeds = Array.from({ length: Math.min(step.count, UNITS - end) }, () => ++this.#seed);
        if (seeds.length === 0) return this.#plan({ ...step, kind: 'truncate' }, target);
        return {
          run: () => world.append(id, end, seeds),
          follow: () => {
            for (const [i, seed] of seeds.entries()) model.write(end + i, 1, seed);
          },
        };
      }
      case 'clear': {
        const to = Math.min(step.from + step.count, UNITS);
        return {
          run: () => world.clear(id, step.from, to, step.pagesMax),
          follow: () => model.clear(step.from, to),
        };
      }
      case 'scatter': {
        const seed = ++this.#seed;
        const pieces = placePieces(step.from, step.pieces, seed);
        return {
          run: () => world.scatter(id, pieces),
          follow: () => {
            for (const { from, to, seed: written } of pieces)
              if (written === 0) model.clear(from, to);
              else model.write(from, to - from, written);
          },
        };
      }
      case 'share': {
        const source = this.contents[step.source % this.contents.length]!;
        const gens = [...source.model.held.keys()];
        const gen = step.which === undefined && !source.isEnded ? undefined : gens[(step.which ?? 0) % gens.length];
        if (gen === undefined && (step.which !== undefined || source.isEnded)) return nothing;
        const count = Math.min(step.count, UNITS - step.from, UNITS - step.to);
        const state = gen === undefined ? { units: source.model.units } : source.model.held.get(gen)!;
        return {
          run: () => world.share(id, step.to, { id: source.id, gen, unit: step.from }, count),
          follow: () => model.share(step.to, state, step.from, count),
        };
      }
      case 'truncate':
        return {
          run: () => world.clear(id, step.from, undefined, step.pagesMax),
          follow: () => model.clear(step.from, UNITS),
        };
      case 'hold':
        return { run: () => world.hold(id), follow: () => model.hold() };
      case 'end':
        if (held.length === 0) return nothing;
        return { run: () => world.end(id), follow: () => (target.isEnded = true) };
      case 'long read': {
        const state = { units: model.units };
        return {
          run: async () => this.reads.push({ state, ...(await world.beginLongRead(id)) }),
          follow: () => model.gen++,
        };
      }
    }
  }

  async #finishRead(): Promise<void> {
    const read = this.reads.shift();
    if (!read) return;
    const { bytes } = await read.finish();
    expectSame(bytes, expectedBytes(read.state, 0, LENGTH), 'a long read');
  }

  /** Everything that is to be seen now. */
  async verify(): Promise<void> {
    for (const { id, model, isEnded } of this.contents) {
      const states = new Map<number | undefined, ModelState>(model.held);
      if (!isEnded) states.set(undefined, { units: model.units });
      for (const [gen, state] of states) {
        expectSame(await this.#read(id, gen), expectedBytes(state, 0, LENGTH), `generation ${gen}`);
        expect(await this.#world.list(id, gen)).toMatchObject(expectedRanges(state));
        for (const since of model.held.keys()) {
          if (gen !== undefined && since >= gen) continue;
          expect(await this.#world.compare(id, since, gen), `${since} to ${gen}`).toEqual(
            expectedChanges(state, since),
          );
        }
      }
    }
  }

  /** Without a hold, at most as much as one lookup finds. */
  async #read(id: ContentId, gen: number | undefined): Promise<Buffer> {
    if (gen !== undefined) return this.#world.read(id, gen, 0, LENGTH);
    const pieces: Buffer[] = [];
    for (let from = 0; from < LENGTH; from += 1_000_000)
      pieces.push(await this.#world.read(id, undefined, from, Math.min(from + 1_000_000, LENGTH)));
    return Buffer.concat(pieces);
  }

  async finish(): Promise<void> {
    while (this.reads.length > 0) await this.#finishRead();
    for (const { id } of this.contents) await this.#world.drop(id);
    for (let i = 0; await this.#world.sweep(); i++) expect(i).toBeLessThan(2_000);
    expect(await this.#world.leftRows()).toEqual({});
  }
}

function placePieces(
  first: number,
  pieces: readonly { gap: number; count: number; clears: boolean }[],
  seed: number,
): ScatteredPiece[] {
  const placed: ScatteredPiece[] = [];
  let end = first;
  for (const { gap, count, clears } of pieces) {
    const from = end + gap;
    const to = Math.min(from + count, UNITS);
    if (from >= to) break;
    placed.push({ from, to, seed: clears ? 0 : seed });
    end = to;
  }
  return placed;
}

function expectSame(found: Buffer, expected: Buffer, what: string): void {
  if (found.equals(expected)) return;
  const at = expected.findIndex((byte, i) => byte !== found[i]);
  expect(`${what}: ${found.length} bytes, byte ${at} is ${found[at]}`).toBe(`${expected[at]}`);
}

/** Bursts as the writes that they are. */
const expand = (steps: readonly [Step, Kill][]): [Step, Kill][] =>
  steps.flatMap(([step, kill]): [Step, Kill][] => {
    if (step.kind !== 'burst') return [[step, kill]];
    const page = step.from - (step.from % 300);
    return Array.from({ length: step.count }, (_, i) => [
      { ...step, from: Math.min(page + ((step.from * (i + 1) * 7) % 300), UNITS - 1) },
      i === step.count - 1 ? kill : undefined,
    ]);
  });
type Kill = { commits: number; isAfter: boolean } | undefined;

function rangeMapModel(open: () => Promise<{ engine: Engine; drop(): Promise<void> }>, runs: number, every: number) {
  return fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(aStep, aKill), { minLength: 5, maxLength: 40, size: 'max' }), async (steps) => {
      const { engine, drop } = await open();
      const world = await openRangeWorld(engine);
      try {
        const run = new Run(world);
        for (const [i, [step, kill]] of expand(steps).entries()) {
          await run.perform(step, kill);
          if (i % every !== 0) continue;
          await run.verify();
          expect(await world.findings()).toEqual([]);
        }
        await run.verify();
        expect(await world.findings()).toEqual([]);
        await run.finish();
        expect(await world.findings()).toEqual([]);
      } finally {
        await world.close();
        await drop();
      }
    }),
    { numRuns: runs },
  );
}

async function openOne() {
  const rows = { most: 0, bytes: 0 };
  const engine = openMemory({
    inject({ writeSets }) {
      const writes = writeSets.flatMap((set) => set.writes);
      rows.most = Math.max(rows.most, writes.length);
      for (const write of writes) if (write.kind === 'put') rows.bytes += write.value.length;
      return undefined;
    },
  });
  const world = await openRangeWorld(engine);
  const id = world.newId();
  await world.create(id);
  const settle = async () => {
    for (let i = 0; await world.sweep(); i++) expect(i).toBeLessThan(1_000);
    expect(await world.findings()).toEqual([]);
  };
  const expectUnits = async (gen: number | undefined, from: number, seeds: readonly number[]) => {
    const found = await world.read(id, gen, from * UNIT, (from + seeds.length) * UNIT);
    expectSame(found, Buffer.concat(seeds.map((seed, i) => unitBytes(seed, from + i))), `generation ${gen}`);
  };
  return { world, id, settle, expectUnits, rows };
}

describe('Short writes one after another', () => {
  it('are few pieces, and a merge beside them takes what it has found', async () => {
    const { world, id, expectUnits, settle } = await openOne();
    for (let unit = 0; unit < 12; unit++) await world.write(id, unit, 1, 1);
    expect(await world.piecesOf(id, 0)).toEqual([2, 2, 2, 2, 2, 2]);
    await world.write(id, 12, 1, 1);
    // The last piece is continued, and the merge moves what it has found of it.
    await Promise.all([world.merge(id, 0), world.write(id, 13, 1, 2)]);
    expect((await world.piecesOf(id, 0)).length).toBeLessThan(2);
    await expectUnits(undefined, 0, [...Array.from({ length: 13 }, () => 1), 2]);
    await world.write(id, 14, 1, 4);
    await expectUnits(undefined, 12, [1, 2, 4]);
    await world.write(id, 5, 1, 3);
    await expectUnits(undefined, 4, [1, 3, 1]);
    await settle();
  });

  it('are not joined over a snapshot, which a comparison shows exactly', async () => {
    const { world, id, settle } = await openOne();
    await world.write(id, 0, 1, 1);
    const held = await world.hold(id);
    await world.write(id, 1, 1, 2);
    await world.write(id, 2, 1, 3);
    expect(await world.compare(id, held, undefined)).toEqual([{ from: UNIT, to: 3 * UNIT, isWritten: true }]);
    expect(await world.piecesOf(id, 0)).toEqual([1, 2]);
    await settle();
  });
});

describe('Appends', () => {
  it('write only rows of their pieces, until another change or a snapshot makes the map page name them', async () => {
    const { world, id, expectUnits, settle } = await openOne();
    await world.append(id, 0, [1]);
    await world.append(id, 1, [2, 3]);
    expect(await world.leftRows()).toEqual({ c: 1, I: 3 });
    await expectUnits(undefined, 0, [1, 2, 3, 0]);
    await world.write(id, 1, 1, 4);
    expect(await world.leftRows()).toMatchObject({ M: 1 });
    await expectUnits(undefined, 0, [1, 4, 3, 0]);
    await world.append(id, 3, [5]);
    const held = await world.hold(id);
    await world.append(id, 4, [6]);
    await expectUnits(held, 0, [1, 4, 3, 5, 0]);
    await expectUnits(undefined, 0, [1, 4, 3, 5, 6, 0]);
    expect(await world.compare(id, held, undefined)).toEqual([{ from: 4 * UNIT, to: 5 * UNIT, isWritten: true }]);
    await settle();
  });

  it('follow a truncation that the sweeper has yet to apply', async () => {
    const { world, id, expectUnits, settle } = await openOne();
    await world.write(id, 0, 1, 1);
    await world.append(id, 1, [2, 3, 4]);
    await world.clear(id, 0, undefined, 0);
    await world.append(id, 0, [5, 6]);
    await expectUnits(undefined, 0, [5, 6, 0, 0]);
    await settle();
    await world.append(id, 2, [7]);
    await expectUnits(undefined, 0, [5, 6, 7, 0]);
    await world.hold(id);
    await settle();
    await expectUnits(undefined, 0, [5, 6, 7, 0]);
  });

  it('wait for a merge where their page is full; a snapshot, or a long read, never does', async () => {
    const { world, id, expectUnits, settle } = await openOne();
    const seeds = Array.from({ length: 300 }, (_, i) => i + 1);
    for (const [unit, seed] of seeds.entries()) {
      await world.append(id, unit, [seed]);
      // From 512 KiB on, a page takes no more.
      if (unit > 140 && unit < 160) await world.hold(id);
    }
    const read = await world.beginLongRead(id);
    await world.append(id, 300, [301]);
    expectSame(
      (await read.finish()).bytes.subarray(0, 300 * UNIT),
      Buffer.concat(seeds.map((seed, i) => unitBytes(seed, i))),
      'the read',
    );
    await settle();
    await expectUnits(undefined, 0, [...seeds, 301]);
  });

  it('of a content that is deleted, or replaced while a snapshot is left, leave nothing', async () => {
    const { world, id, expectUnits, settle } = await openOne();
    await world.append(id, 0, [1, 2]);
    const held = await world.hold(id);
    await world.append(id, 2, [3, 4]);
    await world.end(id);
    await settle();
    await expectUnits(held, 0, [1, 2]);
    await world.release(id, held);
    const other = world.newId();
    await world.create(other);
    await world.append(other, 0, [1, 2, 3]);
    await world.drop(other);
    await settle();
    expect(await world.leftRows()).toEqual({});
  });
});

describe('A clear', () => {
  it('changes nothing where nothing is, or was cleared before', async () => {
    const { world, id, settle } = await openOne();
    await world.write(id, 0, 3, 1);
    const first = await world.hold(id);
    await world.clear(id, 1, 2, 1);
    const second = await world.hold(id);
    for (const pagesMax of [0, 1]) await world.clear(id, 1, 6, pagesMax);
    const cleared = (from: number, to: number) => ({ from: from * UNIT, to: to * UNIT, isWritten: false });
    expect(await world.compare(id, second, undefined)).toEqual([cleared(2, 3)]);
    expect(await world.compare(id, first, undefined)).toEqual([cleared(1, 3)]);
    await settle();
    expect(await world.compare(id, second, undefined)).toEqual([cleared(2, 3)]);
  });

  it('is a change, although an earlier generation had nothing there: a write came between', async () => {
    const { world, id } = await openOne();
    const held = await world.hold(id);
    await world.write(id, 0, 3, 1);
    await world.hold(id);
    await world.clear(id, 1, 2, 1);
    expect(await world.compare(id, held, undefined)).toEqual(
      [0, 1, 2].map((unit) => ({ from: unit * UNIT, to: (unit + 1) * UNIT, isWritten: unit !== 1 })),
    );
  });
});

describe('A merge', () => {
  it('keeps the generation of every write', async () => {
    const { world, id, settle } = await openOne();
    for (let unit = 0; unit < 4; unit++) await world.write(id, unit, 1, 1);
    const held = await world.hold(id);
    await world.write(id, 1, 1, 2);
    await world.clear(id, 3, 4, 1);
    await world.merge(id, 0);
    const changed = await world.compare(id, held, undefined);
    expect(changed).toEqual([
      { from: UNIT, to: 2 * UNIT, isWritten: true },
      { from: 3 * UNIT, to: 4 * UNIT, isWritten: false },
    ]);
    await settle();
  });

  it('runs beside writes, and takes nothing from them', async () => {
    const { world, id, expectUnits, settle } = await openOne();
    for (let unit = 0; unit < 6; unit++) await world.write(id, unit, 1, 1);
    await Promise.all([
      world.merge(id, 0),
      world.write(id, 2, 1, 2),
      world.clear(id, 4, 5, 1),
      world.write(id, 9, 2, 3),
    ]);
    await expectUnits(undefined, 0, [1, 1, 2, 1, 0, 1, 0, 0, 0, 3, 3]);
    await settle();
  });

  it('keeps a page small: short writes make few chunks, and little log', async () => {
    const { world, id, settle, rows } = await openOne();
    const writes = 600;
    for (let i = 0; i < writes; i++) {
      await world.write(id, (i * 37) % 300, 1, i + 1);
      if (i % 10 === 0) await world.sweep();
    }
    expect(rows.bytes / writes).toBeLessThan(48 << 10);
    await settle();
    const { k: chunks = 0, M: pages } = await world.leftRows();
    expect(pages).toBe(1);
    expect(chunks).toBeLessThanOrEqual(16);
  });

  it('frees chunks of which little is visible', async () => {
    const { world, id, settle } = await openOne();
    await world.write(id, 0, 300, 1);
    await world.write(id, 1, 299, 2);
    await settle();
    // One unit of the first chunk is visible: it was moved to a chunk of its own.
    expect(await world.chunkBytes()).toBe(300 * UNIT);
  });
});

describe('The chunks of a content and its snapshots', () => {
  /** Each slice of the writes in one map page, so that no chunk is in two. */
  const aWrite = fc.record({
    kind: kind('write'),
    page: fc.nat(1),
    from: fc.nat(300),
    count: fc.oneof(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 5, max: 310 })),
  });
  const aChange = fc.oneof(
    { weight: 12, arbitrary: aWrite },
    { weight: 1, arbitrary: fc.record({ kind: kind('clear'), from: aUnit, count: fc.integer({ min: 1, max: 600 }) }) },
    { weight: 4, arbitrary: fc.record({ kind: kind('hold') }) },
    { weight: 2, arbitrary: fc.record({ kind: kind('release'), which: fc.nat(5) }) },
    { weight: 3, arbitrary: fc.record({ kind: kind('sweep') }) },
  );

  it('take at most a seventh more than what can be seen, whichever snapshots are released', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(aChange, { minLength: 10, maxLength: 60, size: 'max' }), async (changes) => {
        const { world, id, settle } = await openOne();
        const model = new ModelContent();
        const firstUnit = [0, 316];
        for (const [i, change] of changes.entries()) {
          // The world lets chunks of each third seed cross a border.
          const seed = 3 * i + 1;
          if (change.kind === 'write') {
            const from = firstUnit[change.page]! + change.from;
            const count = Math.min(change.count, 313 - change.from);
            model.write(from, count, seed);
            await world.write(id, from, count, seed);
          } else if (change.kind === 'clear') {
            const to = Math.min(change.from + change.count, UNITS);
            model.clear(change.from, to);
            await world.clear(id, change.from, to, i % 2);
          } else if (change.kind === 'hold') {
            model.hold();
            await world.hold(id);
          } else if (change.kind === 'release') {
            const gens = [...model.held.keys()];
            const gen = gens[change.which % Math.max(gens.length, 1)];
            if (gen !== undefined) await world.release(id, gen);
            if (gen !== undefined) model.held.delete(gen);
          } else await world.sweep();
        }
        await settle();
        const visible = visibleUnits(model) * UNIT;
        expect(await world.chunkBytes()).toBeLessThanOrEqual((visible * 8) / 7);
        for (const [gen, state] of model.held)
          expectSame(await world.read(id, gen, 0, LENGTH), expectedBytes(state, 0, LENGTH), `generation ${gen}`);
        await world.close();
      }),
      { numRuns: 150 },
    );
  }, 300_000);

  it('do so if each generation overwrites what it has written: little of a page, but the more the more snapshots', async () => {
    const { world, id, settle } = await openOne();
    await world.write(id, 0, 313, 1);
    const generations = 20;
    for (let i = 0; i < generations; i++) {
      await world.hold(id);
      await world.write(id, 0, 30, 6 * i + 4);
      await world.write(id, 1, 29, 6 * i + 7);
    }
    await settle();
    expect(await world.chunkBytes()).toBeLessThanOrEqual(((313 + generations * 30) * UNIT * 8) / 7);
  });

  it('do so after a chunk that only snapshots show has left the page', async () => {
    const { world, id, settle } = await openOne();
    await world.write(id, 0, 313, 1);
    await world.hold(id);
    await world.write(id, 0, 300, 4);
    await settle();
    await world.write(id, 300, 13, 7);
    await world.write(id, 0, 299, 10);
    await settle();
    expect(await world.chunkBytes()).toBeLessThanOrEqual((2 * 313 * UNIT * 8) / 7);
  });

  it('do so after the snapshot that showed the rest is released', async () => {
    const { world, id, settle } = await openOne();
    await world.write(id, 0, 313, 1);
    const held = await world.hold(id);
    await world.write(id, 0, 70, 4);
    await world.merge(id, 0);
    await world.release(id, held);
    await settle();
    await world.write(id, 0, 69, 7);
    await settle();
    expect(await world.chunkBytes()).toBeLessThanOrEqual((313 * UNIT * 8) / 7);
  });

  it('do so if the snapshot that showed the rest is released while a merge counts what it shows', async () => {
    // Whichever comes first, in turns of the queue of microtasks.
    const left: number[] = [];
    for (let turns = 0; turns < 30; turns++) {
      const { world, id, settle } = await openOne();
      await world.write(id, 0, 313, 1);
      const held = await world.hold(id);
      await world.write(id, 10, 200, 4);
      await world.release(id, held);
      await world.sweepAtOnce(['generation']);
      const swept = world.sweepAtOnce(['merge']);
      for (let i = 0; i < turns; i++) await undefined;
      await Promise.all([swept, world.sweepAtOnce(['generation'])]);
      await settle();
      left.push((await world.chunkBytes()) / UNIT);
    }
    expect(left).toEqual(left.map(() => 313));
  });

  it('do so if the page is copied for a snapshot while it is merged', async () => {
    const { world, id, settle } = await openOne();
    await world.write(id, 0, 313, 1);
    await world.hold(id);
    await world.write(id, 0, 200, 4);
    await world.sweepMerge(async () => {
      // One unit of the chunk before it is left, and only the snapshot shows that.
      await world.write(id, 1, 199, 7);
      await world.hold(id);
      await world.write(id, 0, 313, 10);
    });
    await settle();
    expect(await world.chunkBytes()).toBeLessThanOrEqual(((313 + 200 + 313) * UNIT * 8) / 7);
  });

  it('do so if more versions of a page show a chunk than one commit changes', async () => {
    const { world, id, settle, expectUnits, rows } = await openOne();
    await world.write(id, 0, 313, 1);
    await world.write(id, 1, 312, 4);
    const gens: number[] = [];
    for (let i = 0; i < 40; i++) {
      gens.push(await world.hold(id));
      await world.write(id, 300, 1, 7 + 3 * i);
    }
    await settle();
    expect(await world.chunkBytes()).toBeLessThanOrEqual(((313 + gens.length) * UNIT * 8) / 7);
    for (const gen of gens) await expectUnits(gen, 0, [1, 4]);
    expect(rows.most).toBeLessThan(1_000);
  });

  it('do so after the release of old snapshots, of which hundreds of later ones show a little', async () => {
    const { world, id, settle, expectUnits } = await openOne();
    const early: number[] = [];
    for (let i = 0; i < 6; i++) {
      await world.write(id, 3 * i, 313 - 3 * i, 3 * i + 1);
      early.push(await world.hold(id));
    }
    const late: number[] = [];
    for (let i = 0; i < 300; i++) {
      await world.write(id, 300, 1, 100 + 3 * i);
      late.push(await world.hold(id));
    }
    for (const gen of early) await world.release(id, gen);
    await settle();
    expect(await world.chunkBytes()).toBeLessThanOrEqual(((313 + late.length) * UNIT * 8) / 7);
    await expectUnits(late[0], 0, [1, 1, 1, 4, 4, 4, 7]);
    await expectUnits(undefined, 0, [1, 1, 1, 4, 4, 4, 7]);
  }, 30_000);

  it('are written once for all versions of a page, and not at all where a snapshot still shows the old ones', async () => {
    const { world, id, settle, expectUnits } = await openOne();
    await world.write(id, 0, 313, 1);
    const held = await world.hold(id);
    await world.write(id, 10, 200, 4);
    await settle();
    expect(await world.leftRows()).toMatchObject({ k: 2, o: 1 });
    expect(await world.chunkBytes()).toBe(513 * UNIT);
    await world.release(id, held);
    await settle();
    expect(await world.chunkBytes()).toBe(313 * UNIT);
    await expectUnits(undefined, 8, [1, 1, 4, 4]);
  });

  /** Writes of units that a generation shows. */
  function visibleUnits({ units, held }: ModelContent): number {
    const states = [{ units }, ...held.values()];
    const written = states.flatMap((state) =>
      state.units.map(({ seed }, unit) => (seed === 0 ? '' : `${unit} ${seed}`)),
    );
    return new Set(written.filter((each) => each !== '')).size;
  }
});

describe('A copy that shares chunks', () => {
  it('names them again, and no byte of a chunk twice in a page; a merge moves what is left visible', async () => {
    const { world, id, settle } = await openOne();
    const copy = world.newId();
    await world.create(copy);
    await world.write(id, 0, 100, 1);
    const share = (from: number, to: number, count: number) =>
      world.share(copy, to, { id, gen: undefined, unit: from }, count);
    expect(await share(0, 0, 50)).toBe(true);
    expect(await share(0, 100, 50)).toBe(false);
    expect(await share(49, 100, 51)).toBe(false);
    expect(await share(50, 100, 50)).toBe(true);
    // Another page.
    expect(await share(0, 400, 100)).toBe(true);
    expect(await world.chunkBytes()).toBe(100 * UNIT);
    await world.write(copy, 0, 48, 2);
    await world.merge(copy, 0);
    await settle();
    const expected = Buffer.concat([bytesOfUnits(0, 48, 2), bytesOfUnits(48, 2, 1), Buffer.alloc(50 * UNIT)]);
    expectSame(await world.read(copy, undefined, 0, 100 * UNIT), expected, 'the beginning');
    expectSame(await world.read(copy, undefined, 100 * UNIT, 150 * UNIT), bytesOfUnits(50, 50, 1), 'the second part');
    expectSame(await world.read(copy, undefined, 400 * UNIT, 500 * UNIT), bytesOfUnits(0, 100, 1), 'the other page');
    expect(await world.findings()).toEqual([]);
  });

  it('joins short writes that are neighbours', async () => {
    const { world, id } = await openOne();
    for (const [at, text] of ['Hello', ' ', 'world'].entries()) {
      await world.writeBytes(id, [0, 5, 6][at]!, Buffer.from(text));
      await world.hold(id);
    }
    expect(await world.piecesOf(id, 0)).toHaveLength(3);
    expect(await world.share(id, 10, { id, gen: undefined, unit: 0 }, 1)).toBe(true);
    expect((await world.read(id, undefined, 10 * UNIT, 11 * UNIT)).toString('latin1', 0, 11)).toBe('Hello world');
    expect(await world.findings()).toEqual([]);
  });

  it('is refused for a range in many pieces', async () => {
    const { world, id } = await openOne();
    for (let unit = 0; unit < 80; unit += 2) await world.write(id, unit, 1, 1);
    expect(await world.share(id, 200, { id, gen: undefined, unit: 0 }, 20)).toBe(true);
    expect(await world.share(id, 300, { id, gen: undefined, unit: 0 }, 80)).toBe(false);
  });
});

describe('Writes that begin and end anywhere', () => {
  it('are listed in units, whichever bytes of a unit were written', async () => {
    const { world, id } = await openOne();
    const write = (offset: number, text: string) => world.writeBytes(id, offset, Buffer.from(text));
    await write(0, 'Hello');
    await write(10, 'again');
    await write(1_023, 'World');
    await write(4_095, 'x');
    await write(4_096, 'y');
    expect(await world.list(id, undefined, 512)).toMatchObject([
      { from: 0, to: 1_536 },
      { from: 3_584, to: 4_608 },
    ]);
  });

  it('leave a page with few segments and every byte: a merge joins its sectors', async () => {
    const { world, id, settle } = await openOne();
    const expected = Buffer.alloc(40 * 512);
    const held = await world.hold(id);
    // Each fifth byte, as thousands of writes would leave them.
    const segments = Array.from({ length: 3_500 }, (_, piece) => {
      const bytes = Buffer.from([(piece % 250) + 1]);
      bytes.copy(expected, piece * 5);
      return { from: piece * 5, to: piece * 5 + 1, born: (piece % 2) + 1, source: { piece, length: 1, bytes }, at: 0 };
    });
    await world.putPage(id, 0, { born: held + 1, nextPiece: segments.length, segments });
    await world.writeBytes(id, 10_000, Buffer.from([255]));
    expected[10_000] = 255;
    await settle();
    expectSame(await world.read(id, undefined, 0, expected.length), expected, 'the page');
    const sectors = 35;
    expect(await world.list(id, undefined)).toHaveLength(sectors);
    expect(await world.compare(id, held, undefined)).toHaveLength(sectors);
    expect(await world.leftRows()).toMatchObject({ M: 1, k: 1 });
  });

  it('have to wait for a merge once a page has too many segments or short writes', () => {
    const chunk = { chunk: { epoch: 1n, number: 1n }, length: 1 << 20 };
    const ofPiece = (piece: number) => ({ piece, length: 1 });
    const every = (bytes: number, count: number, sourceOf: (i: number) => SegmentSource) =>
      Array.from({ length: count }, (_, i) => ({
        ...{ from: i * bytes, to: i * bytes + 1, born: 1, source: sourceOf(i) },
        at: i * bytes,
      }));
    const segments = (count: number) => every(5, count, () => chunk);
    const pieces = (count: number) => every(900, count, ofPiece);
    const judge = (verdict: typeof isFull, pages: ReturnType<typeof every>[]) =>
      pages.map((each) => verdict(measure(each)));
    expect(judge(isFull, [segments(4_096), segments(4_097)])).toEqual([false, true]);
    expect(judge(isFull, [pieces(128), pieces(129)])).toEqual([false, true]);
    expect(judge((use) => wantsMerge(use, 0), [pieces(64), pieces(65)])).toEqual([false, true]);
  });
});

describe('A truncation', () => {
  it('stays removed when the page is written before the sweeper has come', async () => {
    const { world, id, expectUnits, settle } = await openOne();
    await world.write(id, 0, 500, 1);
    await world.clear(id, 2, undefined, 0);
    await expectUnits(undefined, 0, [1, 1, 0, 0]);
    await world.write(id, 5, 1, 2);
    await expectUnits(undefined, 0, [1, 1, 0, 0, 0, 2, 0]);
    await expectUnits(undefined, 400, [0, 0]);
    await settle();
    await expectUnits(undefined, 0, [1, 1, 0, 0, 0, 2, 0]);
    await expectUnits(undefined, 400, [0, 0]);
    expect(await world.list(id, undefined)).toMatchObject([
      { from: 0, to: 2 * UNIT },
      { from: 5 * UNIT, to: 6 * UNIT },
    ]);
  });

  it('is not seen by snapshots before it: a page that snapshots before and after a truncation see is split', async () => {
    const { world, id, expectUnits, settle } = await openOne();
    await world.write(id, 0, 500, 1);
    const before = await world.hold(id);
    await world.clear(id, 2, undefined, 0);
    const after = await world.hold(id);
    await world.write(id, 3, 1, 2);
    await settle();
    await expectUnits(before, 0, [1, 1, 1, 1]);
    await expectUnits(after, 0, [1, 1, 0, 0]);
    await expectUnits(undefined, 0, [1, 1, 0, 2]);
    await expectUnits(after, 400, [0, 0]);
  });
});

describe('A release', () => {
  it('keeps the pages of the other snapshots, and frees those of its own', async () => {
    const { world, id, expectUnits, settle } = await openOne();
    const gens: number[] = [];
    for (const seed of [1, 2, 3]) {
      await world.write(id, 0, 2, seed);
      gens.push(await world.hold(id));
    }
    await world.write(id, 0, 2, 4);
    await world.release(id, gens[1]!);
    await settle();
    await expectUnits(gens[0], 0, [1, 1]);
    await expectUnits(gens[2], 0, [3, 3]);
    expect(await world.leftRows()).toMatchObject({ o: 2, N: 2, k: 3 });
    await world.release(id, gens[2]!);
    await world.release(id, gens[0]!);
    await settle();
    expect(await world.leftRows()).toEqual({ c: 1, M: 1, k: 1, l: 1 });
  });

  it('waits for a read of the snapshot', async () => {
    const { world, id, settle } = await openOne();
    await world.write(id, 0, 700, 1);
    const gen = await world.hold(id);
    await world.write(id, 0, 700, 2);
    const read = await world.openRead(id, gen);
    await world.release(id, gen);
    await world.sweep();
    expectSame(await read(), bytesOfUnits(0, 700, 1), 'the snapshot');
    await settle();
    expect(await world.leftRows()).not.toHaveProperty('o');
  });
});

describe('A long read', () => {
  it('sees one state of the content, whatever is written, cleared, merged and swept meanwhile', async () => {
    const { world, id, settle } = await openOne();
    await world.write(id, 0, 700, 1);
    const read = await world.beginLongRead(id);
    await world.write(id, 300, 400, 2);
    await world.clear(id, 0, undefined, 0);
    await world.write(id, 650, 1, 3);
    await world.merge(id, 1);
    await world.sweep();
    expectSame((await read.finish()).bytes, bytesOfUnits(0, 700, 1), 'the read');
    await settle();
    const left = await world.leftRows();
    for (const kind of ['o', 'N', 'x']) expect(left).not.toHaveProperty(kind);
    // A merge after the release may have moved the short write.
    expect(await world.chunkBytes()).toBeLessThanOrEqual(UNIT);
  });

  it('of a content that is deleted sees what a truncation left', async () => {
    const { world, id, settle } = await openOne();
    await world.write(id, 0, 700, 1);
    await world.clear(id, 500, undefined, 0);
    const read = await world.beginLongRead(id);
    await world.drop(id);
    await world.sweep();
    const expected = Buffer.concat([bytesOfUnits(0, 500, 1), Buffer.alloc(200 * UNIT)]);
    expectSame((await read.finish()).bytes, expected, 'the read');
    await settle();
    expect(await world.leftRows()).toEqual({});
  });

  it('of a killed process holds nothing', async () => {
    const { world, id, settle } = await openOne();
    await world.write(id, 0, 2, 1);
    await world.beginLongRead(id);
    await world.write(id, 0, 2, 2);
    await world.restart();
    await settle();
    expect(await world.leftRows()).toEqual({ c: 1, M: 1, k: 1, l: 1 });
  });
});

describe('A commit', () => {
  it('has at most 1,000 rows, whatever the pages are made of', async () => {
    const { world, id, rows, settle } = await openOne();
    for (let i = 0; i < 150; i++) await world.write(id, (i * 13) % 690, 2, i + 1);
    await world.hold(id);
    await world.write(id, 0, 700, 999);
    await world.hold(id);
    await world.clear(id, 0, undefined, 64);
    await settle();
    expect(rows.most).toBeLessThan(1_000);
  });
});

describe('Contents that change in place', () => {
  it('hold what plain bytes would in every generation, whenever their process is killed', async () => {
    await rangeMapModel(async () => ({ engine: openMemory(), drop: async () => {} }), 40, 4);
  }, 300_000);

  it('do so on LMDB', async () => {
    await rangeMapModel(
      async () => {
        const location = await mkdtemp(join(tmpdir(), 'holdfast-ranges-'));
        return {
          engine: await openLmdb({ location }),
          drop: () => rm(location, { recursive: true, force: true }),
        };
      },
      8,
      20,
    );
  }, 300_000);

  describe('on PostgreSQL', () => {
    let cluster: Cluster | undefined;
    let stores = 0;
    beforeAll(async () => {
      if (!missing) cluster = await startCluster();
    });
    afterAll(() => cluster?.drop());

    it('do so', async (context) => {
      if (!cluster) return context.skip(missing);
      const { url } = cluster;
      await rangeMapModel(
        async () => ({ engine: await openPostgres({ url, schema: `ranges ${++stores}` }), drop: async () => {} }),
        4,
        20,
      );
    }, 300_000);
  });
});
