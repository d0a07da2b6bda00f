/** PostgreSQL engine: any number of processes share a store, and a commit is one call of one server function. */
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { COUNT_BOUNDS, Histogram, SECONDS_BOUNDS } from '../../base/histogram.ts';
import { TICKS_PER_SECOND } from '../../base/time.ts';
import { type Commit, type Engine, type Instant, type Outcome, Unavailable } from '../partition.ts';
import { locksFor, queueLock } from './advisory-locks.ts';
import { startServerClock } from './clock.ts';
import { COMMIT_TEXT, encodeCommit, isLogged, splitRanges } from './commit-codec.ts';
import { asCannotOpen, asUnavailable, CannotOpen, isConflict, isRolledBack } from './errors.ts';
import { makeExclusiveLocks } from './exclusive-lock.ts';
import { PREPARED_READS, RETENTION_SECONDS } from './functions.ts';
import { deleteAllExpired, startPeriodicTask } from './periodic-task.ts';
import { clientOptions, openPool } from './pool.ts';
import { Snapshots } from './reads.ts';
import { inSchema, prepareSchema } from './schema.ts';

export { CannotOpen };

export interface PostgresOptions {
  /** postgres://user:password@host:port/database */
  url: string;
  /** Several stores may share a database. */
  schema?: string;
  /** Connections at most: for snapshots, and for commits. */
  readsMax?: number;
  commitsMax?: number;
  /** How long the outcome of a commit whose connection was lost is asked for. */
  resolveSeconds?: number;
  /** Called with the outcome of such a commit. */
  onResolved?: (outcome: Outcome) => void;
}

const EXCLUSIVE_MAX = 2;
const WAITING_MAX = 2_000;
const CLOCK_SYNC_MILLISECONDS = 1_000;
const CLEANUP_MILLISECONDS = 10_000;

/** Throws CannotOpen, with the reason in one line. */
export async function openPostgres(options: PostgresOptions): Promise<Engine> {
  const { url, schema = 'holdfast', readsMax = 8, commitsMax = 8, resolveSeconds = 30, onResolved } = options;
  const first = await openStore(url, schema);
  const clock = startServerClock(first);
  const sql = (text: string): string => inSchema(schema, text);
  const pool = (max: number, prepare = '') => openPool({ url, max, waitingMax: WAITING_MAX, prepare: sql(prepare) });
  const reads = pool(readsMax, PREPARED_READS);
  const snapshots = new Snapshots(reads, clock);
  const commits = pool(commitsMax);
  const exclusiveLocks = makeExclusiveLocks(pool(EXCLUSIVE_MAX), schema);
  const commitQuery = { name: 'commit', text: sql(COMMIT_TEXT) };
  const flushSeconds = new Histogram(SECONDS_BOUNDS);
  const groupTransactions = new Histogram(COUNT_BOUNDS);
  let closing = false;
  let closed = false;

  async function callFunction<T>(name: string, text: string, values: unknown[]): Promise<T> {
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

  async function syncClock(advance = 0n): Promise<void> {
    const values = [clock.now().toString(), advance.toString()];
    clock.observeServerTime(BigInt(await callFunction<string>('beat', 'select S.beat($1, $2)', values)));
  }

  const deleteExpired = async (): Promise<number> => {
    const until = clock.now() - BigInt(RETENTION_SECONDS) * TICKS_PER_SECOND;
    return Number(await callFunction<string>('forget', 'select S.forget($1)', [until.toString()]));
  };
  // A run that fails is made up for by the next.
  const clockSync = startPeriodicTask(CLOCK_SYNC_MILLISECONDS, () => syncClock());
  const cleanup = startPeriodicTask(CLEANUP_MILLISECONDS, () => deleteAllExpired(deleteExpired, () => closing));

  /** Whether the commit happened. A commit that has not reached the server is barred: it never happens later. */
  async function resolveOutcome(data: Commit, sent: Instant): Promise<Outcome> {
    const name = isLogged(data) ? 'resolve' : 'volatile_resolve';
    const end = performance.now() + resolveSeconds * 1000;
    for (;;) {
      try {
        return await callFunction<Outcome>(name, `select S.${name}($1, $2)`, [data.id, sent.toString()]);
      } catch {
        if (closed || performance.now() > end) return 'unknown';
        await sleep(100);
      }
    }
  }

  async function commit(given: Commit): Promise<Outcome> {
    if (closed) throw new Unavailable('The store is closed.');
    if (given.ranges.some(({ range, rows }) => range.from >= range.to && rows.length > 0)) return 'conflict';
    const data = { ...given, ranges: splitRanges(given.ranges) };
    const sent = clock.now();
    const queueLocks = data.queueKeys
      .filter((queueKey) => !exclusiveLocks.holds(queueKey))
      .map((queueKey) => queueLock(schema, queueKey));
    const values = encodeCommit(data, sent, queueLocks, locksFor(schema, data));
    const connection = await commits.connect();
    const started = performance.now();
    try {
      const { rows } = await connection.query({ ...commitQuery, values });
      connection.release();
      flushSeconds.observe((performance.now() - started) / 1_000);
      groupTransactions.observe(data.writeSets.length);
      const { outcome, at, in_the_way: conflict } = rows[0];
      clock.observeServerTime(BigInt(at));
      if (outcome === 'mistake') throw new InvalidCommit(`a counter is added to a row of ${conflict} bytes`);
      if (conflict !== null) clock.observe(BigInt(conflict));
      return outcome;
    } catch (error) {
      if (error instanceof InvalidCommit) throw error;
      const isOver = isRolledBack(error);
      connection.release(!isOver);
      if (!isOver) {
        const outcome = await resolveOutcome(data, sent);
        onResolved?.(outcome);
        return outcome;
      }
      if (isConflict(error)) return 'conflict';
      throw asUnavailable(error);
    }
  }

  return {
    clock: {
      now: clock.now,
      nextTimestamp: clock.nextTimestamp,
      async advance(ticks) {
        if (ticks < 0n) throw new RangeError('time goes forward only');
        try {
          await syncClock(ticks);
        } catch (error) {
          throw asUnavailable(error);
        }
      },
    },
    snapshot: () => snapshots.snapshot(),
    commit,
    figures: () => ({ flushSeconds, groupTransactions }),

    exclusive: (queueKey, work) => exclusiveLocks.run(queueKey, work),

    async close() {
      closing = true;
      await Promise.all([clockSync.end(), cleanup.end()]);
      await syncClock().catch(() => {});
      closed = true;
      await snapshots.end();
      await Promise.all([reads.end(), commits.end(), exclusiveLocks.end()]);
    },
  };
}

class InvalidCommit extends Error {}

/** Creates the store where there is none; returns its time. */
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
    throw asCannotOpen(error, { address: `${host}:${port}`, user, database });
  } finally {
    await client.end().catch(() => {});
  }
}
