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
import {
  blobKey,
  encodeProperties,
  encodeUncommitted,
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
  const storage = { account: ACCOUNT, partition } as unknown as Storage;
  const found: string[] = [];
  for (let marker: string | undefined; marker !== ''; ) {
    const before = found.length;
    marker = await listBlobs(storage, { ...input, marker }, (items) => {
      for (const item of items) found.push('prefix' in item ? `prefix ${item.prefix}` : item.name);
    });
    if (marker !== '') expect(found.length - before).toBe(input.resultsMax);
  }
  return found;
}

function expected(names: readonly string[], prefix: string, delimiter: string): string[] {
  const items = new Set<string>();
  for (const name of names.toSorted((a, b) => (a < b ? -1 : 1))) {
    if (!name.startsWith(prefix)) continue;
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
        fc.record({ prefix: aText(0, 2), delimiter: aText(0, 2), uncommitted: fc.boolean() }),
        fc.integer({ min: 1, max: 9 }),
        async (blobs, { prefix, delimiter, uncommitted }, resultsMax) => {
          const container = await fill(partition, ++containers, blobs);
          const found = await listAll(partition, { container, prefix, delimiter, uncommitted, resultsMax });
          const names = blobs.filter(([, kind]) => isListed(kind, uncommitted)).map(([name]) => name);
          expect(found).toEqual(expected(names, prefix, delimiter));
        },
      ),
      { numRuns: 200 },
    );
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
});
