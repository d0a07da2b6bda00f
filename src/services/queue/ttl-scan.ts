/**
 * TTL scan: deletes expired messages that no request finds, because they are invisible or the queue is not read. There is no expiry
 * index: every queue is scanned from time to time, slice by slice.
 */
import { TICKS_PER_SECOND } from '../../base/time.ts';
import { decodeKeySuffix, type Key, keyAfter } from '../../partition/keys.ts';
import type { Instant, Partition, Row } from '../../partition/partition.ts';
import { NEVER } from '../../rules/queue/messages.ts';
import { decodeName, namesIn } from '../common/names.ts';
import type { AccountId } from '../common/storage.ts';
import { deleteExpired } from './dequeue.ts';
import { decodeMessage, firstMessageKey } from './message-rows.ts';
import { decodeQueue, messagesIn, nameKey, nameKeyPrefix, type Queue, txQueueKey } from './rows.ts';

export interface TtlScanOptions {
  readonly partition: Partition;
  readonly mayWork: () => boolean;
  /** A pause after work that took this long. */
  readonly pause: (milliseconds: number) => Promise<void>;
}

export interface TtlScan {
  /** Scans those queues of the account that are due. */
  run(account: AccountId): Promise<void>;
}

const MINUTE = 60n * TICKS_PER_SECOND;
/** After a start, or for a new queue. */
const FIRST_DELAY = 5n * MINUTE;
const INTERVAL_MIN = 60n * MINUTE;
/** Messages with a short time to live may have been put since the last scan. */
const INTERVAL_MAX = 24n * 60n * MINUTE;
const SLICE = { limit: 200, bytesMax: 1 << 20 };

export function createTtlScan({ partition, mayWork, pause }: TtlScanOptions): TtlScan {
  /** When to scan a queue again, by the key of its name and its id. */
  const nextScan = new Map<AccountId, Map<string, Instant>>();
  const sleepUntil = new Map<AccountId, Instant>();

  async function run(account: AccountId): Promise<void> {
    const now = partition.clock.now();
    if (now < (sleepUntil.get(account) ?? 0n)) return;
    const known = nextScan.get(account) ?? new Map<string, Instant>();
    const next = new Map<string, Instant>();
    nextScan.set(account, next);
    for (let { from, to } = namesIn(account, 'queue'); mayWork(); ) {
      const names = await partition.read((at) => at.scan({ from, to }, SLICE));
      for (const name of names) {
        const label = `${name.key} ${decodeName(name)}`;
        const instant = known.get(label) ?? now + FIRST_DELAY;
        next.set(label, instant > now ? instant : await scanQueue(account, name));
      }
      const last = names.at(-1);
      if (!last) break;
      from = keyAfter(last.key);
    }
    let wake = now + FIRST_DELAY;
    for (const instant of next.values()) if (instant < wake) wake = instant;
    sleepUntil.set(account, wake);
  }

  /** Returns the time of the next scan: when the next message expires, within the limits of the interval. */
  async function scanQueue(account: AccountId, name: Row): Promise<Instant> {
    const queue = decodeQueue(account, name);
    const { to } = messagesIn(queue);
    let nextExpiry = NEVER;
    for (let from: Key | undefined = firstMessageKey(queue); from !== undefined && mayWork(); ) {
      const started = performance.now();
      const { rows, now } = await partition.read(async (at) => ({
        rows: await at.scan({ from: from!, to }, SLICE),
        now: at.now,
      }));
      const expired: Key[] = [];
      for (const row of rows) {
        const { expires } = decodeMessage(row);
        if (expires <= now) expired.push(row.key);
        else if (expires < nextExpiry) nextExpiry = expires;
      }
      if (expired.length > 0)
        await deleteMessages(queue, decodeKeySuffix(name.key, nameKeyPrefix(account, '')), expired);
      const last = rows.at(-1);
      from = last && keyAfter(last.key);
      await pause(performance.now() - started);
    }
    const now = partition.clock.now();
    return clamp(nextExpiry, now + INTERVAL_MIN, now + INTERVAL_MAX);
  }

  async function deleteMessages(queue: Queue, name: string, keys: readonly Key[]): Promise<void> {
    await partition.transact(txQueueKey(queue.account, name), async (tx) => {
      const row = await tx.get(nameKey(queue.account, name));
      const found = row && decodeQueue(queue.account, row);
      if (found?.id === queue.id && found.gen === queue.gen) await deleteExpired(tx, queue, keys);
    });
  }

  return { run };
}

function clamp(instant: Instant, least: Instant, most: Instant): Instant {
  if (instant < least) return least;
  return instant > most ? most : instant;
}
