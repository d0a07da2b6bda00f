/** Connection pool with a bounded number of waiters. */
import pg from 'pg';
import { Unavailable } from '../partition.ts';
import { asUnavailable } from './errors.ts';

export interface PoolOptions {
  url: string;
  /** Connections at most. */
  max: number;
  /** Callers that wait for a connection at most. */
  waitingMax: number;
  /** Run on every new connection. */
  prepare: string;
}

export type Connection = pg.PoolClient;

export interface Pool {
  /** Throws Unavailable: nothing was sent. */
  connect(): Promise<Connection>;
  /** How many callers wait for a connection. */
  waiting(): number;
  end(): Promise<void>;
}

const CONNECT_MILLISECONDS = 10_000;
const STATEMENT_SECONDS = 20;
/** Longer than the server's statement timeout: after that the connection is lost. */
const ANSWER_MILLISECONDS = 30_000;

/**
 * Plans use indexes only, since statistics of a growing table are stale. A commit is acknowledged when it is on disk, whatever the
 * server's default is, and where the server is configured so, also on the standby.
 */
const SETTINGS = `
set enable_seqscan = off; set enable_hashjoin = off; set enable_mergejoin = off; set enable_bitmapscan = off;
set plan_cache_mode = force_generic_plan; set jit = off;
set standard_conforming_strings = on; set bytea_output = hex; set default_transaction_isolation = 'read committed';
set synchronous_commit = on;
set statement_timeout = '${STATEMENT_SECONDS}s'; set lock_timeout = '10s'; set idle_in_transaction_session_timeout = '60s';
`;

export function openPool({ url, max, waitingMax, prepare }: PoolOptions): Pool {
  const pool = new pg.Pool({
    ...clientOptions(url),
    max,
    idleTimeoutMillis: 60_000,
    onConnect: async (client) => {
      client.on('error', () => {});
      const answers = await client.query(`${SETTINGS}${prepare}; select pg_is_in_recovery() as standby`);
      // After a failover the address may lead to a standby, which shows old states.
      if ([answers].flat().at(-1)!.rows[0].standby) throw new Unavailable('The database is a read-only standby.');
    },
  });
  pool.on('error', () => {});
  return {
    async connect() {
      if (pool.waitingCount >= waitingMax) throw new Unavailable('Too many requests wait for the database.');
      try {
        return await pool.connect();
      } catch (error) {
        throw asUnavailable(error);
      }
    },
    waiting: () => pool.waitingCount,
    end: () => pool.end(),
  };
}

export function clientOptions(url: string): pg.ClientConfig {
  return {
    connectionString: url,
    application_name: 'holdfast',
    connectionTimeoutMillis: CONNECT_MILLISECONDS,
    query_timeout: ANSWER_MILLISECONDS,
    keepAlive: true,
  };
}
