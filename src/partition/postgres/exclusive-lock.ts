import type { Key } from '../keys.ts';
import type { Engine } from '../partition.ts';
import { queueLock } from './advisory-locks.ts';
import type { Connection, Pool } from './pool.ts';

/** The server ends a turn that takes longer: the process was paused, and all others wait. */
const HELD_SECONDS_MAX = 5;
const BEGIN = `begin; set local idle_in_transaction_session_timeout = '${HELD_SECONDS_MAX}s'; set local lock_timeout = '${HELD_SECONDS_MAX}s'`;

export interface ExclusiveLocks {
  readonly run: NonNullable<Engine['exclusive']>;
  /** Whether it is this process's turn for the anchor: its commits do not wait for themselves. */
  holds(queueKey: Key): boolean;
  end(): Promise<void>;
}

/** An anchor's lock, alone: every commit of others takes it shared. */
export function makeExclusiveLocks(pool: Pool, store: string): ExclusiveLocks {
  const held = new Set<Key>();

  async function take(connection: Connection, anchor: Key): Promise<void> {
    await connection.query(`${BEGIN}; select pg_advisory_xact_lock(${queueLock(store, anchor)})`);
    held.add(anchor);
  }

  return {
    async run(anchor, work) {
      const connection = await pool.connect();
      // Without the lock it is only less sure to get through.
      await take(connection, anchor).catch(() => {});
      try {
        await work();
      } finally {
        held.delete(anchor);
        connection.query('rollback').then(
          () => connection.release(),
          () => connection.release(true),
        );
      }
    },
    holds: (anchor) => held.has(anchor),
    end: () => pool.end(),
  };
}
