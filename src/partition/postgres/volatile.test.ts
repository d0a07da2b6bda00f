import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { startCuttingProxy } from '../../../test/support/cutting-proxy.ts';
import { type Cluster, missing, startCluster } from '../../../test/support/postgres-cluster.ts';
import { addEpoch } from '../../content/membership/epochs.ts';
import { Owner } from '../../content/membership/owner.ts';
import { checkOwner, OwnerLost } from '../../content/membership/owner-rows.ts';
import { bytes, get, key, put, rowNumber, times } from '../conformance/harness.ts';
import { type Key, type Part, volatileKey, volatileKeysUnder } from '../keys.ts';
import { type Outcome, type Partition, Unavailable } from '../partition.ts';
import { openPartition } from '../transact.ts';
import { openPostgres, type PostgresOptions } from './engine.ts';
import { inSchema, SCHEMA_VERSION } from './schema.ts';

let cluster: Cluster;
let stores = 0;

const open = (...parts: Part[]): Key => volatileKey(['open', ...parts]);

async function openStore(options: Partial<PostgresOptions> = {}): Promise<{ partition: Partition; schema: string }> {
  const schema = options.schema ?? `volatile ${++stores}`;
  const engine = await openPostgres({ url: cluster.url, schema, ...options });
  onTestFinished(() => engine.close());
  return { partition: openPartition(engine), schema };
}

async function sql(text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(cluster.url);
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

const putVolatile = (partition: Partition, count: number) =>
  Promise.all(
    times(count, (i) =>
      partition.transact(open(i), async (tx) => {
        await tx.get(key('checked'));
        tx.put(open(i), bytes(i));
        tx.remove(open(i + 1_000));
      }),
    ),
  );

async function retryUnavailable<T>(attempt: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof Unavailable) || error instanceof OwnerLost) throw error;
    }
  }
}

describe.skipIf(missing)(`Volatile rows in PostgreSQL${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster?.drop());

  it('are written without a change of any logged table', async () => {
    const { partition, schema } = await openStore();
    await put(partition, key('checked'), 1);
    const count = (table: string) =>
      `(select coalesce(string_agg(t::text, ',' order by t::text), '') from S.${table} t)`;
    const state = () => sql(inSchema(schema, `select ${['rows', 'gone', 'commits'].map(count).join(' || ')} as all`));
    const before = await state();
    await putVolatile(partition, 50);
    expect(await state()).toEqual(before);
    expect(await sql(inSchema(schema, 'select count(*)::int from S.volatile_rows'))).toEqual([{ count: 50 }]);
    expect(
      await sql(
        `select relname from pg_class join pg_namespace n on n.oid = relnamespace
         where nspname = '${schema}' and relkind in ('r', 'i') and relpersistence <> 'u' and relname like 'volatile%'`,
      ),
    ).toEqual([]);
  });

  it('wait for no flush: they are committed while a standby that must confirm logged commits does not answer', async () => {
    const { partition } = await openStore();
    await put(partition, key('checked'), 1);
    const setStandby = async (name: string) => {
      await sql(`alter system set synchronous_standby_names = '${name}'`);
      await sql('select pg_reload_conf()');
    };
    /** The server takes the setting over after a moment. */
    const startWaiting = async (): Promise<{ commit: Promise<unknown>; isDone: () => boolean }> => {
      for (let i = 0; ; i++) {
        let isDone = false;
        const commit = put(partition, key('row', i), 1).then(() => {
          isDone = true;
        });
        while (!isDone) {
          const waiting = await sql(`select from pg_stat_activity where wait_event = 'SyncRep'`);
          if (waiting.length > 0) return { commit, isDone: () => isDone };
        }
      }
    };
    await setStandby('nobody');
    try {
      const logged = await startWaiting();
      await putVolatile(partition, 50);
      const found = await partition.read((at) => at.scan(volatileKeysUnder(['open']), { limit: 100 }));
      expect(found).toHaveLength(50);
      expect(logged.isDone()).toBe(false);
      await setStandby('');
      await logged.commit;
    } finally {
      await setStandby('');
    }
  });

  it('are counted exactly while connections are lost inside commits', async () => {
    const proxy = await startCuttingProxy(cluster.url);
    onTestFinished(() => proxy.close());
    const outcomes: Record<Outcome, number> = { committed: 0, conflict: 0, unknown: 0 };
    const { partition } = await openStore({ url: proxy.url, onResolved: (outcome) => outcomes[outcome]++ });
    proxy.chance = 0.2;
    let done = 0;
    for (let round = 0; round < 100 && Math.min(outcomes.committed, outcomes.conflict) < 20; round++) {
      await Promise.all(
        times(8, (client) =>
          retryUnavailable(() =>
            partition.transact(open(client), async (tx) => {
              tx.put(open(client), bytes(rowNumber(await tx.get(open(client))) + 1));
            }),
          ),
        ),
      );
      done++;
    }
    proxy.chance = 0;
    expect(Math.min(outcomes.committed, outcomes.conflict)).toBeGreaterThanOrEqual(20);
    expect(outcomes.unknown).toBe(0);
    const rows = await retryUnavailable(() => partition.read((at) => at.getMany(times(8, (client) => open(client)))));
    expect(rows.map(rowNumber)).toEqual(times(8, () => done));
  });

  it('are gone after a crash of the server, and each owner notices it before its next commit', async () => {
    const { partition, schema } = await openStore();
    const { partition: other } = await openStore({ schema });
    const owners = await Promise.all(
      [partition, other].map(async (each) => Owner.claim(each, await addEpoch(each, () => bytes('heartbeat')))),
    );
    const [first, second] = owners.map((owner) => owner.claim);
    const writeUnder = (each: Partition, claim: typeof first) =>
      each.transact(open('held'), async (tx) => {
        await checkOwner(tx, claim!);
        tx.put(open('held'), bytes(1));
        tx.put(key('logged'), bytes(1));
      });
    await writeUnder(partition, first);
    await writeUnder(other, second);
    let runs = 0;
    const late = partition.transact(open('late'), async (tx) => {
      await checkOwner(tx, first!);
      if (runs++ === 0) {
        await cluster.stop('immediate');
        await cluster.start();
      }
      tx.put(open('late'), bytes(1));
      tx.put(key('late'), bytes(1));
    });
    await expect(late).rejects.toThrow(Unavailable);
    await expect(retryUnavailable(() => writeUnder(partition, first))).rejects.toThrow(OwnerLost);
    await expect(retryUnavailable(() => writeUnder(other, second))).rejects.toThrow(OwnerLost);
    expect(await retryUnavailable(() => get(partition, key('logged')))).toBe('1');
    expect(await get(partition, key('late'))).toBeUndefined();
    expect(await partition.read((at) => at.scan(volatileKeysUnder([]), { limit: 9 }))).toEqual([]);
    await Promise.all(owners.map((owner) => owner.verify()));
    await expect(writeUnder(partition, first)).rejects.toThrow(OwnerLost);
    await writeUnder(partition, owners[0]!.claim);
  });

  it('get their tables in a store of the version before, whose processes go on', async () => {
    const { schema } = await openStore();
    await sql(
      inSchema(
        schema,
        `drop table S.volatile_rows, S.volatile_gone, S.volatile_commits; drop function S.volatile_resolve, S.volatile_page;
         create function S.commit(p_id text) returns text language sql as 'select ''old''';
         update S.version set number = 4`,
      ),
    );
    const { partition } = await openStore({ schema });
    expect(await sql(inSchema(schema, 'select number from S.version'))).toEqual([{ number: SCHEMA_VERSION }]);
    await putVolatile(partition, 3);
    expect(await get(partition, open(2))).toBe('2');
    expect(await sql(inSchema(schema, `select S.commit('id')`))).toEqual([{ commit: 'old' }]);
  });
});
