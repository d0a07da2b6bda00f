import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  EMPTY,
  type Happened,
  isExplained,
  type Operation,
  run,
  showEntry,
  showTree,
} from '../../../test/support/namespace-model.ts';
import { missing, startCluster } from '../../../test/support/postgres-cluster.ts';
import { slowed } from '../../../test/support/slowed-engine.ts';
import { openLmdb } from '../../partition/lmdb/engine.ts';
import { openMemory } from '../../partition/memory/engine.ts';
import type { Engine } from '../../partition/partition.ts';
import { openPostgres } from '../../partition/postgres/engine.ts';
import { openPartition } from '../../partition/transact.ts';
import { StorageError } from '../common/errors.ts';
import type { Storage } from '../common/storage.ts';
import { check } from '../maintenance/check.ts';
import { createDirectory, deleteDirectory } from './directories.ts';
import { createFile, deleteFile } from './files.ts';
import { listDirectory } from './listing.ts';
import { renameNode } from './rename.ts';
import { createShare } from './shares.ts';

const ACCOUNT = 7n;
const aName = fc.constantFrom('a', 'a', 'b', 'b', 'B');
const aPath = fc.array(aName, { minLength: 1, maxLength: 3 }).map((names) => names.join('/'));
const anOperation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('mkdir' as const), path: aPath }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('create' as const), path: aPath }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('rmdir' as const, 'rm' as const), path: aPath }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('list' as const), path: fc.oneof(aPath, fc.constant('')) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constantFrom('mvdir' as const, 'mvdir' as const, 'mv' as const),
      path: aPath,
      to: aPath,
      replaces: fc.boolean(),
    }),
  },
);

/** Most operations find something in it. */
const START: readonly Operation[] = ['a', 'a/a', 'a/b', 'b', 'b/b'].map((path) => ({ kind: 'mkdir', path }));

async function list(storage: Storage, share: string, path: string) {
  const found: { kind: string; name: string }[] = [];
  const add = (entries: readonly { kind: string; name: string }[]) => found.push(...entries);
  const input = { share, path, prefix: undefined, marker: undefined, resultsMax: undefined, isExtended: false };
  await listDirectory(storage, input, { begin() {}, add, end() {} });
  return found;
}

async function perform(storage: Storage, share: string, operation: Operation): Promise<string> {
  const { path } = operation;
  const at = { share, path, leaseId: undefined, metadata: [], smb: {} };
  try {
    if (operation.kind === 'mkdir') await createDirectory(storage, at);
    else if (operation.kind === 'create') await createFile(storage, { ...at, length: 0, content: {} });
    else if (operation.kind === 'rmdir') await deleteDirectory(storage, at);
    else if (operation.kind === 'rm') await deleteFile(storage, at);
    else if (operation.kind === 'list')
      return (await list(storage, share, path)).map(({ kind, name }) => showEntry(kind, name)).join(' ');
    else if (operation.kind === 'mv' || operation.kind === 'mvdir') {
      const { to, replaces, kind } = operation;
      const source = { path, keepsTrailingDots: undefined };
      const options = { replaces, ignoresReadOnly: false, sourceLeaseId: undefined, destinationLeaseId: undefined };
      await renameNode(storage, kind === 'mv' ? 'file' : 'directory', { ...at, path: to, source, ...options });
    }
    return '';
  } catch (error) {
    if (error instanceof StorageError) return error.code;
    throw error;
  }
}

async function show(storage: Storage, share: string, path = ''): Promise<string> {
  const shown: string[] = [];
  for (const { kind, name } of await list(storage, share, path)) {
    const below = kind === 'directory' ? `(${await show(storage, share, path === '' ? name : `${path}/${name}`)})` : '';
    shown.push(showEntry(kind, name) + below);
  }
  return shown.join(' ');
}

interface Opened {
  readonly engines: readonly Engine[];
  readonly drop?: () => Promise<void>;
}

const engines: Record<string, { histories: number; open: () => Promise<Opened> }> = {
  memory: { histories: 300, open: async () => ({ engines: [openMemory()] }) },
  LMDB: {
    histories: 60,
    async open() {
      const location = await mkdtemp(join(tmpdir(), 'holdfast-namespace-'));
      return { engines: [await openLmdb({ location })], drop: () => rm(location, { recursive: true, force: true }) };
    },
  },
  ...(missing
    ? {}
    : {
        'PostgreSQL, as three processes': {
          histories: 40,
          async open() {
            const { url, drop } = await startCluster();
            return { engines: await Promise.all([1, 2, 3].map(() => openPostgres({ url }))), drop };
          },
        },
      }),
};

describe.each(Object.entries(engines))('The namespace of a share on %s', (_, { histories, open }) => {
  let opened: Opened;
  let clients: Storage[];
  let shares = 0;
  const newShare = async () => {
    const share = `share${shares++}`;
    await createShare(clients[0]!, { share, metadata: [], quota: undefined, tier: undefined });
    return share;
  };

  beforeAll(async () => {
    opened = await open();
    // Each client has a partition of its own, so that transactions of different clients meet at the engine only.
    clients = [0, 1, 2].map((i) => ({
      partition: openPartition(slowed(opened.engines[i % opened.engines.length]!)),
      account: ACCOUNT,
      content: undefined as never,
      sweeper: { wake() {} },
    }));
  });
  afterAll(async () => {
    for (const engine of opened.engines) await engine.close();
    await opened.drop?.();
  });

  it('is that of a map of paths, one operation after another', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anOperation, { maxLength: 30 }), async (operations) => {
        const share = await newShare();
        let tree = EMPTY;
        for (const [i, operation] of [...START, ...operations].entries()) {
          const expected = run(tree, operation);
          expect(await perform(clients[i % 3]!, share, operation)).toBe(expected.observed);
          tree = expected.tree;
        }
        expect(await show(clients[0]!, share)).toBe(showTree(tree));
      }),
      { numRuns: histories },
    );
  }, 120_000);

  it('is explained by some order of concurrent operations', async () => {
    const aHistory = fc.record({
      first: fc.array(anOperation, { maxLength: 4 }),
      together: fc.array(fc.array(anOperation, { minLength: 1, maxLength: 3 }), { minLength: 2, maxLength: 3 }),
    });
    await fc.assert(
      fc.asyncProperty(aHistory, async ({ first, together }) => {
        const share = await newShare();
        const happened: Happened[] = [];
        let moment = 0;
        const act = async (client: Storage, operation: Operation) => {
          const began = moment++;
          const observed = await perform(client, share, operation);
          happened.push({ operation, observed, began, ended: moment++ });
        };
        for (const operation of [...START, ...first]) await act(clients[0]!, operation);
        await Promise.all(
          together.map(async (operations, i) => {
            for (const operation of operations) await act(clients[i]!, operation);
          }),
        );
        const left = await show(clients[0]!, share);
        const isTrue = isExplained(happened, left);
        expect(isTrue, `no order explains this: ${JSON.stringify({ happened, left })}`).toBe(true);
      }),
      { numRuns: histories },
    );
  }, 120_000);

  /** Of operations that began together, after these directories were made. */
  async function race(made: readonly string[], together: readonly Operation[]) {
    const share = await newShare();
    const first = made.map((path): Operation => ({ kind: 'mkdir', path }));
    for (const operation of first) await perform(clients[0]!, share, operation);
    const observed = await Promise.all(together.map((operation, i) => perform(clients[i]!, share, operation)));
    return { observed, left: await show(clients[0]!, share) };
  }

  it('has no cycle after two renames that would make one', async () => {
    for (let round = 0; round < 30; round++) {
      const { observed, left } = await race(
        ['a', 'a/x', 'a/x/y', 'b', 'b/x', 'b/x/y'],
        [
          { kind: 'mvdir', path: 'a', to: 'b/x/y/in', replaces: false },
          { kind: 'mvdir', path: 'b', to: 'a/x/y/in', replaces: false },
        ],
      );
      expect(observed.toSorted()).toEqual(['', 'ParentNotFound']);
      expect(left.match(/directory/g)).toHaveLength(6);
    }
  }, 120_000);

  it('has no node in a directory that is deleted while the node is made', async () => {
    const [make, remove]: Operation[] = [
      { kind: 'mkdir', path: 'a/new' },
      { kind: 'rmdir', path: 'a' },
    ];
    for (let round = 0; round < 30; round++) {
      const { observed } = await race(['a'], round % 2 ? [make!, remove!] : [remove!, make!]);
      const outcomes = [
        ['', 'DirectoryNotEmpty'],
        ['ParentNotFound', ''],
      ];
      expect(outcomes).toContainEqual(round % 2 ? observed : observed.toReversed());
    }
  }, 120_000);

  it('has every node in a directory after a rename or a delete above it', async () => {
    for (let round = 0; round < 30; round++) {
      const { observed, left } = await race(
        ['a', 'a/x', 'a/x/y'],
        [
          { kind: 'mvdir', path: 'a', to: 'b', replaces: false },
          { kind: 'mkdir', path: 'a/x/y/new' },
          { kind: 'rmdir', path: 'a/x/y' },
        ],
      );
      const [renamed, created, deleted] = observed;
      expect(renamed).toBe('');
      expect(['', 'ParentNotFound']).toContain(created);
      expect(['', 'ParentNotFound', 'DirectoryNotEmpty']).toContain(deleted);
      expect([created, deleted]).not.toEqual(['', '']);
      const isEmpty = deleted === '' ? '' : `directory:y(${created === '' ? 'directory:new()' : ''})`;
      expect(left).toBe(`directory:b(directory:x(${isEmpty}))`);
    }
  }, 120_000);

  it('is found sound by the check afterwards', async () => {
    const { findings } = await check(clients[0]!.partition, { check: async () => undefined } as never);
    // No account row was written.
    expect(findings.filter((finding) => !finding.startsWith('account '))).toEqual([]);
  }, 120_000);
});
