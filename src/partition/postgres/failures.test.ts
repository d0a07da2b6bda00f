import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type Cluster, missing, startCluster } from '../../../test/support/postgres-cluster.ts';
import { bytes, get, key, makeCommit, put, readEngine, rowNumber, times } from '../conformance/harness.ts';
import { keysUnder } from '../keys.ts';
import { type Engine, type Outcome, Unavailable } from '../partition.ts';
import { openPartition } from '../transact.ts';
import { queueLock } from './advisory-locks.ts';
import { openPostgres, type PostgresOptions } from './engine.ts';
import { PREPARED_READS } from './functions.ts';
import { deleteAllExpired } from './periodic-task.ts';
import { inSchema, prepareSchema, SCHEMA_VERSION } from './schema.ts';

const SECOND = 10_000_000n;
let cluster: Cluster;
let stores = 0;
const newSchema = (): string => `failures ${++stores}`;

async function open(options: Partial<PostgresOptions> = {}): Promise<Engine> {
  const engine = await openPostgres({ url: cluster.url, schema: newSchema(), ...options });
  onTestFinished(() => engine.close());
  return engine;
}

/** The answer to the last of them. */
async function sql(...statements: string[]): Promise<pg.QueryResult> {
  const client = new pg.Client(cluster.url);
  await client.connect();
  try {
    const answers: pg.QueryResult[] = [];
    for (const statement of statements) answers.push(await client.query(statement));
    return answers.at(-1)!;
  } finally {
    await client.end();
  }
}

describe.skipIf(missing)(`A store in PostgreSQL${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(async () => {
    cluster = await startCluster({ password: { user: 'guarded', password: 'right' } });
  });
  afterAll(() => cluster?.drop());

  describe('cannot be opened, and says in one line why,', () => {
    const refusals: [string, () => Partial<PostgresOptions>, RegExp][] = [
      [
        'no server is there',
        () => ({ url: 'postgres://127.0.0.1:1/none' }),
        /^PostgreSQL at 127\.0\.0\.1:1 does not answer: .*ECONNREFUSED.*\.$/,
      ],
      [
        'the host is unknown',
        () => ({ url: 'postgres://nowhere.invalid/none' }),
        /^PostgreSQL at nowhere\.invalid:5432 does not answer: /,
      ],
      [
        'the address is none',
        () => ({ url: 'mysql://127.0.0.1/x' }),
        /^postgres:\/\/user:password@host:port\/database is expected/,
      ],
      [
        'there is no such database',
        () => ({ url: cluster.urlOf({ database: 'nothing' }) }),
        /has no database nothing\.$/,
      ],
      ['there is no such user', () => ({ url: cluster.urlOf({ user: 'nobody' }) }), /does not let nobody in/],
      [
        'the password is wrong',
        () => ({ url: cluster.urlOf({ user: 'guarded', password: 'wrong' }) }),
        /refuses the password of guarded\.$/,
      ],
      [
        'the user may not make the schema',
        () => ({ url: cluster.urlOf({ user: 'guarded', password: 'right' }) }),
        /^guarded lacks rights in the database postgres at 127\.0\.0\.1:\d+: permission denied/,
      ],
    ];
    for (const [title, options, message] of refusals) {
      it(`when ${title}`, async () => {
        const refused = openPostgres({ url: cluster.url, schema: 'refused', ...options() });
        await expect(refused).rejects.toMatchObject({ name: 'CannotOpen', message: expect.stringMatching(message) });
        await expect(refused).rejects.not.toMatchObject({ message: expect.stringMatching(/\n|wrong/) });
      });
    }

    it('when the server is read only', async () => {
      await sql('create role reader login', 'alter role reader set default_transaction_read_only = on');
      await expect(openPostgres({ url: cluster.urlOf({ user: 'reader' }) })).rejects.toMatchObject({
        name: 'CannotOpen',
        message: expect.stringMatching(/read-only standby/),
      });
    });

    it('when the server is too old', async () => {
      const rows = [{ version: '14.9', major: 14, standby: false, readonly: false }];
      const client = { query: async () => ({ rows }) } as unknown as pg.ClientBase;
      await expect(prepareSchema(client, 'old')).rejects.toMatchObject({
        name: 'CannotOpen',
        message: 'PostgreSQL 14.9 is too old: Holdfast needs 15 or later.',
      });
    });

    it('when a newer Holdfast has made it', async () => {
      const schema = newSchema();
      await (await openPostgres({ url: cluster.url, schema })).close();
      await sql(`update "${schema}".version set number = ${SCHEMA_VERSION + 1}`);
      await expect(openPostgres({ url: cluster.url, schema })).rejects.toMatchObject({
        name: 'CannotOpen',
        message: expect.stringMatching(/has version 7; this Holdfast knows 6: start a newer one\.$/),
      });
    });
  });

  it('is migrated to this version by the first process that opens it, while older processes go on', async () => {
    const schema = newSchema();
    const old = openPartition(await open({ schema }));
    await sql(`drop function "${schema}".page`, `update "${schema}".version set number = 1`);
    const [one, other] = await Promise.all([open({ schema }), open({ schema })]);
    expect((await sql(`select number from "${schema}".version`)).rows).toEqual([{ number: SCHEMA_VERSION }]);
    for (const each of [old, openPartition(one), openPartition(other)]) {
      await put(each, key('row', 'a/1'), 1);
      const grouping = { from: 0, delimiter: '/' };
      const { rows } = await each.read((at) => at.page(keysUnder(['row']), { limit: 5, grouping }));
      expect(rows.map(rowNumber)).toEqual([1]);
    }
  });

  it('is created once by twelve processes that open it at the same time', async () => {
    const schema = newSchema();
    const engines = await Promise.all(times(12, () => open({ schema })));
    for (const [i, engine] of engines.entries()) await put(openPartition(engine), key('row', i), i);
    const rows = await readEngine(engines[5]!, (at) => at.getMany(times(12, (i) => key('row', i))));
    expect(rows.map(rowNumber)).toEqual(times(12, (i) => i));
  });

  it('can be opened by a user without the right to create it', async () => {
    const schema = newSchema();
    await (await openPostgres({ url: cluster.url, schema })).close();
    await sql(
      `grant usage on schema "${schema}" to guarded`,
      `grant select, insert, update, delete on all tables in schema "${schema}" to guarded`,
    );
    const engine = await open({ url: cluster.urlOf({ user: 'guarded', password: 'right' }), schema });
    await put(openPartition(engine), key('row'), 'written');
    expect(await get(openPartition(engine), key('row'))).toBe('written');
  });

  it('rejects with Unavailable while the server is down, and works again when it is back', async () => {
    const engine = await open({ resolveSeconds: 1 });
    const partition = openPartition(engine);
    await put(partition, key('row'), 'before');
    await cluster.stop();
    try {
      await expect(get(partition, key('row'))).rejects.toBeInstanceOf(Unavailable);
      await expect(put(partition, key('row'), 'away')).rejects.toBeInstanceOf(Unavailable);
      const written = makeCommit({ writeSets: [{ timestamp: engine.clock.nextTimestamp(), writes: [] }] });
      await expect(engine.commit(written)).rejects.toBeInstanceOf(Unavailable);
      await expect(engine.clock.advance(1n)).rejects.toBeInstanceOf(Unavailable);
    } finally {
      await cluster.start();
    }
    expect(await get(partition, key('row'))).toBe('before');
    await put(partition, key('row'), 'after');
    expect(await get(partition, key('row'))).toBe('after');
  });

  it('reads and writes nothing on a standby, not even when it worked there before', async () => {
    const partition = openPartition(await open({ resolveSeconds: 1 }));
    await put(partition, key('row'), 'before');
    await cluster.stop();
    await cluster.start({ standby: true });
    try {
      await expect(get(partition, key('row'))).rejects.toThrow('The database is a read-only standby.');
      await expect(put(partition, key('row'), 'standby')).rejects.toBeInstanceOf(Unavailable);
      await expect(openPostgres({ url: cluster.url })).rejects.toMatchObject({
        name: 'CannotOpen',
        message: expect.stringMatching(/read-only standby/),
      });
    } finally {
      await cluster.stop();
      await cluster.start();
    }
    expect(await get(partition, key('row'))).toBe('before');
  });

  it('fails a read whose connection is lost in the middle, and never mixes two states', async () => {
    const partition = openPartition(await open());
    await put(partition, key('left'), 1);
    await put(partition, key('right'), 1);
    const torn = partition.read(async (at) => {
      await at.get(key('left'));
      await sql(`select pg_terminate_backend(pid) from pg_stat_activity where state = 'idle in transaction'`);
      await put(partition, key('right'), 2);
      return at.get(key('right'));
    });
    await expect(torn).rejects.toBeInstanceOf(Unavailable);
    expect(await get(partition, key('right'))).toBe('2');
  });

  it('shows all processes in their next snapshot that its time was advanced', async () => {
    const schema = newSchema();
    const [one, other] = [await open({ schema }), openPartition(await open({ schema }))];
    for (let moved = 1; moved <= 10; moved++) {
      await one.clock.advance(600n * SECOND);
      const before = one.clock.now();
      const seen = await other.read(async (at) => {
        await at.get(key('row'));
        return at.now;
      });
      expect(before - seen).toBeLessThan(SECOND);
      const { value } = await other.transact(key('row'), async (tx) => {
        tx.put(key('row'), bytes(moved));
        await tx.get(key('other'));
        return tx.now;
      });
      expect(before - value).toBeLessThan(SECOND);
    }
  });

  it('validates a deadline by the clock of the server, whatever the process knows of it', async () => {
    const schema = newSchema();
    const [one, other] = [await open({ schema }), await open({ schema })];
    const writeSet = {
      timestamp: other.clock.nextTimestamp(),
      writes: [{ kind: 'put', key: key('row'), value: bytes(1) } as const],
    };
    const before = other.clock.now() + 30n * SECOND;
    await one.clock.advance(31n * SECOND);
    expect(await other.commit(makeCommit({ deadline: before, writeSets: [writeSet] }))).toBe('conflict');
    expect(await other.commit(makeCommit({ deadline: before + 30n * SECOND, writeSets: [writeSet] }))).toBe(
      'committed',
    );
  });

  it('does not wait for long for the exclusive lock of a paused process', async () => {
    const schema = newSchema();
    const partition = openPartition(await open({ schema }));
    const paused = new pg.Client(cluster.url);
    await paused.connect();
    onTestFinished(() => paused.end());
    await paused.query('select pg_advisory_lock($1)', [queueLock(schema, key('row')).toString()]);
    await put(partition, key('row'), 'through');
    expect(await get(partition, key('row'))).toBe('through');
  });

  it('releases the exclusive lock of a paused process', async () => {
    const schema = newSchema();
    const engine = await open({ schema });
    await engine.exclusive!(key('row'), async () => {
      const taken = await sql(`select pg_try_advisory_lock(${queueLock(schema, key('row'))}) as taken`);
      expect(taken.rows[0].taken).toBe(false);
      await sql(`select pg_advisory_lock(${queueLock(schema, key('row'))})`);
    });
    await engine.exclusive!(key('row'), async () => {});
  });

  it('deletes removed versions and commit ids after some minutes, and then answers every id with an unknown outcome', async () => {
    const schema = newSchema();
    const partition = openPartition(await open({ schema }));
    const counts = async () =>
      (
        await sql(
          inSchema(schema, 'select (select count(*) from S.commits)::int, (select count(*) from S.gone)::int as gone'),
        )
      ).rows[0];
    const forget = () => sql(inSchema(schema, `select S.forget(S.store_now() - ${900n * SECOND})`));
    const resolve = async (id: string, age: bigint) =>
      (await sql(inSchema(schema, `select S.resolve('${id}', S.store_now() - ${age}) as answer`))).rows[0].answer;
    await put(partition, key('row'), 1);
    await partition.transact(key('row'), async (tx) => tx.remove(key('row')));
    await forget();
    expect(await counts()).toEqual({ count: 2, gone: 1 });
    const { rows } = await sql(inSchema(schema, 'select id from S.commits'));
    expect(await resolve(rows[0].id, 0n)).toBe('committed');
    expect(await resolve('never seen', 0n)).toBe('conflict');
    expect(await resolve(rows[0].id, 301n * SECOND)).toBe('unknown');
    await partition.clock.advance(1000n * SECOND);
    await forget();
    expect(await counts()).toEqual({ count: 0, gone: 0 });
  });

  it('deletes in one run the rows that 5,000 commits a second leave between two runs', async () => {
    const schema = newSchema();
    await open({ schema });
    const old = 'from generate_series(1, 50000) as i';
    await sql(
      inSchema(schema, `insert into S.commits select 'old ' || i, true, i ${old}`),
      inSchema(schema, `insert into S.gone select sha256(i::text::bytea), i ${old}`),
    );
    const answers: number[] = [];
    await deleteAllExpired(async () => {
      const { rows } = await sql(inSchema(schema, 'select S.forget(50001)::int as forgotten'));
      answers.push(rows[0].forgotten);
      return rows[0].forgotten;
    });
    expect(answers).toEqual([10_000, 10_000, 10_000, 10_000, 10_000, 0]);
    const { rows } = await sql(
      inSchema(schema, 'select from S.commits where at <= 50000 union all select from S.gone'),
    );
    expect(rows).toEqual([]);
  });

  describe('and a commit that is decided but not yet visible', () => {
    /** A commit in the server after its decision: it waits for another transaction with the same id. */
    async function decide(schema: string): Promise<{ before: bigint; release: () => Promise<Outcome> }> {
      const engine = await open({ schema });
      const other = new pg.Client(cluster.url);
      await other.connect();
      const id = crypto.randomUUID();
      await other.query('begin');
      await other.query(inSchema(schema, `insert into S.commits values ('${id}', false, 0)`));
      const before = engine.clock.now() + 30n * SECOND;
      const writeSets = [
        {
          timestamp: engine.clock.nextTimestamp(),
          writes: [{ kind: 'put', key: key('row'), value: bytes(1) } as const],
        },
      ];
      const outcome = engine.commit(makeCommit({ id, deadline: before, writeSets: writeSets }));
      const waits = `select from pg_stat_activity where wait_event = 'transactionid' and query like '%.commit(%'`;
      while ((await sql(waits)).rows.length === 0);
      const release = async (): Promise<Outcome> => {
        await other.query('rollback');
        await other.end();
        return outcome;
      };
      return { before, release };
    }
    const look = (engine: Engine, isEarly = false) =>
      readEngine(engine, async (at) => {
        if (isEarly) at.now;
        const row = await at.get(key('row'));
        return { isThere: row !== undefined, now: at.now };
      });

    it('delays no reader before its deadline', async () => {
      const schema = newSchema();
      const reader = await open({ schema });
      const { before, release } = await decide(schema);
      const { isThere, now } = await look(reader);
      expect(isThere).toBe(false);
      expect(now).toBeLessThan(before);
      expect(await release()).toBe('committed');
    });

    it('delays a reader after its deadline', async () => {
      const schema = newSchema();
      const reader = await open({ schema });
      const { before, release } = await decide(schema);
      await reader.clock.advance(60n * SECOND);
      const looks = Promise.all([look(reader), look(reader, true)]);
      while ((await sql(`select from pg_locks where locktype = 'advisory' and not granted`)).rows.length < 2);
      expect(await release()).toBe('committed');
      for (const { isThere, now } of await looks) expect(isThere || now < before).toBe(true);
    });

    it('stops the time of readers before its deadline when it hangs, and fails a read of a later time', async () => {
      const schema = newSchema();
      const [reader, early] = [await open({ schema }), await open({ schema })];
      const { before, release } = await decide(schema);
      await early.clock.advance(60n * SECOND);
      const { isThere, now } = await look(reader);
      expect(isThere).toBe(false);
      expect(before - now).toBeLessThan(SECOND / 1000n);
      expect(before - now).toBeGreaterThan(0n);
      await expect(look(early, true)).rejects.toBeInstanceOf(Unavailable);
      expect(await release()).toBe('committed');
      const again = await look(reader);
      expect(again.isThere).toBe(true);
      expect(again.now).toBeGreaterThan(before);
    });
  });

  it('finds rows by index only, in a table without statistics', async () => {
    const schema = newSchema();
    const partition = openPartition(await open({ schema }));
    await partition.transact(key('row'), async (tx) => {
      for (const i of times(900, (each) => each)) tx.put(key('row', i), bytes(i));
    });
    await partition.transact(key('row'), async (tx) => {
      await tx.getMany([key('row', 3), key('absent')]);
      for (const reverse of [false, true]) await tx.scan(keysUnder(['row']), { limit: 5, reverse });
      tx.put(key('row', 3), bytes('again'));
      tx.remove(key('row', 4));
      tx.add(key('counter'), 1n);
    });
    await partition.read((at) => at.page(keysUnder(['row']), { limit: 5, grouping: { from: 0, delimiter: 'r' } }));
    const { rows } = await sql(
      'select pg_stat_force_next_flush()',
      `select relname, seq_scan::int as scans from pg_stat_user_tables where schemaname = '${schema}' and relname = 'rows'`,
    );
    // One was the creation of its indexes.
    expect(rows[0].scans).toBeLessThanOrEqual(2);
    const plans = await sql(
      'set enable_seqscan = off; set enable_bitmapscan = off; set plan_cache_mode = force_generic_plan',
      inSchema(schema, PREPARED_READS),
      String.raw`explain execute holdfast_scan_back('\\x00', '\\xff', 5, 100)`,
    );
    expect(JSON.stringify(plans.rows)).toMatch(/Index Scan Backward using rows_order/);
  });

  it('conflicts with an old timestamp, and with one that a removed row may have had', async () => {
    const engine = await open();
    const write = (timestamp: bigint, kind: 'put' | 'remove') =>
      engine.commit(
        makeCommit({
          writeSets: [
            {
              timestamp,
              writes: [kind === 'put' ? { kind, key: key('row'), value: bytes(1) } : { kind, key: key('row') }],
            },
          ],
        }),
      );
    const timestamps = times(4, () => engine.clock.nextTimestamp());
    expect(await write(timestamps[1]!, 'put')).toBe('committed');
    expect(await write(timestamps[2]!, 'remove')).toBe('committed');
    for (const timestamp of timestamps.slice(0, 3)) expect(await write(timestamp, 'put')).toBe('conflict');
    expect(await write(timestamps[3]!, 'put')).toBe('committed');
    const old = engine.clock.nextTimestamp();
    await engine.clock.advance(100n * SECOND);
    expect(await write(old, 'put')).toBe('conflict');
  });
});
