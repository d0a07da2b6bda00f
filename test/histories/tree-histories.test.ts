/** Linearizability of a share: renames of files and of their directory, and snapshots, each of which is one moment of all files. */
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type Cluster, missing, startCluster } from '../support/postgres-cluster.ts';
import { restartableServer, root, type Server, startServers, stopServers } from '../support/restartable-servers.ts';
import { databaseIn, killAndRestart } from './faults.ts';
import type { More } from './load.ts';
import { isFound, planted, temporaryFolder } from './planted-bugs.ts';
import { recordTree } from './tree-load.ts';
import { findViolation } from './tree-search.ts';

const timeout = 120_000;

async function load(servers: readonly Server[], work: (more: More) => Promise<void>) {
  onTestFinished(() => stopServers(servers));
  await startServers(servers);
  const operations = await recordTree(servers, Date.now() % 2 ** 31, work);
  const began = performance.now();
  const violation = findViolation(operations);
  const answered = operations.filter(({ returned }) => returned).length;
  const snapshots = operations.filter(({ request }) => request.kind === 'snapshot').length;
  console.log(
    `${answered} answers, ${operations.length - answered} without one, ${snapshots} snapshots; ` +
      `checked in ${((performance.now() - began) / 1_000).toFixed(2)} s`,
  );
  return violation;
}

const ownServer = (copy = root) => restartableServer(['--location', temporaryFolder(), '--filePort', '0'], copy);

describe('The history of six clients on the files of a share', { timeout }, () => {
  it('is linearizable with renames and snapshots, even when the server is killed and restarted', async () => {
    const server = ownServer();
    const violation = await load([server], async (more) => {
      for (let times = 0; times < 2; times++) {
        await more(200);
        await killAndRestart(server);
      }
      await more(200);
    });
    expect(violation).toBeUndefined();
  });

  it('shows it when a snapshot has later renames', async () => {
    const bug = {
      title: 'snapshots',
      file: 'services/file/history.js',
      find: /born <= gen\)/,
      replace: 'born <= gen + 9)',
    };
    const copy = planted(bug);
    const round = async () => [await load([ownServer(copy)], (more) => more(400))].filter((each) => each !== undefined);
    expect(await isFound(round)).toBe(true);
  });

  describe.skipIf(missing)(`on three processes of PostgreSQL${missing ? ` (${missing})` : ''}`, () => {
    let cluster: Cluster;
    beforeAll(async () => {
      cluster = await startCluster();
    });
    afterAll(() => cluster?.drop());

    it('is linearizable, too', async () => {
      const url = await databaseIn(cluster);
      const flags = ['--partition', url, '--extents', temporaryFolder(), '--filePort', '0'];
      const servers = [restartableServer(flags), restartableServer(flags), restartableServer(flags)] as const;
      expect(await load(servers, (more) => more(300))).toBeUndefined();
    });
  });
});
