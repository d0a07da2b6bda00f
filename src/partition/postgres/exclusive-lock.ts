/** Starvation prevention: an exclusive advisory lock per queue key, which commits of other processes take shared. */
import type { Key } from '../keys.ts';
import type { Engine } from '../partition.ts';
import { queueLock } from './advisory-locks.ts';
import type { Connection, Pool } from './pool.ts';

/** The server releases a lock that is held longer: its process was paused, and the others wait. */
const HELD_SECONDS_MAX = 5;
const BEGIN = `begin; set local idle_in_transaction_session_timeout = '${HELD_SECONDS_MAX}s'; set local lock_timeout = '${HELD_SECONDS_MAX}s'`;

export interface ExclusiveLocks {
  readonly run: NonNullable<Engine['exclusive']>;
  /** Whether this process holds the lock: then its own commits must not wait for it. */
  holds(queueKey: Key): boolean;
  end(): Promise<void>;
}

export function makeExclusiveLocks(pool: Pool, store: string): ExclusiveLocks {
  const held = new Set<Key>();

  async function take(connection: Connection, queueKey: Key): Promise<void> {
    await connection.query(`${BEGIN}; select pg_advisory_xact_lock(${queueLock(store, queueKey)})`);
    held.add(queueKey);
  }

  return {
    async run(queueKey, work) {
      const connection = await pool.connect();
      // The lock is an optimisation: without it the work may lose another race.
      await take(connection, queueKey).catch(() => {});
      try {
        await work();
      } finally {
        held.delete(queueKey);
        connection.query('rollback').then(
          () => connection.release(),
          () => connection.release(true),
        );
      }
    },
    holds: (queueKey) => held.has(queueKey),
    end: () => pool.end(),
  };
}
