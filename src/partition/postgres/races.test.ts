import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { startCuttingProxy } from '../../../test/support/cutting-proxy.ts';
import { type Cluster, missing, startCluster } from '../../../test/support/postgres-cluster.ts';
import { bytes, key, rowNumber, times } from '../conformance/harness.ts';
import { keysUnder } from '../keys.ts';
import type { Partition } from '../partition.ts';
import { openPartition } from '../transact.ts';
import { decodeCounter } from '../values.ts';
import { openPostgres } from './engine.ts';

const racer = fileURLToPath(new URL('../../../test/partition/postgres-racer.mjs', import.meta.url));
let cluster: Cluster;
let stores = 0;

interface Racer {
  do<T>(action: string, given?: unknown): Promise<T>;
}
interface Counted {
  done: number;
  reruns: number;
  outcomes: { committed: number; conflict: number; unknown: number };
}

async function startRacers(count: number, schema: string, url = cluster.url): Promise<Racer[]> {
  const children = times(count, () => fork(racer, [JSON.stringify({ url, schema })], { execArgv: [] }));
  await Promise.all(
    children.map(async (child) => {
      const [first] = await Promise.race([once(child, 'message'), once(child, 'exit')]);
      if (first !== 'ready') throw new Error('the process ended');
    }),
  );
  const racers = children.map(talkTo);
  onTestFinished(async () => {
    await Promise.all(racers.map((each) => each.do('end')));
  });
  return racers;
}

function talkTo(child: ChildProcess): Racer {
  const waiting = new Map<number, { resolve: (value: never) => void; reject: (error: Error) => void }>();
  let asked = 0;
  child.on('message', ({ id, value, error }: { id: number; value: never; error?: string }) => {
    const { resolve, reject } = waiting.get(id)!;
    if (error) reject(new Error(error));
    else resolve(value);
  });
  return {
    do: (action, given) =>
      new Promise((resolve, reject) => {
        waiting.set(++asked, { resolve, reject });
        child.send({ id: asked, action, given });
      }),
  };
}

async function open(): Promise<{ partition: Partition; schema: string }> {
  const schema = `races ${++stores}`;
  const partition = openPartition(await openPostgres({ url: cluster.url, schema }));
  onTestFinished(() => partition.close());
  return { partition, schema };
}

/** Runs the rounds, a few at a time. */
async function rounds(count: number, round: (i: number) => Promise<void>): Promise<void> {
  let next = 0;
  await Promise.all(
    times(4, async () => {
      while (next < count) await round(next++);
    }),
  );
}

describe.skipIf(missing)(`Processes that share a store in PostgreSQL${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster?.drop());

  it('leave no orphan in 1,500 races of two that delete an empty parent and create its child', async () => {
    const { partition, schema } = await open();
    const [one, other] = (await startRacers(2, schema)) as [Racer, Racer];
    const count = 1_500;
    for (const half of [0, 1]) {
      await partition.transact(key('parents'), async (tx) => {
        for (const i of times(count / 2, (each) => each))
          tx.put(key('parent', half * (count / 2) + i), bytes('parent'));
      });
    }
    const seen: Record<string, number> = {};
    await rounds(count, async (round) => {
      const [creator, deleter] = round % 2 ? [one, other] : [other, one];
      const create = () => creator.do<string>('createChild', round);
      const remove = () => deleter.do<string>('deleteParent', round);
      const both = round % 4 < 2 ? [create(), remove()] : [remove(), create()].reverse();
      const outcome = (await Promise.all(both)).join(', ');
      seen[outcome] = (seen[outcome] ?? 0) + 1;
    });
    console.log('outcomes of the races:', seen);
    expect(Object.keys(seen).sort()).toEqual(['created, not empty', 'no parent, deleted']);
    const [parents, children] = await partition.read((at) =>
      Promise.all(['parent', 'child'].map((kind) => at.scan(keysUnder([kind]), { limit: 2 * count }))),
    );
    expect(parents!.length).toBe(seen['created, not empty']);
    expect(children!.length).toBe(parents!.length);
  }, 120_000);

  it('give a seat to one of two that found none taken, though they write no common row, 500 times', async () => {
    const { schema } = await open();
    const racers = await startRacers(2, schema);
    const winners = [0, 0];
    await rounds(500, async (round) => {
      const took = await Promise.all(racers.map((each, taker) => each.do<boolean>('takeSeat', { round, taker })));
      expect(took.filter(Boolean)).toHaveLength(1);
      winners[took.indexOf(true)]!++;
    });
    console.log('winners of the seats:', winners);
    expect(Math.min(...winners)).toBeGreaterThan(0);
  }, 60_000);

  it('run no transaction of 64 clients on one row more than six times', async () => {
    const { partition, schema } = await open();
    const racers = await startRacers(3, schema);
    const started = performance.now();
    const shares = [22, 21, 21];
    const each = 40;
    const counted = await Promise.all(
      racers.map((one, i) => one.do<Counted>('count', { clients: shares[i], times: each })),
    );
    const seconds = (performance.now() - started) / 1000;
    const reruns = counted.map((one) => one.reruns);
    console.log(`64 clients on one row: ${Math.round((64 * each) / seconds)} a second, reruns at most ${reruns}`);
    expect(rowNumber(await partition.read((at) => at.get(key('counter'))))).toBe(64 * each);
    expect(Math.max(...reruns)).toBeLessThanOrEqual(5);
  }, 120_000);

  it('count exactly while connections are lost inside commits', async () => {
    const { partition, schema } = await open();
    const proxy = await startCuttingProxy(cluster.url);
    onTestFinished(() => proxy.close());
    const racers = await startRacers(2, schema, proxy.url);
    const unknown = { committed: 0, conflict: 0, unknown: 0 };
    let expected = 0;
    proxy.chance = 0.05;
    for (let batch = 1; batch <= 40 && Math.min(unknown.committed, unknown.conflict) < 50; batch++) {
      const killing = startKilling();
      const counted = await Promise.all(
        racers.map((one, i) => one.do<Counted>('count', { clients: 12, times: 60, apart: 2 * batch + i })),
      );
      await (await killing)();
      expected += counted.reduce((sum, { done }) => sum + done, 0);
      for (const kind of ['committed', 'conflict', 'unknown'] as const) {
        unknown[kind] = counted.reduce((sum, { outcomes }) => sum + outcomes[kind], 0);
      }
    }
    proxy.chance = 0;
    console.log('outcomes of commits whose connection was lost:', unknown);
    expect(Math.min(unknown.committed, unknown.conflict)).toBeGreaterThanOrEqual(50);
    expect(unknown.unknown).toBe(0);
    const sums = await partition.read((at) => at.getMany(times(4, (i) => key('sum', i))));
    expect(sums.reduce((sum, row) => sum + decodeCounter(row), 0n)).toBe(BigInt(expected));
  }, 180_000);
});

/** Terminates backends in the middle of commits, at random, until the returned function is called. */
async function startKilling(): Promise<() => Promise<void>> {
  const killer = new pg.Client(cluster.url);
  await killer.connect();
  let running = true;
  const killing = (async () => {
    while (running) {
      await killer.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where state = 'active' and query like '%.commit(%'
         and pid <> pg_backend_pid() order by random() limit 1`,
      );
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 10));
    }
  })();
  return async () => {
    running = false;
    await killing;
    await killer.end();
  };
}
