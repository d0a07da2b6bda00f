/** `npm run test:histories -- --queue --postgres --minutes 3` does it for longer, with stops of 30 s. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { startCuttingProxy } from '../support/cutting-proxy.ts';
import { type Cluster, missing, startCluster } from '../support/postgres-cluster.ts';
import { restartableServer, root, startServers, stopServers } from '../support/restartable-servers.ts';
import { databaseIn, killAndRestart, resolvedOutcomes, standStill, terminateBackends } from './faults.ts';
import { connections } from './load.ts';
import { type Bug, isFound, planted, temporaryFolder } from './planted-bugs.ts';
import { messagesOf } from './queue-history.ts';
import { record } from './queue-load.ts';
import { report } from './queue-report.ts';
import { perform } from './queue-requests.ts';

const minutes = Number(process.env.HOLDFAST_HISTORIES_MINUTES ?? 0);
const isLong = minutes > 0;
const STOP_SECONDS = isLong ? 30 : 3;
const CUT_CHANCE = 0.05;

describe.skipIf(missing)(`Queues of three processes on PostgreSQL${missing ? ` (${missing})` : ''}`, () => {
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
    return { url, proxy, servers, options: { servers, seed: Date.now() % 2 ** 31, rest: isLong ? 20 : 0 } };
  }

  const timeout = 180_000 + minutes * 90_000;
  it('have a linearizable history, with connections cut inside commits, processes stopped and killed', {
    timeout,
  }, async () => {
    const { url, proxy, servers, options } = await startThree();
    const end = performance.now() + minutes * 60_000;
    const recorded = await record(options, async (more) => {
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
      proxy.chance = 0;
      await more(100);
    });
    const violations = report(recorded);
    console.log(`commits cut ${JSON.stringify(proxy.cuts)}, resolved ${JSON.stringify(resolvedOutcomes(servers))}`);
    expect(violations).toEqual([]);
  });

  it.skipIf(isLong)('deliver each of 2,000 messages to one of 64 consumers', { timeout: 180_000 }, async () => {
    const { servers } = await startThree();
    const queue = 'one-for-all';
    const connected = connections();
    const to = (i: number) => ({ connection: connected.to(servers[i % 3]!.originOf('Queue')!), patience: 90_000 });
    await to(0).connection.send('PUT', `/${queue}`);
    let left = 2_000;
    const producers = Array.from({ length: 16 }, async (_, i) => {
      while (left > 0) {
        const put = { kind: 'put' as const, text: `t${left--}`, hidden: 0, life: 1_000 };
        expect(await perform(queue, put, to(i))).toMatchObject({ answer: {} });
      }
    });
    await Promise.all(producers);
    const handed: string[] = [];
    const started = performance.now();
    const consumers = Array.from({ length: 64 }, async (_, i) => {
      for (;;) {
        const get = { kind: 'get' as const, count: 1 + (i % 3), hidden: 100 };
        const outcome = await perform(queue, get, to(i));
        if (outcome === 'never sent' || 'unknown' in outcome) throw new Error(JSON.stringify(outcome));
        const { answer } = outcome;
        const messages = messagesOf({ queue, client: i, request: get, called: 0, returned: { at: 0, answer } });
        if (messages.length === 0) return;
        for (const { text, dequeueCount } of messages) handed.push(`${text} for time ${dequeueCount}`);
      }
    });
    await Promise.all(consumers);
    const seconds = (performance.now() - started) / 1_000;
    console.log(
      `64 consumers: ${handed.length} messages in ${seconds.toFixed(1)} s, ${Math.round(handed.length / seconds)}/s`,
    );
    connected.close();
    const expected = Array.from({ length: 2_000 }, (_, i) => `t${i + 1} for time 1`);
    expect(handed.toSorted()).toEqual(expected.toSorted());
  });

  const bugs: Bug[] = [
    {
      title: 'when a commit does not look again at the messages that it takes',
      file: 'services/queue/dequeue.js',
      find: /tx\.addReadCheck\(message\);/,
      replace: '',
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
        expect(await isFound(async () => report(await record(options, (more) => more(600))))).toBe(true);
      });
    }
  });
});
