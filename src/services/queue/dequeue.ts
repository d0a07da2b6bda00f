/**
 * Get Messages. Those who wait for one queue are served by one body: it looks at the head of the line once for all of them, where
 * each for himself would look again at all that those before him took.
 */
import type { Key } from '../../partition/keys.ts';
import type { Partition, Transaction } from '../../partition/partition.ts';
import { later } from '../../rules/queue/timing.ts';
import type { Storage } from '../common/storage.ts';
import {
  encodeMessage,
  type Message,
  messageKey,
  messageOf,
  type StoredMessage,
  type Waiting,
} from './message-rows.ts';
import { checkMessageCount, checkQueueName, checkVisibility } from './request-checks.ts';
import { anchorOf, decodeQueue, mayUse, nameKey, type Place, type Queue, queueAt } from './rows.ts';
import { type Ahead, dropExpired, lookAhead, random64 } from './visibility-index.ts';

export interface GetMessagesInput {
  readonly queue: string;
  readonly count: number;
  readonly visibilitySeconds: number;
}

interface Taker extends GetMessagesInput {
  readonly place: Place;
  readonly resolve: (messages: readonly Message[]) => void;
  readonly reject: (error: unknown) => void;
}

/** What he gets, or why he does not. */
type Taken = { readonly messages: readonly Message[] } | { readonly error: unknown };

/** Messages that are taken in one commit: each leaves two rows. */
const TAKEN_MAX = 200;
/** Where other processes take messages too, each begins at one of so many places at the head of the line. */
const PLACES = 8;
const RIVALRY_MILLISECONDS = 1_000;

/** Those of this process who wait for one queue. */
interface Line {
  readonly takers: Taker[];
  isServed: boolean;
  /** Until then it is likely that other processes take messages from this queue. */
  rivalsUntil: number;
}

/** By the anchor of the queue. One with rivals is kept while nobody waits for it. */
const lines = new WeakMap<Partition, Map<Key, Line>>();

export async function getMessages(storage: Storage, input: GetMessagesInput): Promise<readonly Message[]> {
  checkQueueName(input.queue);
  checkMessageCount(input.count);
  checkVisibility(input.visibilitySeconds, 1);
  for (;;) {
    const messages = await joinLine(storage, input);
    if (messages.length > 0) return messages;
    // Others were faster, or there were only such as have expired. That nothing is there is said of one committed state.
    if (await isEmpty(storage, input.queue)) return messages;
  }
}

async function isEmpty(storage: Storage, queue: string): Promise<boolean> {
  return storage.partition.read(async (at) => {
    const found = await queueAt(at, storage, queue);
    const { live, isAll } = await lookAhead(at.scan, found, at.now, 1);
    return live.length === 0 && isAll;
  });
}

function joinLine({ partition, account, granted }: Storage, input: GetMessagesInput): Promise<readonly Message[]> {
  const queues = lines.get(partition) ?? new Map<Key, Line>();
  lines.set(partition, queues);
  return new Promise((resolve, reject) => {
    const anchor = anchorOf(account, input.queue);
    const { count, visibilitySeconds } = input;
    const taker = { queue: input.queue, count, visibilitySeconds, place: { account, granted }, resolve, reject };
    const line = queues.get(anchor) ?? { takers: [], isServed: false, rivalsUntil: 0 };
    queues.set(anchor, line);
    line.takers.push(taker);
    if (!line.isServed) void serve(partition, queues, anchor, line);
  });
}

/** Who comes while others are served waits for the next body: he may know of a commit that this one does not see. */
async function serve(partition: Partition, queues: Map<Key, Line>, anchor: Key, line: Line): Promise<void> {
  line.isServed = true;
  while (line.takers.length > 0) {
    const takers = line.takers.splice(0, together(line.takers));
    try {
      const { value } = await partition.transact(anchor, takingOf(takers, line));
      for (const [i, taken] of value.entries()) {
        if ('error' in taken) takers[i]!.reject(taken.error);
        else takers[i]!.resolve(taken.messages);
      }
    } catch (error) {
      for (const { reject } of takers) reject(error);
    }
  }
  line.isServed = false;
  if (!hasRivals(line)) queues.delete(anchor);
}

const hasRivals = ({ rivalsUntil }: Line): boolean => performance.now() < rivalsUntil;

/** How many of those in line are served in one commit. */
function together(takers: readonly Taker[]): number {
  let taken = 0;
  const tooMany = takers.findIndex(({ count }) => {
    taken += count;
    return taken > TAKEN_MAX;
  });
  return tooMany < 0 ? takers.length : tooMany;
}

function takingOf(takers: readonly Taker[], line: Line): (tx: Transaction) => Promise<readonly Taken[]> {
  const { queue, place } = takers[0]!;
  const wanted = takers.reduce((sum, { count }) => sum + count, 0);
  let tried: readonly Key[] = [];
  return async (tx) => {
    const name = await tx.get(nameKey(place.account, queue));
    const admitted = takers.map((taker) => admissionOf(taker, name));
    if (!name || admitted.every((error) => error !== undefined)) return admitted.map((error) => ({ error }));
    const found = decodeQueue(place.account, name);
    const isWide = tried.length > 0 || hasRivals(line);
    const ahead = await lookAhead(tx.glance.bind(tx), found, tx.now, isWide ? wanted * PLACES : wanted);
    if (areGone(tried, ahead)) line.rivalsUntil = performance.now() + RIVALRY_MILLISECONDS;
    const { expired } = ahead;
    const live = placesOf(ahead.live, wanted, hasRivals(line));
    tried = live.map(({ key }) => key);
    if (expired.length > 0) await dropExpired(tx, found, expired);
    let next = 0;
    return takers.map(({ count, visibilitySeconds }, i): Taken => {
      if (admitted[i]) return { error: admitted[i] };
      const mine = live.slice(next, next + count);
      next += mine.length;
      return { messages: mine.map((message) => hide(tx, found, message, visibilitySeconds)) };
    });
  };
}

function admissionOf({ place }: Taker, name: Parameters<typeof mayUse>[1]): unknown {
  try {
    mayUse(place, name);
    return undefined;
  } catch (error) {
    return error;
  }
}

/** The bodies of one process take turns: only another process can have taken what this one found before. */
function areGone(tried: readonly Key[], { live, expired }: Ahead): boolean {
  if (tried.length === 0) return false;
  const found = new Set([...expired, ...live.map(({ key }) => key)]);
  return tried.some((key) => !found.has(key));
}

/** So many from the head of the line; or from a place near it, so that processes do not always want the same ones. */
function placesOf(live: readonly Waiting[], wanted: number, isAnywhere: boolean): readonly Waiting[] {
  const places = isAnywhere ? Math.max(1, Math.floor(live.length / wanted)) : 1;
  const from = Math.floor(Math.random() * places) * wanted;
  return live.slice(from, from + wanted);
}

/** To its new place in line, under a new receipt. */
function hide(tx: Transaction, queue: Queue, message: Waiting, seconds: number): Message {
  const { key, id, expires, text } = message;
  const dequeueCount = message.dequeueCount + 1;
  const hidden: StoredMessage = {
    id,
    expires,
    text,
    visibleAt: later(tx.now, seconds),
    nonce: random64(),
    dequeueCount,
  };
  // Only what is taken is checked at the commit: who takes others is no conflict.
  tx.restOn(message);
  tx.before(expires);
  tx.remove(key);
  tx.put(messageKey(queue, hidden.visibleAt, hidden.id), encodeMessage(hidden));
  return messageOf(hidden);
}
