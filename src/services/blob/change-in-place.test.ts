import { describe, expect, it } from 'vitest';
import { ACCOUNT, openWorld } from '../../../test/support/blob-storage.ts';
import { inPieces } from '../../../test/support/content-store.ts';
import type { Partition, Transaction } from '../../partition/partition.ts';
import type { Storage } from '../common/storage.ts';
import { type AppendBlockInput, appendBlock, createAppendBlob, sealBlob } from './append-blobs.ts';
import { getBlob, getBlobProperties } from './blobs.ts';
import { createPageBlob, putPage } from './page-blobs.ts';

const PAGE = 512;
const base = { container: 'box', blob: 'log', conditions: {}, leaseId: undefined };
const bodyOf = (whole: Buffer) => ({ length: whole.length, expected: {}, whole, bytes: async function* () {} });

async function openBox() {
  const world = await openWorld();
  await world.putContainer();
  const { partition, store: content, sweeper } = world;
  const storage: Storage = { partition, account: ACCOUNT, content, sweeper };
  const append = async (text: string, more: Partial<AppendBlockInput> = {}) => {
    const { written } = await appendBlock(
      { ...storage },
      { ...base, append: {}, wantsMd5: false, body: bodyOf(Buffer.from(text)), ...more },
    );
    return { ...written.result, etag: written.etag, modified: written.modified };
  };
  const put = async (at: number, fill: string, length = PAGE) => {
    const range = `bytes=${at}-${at + length - 1}`;
    const body = bodyOf(Buffer.alloc(length, fill));
    return (await putPage(storage, { ...base, range, sequence: {}, wantsMd5: false, body })).written;
  };
  const read = async () => {
    const asked = { range: undefined, rangeMd5: undefined, rangeCrc64: undefined };
    const { bytes } = await getBlob(storage, { ...base, ...asked });
    const parts: Uint8Array[] = [];
    for await (const part of Buffer.isBuffer(bytes) ? [bytes] : bytes) parts.push(part);
    return Buffer.concat(parts);
  };
  const properties = async () => (await getBlobProperties(storage, base)).blob;
  return { ...world, storage, append, put, read, properties };
}

/** The transaction of a process whose clock is behind. */
function behind(tx: Transaction, timestamp: bigint, drawn: string[]): Transaction {
  return new Proxy(tx, {
    get(of, name) {
      if (name === 'timestamp' || name === 'now') return timestamp;
      if (name === 'nextTimestamp') drawn.push(name);
      const found = Reflect.get(of, name);
      return typeof found === 'function' ? found.bind(of) : found;
    },
  });
}

/** What each of several calls was answered, in their order. */
async function answers(calls: readonly Promise<object>[]) {
  const settled = await Promise.allSettled(calls);
  return settled.map((each) => (each.status === 'fulfilled' ? each.value : (each.reason.code as string)));
}

describe('Appends that wait for one blob', () => {
  it('are one commit, in which each has its offset, block count and ETag', async () => {
    const { storage, append, read, properties, partition, stop } = await openBox();
    await createAppendBlob(storage, { ...base, content: {}, metadata: [] });
    const before = partition.settledCommits();
    const texts = Array.from({ length: 40 }, (_, i) => `${i}`.repeat(1 + i * 17));
    const made = await Promise.all(texts.map((text) => append(text)));
    expect(partition.settledCommits() - before).toBe(1);
    const offsets = texts.map((_, i) => texts.slice(0, i).join('').length);
    expect(made.map(({ offset, blocks }) => [offset, blocks])).toEqual(offsets.map((offset, i) => [offset, i + 1]));
    expect(new Set(made.map(({ etag }) => etag)).size).toBe(texts.length);
    const { etag, modified, length, append: state } = await properties();
    expect({ etag, modified }).toEqual({ etag: made.at(-1)!.etag, modified: made.at(-1)!.modified });
    expect([length, state]).toEqual([texts.join('').length, { blocks: texts.length }]);
    expect((await read()).toString()).toBe(texts.join(''));
    await stop();
  });

  it('continue each other over the border of a map page', async () => {
    const { storage, append, read, stop } = await openBox();
    await createAppendBlob(storage, { ...base, content: {}, metadata: [] });
    const long = Buffer.alloc((1 << 20) - (13 << 10), 'l');
    const body = { length: long.length, expected: {}, bytes: () => inPieces(long, 1 << 16) };
    await append('', { body });
    const texts = Array.from({ length: 20 }, (_, i) => String.fromCharCode(97 + i).repeat(1 << 10));
    await Promise.all(texts.map((text) => append(text)));
    expect((await read()).toString()).toBe(long.toString() + texts.join(''));
    await stop();
  });

  it('are judged one after another: position, greatest length, ETag and seal', async () => {
    const { storage, append, read, stop } = await openBox();
    const { etag } = await createAppendBlob(storage, { ...base, content: {}, metadata: [] });
    const ifMatch = (value: string) => ({ conditions: { ifMatch: [value] } });
    const found = await answers([
      append('aa', { append: { position: 0 } }),
      append('bb', { append: { position: 0 } }),
      append('cc', ifMatch(etag)),
      append('dd', { append: { position: 2, lengthMax: 4 } }),
      append('ee', { append: { lengthMax: 5 } }),
      append('ff', { leaseId: '7b8e4a9c-0d3f-4f55-9d0a-2f1c5f6e7a8b' }),
      append('gg'),
    ]);
    expect(found).toMatchObject([
      { offset: 0, blocks: 1 },
      'AppendPositionConditionNotMet',
      'ConditionNotMet',
      { offset: 2, blocks: 2 },
      'MaxBlobSizeConditionNotMet',
      'LeaseNotPresentWithBlobOperation',
      { offset: 4, blocks: 3 },
    ]);
    const [first, , , , , , last] = found as { etag: string }[];
    expect(await answers([append('hh', ifMatch(first!.etag)), append('ii', ifMatch(last!.etag))])).toMatchObject([
      'ConditionNotMet',
      { offset: 6, blocks: 4 },
    ]);
    await sealBlob(storage, { ...base, append: {} });
    expect(await answers([append('jj'), append('kk')])).toEqual(['BlobIsSealed', 'BlobIsSealed']);
    expect((await read()).toString()).toBe('aaddggii');
    await stop();
  });

  it('draw no ETags while the clock is behind the version of the blob: that commit is a conflict', async () => {
    const { storage, partition, stop } = await openBox();
    const { modified: version } = await createAppendBlob(storage, { ...base, content: {}, metadata: [] });
    const drawn: string[] = [];
    const transactCombined: Partition['transactCombined'] = (queueKey, input, combined) =>
      partition.transactCombined(queueKey, input, {
        ...combined,
        async run(tx, [call]) {
          const [result] = await combined.run(behind(tx, version, drawn), [call!, call!], undefined);
          return [result!];
        },
      });
    await appendBlock(
      { ...storage, partition: { ...partition, transactCombined } },
      { ...base, append: {}, wantsMd5: false, body: bodyOf(Buffer.from('x')) },
    );
    expect(drawn).toEqual([]);
    await stop();
  });

  it('are refused for the caller that another container of the name authorized, and for no other', async () => {
    const { storage, append, stop } = await openBox();
    await createAppendBlob(storage, { ...base, content: {}, metadata: [] });
    const stranger = appendBlock(
      { ...storage, granted: { container: 41n } },
      { ...base, append: {}, wantsMd5: false, body: bodyOf(Buffer.from('x')) },
    );
    expect(await answers([append('a'), stranger, append('b')])).toMatchObject([
      { offset: 0 },
      'ContainerNotFound',
      { offset: 1 },
    ]);
    await stop();
  });
});

describe('Put Page requests that wait for one blob', () => {
  it('are written in their order, and each has an ETag', async () => {
    const { storage, put, read, partition, stop } = await openBox();
    const length = 4 << 20;
    await createPageBlob(storage, { ...base, content: {}, metadata: [], length, sequenceNumber: undefined });
    const before = partition.settledCommits();
    const writes: [at: number, fill: string, length?: number][] = [
      [0, 'a', 4 * PAGE],
      [PAGE, 'b'],
      [2 * PAGE, 'c'],
      [PAGE, 'd'],
      [(1 << 20) - PAGE, 'e', 2 * PAGE],
      [3 << 20, 'f'],
      [3 * PAGE, 'g', 2 * PAGE],
      [2 << 20, 'h'],
      [(2 << 20) + 4 * PAGE, 'i'],
      [(2 << 20) + PAGE, 'j'],
    ];
    const made = await Promise.all(writes.map((write) => put(...write)));
    expect(partition.settledCommits() - before).toBe(1);
    expect(new Set(made.map(({ etag }) => etag)).size).toBe(writes.length);
    const expected = Buffer.alloc(length);
    for (const [at, fill, bytes = PAGE] of writes) expected.fill(fill, at, at + bytes);
    expect((await read()).equals(expected)).toBe(true);
    await stop();
  });
});
