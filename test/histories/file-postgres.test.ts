/** Linearizability of files on three processes that share PostgreSQL, while processes are killed and backends are ended. */
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type Cluster, missing, startCluster } from '../support/postgres-cluster.ts';
import { restartableServer, startServers, stopServers } from '../support/restartable-servers.ts';
import { report } from './explain.ts';
import { databaseIn, killAndRestart, terminateBackends } from './faults.ts';
import { record } from './load.ts';
import { temporaryFolder } from './planted-bugs.ts';

const minutes = Number(process.env.HOLDFAST_HISTORIES_MINUTES ?? 0);
const timeout = 180_000 + minutes * 90_000;

describe.skipIf(missing)(`Three processes on PostgreSQL${missing ? ` (${missing})` : ''}`, { timeout }, () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster?.drop());

  it('have a linearizable history of files', async () => {
    const url = await databaseIn(cluster);
    const flags = ['--partition', url, '--extents', temporaryFolder(), '--filePort', '0'];
    const servers = [restartableServer(flags), restartableServer(flags), restartableServer(flags)] as const;
    onTestFinished(() => stopServers(servers));
    await startServers(servers);
    const seed = Date.now() % 2 ** 31;
    const end = performance.now() + minutes * 60_000;
    const recorded = await record({ servers, seed, files: true }, async (more) => {
      await more(200);
      for (let round = 0; round === 0 || performance.now() < end; round++) {
        await terminateBackends(url);
        await more(100);
        await killAndRestart(servers[round % 3]!);
        await more(200);
      }
    });
    expect(report(recorded)).toEqual([]);
  });
});
