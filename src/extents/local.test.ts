import { randomBytes } from 'node:crypto';
import {
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  stat,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { chunkName, extentsConformance, readWhole, toArray, type WrittenChunk, writeChunk } from './conformance.ts';
import { CHECKSUM_BLOCK_BYTES, CorruptChunk, type Extents, NoSpace } from './extents.ts';
import { type LocalOptions, openLocalExtents } from './local.ts';
import { HEADER_BYTES, slotBytes } from './slots.ts';

const newFolder = (): Promise<string> => mkdtemp(join(tmpdir(), 'holdfast-extents-'));

extentsConformance('a local folder', {
  durable: true,
  async open({ epoch, extentBytesMax }) {
    const folder = await newFolder();
    // Fewer files than most tests have extents, so that descriptors are evicted.
    let extents = await openLocalExtents({ folder, epoch, extentBytesMax, filesMax: 3 });
    return {
      extents,
      async reopen(options) {
        await extents.close();
        extents = await openLocalExtents({ folder, ...options });
        return extents;
      },
      async drop() {
        await extents.close();
        await rm(folder, { recursive: true, force: true });
      },
    };
  },
});

async function opened(options: Partial<LocalOptions> = {}) {
  const folder = options.folder ?? (await newFolder());
  const damages: CorruptChunk[] = [];
  const extents = await openLocalExtents({
    folder,
    epoch: 7n,
    onCorruption: (damage) => damages.push(damage),
    ...options,
  });
  onTestFinished(async () => {
    await extents.close();
    await rm(folder, { recursive: true, force: true });
  });
  return { folder, extents, damages };
}

/** Overwrites a range of a file; the returned function overwrites it again. */
async function change(file: string, position: number, bytes: Buffer): Promise<() => Promise<unknown>> {
  const handle = await open(file, 'r+');
  try {
    const before = Buffer.alloc(bytes.length);
    await handle.read(before, 0, before.length, position);
    await handle.write(bytes, 0, bytes.length, position);
    return () => change(file, position, before);
  } finally {
    await handle.close();
  }
}

describe('Extents in a folder', () => {
  it('create the folder, and ignore unknown files', async () => {
    const folder = join(await newFolder(), 'deep', 'down');
    const { extents } = await opened({ folder });
    await writeFile(join(folder, 'notes.txt'), 'mine');
    await writeFile(join(folder, '7-1.bak'), 'mine');
    await mkdir(join(folder, '9-9'));
    const { place } = await writeChunk(extents, chunkName(1), randomBytes(10));
    expect((await extents.list()).map(({ name }) => name)).toEqual([place.extent]);
  });

  it('count blocks on the disk, not holes', async () => {
    const { folder, extents } = await opened();
    await extents.begin(chunkName(1), 8 << 20);
    const { place } = await writeChunk(extents, chunkName(2), randomBytes(100_000));
    expect((await stat(join(folder, place.extent))).size).toBeGreaterThan(8 << 20);
    expect(await extents.bytesOf(place.extent)).toBeLessThan(1 << 20);
  });

  it('finish a read whose extent is removed meanwhile', async () => {
    const { extents } = await opened({ filesMax: 1 });
    const chunk = await writeChunk(extents, chunkName(1), randomBytes(4 << 20));
    for (let round = 0; round < 3; round++) await readWhole(extents, chunk);
    const reading = extents.read(chunk.name, chunk.place, 0, 100_000);
    const removed = extents.remove(chunk.place.extent);
    expect((await reading).equals(chunk.bytes.subarray(0, 100_000))).toBe(true);
    await removed;
    await expect(readWhole(extents, chunk)).rejects.toThrow('is missing');
  });

  it('keep no more files open than allowed', async () => {
    const { folder, extents } = await opened({ filesMax: 5, extentBytesMax: 1 });
    const openNow = async () => {
      const numbers = await readdir('/proc/self/fd').catch(() => []);
      const paths = await Promise.all(numbers.map((number) => readlink(`/proc/self/fd/${number}`).catch(() => '')));
      return paths.filter((path) => path.startsWith(`${folder}/`)).length;
    };
    const chunks = await Promise.all(
      Array.from({ length: 100 }, (_, i) => writeChunk(extents, chunkName(i), randomBytes(50_000), [1000])),
    );
    expect(await openNow()).toBeLessThanOrEqual(5);
    await Promise.all(chunks.map((chunk) => readWhole(extents, chunk)));
    expect(await openNow()).toBeLessThanOrEqual(5);
    await extents.close();
    expect(await openNow()).toBe(0);
  });

  it('refuse bytes that would use the reserve', async () => {
    const { folder, extents } = await opened({ reserveBytes: Number.MAX_SAFE_INTEGER });
    await expect(extents.begin(chunkName(1), 1)).rejects.toThrow(NoSpace);
    expect(await readdir(folder)).toEqual([]);
  });

  it('are walked past missing, torn and truncated headers, holes and garbage', async () => {
    const { folder, extents } = await opened();
    const chunks: WrittenChunk[] = [];
    for (let n = 0; n < 8; n++) chunks.push(await writeChunk(extents, chunkName(n), randomBytes(70_000 + n)));
    const file = join(folder, chunks[0]!.place.extent);
    await change(file, chunks[2]!.place.offset, Buffer.alloc(HEADER_BYTES));
    await change(file, chunks[3]!.place.offset + 30, Buffer.alloc(34));
    await truncate(file, chunks[6]!.place.offset + 100);
    await truncate(file, 30 << 20);
    await change(file, 30 << 20, randomBytes(100_001));
    const walked = async () =>
      (await toArray(extents.walk(chunks[0]!.place.extent))).map(({ name }) => Number(name.number));
    expect(await walked()).toEqual([0, 1, 4, 5, 6]);
    // The extent's own header is not needed as long as the first slot's is there.
    await change(file, 0, randomBytes(HEADER_BYTES));
    expect(await walked()).toEqual([0, 1, 4, 5, 6]);
    await change(file, HEADER_BYTES, randomBytes(HEADER_BYTES));
    expect(await walked()).toEqual([]);
    await writeFile(join(folder, '5-1'), '');
    expect(await toArray(extents.walk('5-1'))).toEqual([]);
  });

  it('are not walked into uploaded bytes that look like chunks', async () => {
    const { folder, extents } = await opened();
    const real = await writeChunk(extents, chunkName(1), randomBytes(1000));
    await extents.seal(real.place.extent);
    const handle = await open(join(folder, real.place.extent));
    const copy = await handle.readFile();
    await handle.close();
    const forged = await writeChunk(extents, chunkName(2), copy);
    await change(join(folder, forged.place.extent), forged.place.offset, Buffer.alloc(HEADER_BYTES));
    expect(await toArray(extents.walk(forged.place.extent))).toEqual([]);
  });
});

describe('Corruption of extents in a folder', () => {
  it('is reported with extent, chunk and offset', async () => {
    const { folder, extents, damages } = await opened();
    const { name, place } = await writeChunk(extents, chunkName(3), randomBytes(200_000));
    await change(join(folder, place.extent), place.offset + HEADER_BYTES + 70_000, Buffer.of(1, 2, 3, 4, 5, 6, 7, 8));
    const message =
      'Damaged: chunk 7-3 of account 42 in extent 7-1 at 64: its bytes 65536 to 131072 are not what was written.';
    await expect(extents.read(name, place, 0, 200_000)).rejects.toThrow(message);
    expect(damages.map((damage) => damage.message)).toEqual([message]);
    await extents.read(name, place, 0, 65_536);
    await extents.read(name, place, 131_072, 200_000);
    await truncate(join(folder, place.extent), 100_000);
    await expect(extents.read(name, place, 131_072, 200_000)).rejects.toThrow(/7-1 at 64: the extent ends at/);
  });

  it('of a header is reported, and the bytes are returned all the same', async () => {
    const { folder, extents, damages } = await opened();
    const chunk = await writeChunk(extents, chunkName(3), randomBytes(200_000));
    await change(join(folder, chunk.place.extent), chunk.place.offset + 50, Buffer.of(255));
    expect((await readWhole(extents, chunk)).equals(chunk.bytes)).toBe(true);
    expect(damages[0]?.message).toContain('its header is not what was written');
  });

  it('is always found, and never becomes wrong bytes: 1,200 flipped bits, cuts and swaps', {
    timeout: 120_000,
  }, async () => {
    const { folder, extents } = await opened({ extentBytesMax: 1_500_000 });
    const chunks: WrittenChunk[] = [];
    for (let n = 0; n < 30; n++) {
      // Some have the bytes of another, some the same bytes over and over: the likeliest to be mistaken.
      const length = [100, 3 * CHECKSUM_BLOCK_BYTES, 250_000][n % 3]!;
      const bytes = n % 7 === 6 ? chunks[n - 3]!.bytes : n % 5 === 4 ? Buffer.alloc(length, n) : randomBytes(length);
      chunks.push(await writeChunk(extents, chunkName(n), bytes));
    }
    let found = 0;
    for (let round = 0; round < 1200; round++) {
      const hurt = await damage(folder, chunks, round);
      for (const chunk of hurt.harmed) found += await findsCorruption(extents, chunk);
      const others = chunks.filter((chunk) => !hurt.harmed.includes(chunk));
      const other = others[round % others.length]!;
      const answer = await readWhole(extents, other).catch((error: unknown) => error);
      expect(answer instanceof CorruptChunk || (answer as Buffer).equals(other.bytes)).toBe(true);
      await hurt.undo();
    }
    expect(found).toBeGreaterThanOrEqual(1200);
    for (const chunk of chunks) expect((await readWhole(extents, chunk)).equals(chunk.bytes)).toBe(true);
  });

  /** One, once a damaged chunk was read in full and in parts, and was found to be so. */
  async function findsCorruption(extents: Extents, chunk: WrittenChunk): Promise<number> {
    await expect(readWhole(extents, chunk), chunk.place.extent).rejects.toThrow(CorruptChunk);
    for (let from = 0; from < chunk.place.length; from += 50_000) {
      const to = Math.min(chunk.place.length, from + 50_000);
      const part = await extents.read(chunk.name, chunk.place, from, to).catch((error: unknown) => error);
      expect(part instanceof CorruptChunk || (part as Buffer).equals(chunk.bytes.subarray(from, to))).toBe(true);
    }
    return 1;
  }
});

const below = (end: number): number => Math.floor(Math.random() * end);
const dataAt = ({ place }: WrittenChunk): number => place.offset + HEADER_BYTES;
/** Data and checksums. */
const liveBytes = ({ place }: WrittenChunk): number =>
  place.length + 4 * Math.ceil(place.length / CHECKSUM_BLOCK_BYTES);

async function damage(folder: string, chunks: readonly WrittenChunk[], round: number) {
  const one = chunks[below(chunks.length)]!;
  const file = join(folder, one.place.extent);
  const readAt = async (path: string, position: number, length: number) => {
    const handle = await open(path);
    const { buffer } = await handle.read(Buffer.alloc(length), 0, length, position).finally(() => handle.close());
    return buffer;
  };

  if (round % 4 < 2) {
    const at = dataAt(one) + below(liveBytes(one));
    const byte = await readAt(file, at, 1);
    byte[0]! ^= 1 << below(8);
    return { harmed: [one], undo: await change(file, at, byte) };
  }
  if (round % 4 === 2) {
    const end = dataAt(one) + below(liveBytes(one));
    const lost = await readAt(file, end, (await stat(file)).size - end);
    await truncate(file, end);
    // A cut in the middle may come back as zeros.
    if (round % 8 === 2) await truncate(file, end + lost.length);
    const harmed = chunks.filter(
      (chunk) =>
        chunk.place.extent === one.place.extent &&
        dataAt(chunk) + liveBytes(chunk) > end &&
        !(round % 8 === 2 && isZero(lost, Math.max(dataAt(chunk), end) - end, dataAt(chunk) + liveBytes(chunk) - end)),
    );
    return { harmed, undo: () => change(file, end, lost) };
  }
  return swap();

  /** Two blocks with or without their checksums, or two whole slots. */
  async function swap() {
    const alike = chunks.filter((chunk) => chunk !== one && chunk.place.length === one.place.length);
    const kind = round % 12;
    const other = kind === 3 && one.place.length > 2 * CHECKSUM_BLOCK_BYTES ? one : alike[below(alike.length)]!;
    const block = below(Math.floor(one.place.length / CHECKSUM_BLOCK_BYTES));
    const otherBlock = other === one ? 1 - Math.min(block, 1) : block;
    const size = Math.min(CHECKSUM_BLOCK_BYTES, one.place.length);
    const stretches: [from: number, to: number, length: number][] =
      kind === 11
        ? [[one.place.offset, other.place.offset, slotBytes(one.place.length)]]
        : [
            [dataAt(one) + block * CHECKSUM_BLOCK_BYTES, dataAt(other) + otherBlock * CHECKSUM_BLOCK_BYTES, size],
            [dataAt(one) + one.place.length + 4 * block, dataAt(other) + one.place.length + 4 * otherBlock, 4],
          ];
    const otherFile = join(folder, other.place.extent);
    const undo: (() => Promise<unknown>)[] = [];
    for (const [from, to, length] of stretches) {
      const [left, right] = [await readAt(file, from, length), await readAt(otherFile, to, length)];
      undo.push(await change(file, from, right), await change(otherFile, to, left));
    }
    return {
      harmed: [...new Set([one, other])],
      undo: async () => {
        for (const back of undo.toReversed()) await back();
      },
    };
  }
}

const isZero = (bytes: Buffer, from: number, to: number): boolean =>
  bytes.subarray(from, to).every((byte) => byte === 0);

describe('Several processes with one folder of extents', () => {
  it('create files of their own, and read those of the others, also growing ones', async () => {
    const { folder, extents: one } = await opened();
    const { extents: two } = await opened({ folder, epoch: 8n });
    const written: WrittenChunk[] = [];
    for (let i = 1; i <= 6; i++) written.push(await writeChunk(i % 2 ? one : two, chunkName(i), randomBytes(70_000)));
    expect(new Set(written.map(({ place }) => place.extent)).size).toBe(2);
    for (const extents of [one, two]) {
      for (const chunk of written) expect((await readWhole(extents, chunk)).equals(chunk.bytes)).toBe(true);
      expect((await extents.list()).map(({ name, open: grows }) => [name, grows])).toEqual(
        extents === one
          ? [
              ['7-1', true],
              ['8-1', false],
            ]
          : [
              ['7-1', false],
              ['8-1', true],
            ],
      );
    }
  });

  it('remove a file that another has removed already', async () => {
    const { folder, extents: one } = await opened();
    const { extents: two } = await opened({ folder, epoch: 8n });
    const { place } = await writeChunk(one, chunkName(1), randomBytes(10));
    await one.remove(place.extent);
    await two.remove(place.extent);
    expect(await two.list()).toEqual([]);
  });

  it.skipIf(process.platform !== 'linux')('give back the space of a file that another has removed', async () => {
    const { folder, extents: one } = await opened();
    const { extents: two } = await opened({ folder, epoch: 8n });
    const chunk = await writeChunk(one, chunkName(1), randomBytes(10));
    await readWhole(two, chunk);
    await one.remove(chunk.place.extent);
    const isHeld = async () => {
      const links = (await readdir('/proc/self/fd')).map((name) =>
        readlink(join('/proc/self/fd', name)).catch(() => ''),
      );
      return (await Promise.all(links)).some((link) => link.startsWith(join(folder, chunk.place.extent)));
    };
    expect(await isHeld()).toBe(true);
    await two.list();
    while (await isHeld()) await new Promise(setImmediate);
    await expect(readWhole(two, chunk)).rejects.toThrow(CorruptChunk);
  });

  it('open a file of another process again before they report corruption', async () => {
    const { folder, extents: one } = await opened();
    const { extents: two, damages } = await opened({ folder, epoch: 8n });
    const chunk = await writeChunk(one, chunkName(1), randomBytes(70_000));
    const file = join(folder, chunk.place.extent);
    await readWhole(two, chunk);
    // A descriptor that was opened before does not show later writes, as on some network file systems.
    const whole = await readFile(file);
    await truncate(file, 100);
    await rename(file, join(folder, 'old'));
    await writeFile(file, whole);
    expect((await readWhole(two, chunk)).equals(chunk.bytes)).toBe(true);
    expect(damages).toEqual([]);
    await truncate(file, 100);
    await expect(readWhole(two, chunk)).rejects.toThrow(CorruptChunk);
    expect(damages).toHaveLength(1);
  });
});
