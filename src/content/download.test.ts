import { describe, expect, it } from 'vitest';
import {
  account,
  bytesFrom,
  bytesOfSeed,
  type Faults,
  inPieces,
  openStore,
  watchedExtents,
} from '../../test/support/content-store.ts';
import { CHECKSUM_BLOCK_BYTES, CorruptChunk } from '../extents/extents.ts';
import { encodeKey } from '../partition/keys.ts';
import { type Partition, Unavailable } from '../partition/partition.ts';
import { decodeContentDeletion, deletionsIn, parseId, type Segment } from './rows.ts';

const queueKey = encodeKey(['test']);
const MiB = 1 << 20;

/** A store with one content whose segments have these lengths, and a count of the snapshots that were uploaded since. */
async function storeWith(lengths: readonly number[], faults: Faults = {}) {
  const snapshots = { count: 0 };
  const counting = (partition: Partition): Partition => ({
    ...partition,
    read(fn) {
      snapshots.count++;
      return partition.read(fn);
    },
  });
  const extents = watchedExtents(faults);
  const opened = await openStore(() => extents, counting);
  const { store, partition } = opened;
  const bytes = bytesOfSeed(
    3,
    lengths.reduce((sum, length) => sum + length, 0),
  );
  const id = store.newId();
  const segments: Segment[] = [];
  let at = 0;
  for (const length of lengths) {
    const uploaded = await store.upload(account, inPieces(bytes.subarray(at, at + length), MiB), length, {
      md5: false,
    });
    await partition.transact(queueKey, (tx) => store.commitUpload(tx, account, uploaded));
    uploaded.release();
    segments.push({ length, chunkRefs: uploaded.chunkRefs });
    at += length;
  }
  await partition.transact(queueKey, async (tx) => store.addContent(tx, account, id, segments));
  snapshots.count = 0;

  async function open(from: number, to: number) {
    const read = store.beginRead();
    await partition.read((snapshot) => read.plan(snapshot, account, id, from, to));
    return read;
  }
  return { ...opened, extents, id, bytes, open, snapshots };
}

/** As the sweeper does it: entries that a snapshot shows are swept only when no read can have seen their contents before. */
async function sweep({ partition, reads, store }: Awaited<ReturnType<typeof storeWith>>): Promise<void> {
  const deletions = await partition.read((at) => at.scan(deletionsIn(account), { limit: 10 }));
  await reads.whenReached(reads.next());
  for (const row of deletions) {
    const id = parseId(decodeContentDeletion(row)!.content);
    while (!(await partition.transact(queueKey, (tx) => store.sweepContent(tx, account, id))).value);
    await partition.transact(queueKey, async (tx) => tx.remove(row.key));
  }
}

async function manyTicks(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise(setImmediate);
}

describe('Reading a content', () => {
  it('gives exactly the requested bytes, in portions of at most 1 MiB', async () => {
    const { open, bytes } = await storeWith([3 * MiB + 5, 1, 70_000, 9 * MiB]);
    const edges = [0, 1, 65_535, 65_536, MiB, 3 * MiB + 4, 3 * MiB + 5, 3 * MiB + 6, 3 * MiB + 70_006, bytes.length];
    for (const from of edges) {
      for (const to of edges.filter((edge) => edge > from)) {
        const read = await open(from, to);
        const got: Buffer[] = [];
        for await (const portion of read.stream()) {
          expect(portion.length).toBeGreaterThan(0);
          expect(portion.length).toBeLessThanOrEqual(MiB);
          got.push(portion);
        }
        expect(Buffer.concat(got).equals(bytes.subarray(from, to)), `${from} to ${to}`).toBe(true);
      }
    }
  });

  it('of nothing gives nothing', async () => {
    const { open, reads } = await storeWith([10]);
    expect(await bytesFrom((await open(5, 5)).stream())).toHaveLength(0);
    expect(reads.oldest()).toBe(Infinity);
  });

  it('reads each checked block once, wherever it begins', async () => {
    const { open, extents } = await storeWith([5 * MiB]);
    await bytesFrom((await open(100, 5 * MiB)).stream());
    const inner = extents.reads.flatMap(({ from, to }) => [from, to]).slice(1, -1);
    expect(inner.filter((edge) => edge % CHECKSUM_BLOCK_BYTES !== 0)).toEqual([]);
  });

  it('looks up a page of chunks at a time, the first in the snapshot that found the content', async () => {
    const { open, snapshots, bytes } = await storeWith(Array<number>(600).fill(11));
    const read = await open(0, bytes.length);
    expect(snapshots.count).toBe(1);
    expect((await bytesFrom(read.stream())).equals(bytes)).toBe(true);
    // One lookup per manifest page, as the chunks are small.
    expect(snapshots.count).toBe(2);
    for (const [from, to] of [
      [63 * 11, 64 * 11 + 1],
      [480 * 11 - 1, 480 * 11 + 1],
      [599 * 11 + 3, 600 * 11],
    ] as const) {
      expect((await bytesFrom((await open(from, to)).stream())).equals(bytes.subarray(from, to))).toBe(true);
    }
  });

  it('reads small chunks together, and gives them in portions', async () => {
    const lengths = Array.from({ length: 1_000 }, (_, at) => (at % 300 === 299 ? 100_000 : 1 + (at % 3)));
    const { open, extents, bytes } = await storeWith(lengths);
    const read = await open(1, bytes.length - 1);
    expect((await bytesFrom(read.stream())).equals(bytes.subarray(1, -1))).toBe(true);
    // Three large chunks, with small ones before, between and after them, in three manifest pages.
    expect(extents.reads.length).toBeLessThan(16);
  });

  it('reads thousands of tiny chunks together: neighbours in an extent may be far apart in the content', async () => {
    const { open, extents, bytes } = await storeWith(Array<number>(4_900).fill(1));
    const read = await open(0, bytes.length);
    expect((await bytesFrom(read.stream())).equals(bytes)).toBe(true);
    // Nine manifest pages have more than 4,096 chunks.
    expect(extents.reads).toHaveLength(2);
  });

  it('looks up 64 large chunks at a time', async () => {
    const { open, snapshots, bytes } = await storeWith(Array<number>(130).fill(20_000));
    const read = await open(0, bytes.length);
    expect((await bytesFrom(read.stream())).equals(bytes)).toBe(true);
    expect(snapshots.count).toBe(3);
  });

  it('reads ahead one portion, and no more, while the consumer has the one before', async () => {
    const { open, extents } = await storeWith([5 * MiB]);
    const stream = (await open(0, 5 * MiB)).stream()[Symbol.asyncIterator]();
    await stream.next();
    await manyTicks();
    expect(extents.reads).toHaveLength(2);
    await stream.next();
    await manyTicks();
    expect(extents.reads).toHaveLength(3);
    await stream.return?.();
  });

  it('buffers little for each of many slow consumers', async () => {
    const { open, extents, reads } = await storeWith([3 * MiB]);
    const streams = [];
    for (let i = 0; i < 200; i++) {
      const stream = (await open(0, 3 * MiB)).stream()[Symbol.asyncIterator]();
      await stream.next();
      streams.push(stream);
    }
    await manyTicks();
    const buffered = extents.reads.reduce((sum, { from, to }) => sum + to - from, 0);
    expect(buffered).toBeLessThanOrEqual(66 * MiB + 200 * CHECKSUM_BLOCK_BYTES);
    for (const stream of streams) await stream.return?.();
    expect(reads.oldest()).toBe(Infinity);
    extents.reads.length = 0;
    await bytesFrom((await open(0, 3 * MiB)).stream());
    expect(extents.reads).toHaveLength(3);
  });
});

describe('A consumer that is fast', () => {
  it('gets large portions to the end, however long the content is', async () => {
    const { store, partition, id, extents } = await storeWith([8 * MiB]);
    const { segments } = await partition.read((at) => store.segmentsFrom(at, account, id, 0));
    const long = store.newId();
    await partition.transact(queueKey, async (tx) =>
      store.addContent(tx, account, long, Array<Segment>(10).fill(segments[0]!)),
    );
    const read = store.beginRead();
    await partition.read((at) => read.plan(at, account, long, 0, 80 * MiB));
    for await (const _ of read.stream());
    expect(extents.reads).toHaveLength(80);
  });
});

describe('A read', () => {
  it('keeps its bytes while the content is released, until it ends', async () => {
    const opened = await storeWith(Array<number>(260).fill(17_000));
    const { open, bytes, store, partition, id, reads, snapshots } = opened;
    const read = await open(0, bytes.length);
    const stream = read.stream()[Symbol.asyncIterator]();
    const got = [(await stream.next()).value as Buffer];
    await partition.transact(queueKey, (tx) => store.decrefContent(tx, account, id));
    let swept = false;
    const sweeping = sweep(opened).then(() => {
      swept = true;
    });
    for (;;) {
      await manyTicks();
      expect(swept).toBe(false);
      const { value, done } = await stream.next();
      if (done) break;
      got.push(value);
    }
    expect(Buffer.concat(got).equals(bytes)).toBe(true);
    expect(snapshots.count).toBeGreaterThan(3);
    await sweeping;
    expect(reads.oldest()).toBe(Infinity);
    await expect(open(0, 1)).rejects.toThrow(/has no byte 0/);
  });

  it('ends with its stream, when that is left early, returned before it began, or fails', async () => {
    let isCorrupt = false;
    const { open, reads } = await storeWith([4 * MiB], {
      onRead() {
        if (isCorrupt) throw new CorruptChunk('a flipped bit');
      },
    });
    await bytesFrom((await open(0, 10)).stream());
    expect(reads.oldest()).toBe(Infinity);

    for await (const _ of (await open(0, 4 * MiB)).stream()) break;
    expect(reads.oldest()).toBe(Infinity);

    await (await open(0, 10)).stream()[Symbol.asyncIterator]().return?.();
    expect(reads.oldest()).toBe(Infinity);

    const planned = await open(0, 10);
    expect(reads.oldest()).not.toBe(Infinity);
    planned.end();
    planned.end();
    expect(reads.oldest()).toBe(Infinity);

    isCorrupt = true;
    await expect(bytesFrom((await open(0, 10)).stream())).rejects.toThrow(CorruptChunk);
    expect(reads.oldest()).toBe(Infinity);
  });

  it('that fails in the read-ahead gives the good bytes first', async () => {
    let reads = 0;
    const { open } = await storeWith([2 * MiB], {
      onRead() {
        if (++reads > 1) throw new CorruptChunk('a flipped bit');
      },
    });
    const stream = (await open(0, 2 * MiB)).stream()[Symbol.asyncIterator]();
    expect((await stream.next()).value).toHaveLength(MiB);
    await manyTicks();
    await expect(stream.next()).rejects.toThrow(CorruptChunk);
  });

  it('waits for what it reads ahead before it ends: the extent may be removed after that', async () => {
    let go = () => {};
    let readCount = 0;
    const { open, reads } = await storeWith([2 * MiB], {
      onRead: () =>
        ++readCount === 2
          ? new Promise<void>((resolve) => {
              go = resolve;
            })
          : undefined,
    });
    const stream = (await open(0, 2 * MiB)).stream()[Symbol.asyncIterator]();
    await stream.next();
    const returned = stream.return?.();
    await manyTicks();
    expect(reads.oldest()).not.toBe(Infinity);
    go();
    await returned;
    expect(reads.oldest()).toBe(Infinity);
  });

  it('fails when it was cancelled, instead of reading bytes that may be removed', async () => {
    const { open, reads } = await storeWith([3 * MiB]);
    const stream = (await open(0, 3 * MiB)).stream()[Symbol.asyncIterator]();
    expect((await stream.next()).done).toBe(false);
    reads.cancelAll();
    await expect(stream.next()).rejects.toThrow(Unavailable);
  });
});
