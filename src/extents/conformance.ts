/** The conformance suite of all backends. The test of a backend calls it with a function that opens one. */
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  CHECKSUM_BLOCK_BYTES,
  CHUNK_BYTES_MAX,
  type ChunkLocation,
  type ChunkName,
  type ChunkWriter,
  CorruptChunk,
  type Extents,
} from './extents.ts';

export interface ExtentsHarness {
  /** Finished chunks survive the process. */
  readonly durable: boolean;
  open(options: { epoch: bigint; extentBytesMax?: number | undefined }): Promise<{
    readonly extents: Extents;
    /** Closes the extents and opens them as another process would; undefined where nothing is durable. */
    reopen?(options: { epoch: bigint }): Promise<Extents>;
    drop(): Promise<void>;
  }>;
}

export interface WrittenChunk {
  readonly name: ChunkName;
  readonly place: ChunkLocation;
  readonly bytes: Buffer;
}

export const chunkName = (number: number | bigint, epoch = 7n): ChunkName => ({
  account: 42n,
  epoch,
  number: BigInt(number),
});

export async function writeChunk(extents: Extents, name: ChunkName, bytes: Buffer, sizes = [bytes.length]) {
  const writer = await extents.begin(name, bytes.length);
  await writePieces(writer, bytes, sizes);
  await writer.finish();
  return { name, place: writer.place, bytes };
}

async function writePieces(writer: ChunkWriter, bytes: Buffer, sizes: readonly number[]): Promise<void> {
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const size = sizes[i % sizes.length]!;
    const piece = bytes.subarray(at, at + size);
    await writer.write([piece.subarray(0, size >> 1), Buffer.alloc(0), piece.subarray(size >> 1)]);
    at += size;
  }
}

export const readWhole = (extents: Extents, { name, place }: Omit<WrittenChunk, 'bytes'>): Promise<Buffer> =>
  extents.read(name, place, 0, place.length);

export async function toArray<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

const infoOf = async (extents: Extents, name: string) => (await extents.list()).find((info) => info.name === name);

export function extentsConformance(engine: string, harness: ExtentsHarness): void {
  async function opened(extentBytesMax?: number) {
    const store = await harness.open({ epoch: 7n, extentBytesMax });
    onTestFinished(() => store.drop());
    return store;
  }

  describe(`a chunk on ${engine}`, () => {
    it('returns every range of its bytes', async () => {
      const { extents } = await opened();
      for (const length of [
        1,
        CHECKSUM_BLOCK_BYTES - 1,
        CHECKSUM_BLOCK_BYTES,
        CHECKSUM_BLOCK_BYTES + 1,
        5 * CHECKSUM_BLOCK_BYTES + 77,
      ]) {
        const chunk = await writeChunk(extents, chunkName(length), randomBytes(length), [40_000, 1, 90_001]);
        const edges = [0, 1, 65_535, 65_536, 65_537, 3 * CHECKSUM_BLOCK_BYTES, length - 1, length].filter(
          (at) => at <= length,
        );
        for (const from of edges) {
          for (const to of edges.filter((edge) => edge >= from)) {
            const bytes = await extents.read(chunk.name, chunk.place, from, to);
            expect(bytes.equals(chunk.bytes.subarray(from, to)), `${from} to ${to} of ${length}`).toBe(true);
          }
        }
      }
    });

    it('is the same in readMany, in any order, as in read', async () => {
      const { extents } = await opened(1 << 20);
      const lengths = [1, 1, 70_000, 5, 300_000, 1, 64, 200_000, 3, 2, 500_000, 9];
      const chunks: Awaited<ReturnType<typeof writeChunk>>[] = [];
      for (const [at, length] of lengths.entries()) {
        chunks.push(await writeChunk(extents, chunkName(at + 1), randomBytes(length)));
      }
      const whole = chunks.map(({ name, place, bytes }) => ({ name, place, from: 0, to: place.length, bytes }));
      const ends = whole.map((one) => ({ ...one, from: one.to - 1, bytes: one.bytes.subarray(one.to - 1) }));
      for (const all of [whole, ends, whole.toReversed(), [...ends, ...whole, ...ends], ends.slice(3, 4)]) {
        const expected = Buffer.concat(all.map(({ bytes }) => bytes));
        expect((await extents.readMany(all)).equals(expected)).toBe(true);
      }
      const [one, other] = whole as [(typeof whole)[0], (typeof whole)[0]];
      await expect(extents.readMany([one, { ...other, name: one.name }])).rejects.toThrow(CorruptChunk);
    });

    it('can have 8 MiB, and no more, and no fewer than one byte', async () => {
      const { extents } = await opened();
      const chunk = await writeChunk(extents, chunkName(1), randomBytes(CHUNK_BYTES_MAX), [1 << 20]);
      expect((await readWhole(extents, chunk)).equals(chunk.bytes)).toBe(true);
      for (const length of [CHUNK_BYTES_MAX + 1, 0, -1, 1.5, Number.NaN]) {
        await expect(extents.begin(chunkName(2), length)).rejects.toThrow(RangeError);
      }
    });

    it('cannot be read outside of its range', async () => {
      const { extents } = await opened();
      const { name, place } = await writeChunk(extents, chunkName(1), randomBytes(100));
      for (const [from, to] of [
        [-1, 10],
        [0, 101],
        [20, 10],
        [Number.NaN, 10],
      ] as const) {
        await expect(extents.read(name, place, from, to)).rejects.toThrow(RangeError);
      }
    });

    it('does not change when the written buffers change later', async () => {
      const { extents } = await opened();
      const bytes = randomBytes(100_000);
      const writer = await extents.begin(chunkName(1), bytes.length);
      const buffer = Buffer.from(bytes);
      await writer.write([buffer]);
      buffer.fill(0);
      await writer.finish();
      expect((await readWhole(extents, { name: chunkName(1), place: writer.place })).equals(bytes)).toBe(true);
    });

    it('is not finished before its last byte', async () => {
      const { extents } = await opened();
      const writer = await extents.begin(chunkName(1), 100);
      await writer.write([randomBytes(99)]);
      await expect(writer.finish()).rejects.toThrow('after 99');
      await expect(readWhole(extents, { name: chunkName(1), place: writer.place })).rejects.toThrow(CorruptChunk);
    });

    it('refuses more bytes than were reserved, and leaves its neighbours intact', async () => {
      const { extents } = await opened();
      const writer = await extents.begin(chunkName(1), 100);
      const neighbour = await writeChunk(extents, chunkName(2), randomBytes(100));
      await writer.write([randomBytes(60)]);
      await expect(writer.write([randomBytes(30), randomBytes(11)])).rejects.toThrow('given 101');
      await expect(writer.finish()).rejects.toThrow('given 101');
      expect((await readWhole(extents, neighbour)).equals(neighbour.bytes)).toBe(true);
      await extents.seal(writer.place.extent);
      expect((await infoOf(extents, writer.place.extent))?.open).toBe(false);
    });

    it('refuses bytes once it is finished or abandoned', async () => {
      const { extents } = await opened();
      const [finished, abandoned] = [await extents.begin(chunkName(1), 3), await extents.begin(chunkName(2), 3)];
      await finished.write([Buffer.from('abc')]);
      await finished.finish();
      finished.abandon();
      abandoned.abandon();
      abandoned.abandon();
      for (const writer of [finished, abandoned]) {
        await expect(writer.write([Buffer.from('x')])).rejects.toThrow('before');
        await expect(writer.finish()).rejects.toThrow('before');
      }
      expect(String(await readWhole(extents, { name: chunkName(1), place: finished.place }))).toBe('abc');
    });

    it('is not taken for another chunk, nor another slot for its own', async () => {
      const { extents } = await opened();
      const one = await writeChunk(extents, chunkName(1), randomBytes(200_000));
      const other = await writeChunk(extents, chunkName(2), one.bytes);
      const wrong: Omit<WrittenChunk, 'bytes'>[] = [
        { name: one.name, place: other.place },
        { name: { ...one.name, account: 43n }, place: one.place },
        { name: { ...one.name, epoch: 8n }, place: one.place },
        { name: one.name, place: { ...one.place, offset: one.place.offset + 64 } },
        { name: one.name, place: { ...one.place, length: one.place.length - 1 } },
        { name: one.name, place: { ...one.place, length: one.place.length + 1 } },
        { name: one.name, place: { ...one.place, offset: 100 << 20 } },
        { name: one.name, place: { ...one.place, extent: '7-999' } },
      ];
      for (const chunk of wrong) {
        await expect(readWhole(extents, chunk), JSON.stringify(chunk.place)).rejects.toThrow(CorruptChunk);
        await expect(extents.read(chunk.name, chunk.place, 70_000, 70_001)).rejects.toThrow(CorruptChunk);
      }
      expect((await readWhole(extents, other)).equals(other.bytes)).toBe(true);
    });
  });

  describe(`an extent on ${engine}`, () => {
    it('stores chunks of concurrent writers, also a thousand slow ones', async () => {
      const { extents } = await opened(1 << 20);
      const all = Array.from({ length: 1000 }, (_, i) => ({ name: chunkName(i), bytes: randomBytes(20_000 + i) }));
      const writers = await Promise.all(all.map(({ name, bytes }) => extents.begin(name, bytes.length)));
      await Promise.all(writers.map((writer, i) => writer.write([all[i]!.bytes.subarray(0, 10_000)])));
      await Promise.all(writers.map((writer, i) => writer.write([all[i]!.bytes.subarray(10_000)])));
      await Promise.all(writers.map((writer) => writer.finish()));
      for (const [i, { name, bytes }] of all.entries()) {
        expect((await readWhole(extents, { name, place: writers[i]!.place })).equals(bytes)).toBe(true);
      }
      expect((await extents.list()).length).toBeGreaterThan(10);
    });

    it('is sealed when the next chunk does not fit, and open until its last writer is done', async () => {
      const { extents } = await opened(300_000);
      const slow = await extents.begin(chunkName(1), 200_000);
      const next = await extents.begin(chunkName(2), 200_000);
      expect(next.place.extent).not.toBe(slow.place.extent);
      expect((await infoOf(extents, slow.place.extent))?.open).toBe(true);
      await slow.write([randomBytes(200_000)]);
      await slow.finish();
      expect((await infoOf(extents, slow.place.extent))?.open).toBe(false);
      expect((await infoOf(extents, next.place.extent))?.open).toBe(true);
      next.abandon();
      const last = await writeChunk(extents, chunkName(3), randomBytes(1000));
      expect(last.place.extent).toBe(next.place.extent);
    });

    it('grows no more once it is sealed; chunks that are being written are still finished', async () => {
      const { extents } = await opened();
      const writer = await extents.begin(chunkName(1), 5);
      await extents.seal(writer.place.extent);
      expect((await infoOf(extents, writer.place.extent))?.open).toBe(true);
      expect((await extents.begin(chunkName(2), 5)).place.extent).not.toBe(writer.place.extent);
      await writer.write([Buffer.from('hello')]);
      await writer.finish();
      expect((await infoOf(extents, writer.place.extent))?.open).toBe(false);
      expect(String(await readWhole(extents, { name: chunkName(1), place: writer.place }))).toBe('hello');
    });

    it('is removed with all its chunks, but not while it is being written to', async () => {
      const { extents } = await opened();
      const chunk = await writeChunk(extents, chunkName(1), randomBytes(100_000));
      const writer = await extents.begin(chunkName(2), 5);
      await expect(extents.remove(chunk.place.extent)).rejects.toThrow('written to');
      writer.abandon();
      await new Promise(setImmediate);
      await extents.remove(chunk.place.extent);
      await extents.remove(chunk.place.extent);
      await expect(readWhole(extents, chunk)).rejects.toThrow(`${chunk.place.extent} is missing`);
      await expect(toArray(extents.walk(chunk.place.extent))).rejects.toThrow(CorruptChunk);
      expect(await infoOf(extents, chunk.place.extent)).toBeUndefined();
      const next = await writeChunk(extents, chunkName(3), randomBytes(10));
      expect(next.place.extent).not.toBe(chunk.place.extent);
    });

    it('reports its bytes on the disk', async () => {
      const { extents } = await opened();
      const { place } = await writeChunk(extents, chunkName(1), randomBytes(1 << 20));
      const taken = await extents.bytesOf(place.extent);
      expect(taken).toBeGreaterThan(1 << 20);
      expect(taken).toBeLessThan(2 << 20);
      expect(await extents.bytesOf('7-99')).toBe(0);
    });

    it('is walked in order, past chunks that were never written', async () => {
      const { extents } = await opened();
      const numbers = [1, 2, 3, 4, 5, 6, 7, 8];
      const writers: ChunkWriter[] = [];
      for (const n of numbers) writers.push(await extents.begin(chunkName(n), n * 30_000));
      const came = writers.filter((_, i) => ![0, 3, 4, 7].includes(i));
      for (const writer of came) await writer.write([randomBytes(writer.place.length - (writer === came[1] ? 5 : 0))]);
      const found = await toArray(extents.walk(writers[0]!.place.extent));
      expect(found.map(({ name }) => Number(name.number))).toEqual([2, 3, 6, 7]);
      expect(found.map(({ place }) => place)).toEqual(came.map(({ place }) => place));
      expect(found[0]!.name).toEqual(chunkName(2));
    });

    it('is closed after running writes; later ones are refused', async () => {
      const { extents } = await opened();
      const writer = await extents.begin(chunkName(1), 1 << 20);
      await writer.write([randomBytes(1 << 19)]);
      const more = writer.write([randomBytes(1 << 19)]).then(
        () => 'written',
        () => 'refused',
      );
      await extents.close();
      expect(await more).toMatch(/written|refused/);
      await expect(extents.begin(chunkName(2), 10)).rejects.toThrow();
      await expect(readWhole(extents, { name: chunkName(1), place: writer.place })).rejects.toThrow();
    });
  });

  describe(`extents on ${engine}`, () => {
    it('return what was written, whatever is written or abandoned concurrently', async () => {
      const piece = fc.integer({ min: 1, max: 150_000 });
      const plan = fc.record({
        length: fc.integer({ min: 1, max: 400_000 }),
        sizes: fc.array(piece, { minLength: 1 }),
      });
      const plans = fc.array(fc.record({ plan, end: fc.constantFrom('finish', 'finish', 'abandon', 'leave') }), {
        minLength: 1,
        maxLength: 24,
      });
      const spot = fc.tuple(
        fc.nat(),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.double({ min: 0, max: 1, noNaN: true }),
      );
      await fc.assert(
        fc.asyncProperty(plans, fc.array(spot, { maxLength: 40 }), async (all, spots) => {
          const store = await harness.open({ epoch: 7n, extentBytesMax: 900_000 });
          try {
            const chunks = await Promise.all(all.map(({ plan, end }, i) => run(store.extents, i, plan, end)));
            const kept = chunks.filter((chunk) => chunk !== undefined);
            for (const [which, one, two] of kept.length > 0 ? spots : []) {
              const { name, place, bytes } = kept[which % kept.length]!;
              const [from, to] = [one, two].map((part) => Math.floor(part * bytes.length)).toSorted((a, b) => a - b);
              expect((await store.extents.read(name, place, from!, to!)).equals(bytes.subarray(from, to))).toBe(true);
            }
            const walked = await Promise.all(
              (await store.extents.list()).map(({ name }) => toArray(store.extents.walk(name))),
            );
            expect(walked.flat()).toEqual(expect.arrayContaining(kept.map(({ name, place }) => ({ name, place }))));
          } finally {
            await store.drop();
          }
        }),
        { numRuns: 30 },
      );

      async function run(
        extents: Extents,
        i: number,
        { length, sizes }: { length: number; sizes: number[] },
        end: string,
      ) {
        if (end === 'finish') return writeChunk(extents, chunkName(i), randomBytes(length), sizes);
        const writer = await extents.begin(chunkName(i), length);
        if (i % 2) await writePieces(writer, randomBytes(length >> 1), sizes);
        if (end === 'abandon') writer.abandon();
        return undefined;
      }
    });

    if (harness.durable) {
      it('are read by the next process, which writes into none of them', async () => {
        const store = await opened();
        const chunks: WrittenChunk[] = [];
        for (const n of [1, 2, 3]) chunks.push(await writeChunk(store.extents, chunkName(n), randomBytes(n * 99_999)));
        for (const epoch of [8n, 7n]) {
          const extents = await store.reopen!({ epoch });
          expect((await extents.list()).some(({ open }) => open)).toBe(false);
          for (const chunk of chunks) expect((await readWhole(extents, chunk)).equals(chunk.bytes)).toBe(true);
          const next = await writeChunk(extents, chunkName(1, 8n), randomBytes(10));
          expect(chunks.map(({ place }) => place.extent)).not.toContain(next.place.extent);
        }
      });
    }
  });
}
