/** Failures of the files, and group fsync. */
import { randomBytes } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { chunkName, readWhole, writeChunk } from './conformance.ts';
import type { ExtentFiles } from './extent-files.ts';
import { type ChunkWriter, type Extents, NoSpace } from './extents.ts';
import { makeMemoryFiles } from './memory.ts';
import { openSlotted } from './slotted-extents.ts';

type Step = keyof ExtentFiles;
let steps: string[];
let failing: Map<Step, Error>;
/** While set, syncs wait for it. */
let gate: Promise<void> | undefined;
let extents: Extents;

beforeEach(() => {
  steps = [];
  failing = new Map();
  gate = undefined;
  const files = makeMemoryFiles();
  const step = async (name: Step, extent: string) => {
    steps.push(`${name} ${extent}`);
    if (name === 'sync') await gate;
    const error = failing.get(name);
    if (error) throw error;
  };
  extents = openSlotted(
    {
      ...files,
      make: (name, header) => step('make', name).then(() => files.make(name, header)),
      write: (name, ...rest) => step('write', name).then(() => files.write(name, ...rest)),
      read: (name, ...rest) => step('read', name).then(() => files.read(name, ...rest)),
      sync: (name) => step('sync', name).then(() => files.sync(name)),
    },
    { epoch: 7n },
  );
});

async function written(number: number): Promise<ChunkWriter> {
  const writer = await extents.begin(chunkName(number), 10);
  await writer.write([randomBytes(10)]);
  return writer;
}

const writeOne = (number: number) => writeChunk(extents, chunkName(number), randomBytes(10));
const isOpen = async (name: string) => (await extents.list()).find((info) => info.name === name)?.open;
const syncs = () => steps.filter((step) => step.startsWith('sync')).length;

describe('Syncs of an extent', () => {
  it('are shared by all chunks that finish while another sync runs, and by none whose bytes came later', async () => {
    const writers = await Promise.all([1, 2, 3, 4].map(written));
    let open = () => {};
    gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const first = writers[0]!.finish();
    await new Promise(setImmediate);
    expect(syncs()).toBe(1);
    let done = 0;
    const others = writers.slice(1).map((writer) => writer.finish().then(() => done++));
    await new Promise(setImmediate);
    expect(syncs()).toBe(1);
    open();
    await first;
    expect(done).toBe(0);
    await Promise.all(others);
    expect(syncs()).toBe(2);
  });

  it('come after the write they make durable', async () => {
    const writer = await extents.begin(chunkName(1), 10);
    const writing = writer.write([randomBytes(10)]);
    await Promise.all([writing, writer.finish()]);
    expect(steps).toEqual(['make 7-1', 'write 7-1', 'sync 7-1']);
  });

  it('fail all waiting chunks, and nothing is written there again', async () => {
    const before = await writeOne(1);
    const [waiting, slow] = [await written(2), await extents.begin(chunkName(3), 10)];
    const late = await written(4);
    failing.set('sync', new Error('the disk is gone'));
    await Promise.all([waiting, late].map((writer) => expect(writer.finish()).rejects.toThrow('the disk is gone')));
    failing.clear();
    await expect(slow.write([randomBytes(10)])).rejects.toThrow('the disk is gone');
    await expect(slow.finish()).rejects.toThrow('the disk is gone');
    const next = await writeOne(5);
    expect(next.place.extent).not.toBe(before.place.extent);
    expect((await readWhole(extents, before)).equals(before.bytes)).toBe(true);
    expect(await isOpen(before.place.extent)).toBe(false);
  });

  it('that wait for one that fails are not started', async () => {
    const writers = await Promise.all([1, 2].map(written));
    let open = () => {};
    gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    failing.set('sync', new Error('the disk is gone'));
    const first = writers[0]!.finish().catch((error: Error) => error.message);
    await new Promise(setImmediate);
    const second = writers[1]!.finish().catch((error: Error) => error.message);
    await new Promise(setImmediate);
    open();
    expect(await first).toBe('the disk is gone');
    failing.clear();
    expect(await second).toBe('the disk is gone');
    expect(syncs()).toBe(1);
  });
});

describe('A chunk whose write fails', () => {
  it('is abandoned, with the same error to all that follows', async () => {
    const writer = await extents.begin(chunkName(1), 10);
    await writer.write([randomBytes(4)]);
    failing.set('write', new NoSpace('full'));
    await expect(writer.write([randomBytes(4)])).rejects.toThrow(NoSpace);
    failing.clear();
    await extents.seal(writer.place.extent);
    expect(await isOpen(writer.place.extent)).toBe(false);
    await expect(writer.write([randomBytes(2)])).rejects.toThrow(NoSpace);
    await expect(writer.finish()).rejects.toThrow(NoSpace);
    writer.abandon();
    expect(syncs()).toBe(0);
  });

  it('leaves the others of its extent alone', async () => {
    const [one, other] = [await extents.begin(chunkName(1), 10), await extents.begin(chunkName(2), 10)];
    failing.set('write', new NoSpace('full'));
    await expect(one.write([randomBytes(10)])).rejects.toThrow(NoSpace);
    failing.clear();
    await other.write([randomBytes(10)]);
    await other.finish();
    await readWhole(extents, { name: chunkName(2), place: other.place });
  });
});

describe('An extent that cannot be made', () => {
  it('fails all chunks that were to be written there; the next chunk starts another', async () => {
    failing.set('make', new NoSpace('full'));
    const begun = [1, 2].map((n) => extents.begin(chunkName(n), 10));
    await Promise.all(begun.map((begin) => expect(begin).rejects.toThrow(NoSpace)));
    failing.clear();
    expect((await writeOne(3)).place.extent).toBe('7-2');
  });
});

describe('Small chunks that are read together', () => {
  const count = 3_000;
  const reads = () => steps.filter((step) => step.startsWith('read')).length;
  const whole = async (number: number) => {
    const { name, place, bytes } = await writeOne(number);
    return { name, place, from: 0, to: place.length, bytes };
  };

  it.each([
    ['in the order in which they were written', 1],
    ['backwards', count - 1],
    ['in any order', 1_009],
  ])('are read with few reads: %s', async (_, stride) => {
    const chunks: Awaited<ReturnType<typeof whole>>[] = [];
    for (let number = 1; number <= count; number++) chunks.push(await whole(number));
    const wanted = chunks.map((_, at) => chunks[(at * stride) % count]!);
    expect((await extents.readMany(wanted)).equals(Buffer.concat(wanted.map(({ bytes }) => bytes)))).toBe(true);
    // 512 in each: the work of one turn is bounded.
    expect(reads()).toBe(6);
  });

  it('are read alone where other chunks are between them', async () => {
    const chunks: Awaited<ReturnType<typeof whole>>[] = [];
    for (let number = 1; number <= 20; number++) {
      chunks.push(await whole(number));
      await writeChunk(extents, chunkName(100 + number), randomBytes(number <= 10 ? 70_000 : 30_000));
    }
    await extents.readMany(chunks.slice(0, 10));
    expect(reads()).toBe(10);
    await extents.readMany(chunks.slice(10));
    // Eight chunks and what is between them have 256 KiB.
    expect(reads()).toBe(12);
  });
});
