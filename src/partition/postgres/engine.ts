/** Rows in PostgreSQL, for as many processes as want to share a store. A commit is one call of one server function. */
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { TICKS_PER_SECOND } from '../../base/time.ts';
import { type Commit, type Engine, type Instant, type Outcome, Unavailable } from '../partition.ts';
import { anchorLock, locksOf } from './advisory-locks.ts';
import { followClock } from './clock.ts';
import { argumentsOf, COMMIT_TEXT } from './commit-codec.ts';
import { CannotOpen, cannotOpen, isConflict, isRolledBack, unavailable } from './errors.ts';
import { turnsOf } from './exclusive-lock.ts';
import { READS, REMEMBER_SECONDS } from './functions.ts';
import { forgetAll, startRounds } from './periodic-task.ts';
import { clientOptions, openPool } from './pool.ts';
import { snapshotsOf } from './reads.ts';
import { inSchema, prepareSchema } from './schema.ts';

export { CannotOpen };

export interface PostgresOptions {
  /** postgres://user:password@host:port/database */
  url: string;
  /** Several stores may share a database. */
  schema?: string;
  /** Connections for snapshots, and for commits. */
  readsMax?: number;
  commitsMax?: number;
  /** How long the outcome of a commit is asked for whose connection was lost. */
  resolveSeconds?: number;
  /** Told how such a commit came out. */
  resolved?: (outcome: Outcome) => void;
}

const EXCLUSIVE_MAX = 2;
const WAITING_MAX = 2_000;
const BEAT_MILLISECONDS = 1_000;
const FORGET_MILLISECONDS = 10_000;

/** Throws CannotOpen, with one line that says what is wrong. */
export async function openPostgres(options: PostgresOptions): Promise<Engine> {
  const { url, schema = 'holdfast', readsMax = 8, commitsMax = 8, resolveSeconds = 30, resolved } = options;
  const first = await openStore(url, schema);
  const clock = followClock(first);
  const sql = (text: string): string => inSchema(schema, text);
  const pool = (max: number, prepare = '') => openPool({ url, max, waitingMax: WAITING_MAX, prepare: sql(prepare) });
  const reads = pool(readsMax, READS);
  const snapshots = snapshotsOf(reads, clock);
  const commits = pool(commitsMax);
  const alone = turnsOf(pool(EXCLUSIVE_MAX), schema);
  const commitQuery = { name: 'commit', text: sql(COMMIT_TEXT) };
  let closing = false;
  let closed = false;

  async function ask<T>(name: string, text: string, values: unknown[]): Promise<T> {
    const connection = await commits.connect();
    try {
      const { rows } = await connection.query({ name, text: sql(text), values, rowMode: 'array' });
      connection.release();
      return rows[0]![0] as T;
    } catch (error) {
      connection.release(true);
      throw error;
    }
  }

  async function beat(moved = 0n): Promise<void> {
    const values = [clock.now().toString(), moved.toString()];
    clock.hear(BigInt(await ask<string>('beat', 'select S.beat($1, $2)', values)));
  }

  const forget = async (): Promise<number> => {
    const until = clock.now() - BigInt(REMEMBER_SECONDS) * TICKS_PER_SECOND;
    return Number(await ask<string>('forget', 'select S.forget($1)', [until.toString()]));
  };
  // What fails is tried again with the next.
  const beats = startRounds(BEAT_MILLISECONDS, () => beat());
  const forgetting = startRounds(FORGET_MILLISECONDS, () => forgetAll(forget, () => closing));

  /** Whether the commit happened. If it has not come to the server so far, it is barred: it never will. */
  async function resolve({ id }: Commit, sent: Instant): Promise<Outcome> {
    const end = performance.now() + resolveSeconds * 1000;
    for (;;) {
      try {
        return await ask<Outcome>('resolve', 'select S.resolve($1, $2)', [id, sent.toString()]);
      } catch {
        if (closed || performance.now() > end) return 'unknown';
        await sleep(100);
      }
    }
  }

  async function commit(data: Commit): Promise<Outcome> {
    if (closed) throw new Unavailable('The store is closed.');
    if (data.ranges.some(({ range, rows }) => range.from >= range.to && rows.length > 0)) return 'conflict';
    const sent = clock.now();
    const anchors = data.anchors.filter((anchor) => !alone.holds(anchor)).map((anchor) => anchorLock(schema, anchor));
    const values = argumentsOf(data, sent, anchors, locksOf(schema, data));
    const connection = await commits.connect();
    try {
      const { rows } = await connection.query({ ...commitQuery, values });
      connection.release();
      const { outcome, at, in_the_way: inTheWay } = rows[0];
      clock.hear(BigInt(at));
      if (outcome === 'mistake') throw new Mistake(`a counter is added to a row of ${inTheWay} bytes`);
      if (inTheWay !== null) clock.observe(BigInt(inTheWay));
      return outcome;
    } catch (error) {
      if (error instanceof Mistake) throw error;
      const isOver = isRolledBack(error);
      connection.release(!isOver);
      if (!isOver) {
        const outcome = await resolve(data, sent);
        resolved?.(outcome);
        return outcome;
      }
      if (isConflict(error)) return 'conflict';
      throw unavailable(error);
    }
  }

  return {
    clock: {
      now: clock.now,
      stamp: clock.stamp,
      async advance(ticks) {
        if (ticks < 0n) throw new RangeError('time goes forward only');
        try {
          await beat(ticks);
        } catch (error) {
          throw unavailable(error);
        }
      },
    },
    snapshot: snapshots.snapshot,
    commit,

    exclusive: (anchor, work) => alone.run(anchor, work),

    async close() {
      closing = true;
      await Promise.all([beats.end(), forgetting.end()]);
      await beat().catch(() => {});
      closed = true;
      await snapshots.end();
      await Promise.all([reads.end(), commits.end(), alone.end()]);
    },
  };
}

class Mistake extends Error {}

/** Makes the store where there is none, and asks for its time. */
async function openStore(url: string, schema: string): Promise<Instant> {
  if (!/^postgres(ql)?:\/\//.test(url) || !URL.canParse(url)) {
    throw new CannotOpen('postgres://user:password@host:port/database is expected, which the given address is not.');
  }
  const client = new pg.Client(clientOptions(url));
  client.on('error', () => {});
  const { host, port, user = '', database = '' } = client;
  try {
    await client.connect();
    await prepareSchema(client, schema);
    const { rows } = await client.query(inSchema(schema, 'select S.beat(0, 0) as now'));
    return BigInt(rows[0].now);
  } catch (error) {
    throw cannotOpen(error, { place: `${host}:${port}`, user, database });
  } finally {
    await client.end().catch(() => {});
  }
}
