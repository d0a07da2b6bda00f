/** Rows in LMDB, one folder on a local disk. Reads happen here; all writes go to one thread, which commits them in groups. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { TICKS_PER_SECOND } from '../base/time.ts';
import { workerFile } from '../base/worker.ts';
import { type ClockOptions, startClock } from './clock.ts';
import type { Key } from './keys.ts';
import { highWaterIn, KEY_BYTES_MAX, openFiles } from './lmdb-files.ts';
import { buffersOf, pack } from './lmdb-parcel.ts';
import { snapshotsOf } from './lmdb-reads.ts';
import { openRecovered } from './lmdb-recovery.ts';
import type { Answer, Order, WriterData } from './lmdb-writer.ts';
import { type Commit, type Engine, type Instant, type Outcome, Unavailable } from './partition.ts';

export interface LmdbOptions extends Pick<ClockOptions, 'wall'> {
  location: string;
  /** For tests: another engine works on this folder already, and outlives this one. What this one writes is not durable. */
  isGuest?: boolean;
}

/** How far ahead of its use time is reserved. */
const RESERVED = TICKS_PER_SECOND;

const NOTHING: Commit = { id: '', anchors: [], checks: [], ranges: [], bodies: [] };

interface Pending {
  readonly data: Commit;
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: Error) => void;
}

/** Throws DamagedRows. */
export async function openLmdb({ location, wall, isGuest = false }: LmdbOptions): Promise<Engine> {
  const { environment, rows, own } = isGuest ? openFiles(location) : openRecovered(location);
  const shared = new SharedArrayBuffer(8);
  const time = startClock({ wall, shared, atLeast: highWaterIn(own) });
  const deciding = new SharedArrayBuffer(8);
  const writer = new Worker(workerFile(import.meta.url, './lmdb-writer.ts'), {
    workerData: { location, clock: shared, deciding, isGuest } satisfies WriterData,
  });

  const collected: Pending[] = [];
  const sent: Pending[][] = [];
  let dead: Error | undefined;
  let isBroken = false;

  // Time that was told must not be told again after a crash. The order to remember it precedes every commit that uses it.
  let reserved = 0n;
  function reserving(now: Instant): Instant {
    if (now + RESERVED / 2n > reserved) {
      reserved = now + RESERVED;
      writer.postMessage({ reserve: reserved } satisfies Order);
    }
    return now;
  }
  const clock: Engine['clock'] = {
    now: () => reserving(time.now()),
    stamp: () => reserving(time.stamp()),
    async advance(ticks) {
      // Where it moves far at once, a reservation that is still to be written would be forgotten in a crash, and time go back.
      reserving(time.now() + ticks);
      await commit(NOTHING);
      await time.advance(ticks);
      // What was decided before has come to an end.
      await commit(NOTHING);
    },
  };
  /**
   * For who looks at the rows: it stands still while commits that he does not see are decided. Otherwise he could find a lease
   * expired, and what was written under it in time would come behind.
   */
  const decidingAt = new BigInt64Array(deciding);
  function nowForReads(): Instant {
    const now = clock.now();
    const decided = dead ? 0n : Atomics.load(decidingAt, 0);
    return decided === 0n || now < decided ? now : decided;
  }

  writer.on('message', ({ outcomes, broken, observed }: Answer) => {
    isBroken = broken;
    if (observed !== undefined) time.observe(observed);
    for (const [i, { resolve, reject }] of sent.shift()!.entries()) {
      const outcome = outcomes[i]!;
      if (typeof outcome === 'string') resolve(outcome);
      else reject(new Unavailable(outcome.unavailable));
    }
  });
  writer.on('error', (error) => {
    // Whether its last group is on disk nobody knows.
    dead = new Unavailable(`The writer stopped: ${error.message}`);
    for (const { resolve } of sent.splice(0).flat()) resolve('unknown');
    for (const { reject } of collected.splice(0)) reject(dead);
  });
  await once(writer, 'online');

  function send(): void {
    const group = collected.splice(0);
    if (dead) {
      for (const { reject } of group) reject(dead);
      return;
    }
    const parcel = pack(group.map(({ data }) => data));
    sent.push(group);
    writer.postMessage({ parcel } satisfies Order, buffersOf(parcel));
  }

  function commit(data: Commit): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      if (dead) return reject(dead);
      const tooLong = longKeyIn(data);
      if (tooLong) return reject(new RangeError(`a key of ${tooLong.length} bytes`));
      if (collected.push({ data, resolve, reject }) === 1) queueMicrotask(send);
    });
  }

  return {
    clock,

    snapshot: snapshotsOf(rows, nowForReads),

    commit,

    isBroken: () => isBroken || dead !== undefined,

    async close() {
      dead ??= new Unavailable('The store is closed.');
      const gone = once(writer, 'exit');
      writer.postMessage({ close: time.now() } satisfies Order);
      await gone;
      await environment.close();
    },
  };
}

/** LMDB would refuse it only in the middle of a group, and all of the group with it. */
function longKeyIn({ bodies }: Commit): Key | undefined {
  for (const { writes } of bodies) for (const { key } of writes) if (key.length > KEY_BYTES_MAX) return key;
  return undefined;
}
