/** Several simulated processes on one store: rows in one memory engine, bytes in one folder. Heartbeats are sent by the test. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import { createChunkChecker } from '../../src/content/chunk-check.ts';
import { createContentStore } from '../../src/content/content-store.ts';
import { createActiveReads } from '../../src/content/gc/active-reads.ts';
import { startCollector } from '../../src/content/gc/collector.ts';
import { joinMembership, type Member } from '../../src/content/membership/member.ts';
import { openLocalExtents } from '../../src/extents/local.ts';
import { encodeKey, keysUnder } from '../../src/partition/keys.ts';
import { openMemory } from '../../src/partition/memory/engine.ts';
import type { Partition } from '../../src/partition/partition.ts';
import { openPartition } from '../../src/partition/transact.ts';
import { createContainer } from '../../src/services/blob/containers.ts';
import { putAccount } from '../../src/services/common/account-rows.ts';
import type { Storage } from '../../src/services/common/storage.ts';
import { check } from '../../src/services/maintenance/check.ts';
import { startSweeper } from '../../src/services/maintenance/sweeper.ts';
import { watchedHashers } from './content-store.ts';
import { localSources } from './local-sources.ts';

export const ACCOUNT = 7n;
const NEVER = 1 << 30;
const SILENCE = 160_000_000n;
const EXTENT_BYTES = 256 << 10;

export type Cluster = Awaited<ReturnType<typeof openCluster>>;
export type Process = Awaited<ReturnType<typeof startProcess>>;

export async function openCluster() {
  const engine = openMemory();
  const folder = await mkdtemp(joinPath(tmpdir(), 'holdfast-cluster-'));
  const processes: Process[] = [];
  const partition = openPartition(engine);
  await partition.transact(encodeKey(['account']), async (tx) =>
    putAccount(tx, { id: ACCOUNT, name: 'seven', keys: ['a2V5'], from: 'command' }),
  );

  const cluster = {
    partition,
    folder,
    processes,
    async start(): Promise<Process> {
      const process = await startProcess(openPartition(engine), folder);
      processes.push(process);
      return process;
    },
    /** Heartbeats of all processes that do not sleep; each reads the heartbeats and the active reads of the others. */
    async beat(rounds = 3): Promise<void> {
      for (let i = 0; i < rounds; i++) for (const process of processes) if (!process.sleeps) await process.beat();
    },
    /** Sleeping processes are evicted. */
    async evictSleeping(): Promise<void> {
      await partition.clock.advance(SILENCE);
      await cluster.beat(10);
    },
    /** Sweeps and collects everything that can be reclaimed now. */
    async settle(): Promise<void> {
      for (let i = 0; i < 6; i++) {
        await cluster.beat();
        for (const process of processes) if (!process.sleeps) await process.tidy();
      }
    },
    extents: async () => (await readdir(folder)).sort(),
    trash: () => partition.read((at) => at.scan(keysUnder([ACCOUNT, 'x']), { limit: 100 })),
    async findings() {
      const extents = await openLocalExtents({ folder, epoch: 0n });
      try {
        return (await check(partition, createChunkChecker(partition, extents))).findings;
      } finally {
        await extents.close();
      }
    },
    async close(): Promise<void> {
      for (const process of processes) await process.stop();
      await rm(folder, { recursive: true });
    },
  };
  return cluster;
}

async function startProcess(partition: Partition, folder: string) {
  let life = await startLife(partition, folder);
  const failures: string[] = [];
  return {
    partition,
    failures,
    /** It sends no heartbeats until it wakes, and does not notice an eviction meanwhile. */
    sleeps: false,
    get member() {
      return life.member;
    },
    get content() {
      return life.content;
    },
    get extents() {
      return life.extents;
    },
    get storage(): Storage {
      return { partition, account: ACCOUNT, content: life.content, sweeper: life.sweeper, sources: localSources };
    },
    /** An evicted process joins again, as a new incarnation. */
    async beat(): Promise<void> {
      await life.member.heartbeat();
      if (!life.member.isEvicted()) return;
      failures.push(...life.failures);
      await life.stop();
      life = await startLife(partition, folder);
    },
    async tidy(): Promise<void> {
      for (const work of [life.sweeper, life.collector]) {
        work.wake();
        await work.idle();
      }
    },
    newContainer: (container: string) =>
      createContainer(
        { partition, account: ACCOUNT, content: life.content, sweeper: life.sweeper, sources: localSources },
        {
          container,
          metadata: [],
          access: undefined,
        },
      ),
    heard: () => [...failures, ...life.failures],
    async stop(): Promise<void> {
      await life.stop();
      await life.member.leave();
    },
  };
}

async function startLife(partition: Partition, folder: string) {
  const failures: string[] = [];
  const onFailure = (error: unknown) => failures.push((error as Error).message);
  const member: Member = await joinMembership({
    ...{ partition, reads: createActiveReads(), onFailure },
    onEvicted: () => {},
    everyMilliseconds: NEVER,
  });
  const { epoch, lowWatermark, reads, isLeader } = member;
  const extents = await openLocalExtents({ folder, epoch, extentBytesMax: EXTENT_BYTES, reserveBytes: 0 });
  const content = createContentStore({ partition, extents, epoch, reads, hashers: watchedHashers() });
  const sweeper = startSweeper({ partition, content, lowWatermark, isLeader, accounts: () => [ACCOUNT], onFailure });
  const collector = startCollector({
    ...{ partition, extents, epoch, lowWatermark, isLeader, pinnedExtents: content.pinnedExtents, onFailure },
    bounds: { slackBytes: 0, sealBytesMin: 1 },
    onCorruption: onFailure,
  });
  return {
    member,
    extents,
    content,
    sweeper,
    collector,
    failures,
    async stop(): Promise<void> {
      await collector.stop();
      await sweeper.stop();
      await member.stop();
      await extents.close();
    },
  };
}
