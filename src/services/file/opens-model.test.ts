import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isExplained, type OpenStep, type Taken, take, type World } from '../../../test/support/opens-model.ts';
import { missing, startCluster } from '../../../test/support/postgres-cluster.ts';
import { slowed } from '../../../test/support/slowed-engine.ts';
import { addEpoch, removeEpoch } from '../../content/membership/epochs.ts';
import { Owner } from '../../content/membership/owner.ts';
import { epochKey } from '../../content/rows.ts';
import { openLmdb } from '../../partition/lmdb/engine.ts';
import { openMemory } from '../../partition/memory/engine.ts';
import type { Engine, Partition } from '../../partition/partition.ts';
import { openPostgres } from '../../partition/postgres/engine.ts';
import { openPartition } from '../../partition/transact.ts';
import { StorageError } from '../common/errors.ts';
import type { Storage } from '../common/storage.ts';
import { createDirectory } from './directories.ts';
import { createFile, deleteFile, getFile, setFileMetadata } from './files.ts';
import { closeHandle, setDeletePending } from './handles.ts';
import { listDirectory } from './listing.ts';
import { type OpenInput, openNode } from './open-node.ts';
import type { Handle } from './open-rows.ts';
import { listRanges } from './reads.ts';
import { renameNode } from './rename.ts';
import { createShare } from './shares.ts';

const ACCOUNT = 7n;
const RIGHTS = [0x80, 0x1, 0x2, 0x3, 0x1_0000, 0x1_0001, 0x1_0002, 0x1_0003];
const aPath = fc.constantFrom('a', 'a', 'a', 'b');
const aSlot = fc.constantFrom(0, 1);
/** Most opens share much: else there would be few at a time. */
const aShareMode = fc.constantFrom(0, 1, 3, 4, 5, 6, 7, 7, 7, 7);
const aStep: fc.Arbitrary<OpenStep> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('open' as const),
      path: aPath,
      slot: aSlot,
      access: fc.constantFrom(0, 1, 1, 2, 3, 4, 5, 5, 7),
      share: aShareMode,
      disposition: fc.constantFrom('open' as const, 'create' as const, 'openIf' as const, 'overwriteIf' as const),
      deletesOnClose: fc.constantFrom(true, false, false),
    }),
  },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('close' as const), slot: aSlot }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('mark' as const), slot: aSlot, pending: fc.boolean() }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constantFrom('get' as const, 'stat' as const, 'meta' as const, 'put' as const, 'rm' as const),
      path: aPath,
    }),
  },
  { weight: 1, arbitrary: fc.constant<OpenStep>({ kind: 'mv', path: 'a', to: 'b' }) },
  { weight: 1, arbitrary: fc.constant<OpenStep>({ kind: 'mv', path: 'b', to: 'a' }) },
  { weight: 2, arbitrary: fc.constant<OpenStep>({ kind: 'list' }) },
  { weight: 1, arbitrary: fc.constant<OpenStep>({ kind: 'die' }) },
);
/** No file has any. */
const NO_BYTES = { ranges: { async *list() {} } } as unknown as Storage['content'];
const START: World = { a: { opens: [], markedBy: [] } };

/** A client of one process, which may die. */
class Client {
  readonly partition: Partition;
  private owner: Owner | undefined;
  private readonly slots: (Handle | undefined)[] = [];

  constructor(partition: Partition) {
    this.partition = partition;
  }

  get storage(): Storage {
    const { partition, owner } = this;
    return { partition, account: ACCOUNT, content: NO_BYTES, owner, sweeper: { wake() {} } };
  }

  async join(): Promise<void> {
    this.owner = await Owner.claim(this.partition, await addEpoch(this.partition, () => Buffer.alloc(1)));
    this.slots.length = 0;
  }

  async die(): Promise<void> {
    const { epoch } = this.owner!;
    await this.partition.transact(epochKey(epoch), async (tx) => removeEpoch(tx, epoch));
    await this.join();
  }

  /** For the next share: no handle is left. */
  async closeAll(): Promise<void> {
    for (const handle of this.slots) if (handle) await closeHandle(this.storage, handle);
    this.slots.length = 0;
  }

  async open(share: string, path: string, asked: Partial<OpenInput>) {
    return openNode(this.storage, {
      ...{ share, path, disposition: 'open', kind: 'any', rights: 0x1, shareMode: 7, deletesOnClose: false, smb: {} },
      client: { session: '1', ip: '192.0.2.1:445' },
      ...asked,
    });
  }

  async perform(share: string, step: OpenStep): Promise<string> {
    try {
      return await this.run(share, step);
    } catch (error) {
      if (error instanceof StorageError) return error.code;
      throw error;
    }
  }

  private async run(share: string, step: OpenStep): Promise<string> {
    const { storage, slots } = this;
    if (step.kind === 'die') await this.die();
    else if (step.kind === 'list') return (await list(storage, share)).join(' ');
    else if (step.kind === 'open') {
      if (slots[step.slot]) return 'busy';
      const { path, access, share: shareMode, disposition, deletesOnClose } = step;
      const asked = { disposition, rights: RIGHTS[access]!, shareMode, deletesOnClose };
      const { handle, action } = await this.open(share, path, asked);
      slots[step.slot] = handle;
      return action;
    } else if (step.kind === 'close' || step.kind === 'mark') {
      const handle = slots[step.slot];
      if (!handle) return 'nothing';
      if (step.kind === 'mark') await setDeletePending(storage, handle, step.pending);
      else {
        slots[step.slot] = undefined;
        await closeHandle(storage, handle);
      }
    } else await useByRest(storage, share, step);
    return '';
  }
}

type RestStep = Extract<OpenStep, { readonly path: string }>;

async function useByRest(storage: Storage, share: string, step: Exclude<RestStep, { kind: 'open' }>): Promise<void> {
  const at = { share, path: step.path, leaseId: undefined, metadata: [], smb: {}, snapshot: undefined };
  if (step.kind === 'stat') await getFile(storage, at);
  else if (step.kind === 'get')
    await listRanges(storage, { ...at, range: undefined, start: undefined, resultsMax: 1 } as never, () => {});
  else if (step.kind === 'meta') await setFileMetadata(storage, at);
  else if (step.kind === 'put') await createFile(storage, { ...at, length: 0, content: {} });
  else if (step.kind === 'rm') await deleteFile(storage, at);
  else if (step.kind === 'mv') {
    const options = { replaces: true, ignoresReadOnly: false, sourceLeaseId: undefined, destinationLeaseId: undefined };
    await renameNode(storage, 'file', { ...at, path: step.to, source: { path: step.path }, ...options });
  }
}

async function list(storage: Storage, share: string): Promise<string[]> {
  const names: string[] = [];
  const add = (entries: readonly { name: string }[]) => names.push(...entries.map(({ name }) => name));
  const all = { prefix: undefined, marker: undefined, resultsMax: undefined, isExtended: false, snapshot: undefined };
  await listDirectory(storage, { share, path: '', ...all }, { begin() {}, add, end() {} });
  return names;
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
      const location = await mkdtemp(join(tmpdir(), 'holdfast-opens-'));
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

describe.each(Object.entries(engines))('Opens and share modes on %s', (_, { histories, open }) => {
  let opened: Opened;
  let clients: Client[];
  let shares = 0;
  const newShare = async () => {
    const share = `share${shares++}`;
    await createShare(clients[0]!.storage, { share, metadata: [], quota: undefined, tier: undefined });
    await clients[0]!.perform(share, { kind: 'put', path: 'a' });
    for (const client of clients) await client.closeAll();
    return share;
  };

  beforeAll(async () => {
    opened = await open();
    // Each client has a partition of its own, so that transactions of different clients meet at the engine only.
    clients = [0, 1, 2].map((i) => new Client(openPartition(slowed(opened.engines[i % opened.engines.length]!))));
    for (const client of clients) await client.join();
  });
  afterAll(async () => {
    for (const engine of opened.engines) await engine.close();
    await opened.drop?.();
  });

  it('are those of a naive model, one step after another, whichever process dies in between', async () => {
    const steps = fc.array(fc.tuple(fc.nat(2), aStep), { minLength: 20, maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(steps, async (taken) => {
        const share = await newShare();
        let world = START;
        for (const [client, step] of taken) {
          const expected = take(world, client, step);
          expect([step, await clients[client]!.perform(share, step)]).toEqual([step, expected.observed]);
          world = expected.world;
        }
      }),
      { numRuns: histories },
    );
  }, 300_000);

  it('are explained by some order of concurrent steps', async () => {
    const aHistory = fc.tuple(...[0, 1, 2].map(() => fc.array(aStep, { minLength: 1, maxLength: 4 })));
    await fc.assert(
      fc.asyncProperty(aHistory, async (histories) => {
        const share = await newShare();
        const taken: Taken[] = [];
        let moment = 0;
        await Promise.all(
          histories.map(async (steps, client) => {
            for (const step of steps) {
              const began = moment++;
              const observed = await clients[client]!.perform(share, step);
              taken.push({ client, step, observed, began, ended: moment++ });
            }
          }),
        );
        expect(isExplained(START, taken), `no order explains this: ${JSON.stringify(taken)}`).toBe(true);
      }),
      { numRuns: histories },
    );
  }, 300_000);

  /** Outcomes of calls that began together. */
  const race = (...calls: (() => Promise<unknown>)[]) =>
    Promise.all(
      calls.map((call) =>
        call().then(
          () => '',
          (error) => {
            if (error instanceof StorageError) return error.code;
            throw error;
          },
        ),
      ),
    );

  it('of two opens that exclude each other from two processes exactly one wins', async () => {
    for (let round = 0; round < 30; round++) {
      const share = await newShare();
      const asked = { rights: 0x3, shareMode: round % 2 ? 0 : 1 };
      const outcomes = await race(
        () => clients[1]!.open(share, 'a', asked),
        () => clients[2]!.open(share, 'a', asked),
      );
      expect(outcomes.toSorted()).toEqual(['', 'SharingViolation']);
    }
  }, 120_000);

  it('of an open and a delete, a rename or a Create, the second sees the first', async () => {
    const leaseless = { leaseId: undefined, metadata: [], smb: {} };
    const rename = (share: string, kind: 'file' | 'directory', from: string, to: string) =>
      renameNode(clients[2]!.storage, kind, {
        ...{ share, path: to, source: { path: from }, replaces: true, ignoresReadOnly: false, ...leaseless },
        ...{ sourceLeaseId: undefined, destinationLeaseId: undefined },
      });
    const seen: Record<string, Set<string>> = {
      delete: new Set(),
      rename: new Set(),
      above: new Set(),
      create: new Set(),
    };
    for (let round = 0; round < 30; round++) {
      const share = await newShare();
      const { storage } = clients[2]!;
      await createDirectory(storage, { share, path: 'd', metadata: [], smb: {} });
      for (const path of ['b', 'c', 'd/e'])
        await createFile(storage, { share, path, ...leaseless, length: 0, content: {} });
      const exclusive = { rights: 0x1, shareMode: 0 };
      const both = async (name: string, path: string, other: () => Promise<unknown>) => {
        const opening = () => clients[1]!.open(share, path, exclusive);
        const outcomes = round % 2 ? await race(opening, other) : (await race(other, opening)).reverse();
        seen[name]!.add(outcomes.join('|'));
      };
      await both('delete', 'a', () => deleteFile(storage, { share, path: 'a', leaseId: undefined }));
      await both('rename', 'b', () => rename(share, 'file', 'b', 'renamed'));
      await both('above', 'd/e', () => rename(share, 'directory', 'd', 'above'));
      await both('create', 'c', () => createFile(storage, { share, path: 'c', ...leaseless, length: 0, content: {} }));
    }
    const allowed: Record<string, string[]> = {
      delete: ['|SharingViolation', 'ResourceNotFound|'],
      rename: ['|SharingViolation', 'ResourceNotFound|'],
      above: ['|SharingViolation', 'ParentNotFound|'],
      // A Create that was first leaves the file as it was found by the open.
      create: ['|SharingViolation', '|'],
    };
    for (const name in allowed)
      for (const outcome of seen[name]!)
        expect([name, allowed[name]]).toEqual([name, expect.arrayContaining([outcome])]);
    console.log(
      Object.entries(seen)
        .map(([name, outcomes]) => `${name}: ${[...outcomes].join(', ')}`)
        .join('; '),
    );
  }, 120_000);
});

it('Opens and marks for deletion are gone after a restart of LMDB, and the file is not', async () => {
  const location = await mkdtemp(join(tmpdir(), 'holdfast-opens-'));
  try {
    for (const isFirst of [true, false]) {
      const engine = await openLmdb({ location });
      const client = new Client(openPartition(engine));
      await client.join();
      if (isFirst) {
        await createShare(client.storage, { share: 'kept', metadata: [], quota: undefined, tier: undefined });
        await client.perform('kept', { kind: 'put', path: 'a' });
        const { handle } = await client.open('kept', 'a', { rights: 0x1_0000, shareMode: 0 });
        await setDeletePending(client.storage, handle, true);
        expect(await list(client.storage, 'kept')).toEqual([]);
      } else {
        expect(await list(client.storage, 'kept')).toEqual(['a']);
        await client.open('kept', 'a', { rights: 0x1_0003, shareMode: 0 });
      }
      await engine.close();
    }
  } finally {
    await rm(location, { recursive: true, force: true });
  }
});
