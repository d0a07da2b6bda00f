/** Rows in LMDB, one folder on a local disk. Reads happen here; all writes go to one thread, which commits them in groups. */
import { once } from 'node:events';
import { MessageChannel, Worker } from 'node:worker_threads';
import { TICKS_PER_SECOND } from '../base/time.ts';
import { workerFile } from '../base/worker.ts';
import { type ClockOptions, startClock } from './clock.ts';
import type { Key } from './keys.ts';
import { newChannelMemory, openSender } from './lmdb-channel.ts';
import { highWaterIn, KEY_BYTES_MAX, openFiles } from './lmdb-files.ts';
import { snapshotsOf } from './lmdb-reads.ts';
import { openRecovered } from './lmdb-recovery.ts';
import type { Close, Told, WriterData } from './lmdb-writer.ts';
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
  const reserving = new SharedArrayBuffer(8);
  const channel = newChannelMemory();
  const { port1: large, port2 } = new MessageChannel();
  const writer = new Worker(workerFile(import.meta.url, './lmdb-writer.ts'), {
    workerData: { location, clock: shared, deciding, reserving, channel, large: port2, isGuest } satisfies WriterData,
    transferList: [port2],
  });
  const sender = openSender(channel, () => writer.postMessage(undefined), large, settle);

  let collected: Pending[] = [];
  let isDue = false;
  const sent: Pending[][] = [];
  let dead: Error | undefined;
  let isBroken = false;

  // Time that was told must not be told again after a crash: it is remembered no later than any commit that uses it.
  const reservedUntil = new BigInt64Array(reserving);
  let reserved = 0n;
  /** The writer may not have looked since. */
  let isOwed = false;
  function reserve(now: Instant): Instant {
    if (now + RESERVED / 2n > reserved) {
      reserved = now + RESERVED;
      Atomics.store(reservedUntil, 0, reserved);
      isOwed = true;
      sendSoon();
    }
    return now;
  }
  const clock: Engine['clock'] = {
    now: () => reserve(time.now()),
    stamp: () => reserve(time.stamp()),
    async advance(ticks) {
      // Where it moves far at once, a reservation that is still to be written would be forgotten in a crash, and time go back.
      reserve(time.now() + ticks);
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

  function settle(): void {
    // The writer may have died over what it announced: then everybody was told.
    if (sent.length === 0) return;
    for (let left = sender.settled(); left > 0; left--) for (const { resolve } of sent.shift()!) resolve('committed');
    if (collected.length > 0 || isOwed) sendSoon();
  }
  writer.on('message', (told: Told | undefined) => {
    settle();
    if (!told || sent.length === 0) return;
    isBroken = told.broken;
    if (told.observed !== undefined) time.observe(told.observed);
    sender.toldOf();
    for (const [i, { resolve, reject }] of sent.shift()!.entries()) {
      const outcome = told.outcomes[i]!;
      if (typeof outcome === 'string') resolve(outcome);
      else reject(new Unavailable(outcome.unavailable));
    }
  });
  writer.on('error', (error) => {
    // Whether its last group is on disk nobody knows.
    dead = new Unavailable(`The writer stopped: ${error.message}`);
    for (const { resolve } of sent.splice(0).flat()) resolve('unknown');
    refuse(dead);
  });
  await once(writer, 'online');

  function sendSoon(): void {
    if (isDue) return;
    isDue = true;
    queueMicrotask(send);
  }

  /** Where too much is under way, it is sent when some of that is through. */
  function send(): void {
    isDue = false;
    if (dead) refuse(dead);
    if (dead || sender.isFull()) return;
    const group = collected;
    collected = [];
    isOwed = false;
    sent.push(group);
    sender.send(group.map(({ data }) => data));
  }

  function refuse(reason: Error): void {
    for (const { reject } of collected) reject(reason);
    collected = [];
  }

  function commit(data: Commit): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      if (dead) return reject(dead);
      const tooLong = longKeyIn(data);
      if (tooLong) return reject(new RangeError(`a key of ${tooLong.length} bytes`));
      collected.push({ data, resolve, reject });
      sendSoon();
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
      writer.postMessage({ close: time.now() } satisfies Close);
      await gone;
      large.close();
      await environment.close();
    },
  };
}

/** LMDB would refuse it only in the middle of a group, and all of the group with it. */
function longKeyIn({ bodies }: Commit): Key | undefined {
  for (const { writes } of bodies) for (const { key } of writes) if (key.length > KEY_BYTES_MAX) return key;
  return undefined;
}
