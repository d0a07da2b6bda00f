import { describe, expect, it } from 'vitest';
import { account, openStore } from '../../test/support/content-store.ts';
import { encodeKey } from '../partition/keys.ts';
import type { Partition, Transaction } from '../partition/partition.ts';
import { decodeCounter } from '../partition/values.ts';
import { DanglingReference } from './content.ts';
import { takeOverEpoch } from './membership/epochs.ts';
import { addChunks } from './refcounts.ts';
import {
  type ChunkRef,
  chunkKey,
  decodeChunk,
  decodeContentDeletion,
  deletionsIn,
  encodeManifestPage,
  type Id,
  liveBytesKey,
  manifestPagesIn,
  type Segment,
} from './rows.ts';

const queueKey = encodeKey(['test']);
const id = (number: number): Id => ({ epoch: 1n, number: BigInt(number) });

/** Chunks of this many bytes each, every one in an extent of its own. */
function chunks(first: number, count: number, length = 10): { chunkRefs: ChunkRef[]; extents: string[] } {
  const numbers = Array.from({ length: count }, (_, i) => first + i);
  return {
    chunkRefs: numbers.map((number) => ({ chunk: id(number), length })),
    extents: numbers.map((number) => `e${number}`),
  };
}

async function write(partition: Partition, fn: (tx: Transaction) => Promise<unknown> | unknown): Promise<void> {
  await partition.transact(queueKey, async (tx) => {
    await fn(tx);
  });
}

function add(tx: Transaction, { chunkRefs, extents }: ReturnType<typeof chunks>): void {
  const locations = chunkRefs.map(({ length }, i) => ({ extent: extents[i]!, offset: 0, length }));
  addChunks(tx, account, { chunkRefs, locations });
}

const segmentsOf = (chunkRefs: readonly ChunkRef[]): Segment[] =>
  chunkRefs.map((ref) => ({ label: `b${ref.chunk.number}`, length: ref.length, chunkRefs: [ref] }));

async function found(partition: Partition, number: number) {
  return partition.read(async (at) => {
    const row = await at.get(chunkKey(account, id(number)));
    return {
      refs: row && decodeChunk(row).refs,
      live: decodeCounter(await at.get(liveBytesKey(account, `e${number}`))),
    };
  });
}

const deletionQueue = (partition: Partition) => partition.read((at) => at.scan(deletionsIn(account), { limit: 10 }));

describe('References of chunks', () => {
  it('count every reference, also several to one chunk in one call', async () => {
    const { partition, store } = await openStore();
    const [one, two] = chunks(1, 2).chunkRefs as [ChunkRef, ChunkRef];
    await write(partition, (tx) => add(tx, chunks(1, 2)));
    expect(await found(partition, 1)).toEqual({ refs: 1, live: 10n });
    await write(partition, (tx) => store.increfChunks(tx, account, [one, two, one]));
    expect(await found(partition, 1)).toEqual({ refs: 3, live: 10n });
    await write(partition, (tx) => store.decrefChunks(tx, account, [one, one, two]));
    expect(await found(partition, 1)).toEqual({ refs: 1, live: 10n });
    expect(await found(partition, 2)).toEqual({ refs: 1, live: 10n });
    await write(partition, (tx) => store.decrefChunks(tx, account, [one]));
    expect(await found(partition, 1)).toEqual({ refs: undefined, live: 0n });
  });

  it('add up over several calls in one transaction', async () => {
    const { partition, store } = await openStore();
    const [one] = chunks(1, 1).chunkRefs as [ChunkRef];
    await write(partition, async (tx) => {
      add(tx, chunks(1, 1));
      await store.increfChunks(tx, account, [one]);
      await store.increfChunks(tx, account, [one]);
      await store.decrefChunks(tx, account, [one]);
    });
    expect(await found(partition, 1)).toEqual({ refs: 2, live: 10n });
    await write(partition, async (tx) => {
      await store.decrefChunks(tx, account, [one]);
      await store.decrefChunks(tx, account, [one]);
    });
    expect(await found(partition, 1)).toEqual({ refs: undefined, live: 0n });
  });

  it('are never incremented from 0, nor decremented below it', async () => {
    const { partition, store } = await openStore();
    const [one] = chunks(1, 1).chunkRefs as [ChunkRef];
    await expect(write(partition, (tx) => store.increfChunks(tx, account, [one]))).rejects.toThrow(DanglingReference);
    await write(partition, (tx) => add(tx, chunks(1, 1)));
    await expect(write(partition, (tx) => store.decrefChunks(tx, account, [one, one]))).rejects.toThrow(/fewer/);
    expect(await found(partition, 1)).toEqual({ refs: 1, live: 10n });
  });

  it('are given to uploaded bytes only while the process is a member', async () => {
    const { partition, store } = await openStore();
    const uploaded = await store.upload(
      account,
      (async function* () {
        yield Buffer.from('abc');
      })(),
      3,
      { md5: false },
    );
    await takeOverEpoch(partition);
    await expect(write(partition, (tx) => store.commitUpload(tx, account, uploaded))).rejects.toThrow(/taken over/);
  });
});

describe('A content', () => {
  it('is found segment by segment from any byte on', async () => {
    const { partition, store } = await openStore();
    const content = store.newId();
    const { chunkRefs } = chunks(1, 1000, 7);
    await write(partition, (tx) => store.addContent(tx, account, content, segmentsOf(chunkRefs)));
    const seen: (string | undefined)[] = [];
    let offset = 0;
    let pages = 0;
    for (;;) {
      const page = await partition.read((at) => store.segmentsFrom(at, account, content, offset));
      if (page.segments.length === 0) break;
      pages++;
      expect(page.offset).toBe(offset);
      seen.push(...page.segments.map(({ label }) => label));
      offset += page.segments.reduce((sum, { length }) => sum + length, 0);
    }
    expect(seen).toEqual(chunkRefs.map(({ chunk }) => `b${chunk.number}`));
    expect(pages).toBe(3);
    for (const [byte, label, begin] of [
      [0, 'b1', 0],
      [6, 'b1', 0],
      [7, 'b2', 7],
      [480 * 7 - 1, 'b480', 479 * 7],
      [480 * 7, 'b481', 480 * 7],
      [6999, 'b1000', 6993],
    ] as const) {
      const page = await partition.read((at) => store.segmentsFrom(at, account, content, byte));
      expect([page.offset, page.segments[0]?.label]).toEqual([begin, label]);
    }
    expect(await partition.read((at) => store.segmentsFrom(at, account, content, 7000))).toEqual({
      offset: 7000,
      segments: [],
    });
  });

  it('is referenced from any byte to any other, with parts of chunks at both ends, and parts of parts', async () => {
    const { partition, store } = await openStore();
    const [whole, part] = [store.newId(), store.newId()];
    const { chunkRefs } = chunks(1, 1000, 7);
    await write(partition, (tx) => store.addContent(tx, account, whole, segmentsOf(chunkRefs)));
    const refs = (content: Id, from: number, to: number, most = 1_000) =>
      partition.read((at) => store.chunkRefsIn(at, account, content, from, to, most));
    expect(await refs(whole, 0, 7_000)).toEqual(chunkRefs);
    expect(await refs(whole, 7, 21)).toEqual(chunkRefs.slice(1, 3));
    expect(await refs(whole, 8, 10)).toEqual([{ chunk: id(2), length: 2, offset: 1 }]);
    expect(await refs(whole, 7, 10)).toEqual([{ chunk: id(2), length: 3, offset: 0 }]);
    expect(await refs(whole, 480 * 7 - 2, 480 * 7 + 8)).toEqual([
      { chunk: id(480), length: 2, offset: 5 },
      chunkRefs[480],
      { chunk: id(482), length: 1, offset: 0 },
    ]);
    expect(await refs(whole, 0, 21, 3)).toHaveLength(3);
    expect(await refs(whole, 0, 22, 3)).toBeUndefined();
    await expect(refs(whole, 0, 7_001)).rejects.toThrow('has no byte 7000');
    const cut = (await refs(whole, 3, 20))!;
    await write(partition, (tx) => store.addContent(tx, account, part, [{ length: 17, chunkRefs: cut }]));
    expect(await refs(part, 0, 17)).toEqual(cut);
    expect(await refs(part, 1, 5)).toEqual([
      { chunk: id(1), length: 3, offset: 4 },
      { chunk: id(2), length: 1, offset: 0 },
    ]);
  });

  it('is not taken for one of its neighbours', async () => {
    const { partition, store } = await openStore();
    const [one, two, three] = [store.newId(), store.newId(), store.newId()];
    const { chunkRefs } = chunks(1, 3);
    await write(partition, (tx) => {
      store.addContent(tx, account, one, segmentsOf([chunkRefs[0]!]));
      store.addContent(tx, account, three, segmentsOf([chunkRefs[2]!]));
    });
    expect(await partition.read((at) => store.segmentsFrom(at, account, two, 0))).toEqual({ offset: 0, segments: [] });
  });

  it('goes into the deletion queue with its last reference, and cannot be swept before', async () => {
    const { partition, store } = await openStore();
    const content = store.newId();
    await write(partition, (tx) => {
      add(tx, chunks(1, 1));
      store.addContent(tx, account, content, segmentsOf(chunks(1, 1).chunkRefs));
    });
    await write(partition, (tx) => store.increfContent(tx, account, content));
    await write(partition, (tx) => store.decrefContent(tx, account, content));
    expect(await deletionQueue(partition)).toEqual([]);
    await expect(write(partition, (tx) => store.sweepContent(tx, account, content))).rejects.toThrow(/in use/);
    await write(partition, (tx) => store.decrefContent(tx, account, content));
    expect((await deletionQueue(partition)).map(decodeContentDeletion)).toEqual([
      { kind: 'content', content: `${content.epoch}-${content.number}` },
    ]);
    await expect(write(partition, (tx) => store.increfContent(tx, account, content))).rejects.toThrow(/has no row/);
    await expect(write(partition, (tx) => store.decrefContent(tx, account, content))).rejects.toThrow(/has no row/);
    expect(await found(partition, 1)).toEqual({ refs: 1, live: 10n });
    await write(partition, (tx) => store.sweepContent(tx, account, content));
    expect(await found(partition, 1)).toEqual({ refs: undefined, live: 0n });
  });
});

describe('Sweeping a content', () => {
  it.each([
    ['segments of one chunk', segmentsOf(chunks(1, 1000).chunkRefs)],
    ['one segment of 625 chunks', [{ label: 'a', length: 6250, chunkRefs: chunks(1, 625).chunkRefs }]],
    [
      'segments of 500 chunks',
      [1, 501].map((first) => ({ label: 'a', length: 5000, chunkRefs: chunks(first, 500).chunkRefs })),
    ],
  ])('of %s takes slices of at most 1,000 rows, each of them exact', async (_, segments) => {
    const { partition, store, rows } = await openStore();
    const content = store.newId();
    const chunkRefs = segments.flatMap((segment) => segment.chunkRefs);
    await write(partition, (tx) => {
      add(tx, chunks(1, chunkRefs.length));
      store.addContent(tx, account, content, segments);
    });
    await write(partition, (tx) => store.decrefContent(tx, account, content));
    rows.most = 0;
    let left = chunkRefs.length;
    for (let done = false; !done; ) {
      const { value } = await partition.transact(queueKey, (tx) => store.sweepContent(tx, account, content));
      done = value;
      const pages = await partition.read((at) => at.scan(manifestPagesIn(account, content), { limit: 10 }));
      const rowsLeft = await partition.read((at) => at.getMany(chunkRefs.map(({ chunk }) => chunkKey(account, chunk))));
      const count = rowsLeft.filter((row) => row).length;
      expect(count).toBeLessThan(left);
      expect(pages.length === 0).toBe(done);
      left = count;
    }
    expect(left).toBe(0);
    expect(rows.most).toBeLessThanOrEqual(1_000);
    expect((await partition.transact(queueKey, (tx) => store.sweepContent(tx, account, content))).value).toBe(true);
  });

  it('decrements only the chunks in its pages: chunks that others share stay', async () => {
    const { partition, store } = await openStore();
    const [one, other] = [store.newId(), store.newId()];
    const { chunkRefs } = chunks(1, 1);
    await write(partition, async (tx) => {
      add(tx, chunks(1, 1));
      await store.increfChunks(tx, account, chunkRefs);
      store.addContent(tx, account, one, segmentsOf(chunkRefs));
      store.addContent(tx, account, other, segmentsOf(chunkRefs));
      await store.decrefContent(tx, account, one);
    });
    expect((await partition.transact(queueKey, (tx) => store.sweepContent(tx, account, one))).value).toBe(true);
    expect(await found(partition, 1)).toEqual({ refs: 1, live: 10n });
  });
});

describe('A pending content', () => {
  async function beginPending() {
    const opened = await openStore();
    const { partition, store } = opened;
    const content = store.newId();
    const { value: pendingKey } = await partition.transact(queueKey, (tx) => store.beginPending(tx, account, content));
    const { chunkRefs } = chunks(1, 600);
    await write(partition, async (tx) => {
      add(tx, chunks(1, 300));
      await store.addSegments(tx, account, content, 0, segmentsOf(chunkRefs.slice(0, 300)));
    });
    await write(partition, async (tx) => {
      add(tx, chunks(301, 300));
      await store.addSegments(tx, account, content, 3000, segmentsOf(chunkRefs.slice(300)));
    });
    return { ...opened, content, pendingKey };
  }

  it('becomes a content like any other when it is finished', async () => {
    const { partition, store, content, pendingKey } = await beginPending();
    expect((await deletionQueue(partition)).map(decodeContentDeletion)).toMatchObject([
      { kind: 'content', pending: true },
    ]);
    await write(partition, (tx) => store.finishPending(tx, account, content, pendingKey, 6000));
    expect(await deletionQueue(partition)).toEqual([]);
    const page = await partition.read((at) => store.segmentsFrom(at, account, content, 3005));
    expect([page.offset, page.segments[0]?.label]).toEqual([3000, 'b301']);
    await write(partition, (tx) => store.decrefContent(tx, account, content));
    expect(await deletionQueue(partition)).toHaveLength(1);
  });

  it('is left to the sweeper when it is abandoned, and not finished after that', async () => {
    const { partition, store, content, pendingKey } = await beginPending();
    await write(partition, (tx) => store.abandonPending(tx, content, pendingKey));
    expect((await deletionQueue(partition)).map(decodeContentDeletion)).toEqual([
      { kind: 'content', content: `${content.epoch}-${content.number}` },
    ]);
    await expect(write(partition, (tx) => store.finishPending(tx, account, content, pendingKey, 6000))).rejects.toThrow(
      /not pending/,
    );
    while (!(await partition.transact(queueKey, (tx) => store.sweepContent(tx, account, content))).value);
    expect(await found(partition, 600)).toEqual({ refs: undefined, live: 0n });
  });

  it('of an evicted process gets no segments and is not finished', async () => {
    const { partition, store, content, pendingKey } = await beginPending();
    await takeOverEpoch(partition);
    const late: ((tx: Transaction) => Promise<unknown>)[] = [
      (tx) => store.addSegments(tx, account, content, 6000, segmentsOf(chunks(1, 1).chunkRefs)),
      (tx) => store.finishPending(tx, account, content, pendingKey, 6000),
      (tx) => store.beginPending(tx, account, store.newId()),
    ];
    for (const fn of late) await expect(write(partition, fn)).rejects.toThrow(/taken over/);
  });
});

describe('A manifest page', () => {
  it('stays small, also with the longest block ids', () => {
    const label = 'A'.repeat(88);
    const ref = { chunk: { epoch: 639_000_000_000_000_000n, number: 10n ** 10n }, length: 8 << 20 };
    const segments = Array.from({ length: 480 }, () => ({ label, length: 8 << 20, chunkRefs: [ref] }));
    expect(encodeManifestPage(segments).length).toBeLessThan(80_000);
  });
});
