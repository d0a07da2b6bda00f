/** `npm run test:histories -- --postgres --minutes 5` does it for longer, with stops of 30 s. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { startCuttingProxy } from '../support/cutting-proxy.ts';
import { type Cluster, missing, startCluster } from '../support/postgres-cluster.ts';
import { restartableServer, root, startServers, stopServers } from '../support/restartable-servers.ts';
import { report } from './explain.ts';
import { databaseIn, killAndRestart, resolvedOutcomes, standStill, terminateBackends } from './faults.ts';
import { record } from './load.ts';
import { type Bug, isFound, planted, temporaryFolder } from './planted-bugs.ts';

const minutes = Number(process.env.HOLDFAST_HISTORIES_MINUTES ?? 0);
const isLong = minutes > 0;
const STOP_SECONDS = isLong ? 30 : 3;
const RESOLVED_MIN = isLong ? 50 : 10;
const CUT_CHANCE = 0.05;

describe.skipIf(missing)(`Three processes on PostgreSQL${missing ? ` (${missing})` : ''}`, () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster?.drop());

  /** On a database of their own, by way of a proxy that can cut their connections. */
  async function startThree(copy = root) {
    const url = await databaseIn(cluster);
    const proxy = await startCuttingProxy(url);
    onTestFinished(() => proxy.close());
    const flags = ['--partition', proxy.url, '--extents', temporaryFolder(), '--test-clock'];
    const servers = [
      restartableServer(flags, copy),
      restartableServer(flags, copy),
      restartableServer(flags, copy),
    ] as const;
    onTestFinished(() => stopServers(servers));
    await startServers(servers);
    const seed = Date.now() % 2 ** 31;
    const resolved = () => {
      const { committed = 0, conflict = 0 } = resolvedOutcomes(servers);
      return committed + conflict;
    };
    return { url, proxy, servers, resolved, options: { servers, seed, movesClock: true, rest: isLong ? 20 : 0 } };
  }

  const timeout = 180_000 + minutes * 90_000;
  it('have a linearizable history, with connections cut inside commits, processes stopped and killed', {
    timeout,
  }, async () => {
    const { url, proxy, servers, resolved, options } = await startThree();
    const end = performance.now() + minutes * 60_000;
    const recorded = await record({ ...options, softDelete: true }, async (more) => {
      await more(200);
      for (let round = 0; round === 0 || performance.now() < end; round++) {
        const [one, other] = [servers[round % 3]!, servers[(round + 1) % 3]!];
        proxy.chance = CUT_CHANCE;
        await more(200);
        await terminateBackends(url);
        await more(100);
        await Promise.all([standStill(one, STOP_SECONDS), sleep(500).then(() => killAndRestart(other))]);
        await more(200);
      }
      while (resolved() < RESOLVED_MIN) await more(50);
      proxy.chance = 0;
      await more(100);
    });
    const violations = report(recorded);
    console.log(`commits cut ${JSON.stringify(proxy.cuts)}, resolved ${JSON.stringify(resolvedOutcomes(servers))}`);
    expect(violations).toEqual([]);
    expect(resolved()).toBeGreaterThanOrEqual(RESOLVED_MIN);
  });

  it.each(['append', 'page'] as const)(
    'have a linearizable history of %s blobs, with connections cut inside commits and one killed',
    { timeout },
    async (type) => {
      const { proxy, servers, options } = await startThree();
      const recorded = await record({ ...options, type, softDelete: true }, async (more) => {
        proxy.chance = CUT_CHANCE;
        await more(300);
        await killAndRestart(servers[0]);
        await more(200);
        proxy.chance = 0;
        await more(100);
      });
      expect(report(recorded)).toEqual([]);
    },
  );

  const bugs: Bug[] = [
    {
      title: 'when a commit does not look at its rows again',
      file: 'partition/postgres/functions.js',
      find: /if cardinality\(p_check_keys\) > 0 and \$\{/,
      replace: 'if false and ${',
    },
    {
      title: 'when a commit whose connection was lost is done again without a look',
      file: 'partition/postgres/functions.js',
      find: /return case when happened then 'committed' else 'conflict' end/,
      replace: "return 'conflict'",
    },
  ];
  describe.skipIf(isLong)('with a planted bug are found out', { timeout: 300_000 }, () => {
    for (const bug of bugs) {
      it(bug.title, async () => {
        const { proxy, options } = await startThree(planted(bug));
        proxy.chance = CUT_CHANCE;
        expect(await isFound(async () => report(await record(options, (more) => more(1_000))))).toBe(true);
      });
    }
  });
});
