import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeKey } from '../../partition/keys.ts';
import { openMemory } from '../../partition/memory/engine.ts';
import type { Partition } from '../../partition/partition.ts';
import { openPartition } from '../../partition/transact.ts';
import { encodeName } from '../common/names.ts';
import type { Storage } from '../common/storage.ts';
import { encodeBlobRecord } from './blob-record.ts';
import { type ListBlobsInput, listBlobs } from './listing.ts';
import { encodeMark, markKey, snapshotKey } from './old-rows.ts';
import {
  blobKey,
  encodeProperties,
  encodeUncommitted,
  nameFromKey,
  nameKey,
  propertiesKey,
  uncommittedExpiry,
  uncommittedKey,
} from './rows.ts';

const ACCOUNT = 7n;
/** A blob record, uncommitted blocks, expired blocks, or two of these. */
type Kind = 'record' | 'uncommitted' | 'expired' | 'both' | 'record and expired';
const KINDS: readonly Kind[] = ['record', 'uncommitted', 'expired', 'both', 'record and expired'];
const aUnit = fc.constantFrom('a', 'b', '/', '\0', 'é', '\ud83d', '\ude00', '\uffff');
const aText = (minLength: number, maxLength: number) =>
  fc.array(aUnit, { minLength, maxLength }).map((units) => units.join(''));

async function fill(partition: Partition, id: bigint, blobs: readonly (readonly [string, Kind])[]): Promise<string> {
  const container = `box${id}`;
  const record = { content: {}, metadata: {}, created: 1n, length: 0, crc64: '' };
  await partition.transact(encodeKey(['test']), async (tx) => {
    tx.put(nameKey(ACCOUNT, container), encodeName(id));
    tx.put(propertiesKey(ACCOUNT, id), encodeProperties({ metadata: {}, policies: [] }));
    for (const [name, kind] of blobs) {
      if (kind !== 'uncommitted' && kind !== 'expired') tx.put(blobKey(ACCOUNT, id, name), encodeBlobRecord(record));
      if (kind === 'record') continue;
      const touched = kind.endsWith('expired') ? 1n : tx.now;
      const blocks = { id: { epoch: 1n, number: 1n }, created: 1n, idLength: 2, count: 1, gen: 0, touched };
      tx.put(uncommittedKey(ACCOUNT, id, name), encodeUncommitted({ ...blocks, due: uncommittedExpiry(touched) }));
    }
  });
  return container;
}

/** The items of all pages; common prefixes are marked. */
async function listAll(partition: Partition, input: Omit<ListBlobsInput, 'marker'>): Promise<string[]> {
  const found: string[] = [];
  for (let marker: string | undefined; marker !== ''; ) {
    const page = await listPage(partition, { ...input, marker });
    found.push(...page.items);
    marker = page.marker;
    if (marker !== '') expect(page.items.length).toBe(input.resultsMax);
  }
  return found;
}

async function listPage(partition: Partition, input: ListBlobsInput): Promise<{ items: string[]; marker: string }> {
  const storage = { account: ACCOUNT, partition } as unknown as Storage;
  const items: string[] = [];
  const marker = await listBlobs(storage, input, (found) => {
    for (const item of found) items.push('prefix' in item ? `prefix ${item.prefix}` : item.name);
  });
  return { items, marker };
}

/** Reports the name of every row that a page returns. */
function watch(partition: Partition, report: (name: string) => void): Partition {
  const read: Partition['read'] = (fn) =>
    partition.read((at) => {
      const page: typeof at.page = async (range, options) => {
        const found = await at.page(range, options);
        for (const { key } of found.rows) report(nameFromKey(key));
        return found;
      };
      return fn(Object.assign(Object.create(at), { page }));
    });
  return { ...partition, read };
}

function expected(names: readonly string[], prefix: string, delimiter: string, startFrom = ''): string[] {
  const items = new Set<string>();
  for (const name of names.toSorted((a, b) => (a < b ? -1 : 1))) {
    if (!name.startsWith(prefix) || name < startFrom) continue;
    const end = delimiter === '' ? -1 : name.indexOf(delimiter, prefix.length);
    items.add(end < 0 ? name : `prefix ${name.slice(0, end + delimiter.length)}`);
  }
  return [...items];
}

describe('A list of blobs', () => {
  const isListed = (kind: Kind, uncommitted: boolean) => (kind === 'uncommitted' ? uncommitted : kind !== 'expired');

  it('shows committed blobs, and uncommitted ones that have not expired, under the common prefixes of any delimiter', async () => {
    const partition = openPartition(openMemory());
    let containers = 0n;
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(fc.tuple(aText(1, 5), fc.constantFrom(...KINDS)), {
          minLength: 1,
          maxLength: 40,
          selector: ([name]) => name,
        }),
        fc.record({ prefix: aText(0, 2), delimiter: aText(0, 2), startFrom: aText(0, 4), uncommitted: fc.boolean() }),
        fc.integer({ min: 1, max: 9 }),
        async (blobs, { uncommitted, ...asked }, resultsMax) => {
          const container = await fill(partition, ++containers, blobs);
          const found = await listAll(partition, { container, ...asked, uncommitted, resultsMax });
          const names = blobs.filter(([, kind]) => isListed(kind, uncommitted)).map(([name]) => name);
          expect(found).toEqual(expected(names, asked.prefix, asked.delimiter, asked.startFrom));
        },
      ),
      { numRuns: 400 },
    );
  });

  it('of many pages begins at startFrom, inside and outside of the prefix and of common prefixes', async () => {
    const partition = openPartition(openMemory());
    // 5,408 names, of one to four parts.
    const letters = ['', 'b', 'c/', 'd', 'e//', 'f', 'g/h', 'i'];
    const names = ['a', 'b/', 'c/d'].flatMap((first) =>
      letters.flatMap((one) =>
        letters.flatMap((two) => Array.from({ length: 30 }, (_, i) => `${first}${one}${two}-${i}`)),
      ),
    );
    const blobs = [...new Set(names)].map((name) => [name, 'record'] as const);
    expect(blobs.length).toBeGreaterThan(5_000);
    const container = await fill(partition, 1n, blobs);
    const anEdge = fc
      .constantFrom(...names)
      .chain((name) =>
        fc.nat(name.length).chain((length) => fc.constantFrom('', '\0', '~').map((end) => name.slice(0, length) + end)),
      );
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(fc.constant(''), anEdge),
        fc.constantFrom('', '/', '-', '//', '/d'),
        anEdge,
        fc.integer({ min: 7, max: 400 }),
        async (prefix, delimiter, startFrom, resultsMax) => {
          const input = { container, prefix, delimiter, startFrom, uncommitted: false, resultsMax };
          const all = blobs.map(([name]) => name);
          expect(await listAll(partition, input)).toEqual(expected(all, prefix, delimiter, startFrom));
        },
      ),
      { numRuns: 60 },
    );
  }, 60_000);

  it('begins behind the marker or at startFrom, whichever is later', async () => {
    const partition = openPartition(openMemory());
    let containers = 0n;
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(aText(1, 4), { minLength: 1, maxLength: 30 }),
        fc.record({ prefix: aText(0, 1), delimiter: aText(0, 1), startFrom: aText(0, 3) }),
        fc.integer({ min: 1, max: 6 }),
        async (names, { startFrom, ...asked }, resultsMax) => {
          const container = await fill(
            partition,
            ++containers,
            names.map((name) => [name, 'record'] as const),
          );
          const input = { container, ...asked, uncommitted: false, resultsMax };
          const first = await listPage(partition, { ...input, marker: undefined });
          if (first.marker === '') return;
          const second = await listPage(partition, { ...input, startFrom, marker: first.marker });
          const behind = expected(names, asked.prefix, asked.delimiter).slice(resultsMax);
          const wanted = expected(names, asked.prefix, asked.delimiter, startFrom).filter((item) =>
            behind.includes(item),
          );
          expect(second.items).toEqual(wanted.slice(0, resultsMax));
        },
      ),
      { numRuns: 300 },
    );
  });

  it('reads no row before startFrom, and ends where no name can follow', async () => {
    const partition = openPartition(openMemory());
    const longest = '\uffff'.repeat(1_024);
    const names = [...Array.from({ length: 3_000 }, (_, i) => `a/${String(i).padStart(4, '0')}`), 'b', longest];
    const container = await fill(
      partition,
      1n,
      names.map((name) => [name, 'record'] as const),
    );
    const read: string[] = [];
    const watched = watch(partition, (name) => read.push(name));
    const list = (startFrom: string, delimiter = '', resultsMax = 2) =>
      listPage(watched, { container, prefix: '', delimiter, startFrom, marker: '', uncommitted: false, resultsMax });
    expect((await list('a/2990')).items).toEqual(['a/2990', 'a/2991']);
    expect(read).toEqual(['a/2990', 'a/2991', 'a/2992']);
    read.length = 0;
    expect((await list('a/2990', '/')).items).toEqual(['prefix a/', 'b']);
    expect(read).toEqual(['a/2990', 'b', longest]);
    expect((await list(longest)).items).toEqual([longest]);
    expect((await list(`${longest}a`)).items).toEqual([]);
    expect((await list(`${'a'.repeat(5_000)}`)).items).toEqual(['b', longest]);
  });

  it('finds unexpired blocks after many expired ones under one common prefix', async () => {
    const partition = openPartition(openMemory());
    const expired = (folder: string) => Array.from({ length: 600 }, (_, i) => [`${folder}/${i}`, 'expired'] as const);
    const container = await fill(partition, 1n, [
      ...expired('a'),
      ...expired('b'),
      ['b/last', 'uncommitted'],
      ...expired('c'),
      ['c/last', 'record'],
    ]);
    const input = { container, prefix: '', delimiter: '/', uncommitted: true };
    for (const resultsMax of [1, 100]) {
      expect(await listAll(partition, { ...input, resultsMax })).toEqual(['prefix b/', 'prefix c/']);
    }
  });

  it('costs the same at every place among the snapshots of one blob, and passes over deleted ones at once', async () => {
    const COUNT = 30_000;
    const partition = openPartition(openMemory());
    const container = await fill(partition, 1n, [
      ['blob', 'record'],
      ['next', 'record'],
    ]);
    const record = encodeBlobRecord({ content: {}, metadata: {}, created: 1n, length: 0, crc64: '' });
    await partition.transact(encodeKey(['test']), async (tx) => {
      for (let stamp = 1; stamp <= COUNT; stamp++) tx.put(snapshotKey(ACCOUNT, 1n, 'blob', BigInt(stamp)), record);
    });
    let rows = 0;
    const watched = watch(partition, () => rows++);
    const list = async (marker: string) => {
      rows = 0;
      const asked = { container, prefix: '', delimiter: '', marker, uncommitted: false, snapshots: true };
      return listPage(watched, { ...asked, resultsMax: 100 });
    };
    let pages = 0;
    for (let marker = 'first'; marker !== ''; pages++) {
      const page = await list(marker === 'first' ? '' : marker);
      expect(rows).toBeLessThanOrEqual(2 * 101 + 2);
      marker = page.marker;
    }
    expect(pages).toBe(Math.ceil((COUNT + 2) / 100));
    await partition.transact(encodeKey(['test']), async (tx) => {
      tx.put(markKey(ACCOUNT, 1n, 'blob'), encodeMark({ upTo: BigInt(COUNT - 1) }));
    });
    expect((await list('')).items).toEqual(['blob', 'blob', 'next']);
    expect(rows).toBeLessThanOrEqual(2 * 101 + 4);
  });
});
