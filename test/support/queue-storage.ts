/** One account with queues, on rows in memory or in LMDB; what is read and written is counted. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { decodeKey, encodeKey, keysUnder } from '../../src/partition/keys.ts';
import { openLmdb } from '../../src/partition/lmdb/engine.ts';
import { openMemory } from '../../src/partition/memory/engine.ts';
import type { Commit, Engine, Outcome, Partition } from '../../src/partition/partition.ts';
import { openPartition } from '../../src/partition/transact.ts';
import { putAccount } from '../../src/services/common/account-rows.ts';
import type { Storage } from '../../src/services/common/storage.ts';
import { check } from '../../src/services/maintenance/check.ts';
import { startSweeper } from '../../src/services/maintenance/sweeper.ts';
import { createQueue } from '../../src/services/queue/queues.ts';

export const ACCOUNT = 7n;
export const QUEUE = 'work';
const SECOND = 10_000_000n;

export type QueueWorld = Awaited<ReturnType<typeof openQueues>>;
export const engines = ['memory', 'LMDB'] as const;
export type EngineName = (typeof engines)[number];

type Inject = (commit: Commit) => Outcome | undefined | Promise<undefined>;

/** For as long as the test runs. */
export async function openQueues(kind: EngineName = 'memory', inject?: Inject) {
  const world = await startQueues(kind, inject);
  onTestFinished(world.close);
  return world;
}

export async function startQueues(kind: EngineName, inject?: Inject) {
  const { opened, drop } = await openEngine(kind);
  const engine = watched(opened);
  const { commit } = engine;
  engine.commit = async (data) => (await inject?.(data)) ?? commit(data);
  const partition = openPartition(engine);
  await partition.transact(encodeKey(['account']), async (tx) =>
    putAccount(tx, { id: ACCOUNT, name: 'seven', keys: ['a2V5'], from: 'command' }),
  );
  const failures: string[] = [];
  const sweeper = startSweeper({
    partition,
    content: undefined as never,
    accounts: () => [ACCOUNT],
    lowWatermark: { oldest: () => Infinity, next: () => 0, whenReached: async () => {} },
    onFailure: (error) => failures.push(String(error)),
  });
  const storage = storageOn(partition);
  await createQueue(storage, { queue: QUEUE, metadata: [] });

  return {
    storage,
    partition,
    failures,
    seen: engine.seen,
    async close() {
      await sweeper.stop();
      await partition.close();
      await drop();
    },
    /** As another process on the same store. */
    beside: (): Storage => storageOn(openPartition(engine)),
    advance: (seconds: number) => partition.clock.advance(BigInt(Math.round(seconds * 10)) * (SECOND / 10n)),
    async sweep() {
      sweeper.wake();
      await sweeper.idle();
    },
    async findings() {
      return (await check(partition, { check: async () => undefined } as never)).findings;
    },
    /** How many rows there are of each kind. */
    async kinds(): Promise<Record<string, number>> {
      const rows = await partition.read((at) => at.scan(keysUnder([ACCOUNT]), { limit: 1_000_000 }));
      const counts: Record<string, number> = {};
      for (const { key } of rows) {
        const type = decodeKey(key)[1] as string;
        counts[type] = (counts[type] ?? 0) + 1;
      }
      return counts;
    },
  };
}

function storageOn(partition: Partition): Storage {
  return { partition, account: ACCOUNT, content: undefined as never, sweeper: { wake() {} } };
}

async function openEngine(kind: EngineName): Promise<{ opened: Engine; drop: () => Promise<void> }> {
  if (kind === 'memory') return { opened: openMemory(), drop: async () => {} };
  const location = await mkdtemp(join(tmpdir(), 'holdfast-queues-'));
  return { opened: await openLmdb({ location }), drop: () => rm(location, { recursive: true, force: true }) };
}

/** What it took: rows that were read, commits, and the most rows that one of them left. */
interface Seen {
  rows: number;
  commits: number;
  most: number;
}

function watched(engine: Engine): Engine & { readonly seen: Seen } {
  const seen: Seen = { rows: 0, commits: 0, most: 0 };
  return {
    clock: engine.clock,
    close: () => engine.close(),
    seen,
    snapshot() {
      const snapshot = engine.snapshot();
      return {
        ...snapshot,
        async get(key) {
          seen.rows++;
          return snapshot.get(key);
        },
        async getMany(keys) {
          seen.rows += keys.length;
          return snapshot.getMany(keys);
        },
        async scan(range, options) {
          const rows = await snapshot.scan(range, options);
          seen.rows += rows.length + 1;
          return rows;
        },
      };
    },
    async commit(data) {
      seen.commits++;
      seen.most = Math.max(
        seen.most,
        data.writeSets.reduce((sum, { writes }) => sum + writes.length, 0),
      );
      return engine.commit(data);
    },
  };
}
