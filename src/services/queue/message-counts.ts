/**
 * Sharded counters of messages by expiry time. Expired messages must not count, even before they are deleted: so each message counts
 * in the hour and in the second in which it expires, and the rest of the current hour and all later hours are summed from few rows.
 */
import { TICKS_PER_SECOND } from '../../base/time.ts';
import { encodeKey, type Key, keyAfter, keysUnder, prefixEnd, type Range } from '../../partition/keys.ts';
import { decodeCounter, type Snapshot, type Transaction } from '../../partition/partition.ts';
import { NEVER } from '../../rules/queue/timing.ts';
import type { StoredMessage } from './message-rows.ts';
import type { Queue } from './rows.ts';

const HOURS = 0n;
const SECONDS = 1n;
const SECONDS_PER_HOUR = 3_600n;
/** In some engines adds to one row wait for each other: the shards reduce that. */
const SHARDS = 4n;
const SLICE = { limit: 1_000 };

export const countersIn = (queue: Queue): Range => keysUnder(counterKeyParts(queue));

/** Counts an added or a deleted message in the shard of its salt, so that both cancel out in the same row. */
export function countMessage(tx: Transaction, queue: Queue, { id, expires }: StoredMessage, n: 1 | -1): void {
  const second = expires / TICKS_PER_SECOND;
  const shard = id.salt % SHARDS;
  tx.add(counterKey(queue, HOURS, second / SECONDS_PER_HOUR, shard), BigInt(n));
  if (expires < NEVER) tx.add(counterKey(queue, SECONDS, second, shard), BigInt(n));
}

function counterKey({ account, id, gen }: Queue, width: bigint, at: bigint, shard: bigint): Key {
  return encodeKey([account, '#', id, gen, width, at, shard]);
}

/** Messages that expire within the current second still count. */
export async function readMessageCount(at: Snapshot, queue: Queue): Promise<number> {
  const second = at.now / TICKS_PER_SECOND;
  const hour = second / SECONDS_PER_HOUR;
  const nextHour = (hour + 1n) * SECONDS_PER_HOUR;
  const ofHours = prefixEnd(encodeKey([...counterKeyParts(queue), HOURS]));
  const later = await sumCounters(at, { from: encodeKey([...counterKeyParts(queue), HOURS, hour + 1n]), to: ofHours });
  const from = encodeKey([...counterKeyParts(queue), SECONDS, second]);
  return Number(
    later + (await sumCounters(at, { from, to: encodeKey([...counterKeyParts(queue), SECONDS, nextHour]) })),
  );
}

async function sumCounters(at: Snapshot, { from, to }: Range): Promise<bigint> {
  let sum = 0n;
  for (let next: Key | undefined = from; next !== undefined; ) {
    const rows = await at.scan({ from: next, to }, SLICE);
    for (const row of rows) sum += decodeCounter(row);
    next = rows.length < SLICE.limit ? undefined : keyAfter(rows.at(-1)!.key);
  }
  return sum;
}

/** Whether this is a counter by the hour: in these every message counts exactly once. */
export const isHourCounter = (width: unknown): boolean => width === HOURS;

function counterKeyParts({ account, id, gen }: Queue) {
  return [account, '#', id, gen] as const;
}
