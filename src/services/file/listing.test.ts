import { describe, expect, it } from 'vitest';
import { ACCOUNT } from '../../../test/support/blob-storage.ts';
import { openShare, SHARE } from '../../../test/support/file-storage.ts';
import { keysUnder } from '../../partition/keys.ts';
import type { PagedSnapshot, Row } from '../../partition/partition.ts';
import type { Storage } from '../common/storage.ts';
import { createDirectory } from './directories.ts';
import { createFile } from './files.ts';
import { listDirectory } from './listing.ts';
import { renameNode } from './rename.ts';

const share = SHARE;
const at = (path: string) => ({ share, path, leaseId: undefined, metadata: [], smb: {} });
const nameOf = (number: number) => `f${String(number).padStart(4, '0')}`;

async function openFull(files: number) {
  const world = await openShare();
  await createDirectory(world.storage, at('d'));
  for (let number = 0; number < files; number++)
    await createFile(world.storage, { ...at(`d/${nameOf(number)}`), length: number, content: {} });
  return world;
}

/** A page, and how many rows were read for it. */
async function readPage(storage: Storage, marker: string | undefined, resultsMax: number) {
  let rows = 0;
  const count = (found: readonly (Row | undefined)[]) => {
    rows += found.length;
  };
  const counting = (snapshot: PagedSnapshot): PagedSnapshot => ({
    now: snapshot.now,
    get: async (key) => {
      const row = await snapshot.get(key);
      count([row]);
      return row;
    },
    getMany: async (keys) => {
      const found = await snapshot.getMany(keys);
      count(found);
      return found;
    },
    scan: async (range, options) => {
      const found = await snapshot.scan(range, options);
      count(found);
      return found;
    },
    page: (range, options) => snapshot.page(range, options),
  });
  const { partition } = storage;
  const watched: Storage = {
    ...storage,
    partition: { ...partition, read: (fn) => partition.read((snapshot) => fn(counting(snapshot))) },
  };
  const names: string[] = [];
  let next = '';
  const input = { ...at('d'), prefix: undefined, marker, resultsMax, isExtended: true };
  await listDirectory(watched, input, {
    begin() {},
    add: (entries) => names.push(...entries.map(({ name }) => name)),
    end: (nextMarker) => {
      next = nextMarker;
    },
  });
  return { names, next, rows };
}

describe('A list of a directory', () => {
  it('reads as many rows for its last full page as for its first', async () => {
    const { storage } = await openFull(1_000);
    const names: string[] = [];
    const costs = new Set<number>();
    let marker: string | undefined;
    do {
      const page = await readPage(storage, marker, 100);
      names.push(...page.names);
      if (page.next) costs.add(page.rows);
      marker = page.next;
    } while (marker);
    expect(names).toEqual(Array.from({ length: 1_000 }, (_, number) => nameOf(number)));
    expect([...costs]).toHaveLength(1);
    expect([...costs][0]).toBeLessThan(250);
  });
});

describe('A rename of a directory', () => {
  it('writes as many rows for 300 files below as for none', async () => {
    const written = async (files: number) => {
      const { storage, partition } = await openFull(files);
      const source = { path: 'd', keepsTrailingDots: undefined };
      const options = {
        replaces: false,
        ignoresReadOnly: false,
        sourceLeaseId: undefined,
        destinationLeaseId: undefined,
      };
      const { version } = await renameNode(storage, 'directory', { ...at('new'), source, ...options });
      const rows = await partition.read((snapshot) => snapshot.scan(keysUnder([ACCOUNT]), { limit: 10_000 }));
      return rows.filter((row) => row.version === version).length;
    };
    expect(await written(300)).toBe(await written(0));
  });
});
