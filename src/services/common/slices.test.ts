import { describe, expect, it } from 'vitest';
import { encodeKey } from '../../partition/keys.ts';
import { openMemory } from '../../partition/memory/engine.ts';
import { openPartition } from '../../partition/transact.ts';
import { encodeBlobRecord } from '../blob/blob-record.ts';
import { listContainers } from '../blob/list-containers.ts';
import { listBlobs } from '../blob/listing.ts';
import { blobKey, encodeProperties, nameKey, propertiesKey } from '../blob/rows.ts';
import { listQueues } from '../queue/listing.ts';
import { createQueue } from '../queue/queues.ts';
import { encodeName } from './names.ts';
import { createSliceBuffer, SLICE_BYTES } from './slices.ts';
import type { Storage } from './storage.ts';

const ACCOUNT = 7n;
const ITEMS = 100;
const METADATA_BYTES = 7_700;
const metadata = { a: '&'.repeat(METADATA_BYTES) };
const page = { prefix: undefined, marker: undefined, resultsMax: undefined };

/** Containers, blobs in the first of them, and queues, all with long metadata. */
async function filled(): Promise<Storage> {
  const partition = openPartition(openMemory());
  const storage = { account: ACCOUNT, partition } as unknown as Storage;
  await partition.transact(encodeKey(['test']), async (tx) => {
    for (let i = 0n; i < ITEMS; i++) {
      tx.put(nameKey(ACCOUNT, `box${i}`), encodeName(i));
      tx.put(propertiesKey(ACCOUNT, i), encodeProperties({ metadata, policies: [] }));
      const record = { content: {}, metadata, created: 1n, length: 0, crc64: '' };
      tx.put(blobKey(ACCOUNT, 0n, `blob${i}`), encodeBlobRecord(record));
    }
  });
  for (let i = 0; i < ITEMS; i++) await createQueue(storage, { queue: `queue${i}`, metadata: [['a', metadata.a]] });
  return storage;
}

type Emit = (items: readonly unknown[]) => void;
const blobs = { ...page, container: 'box0', delimiter: undefined, uncommitted: false };

describe('A list', () => {
  it.each<[string, (storage: Storage, emit: Emit) => Promise<string>]>([
    ['of containers', (storage, emit) => listContainers(storage, page, emit)],
    ['of blobs', (storage, emit) => listBlobs(storage, blobs, emit)],
    ['of queues', (storage, emit) => listQueues(storage, page, emit)],
  ])('%s with long metadata is handed on in short slices, each in a turn of its own', async (_, list) => {
    const storage = await filled();
    let turns = 0;
    let immediate = setImmediate(function next() {
      turns++;
      immediate = setImmediate(next);
    });
    const slices: { turn: number; items: number }[] = [];
    try {
      expect(await list(storage, ({ length }) => slices.push({ turn: turns, items: length }))).toBe('');
    } finally {
      clearImmediate(immediate);
    }
    expect(slices.reduce((sum, { items }) => sum + items, 0)).toBe(ITEMS);
    for (const { items } of slices) expect(items * METADATA_BYTES).toBeLessThan(SLICE_BYTES + METADATA_BYTES);
    expect(new Set(slices.map(({ turn }) => turn)).size).toBe(slices.length);
  });
});

describe('A slice', () => {
  it('is full by items or by bytes, and is handed on only if it has any', () => {
    const emitted: (readonly string[])[] = [];
    const slices = createSliceBuffer<string>((items) => emitted.push(items), 2);
    slices.flush();
    slices.add('a', SLICE_BYTES - 1);
    expect(slices.isFull()).toBe(false);
    slices.add('b', 0);
    expect(slices.isFull()).toBe(true);
    slices.flush();
    expect(slices.isFull()).toBe(false);
    slices.add('c', SLICE_BYTES);
    expect(slices.isFull()).toBe(true);
    slices.flush();
    slices.flush();
    expect(emitted).toEqual([['a', 'b'], ['c']]);
  });
});
