/** Several processes on one store, some of which die and come back: nothing that is live or being read is lost, and all else goes. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CorruptChunk } from '../../src/extents/extents.ts';
import { encodeKey } from '../../src/partition/keys.ts';
import { Unavailable } from '../../src/partition/partition.ts';
import { deleteBlob, getBlob } from '../../src/services/blob/blobs.ts';
import { copyBlob } from '../../src/services/blob/copies.ts';
import { putBlob } from '../../src/services/blob/put-blob.ts';
import { ACCOUNT, type Cluster, openCluster, type Process } from '../support/content-cluster.ts';
import { bytesOfSeed } from '../support/content-store.ts';

const base = (blob: string) => ({ container: 'box', blob, conditions: {}, leaseId: undefined });

async function open(count = 3) {
  const cluster = await openCluster();
  for (let i = 0; i < count; i++) await cluster.start();
  await cluster.processes[0]!.newContainer('box');
  await cluster.beat();
  return cluster;
}

/** @param gate the second half is sent after it */
async function put(process: Process, blob: string, bytes: Buffer, gate?: Promise<void>) {
  const body = {
    length: bytes.length,
    expected: {},
    async *bytes() {
      yield bytes.subarray(0, bytes.length >> 1);
      await gate;
      yield bytes.subarray(bytes.length >> 1);
    },
  };
  await putBlob(process.storage, { ...base(blob), content: {}, metadata: [], body });
}

async function beginGet(process: Process, blob: string): Promise<AsyncIterator<Buffer>> {
  const asked = { range: undefined, rangeMd5: undefined, rangeCrc64: undefined };
  const { bytes } = await getBlob(process.storage, { ...base(blob), ...asked });
  return (bytes as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
}

async function rest(stream: AsyncIterator<Buffer>): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for (let step = await stream.next(); !step.done; step = await stream.next()) pieces.push(Buffer.from(step.value));
  return Buffer.concat(pieces);
}

const get = async (process: Process, blob: string) => rest(await beginGet(process, blob));
const copy = (process: Process, from: string, to: string) =>
  copyBlob(process.storage, {
    ...base(to),
    source: { url: 'http://here/', service: 'blob' as const, container: 'box', item: from },
    ...{ sourceConditions: {}, sourceLeaseId: undefined, metadata: [] },
  });

/** Deleted contents take no space any more. */
async function expectClean(cluster: Cluster): Promise<void> {
  await cluster.settle();
  expect(await cluster.trash()).toEqual([]);
  expect(await cluster.findings()).toEqual([]);
  const heard = cluster.processes.flatMap((process) => process.heard());
  expect(heard.filter((message) => !message.startsWith('Another process has taken over'))).toEqual([]);
}

describe('A reader in another process', () => {
  it('keeps what it has found, and what was moved, until it ends', async () => {
    const cluster = await open();
    const [one, two, three] = cluster.processes as [Process, Process, Process];
    const bytes = bytesOfSeed(1, 200_000);
    await put(two, 'deleted', bytes);
    await put(two, 'moved', bytes);
    for (let i = 0; i < 4; i++) await put(two, `filler-${i}`, bytes);
    const streams = [await beginGet(three, 'deleted'), await beginGet(three, 'moved')];
    await deleteBlob(one.storage, base('deleted'));
    for (let i = 0; i < 4; i++) await deleteBlob(two.storage, base(`filler-${i}`));
    await cluster.settle();
    expect(await cluster.trash()).toHaveLength(5);
    for (const stream of streams) expect((await rest(stream)).equals(bytes)).toBe(true);
    await expectClean(cluster);
    expect((await get(one, 'moved')).equals(bytes)).toBe(true);
    expect((await cluster.extents()).length).toBeLessThanOrEqual(2);
    await cluster.close();
  });

  it('keeps the extent that it was shown, although its chunks were copied elsewhere', async () => {
    const cluster = await open();
    const [one, two, three] = cluster.processes as [Process, Process, Process];
    const bytes = bytesOfSeed(2, 60_000);
    for (let i = 0; i < 12; i++) await put(two, `blob-${i}`, bytes);
    for (let i = 0; i < 12; i++) if (i % 4 > 0) await deleteBlob(one.storage, base(`blob-${i}`));
    await cluster.beat(4);
    await one.tidy();
    const before = await cluster.extents();
    const streams = await Promise.all([0, 4, 8].map((i) => beginGet(three, `blob-${i}`)));
    await cluster.settle();
    expect(await cluster.extents()).toEqual(expect.arrayContaining(before.slice(0, -1)));
    for (const stream of streams) expect((await rest(stream)).equals(bytes)).toBe(true);
    await expectClean(cluster);
    expect(await cluster.extents()).not.toEqual(expect.arrayContaining(before.slice(0, -1)));
    await cluster.close();
  });
});

describe('The process that is elected', () => {
  it('sweeps the deletions of all; the others do not sweep', async () => {
    const cluster = await open();
    const [one, two] = cluster.processes as [Process, Process, Process];
    await put(two, 'blob', bytesOfSeed(1, 50_000));
    await deleteBlob(two.storage, base('blob'));
    await cluster.beat(2);
    await two.tidy();
    await cluster.beat(4);
    await two.tidy();
    expect(await cluster.trash()).toHaveLength(1);
    await one.tidy();
    await cluster.beat(4);
    await one.tidy();
    expect(await cluster.trash()).toEqual([]);
    await cluster.close();
  });
});

describe('An evicted process', () => {
  it('fails its uploads, and begins anew by itself', async () => {
    const cluster = await open();
    const [one, two] = cluster.processes as [Process, Process, Process];
    const bytes = bytesOfSeed(3, 100_000);
    let go = () => {};
    const upload = put(
      two,
      'late',
      bytes,
      new Promise((resolve) => {
        go = resolve;
      }),
    );
    const { epoch } = two.member;
    two.sleeps = true;
    await cluster.evictSleeping();
    await cluster.settle();
    // Its first half is collected, and the rest would be, too.
    expect((await cluster.extents()).filter((name) => name.startsWith(`${epoch}-`))).toEqual([]);
    go();
    await expect(upload).rejects.toThrow(Unavailable);
    await expect(put(two, 'later', bytes)).rejects.toThrow(Unavailable);
    two.sleeps = false;
    await two.beat();
    expect(two.member.epoch).toBeGreaterThan(epoch);
    await put(two, 'blob', bytes);
    expect((await get(one, 'blob')).equals(bytes)).toBe(true);
    await expectClean(cluster);
    await cluster.close();
  });

  it('leaves what it has stored to the others', async () => {
    const cluster = await open();
    const [one, two, three] = cluster.processes as [Process, Process, Process];
    const bytes = bytesOfSeed(4, 100_000);
    for (let i = 0; i < 6; i++) await put(one, `blob-${i}`, bytes);
    const { epoch } = one.member;
    one.sleeps = true;
    await cluster.evictSleeping();
    for (let i = 1; i < 6; i++) await deleteBlob(three.storage, base(`blob-${i}`));
    await cluster.settle();
    expect((await cluster.extents()).filter((name) => name.startsWith(`${epoch}-`)).length).toBeLessThanOrEqual(1);
    expect((await get(two, 'blob-0')).equals(bytes)).toBe(true);
    one.sleeps = false;
    await expectClean(cluster);
    await cluster.close();
  });

  it('has its pending contents swept, and cannot add to them; those of other members are not swept', async () => {
    const cluster = await open();
    const [one, two, three] = cluster.processes as [Process, Process, Process];
    const begin = async ({ partition, content }: Process) => {
      const id = content.newId();
      const { value: trash } = await partition.transact(encodeKey(['test']), (tx) =>
        content.beginPending(tx, ACCOUNT, id),
      );
      return { id, trash, content, partition };
    };
    const [dead, alive] = [await begin(two), await begin(three)];
    const later = await cluster.start();
    const young = await begin(later);
    two.sleeps = true;
    await cluster.settle();
    expect(await cluster.trash()).toHaveLength(3);
    await cluster.evictSleeping();
    await cluster.settle();
    expect((await cluster.trash()).map(({ key }) => key)).toEqual([alive.trash, young.trash]);
    const finish = ({ id, trash, content, partition }: typeof dead) =>
      partition.transact(encodeKey(['test']), async (tx) => {
        await content.finishPending(tx, ACCOUNT, id, trash, 0);
        await content.decrefContent(tx, ACCOUNT, id);
      });
    await expect(finish(dead)).rejects.toThrow(Unavailable);
    await finish(alive);
    await finish(young);
    two.sleeps = false;
    expect(one.member.isLeader()).toBe(true);
    await expectClean(cluster);
    await cluster.close();
  });
});

describe('Clients of several processes at once', () => {
  it('find their bytes whatever is swept, compacted and evicted meanwhile', async () => {
    const cluster = await open();
    const [one, two, three] = cluster.processes as [Process, Process, Process];
    const processes = cluster.processes;
    let isOver = false;
    const expected = new Map<string, Buffer>();
    const failures: string[] = [];
    let reads = 0;
    const tolerated = (error: unknown) => {
      if (!(error instanceof Unavailable || error instanceof CorruptChunk)) throw error;
      failures.push(error.message);
    };
    /** Each writes blobs of its own, over and over, and reads those of all slowly. */
    const client = async (number: number): Promise<void> => {
      for (let round = 0; round < 25; round++) {
        const process = processes[(number + round) % 3]!;
        const name = `${number}-${round % 4}`;
        const bytes = bytesOfSeed(number * 1_000 + round, 20_000 + ((round * 7_919) % 90_000));
        const before = expected.get(name);
        expected.delete(name);
        await put(process, name, bytes, new Promise(setImmediate)).then(
          () => expected.set(name, bytes),
          (error) => {
            tolerated(error);
            if (before) expected.set(name, before);
          },
        );
        if (round % 5 === 4 && expected.delete(name)) await deleteBlob(process.storage, base(name));
        const [other, content] = [...expected][(number * 31 + round) % Math.max(expected.size, 1)] ?? [];
        if (other === undefined) continue;
        const reader = processes[(number + round + 1) % 3]!;
        try {
          const stream = await beginGet(reader, other);
          for (let wait = 0; wait < 30; wait++) await new Promise(setImmediate);
          const found = await rest(stream);
          // Its owner may have written it again since.
          if (expected.get(other) === content) expect(found.equals(content!)).toBe(true);
          reads++;
        } catch (error) {
          if ((error as { code?: string }).code !== 'BlobNotFound') tolerated(error);
        }
      }
    };
    const keeping = (async () => {
      for (let turn = 0; !isOver; turn++) {
        for (const process of processes) if (!process.sleeps) await process.beat();
        for (const process of processes) void process.tidy();
        if (turn === 12) two.sleeps = true;
        if (turn === 16) await cluster.evictSleeping();
        if (turn === 24) two.sleeps = false;
        await new Promise(setImmediate);
      }
    })();
    await Promise.all(Array.from({ length: 6 }, (_, number) => client(number)));
    isOver = true;
    await keeping;
    two.sleeps = false;
    expect(reads).toBeGreaterThan(10);
    await cluster.settle();
    for (const process of [one, two, three]) {
      for (const [name, bytes] of expected) expect((await get(process, name)).equals(bytes)).toBe(true);
    }
    await expectClean(cluster);
    for (const name of expected.keys()) await deleteBlob(one.storage, base(name));
    await expectClean(cluster);
    expect(await cluster.extents()).toEqual([]);
    await cluster.close();
  }, 60_000);
});

describe('Processes on one store', () => {
  type Step =
    | { do: 'put' | 'upload'; by: number; blob: number; bytes: number }
    | { do: 'copy'; by: number; blob: number; to: number }
    | { do: 'delete' | 'read'; by: number; blob: number }
    | { do: 'finish upload' | 'finish read'; which: number }
    | { do: 'beat' | 'tidy' | 'sleep' | 'wake'; by: number }
    | { do: 'bury' | 'settle' };
  const by = fc.integer({ min: 0, max: 2 });
  const blob = fc.integer({ min: 0, max: 5 });
  const which = fc.nat({ max: 100 });
  const bytes = fc.integer({ min: 17_000, max: 120_000 });
  const step: fc.Arbitrary<Step> = fc.oneof(
    { weight: 6, arbitrary: fc.record({ do: fc.constant('put' as const), by, blob, bytes }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('upload' as const), by, blob, bytes }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('copy' as const), by, blob, to: blob }) },
    { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('delete' as const, 'read' as const), by, blob }) },
    {
      weight: 4,
      arbitrary: fc.record({ do: fc.constantFrom('finish upload' as const, 'finish read' as const), which }),
    },
    {
      weight: 8,
      arbitrary: fc.record({ do: fc.constantFrom('beat' as const, 'beat' as const, 'tidy' as const), by }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constantFrom('sleep' as const, 'wake' as const, 'wake' as const), by }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ do: fc.constantFrom('bury' as const, 'settle' as const, 'settle' as const) }),
    },
  );

  it('lose nothing that is live or being read, and free all other space', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 60, maxLength: 160 }), async (steps) => {
        const world = await newWorld();
        for (const next of steps) await world.act(next);
        await world.finish();
      }),
      { numRuns: 20, endOnFailure: true },
    );
  }, 120_000);

  async function newWorld() {
    const cluster = await open();
    const blobs = new Map<string, Buffer>();
    const uploads: { go: () => void; done: Promise<void> }[] = [];
    const reads: { process: Process; epoch: bigint; stream: AsyncIterator<Buffer>; bytes: Buffer }[] = [];
    let seed = 0;
    /** Only an evicted process may fail, with Unavailable. */
    const isFenced = async (process: Process, epoch: bigint, error: unknown) => {
      if (!(error instanceof Unavailable || error instanceof CorruptChunk)) throw error;
      await process.beat();
      expect(process.member.epoch, String(error)).not.toBe(epoch);
    };

    async function endRead({ process, epoch, stream, bytes: expected }: (typeof reads)[number]) {
      try {
        expect((await rest(stream)).equals(expected)).toBe(true);
      } catch (error) {
        if (error instanceof Error && error.name === 'AssertionError') throw error;
        await isFenced(process, epoch, error);
      }
    }

    const world = {
      async act(next: Step): Promise<void> {
        const process = 'by' in next ? cluster.processes[next.by]! : cluster.processes[0]!;
        const { epoch } = process.member;
        const name = 'blob' in next ? `blob-${next.blob}` : '';
        switch (next.do) {
          case 'put': {
            const content = bytesOfSeed(++seed, next.bytes);
            return put(process, name, content).then(
              () => void blobs.set(name, content),
              (error) => isFenced(process, epoch, error),
            );
          }
          case 'upload': {
            const content = bytesOfSeed(++seed, next.bytes);
            let go = () => {};
            const gate = new Promise<void>((resolve) => {
              go = resolve;
            });
            const done = put(process, name, content, gate).then(
              () => void blobs.set(name, content),
              (error) => isFenced(process, epoch, error),
            );
            uploads.push({ go, done });
            return;
          }
          case 'copy': {
            const found = blobs.get(name);
            const done = copy(process, name, `blob-${next.to}`);
            if (!found) return expect(done).rejects.toMatchObject({ code: 'BlobNotFound' });
            await done;
            blobs.set(`blob-${next.to}`, found);
            return;
          }
          case 'delete': {
            const done = deleteBlob(process.storage, base(name));
            if (!blobs.delete(name)) return expect(done).rejects.toMatchObject({ code: 'BlobNotFound' });
            await done;
            return;
          }
          case 'read': {
            const expected = blobs.get(name);
            if (!expected) return;
            const stream = await beginGet(process, name);
            reads.push({ process, epoch, stream, bytes: expected });
            return;
          }
          case 'finish upload': {
            const [upload] = uploads.splice(next.which % Math.max(uploads.length, 1), 1);
            upload?.go();
            return upload?.done;
          }
          case 'finish read': {
            const [read] = reads.splice(next.which % Math.max(reads.length, 1), 1);
            return read && endRead(read);
          }
          case 'beat':
            if (!process.sleeps) await process.beat();
            return;
          case 'tidy':
            // Also one that sleeps: it does not know.
            return process.tidy();
          case 'sleep':
            process.sleeps = true;
            return;
          case 'wake':
            process.sleeps = false;
            return process.beat();
          case 'bury':
            return cluster.evictSleeping();
          case 'settle':
            return cluster.settle();
        }
      },
      async finish(): Promise<void> {
        for (const { go, done } of uploads) {
          go();
          await done;
        }
        for (const read of reads) await endRead(read);
        for (const process of cluster.processes) process.sleeps = false;
        await cluster.settle();
        expect(await cluster.findings()).toEqual([]);
        for (const process of cluster.processes) {
          for (const [name, expected] of blobs) expect((await get(process, name)).equals(expected)).toBe(true);
        }
        expect(await cluster.trash()).toEqual([]);
        for (const name of blobs.keys()) await deleteBlob(cluster.processes[0]!.storage, base(name));
        await expectClean(cluster);
        expect(await cluster.extents()).toEqual([]);
        await cluster.close();
      },
    };
    return world;
  }
});
