/**
 * Lets go of messages that have expired where nobody meets them, because they hide, or nobody asks. There is no list of what
 * expires when: now and then every queue is looked through, slice by slice.
 */
import { TICKS_PER_SECOND } from '../../base/time.ts';
import { after, endingOf, type Key } from '../../partition/keys.ts';
import type { Instant, Partition, Row } from '../../partition/partition.ts';
import { NEVER } from '../../rules/queue/timing.ts';
import { decodeName, namesIn } from '../common/names.ts';
import type { AccountId } from '../common/storage.ts';
import { decodeMessage, headOf } from './message-rows.ts';
import { anchorOf, decodeQueue, messagesIn, nameKey, namesFrom, type Queue } from './rows.ts';
import { dropExpired } from './visibility-index.ts';

export interface WalkOptions {
  readonly partition: Partition;
  readonly mayWork: () => boolean;
  /** A pause behind work that took so long. */
  readonly rest: (milliseconds: number) => Promise<void>;
}

export interface ExpiryWalk {
  /** Looks through the queues of the account whose time it is. */
  run(account: AccountId): Promise<void>;
}

const MINUTE = 60n * TICKS_PER_SECOND;
/** After a start, or when a queue is new. */
const FIRST = 5n * MINUTE;
const LEAST = 60n * MINUTE;
/** Messages with a short life may have come since. */
const MOST = 24n * 60n * MINUTE;
const SLICE = { limit: 200, bytesMax: 1 << 20 };

export function createExpiryWalk({ partition, mayWork, rest }: WalkOptions): ExpiryWalk {
  /** When to look through a queue again, by the key of its name and its id. */
  const due = new Map<AccountId, Map<string, Instant>>();
  const asleep = new Map<AccountId, Instant>();

  async function run(account: AccountId): Promise<void> {
    const now = partition.clock.now();
    if (now < (asleep.get(account) ?? 0n)) return;
    const known = due.get(account) ?? new Map<string, Instant>();
    const next = new Map<string, Instant>();
    due.set(account, next);
    for (let { from, to } = namesIn(account, 'queue'); mayWork(); ) {
      const names = await partition.read((at) => at.scan({ from, to }, SLICE));
      for (const name of names) {
        const label = `${name.key} ${decodeName(name)}`;
        const instant = known.get(label) ?? now + FIRST;
        next.set(label, instant > now ? instant : await walk(account, name));
      }
      const last = names.at(-1);
      if (!last) break;
      from = after(last.key);
    }
    let wake = now + FIRST;
    for (const instant of next.values()) if (instant < wake) wake = instant;
    asleep.set(account, wake);
  }

  /** When to come again: as soon as one of those that are left expires, but not too soon and not too late. */
  async function walk(account: AccountId, name: Row): Promise<Instant> {
    const queue = decodeQueue(account, name);
    const { to } = messagesIn(queue);
    let soonest = NEVER;
    for (let from: Key | undefined = headOf(queue); from !== undefined && mayWork(); ) {
      const started = performance.now();
      const { rows, now } = await partition.read(async (at) => ({
        rows: await at.scan({ from: from!, to }, SLICE),
        now: at.now,
      }));
      const expired: Key[] = [];
      for (const row of rows) {
        const { expires } = decodeMessage(row);
        if (expires <= now) expired.push(row.key);
        else if (expires < soonest) soonest = expires;
      }
      if (expired.length > 0) await drop(queue, endingOf(name.key, namesFrom(account, '')), expired);
      const last = rows.at(-1);
      from = last && after(last.key);
      await rest(performance.now() - started);
    }
    const now = partition.clock.now();
    return clamp(soonest, now + LEAST, now + MOST);
  }

  async function drop(queue: Queue, name: string, keys: readonly Key[]): Promise<void> {
    await partition.transact(anchorOf(queue.account, name), async (tx) => {
      const row = await tx.get(nameKey(queue.account, name));
      const found = row && decodeQueue(queue.account, row);
      if (found?.id === queue.id && found.gen === queue.gen) await dropExpired(tx, queue, keys);
    });
  }

  return { run };
}

function clamp(instant: Instant, least: Instant, most: Instant): Instant {
  if (instant < least) return least;
  return instant > most ? most : instant;
}
