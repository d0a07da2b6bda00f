/**
 * Dequeue with request batching: Get Messages requests that wait for one queue share one scan of the visibility index and one commit.
 * Under contention from other processes, a batch starts at a random offset near the head.
 */
import type { Key } from '../../partition/keys.ts';
import type { CombinedFunction, CombinedResult, Partition, Row, Transaction } from '../../partition/partition.ts';
import { addSeconds } from '../../rules/queue/timing.ts';
import type { Storage } from '../common/storage.ts';
import {
  encodeMessage,
  type FoundMessage,
  type Message,
  messageKey,
  type StoredMessage,
  toMessage,
} from './message-rows.ts';
import { random64 } from './random64.ts';
import { checkQueueAccess, decodeQueue, nameKey, type Queue, type QueueScope, txQueueKey } from './rows.ts';
import { deleteExpired, findVisible, type VisibleMessages } from './visibility-index.ts';

export interface DequeueInput {
  readonly queue: string;
  readonly count: number;
  readonly visibilitySeconds: number;
}

interface DequeueRequest extends DequeueInput {
  readonly scope: QueueScope;
  /** One for each message that may be dequeued. */
  readonly nonces: readonly bigint[];
  /** Other processes are likely to dequeue from this queue, too. */
  readonly isContended: boolean;
  /** From 0 to below 1: where in the candidates a contended batch starts. */
  readonly offset: number;
}

interface Dequeued {
  readonly messages: readonly Message[];
  /** The rows that were removed. */
  readonly keys: readonly Key[];
  /** This attempt, or one before it, found messages gone that the attempt before had chosen. */
  readonly lostRace: boolean;
}

/** Messages that one commit dequeues: each leaves two rows. */
const DEQUEUE_MAX = 200;
/** A contended batch starts at one of this many offsets. */
const START_OFFSETS = 8;
const CONTENTION_MILLISECONDS = 1_000;

/** Until when a queue counts as contended, in milliseconds of `performance.now`, by its queue key. Only a hint. */
const contendedUntil = new WeakMap<Partition, Map<Key, number>>();

/** Clock and chance are read here, before the transaction, whose function may run more than once. */
export async function dequeue(
  { partition, account, granted }: Storage,
  { queue, count, visibilitySeconds }: DequeueInput,
): Promise<readonly Message[]> {
  const queueKey = txQueueKey(account, queue);
  const request: DequeueRequest = {
    queue,
    count,
    visibilitySeconds,
    scope: { account, granted },
    nonces: Array.from({ length: count }, random64),
    isContended: isContended(partition, queueKey),
    offset: Math.random(),
  };
  const { messages, lostRace } = await partition.transactCombined(queueKey, request, dequeueBatch);
  if (lostRace) setContended(partition, queueKey);
  return messages;
}

function isContended(partition: Partition, queueKey: Key): boolean {
  const hints = contendedUntil.get(partition);
  const until = hints?.get(queueKey);
  if (until === undefined) return false;
  if (performance.now() < until) return true;
  hints!.delete(queueKey);
  return false;
}

function setContended(partition: Partition, queueKey: Key): void {
  const hints = contendedUntil.get(partition) ?? new Map<Key, number>();
  contendedUntil.set(partition, hints);
  hints.set(queueKey, performance.now() + CONTENTION_MILLISECONDS);
}

const dequeueBatch: CombinedFunction<DequeueRequest, Dequeued> = {
  weightMax: DEQUEUE_MAX,
  weight: ({ count }) => count,
  async run(tx, requests, lost) {
    const { queue, scope, offset } = requests[0]!;
    const name = await tx.get(nameKey(scope.account, queue));
    const accessErrors = requests.map((request) => accessError(request, name));
    if (!name || accessErrors.every((error) => error !== undefined)) return accessErrors.map((error) => ({ error }));
    const found = decodeQueue(scope.account, name);
    const wanted = requests.reduce((sum, { count }) => sum + count, 0);
    const earlier = lost?.flatMap((result) => ('value' in result ? result.value : [])) ?? [];
    const tried = earlier.flatMap(({ keys }) => keys);
    const isHinted = requests.some(({ isContended }) => isContended);
    const limit = isHinted || tried.length > 0 ? wanted * START_OFFSETS : wanted;
    const visible = await findVisible(tx, found, limit);
    const lostRace = earlier.some((dequeued) => dequeued.lostRace) || wereTakenByOthers(tried, visible);
    const live = chooseMessages(visible.live, wanted, isHinted || lostRace ? offset : 0);
    if (visible.expired.length > 0) await deleteExpired(tx, found, visible.expired);
    let next = 0;
    return requests.map((request, i): CombinedResult<Dequeued> => {
      if (accessErrors[i]) return { error: accessErrors[i] };
      const chosen = live.slice(next, next + request.count);
      next += chosen.length;
      const messages = chosen.map((message, at) =>
        setInvisible(tx, found, message, request.visibilitySeconds, request.nonces[at]!),
      );
      return { value: { messages, keys: chosen.map(({ key }) => key), lostRace } };
    });
  },
};

function accessError({ scope }: DequeueRequest, name: Row | undefined): unknown {
  try {
    checkQueueAccess(scope, name);
    return undefined;
  } catch (error) {
    return error;
  }
}

/** Transactions of one process run one after another: only another process can have taken what the attempt before chose. */
function wereTakenByOthers(tried: readonly Key[], { live, expired }: VisibleMessages): boolean {
  if (tried.length === 0) return false;
  const found = new Set([...expired, ...live.map(({ key }) => key)]);
  return tried.some((key) => !found.has(key));
}

/** At most `wanted` messages from the head; or from an offset, so that processes do not always choose the same ones. */
function chooseMessages(live: readonly FoundMessage[], wanted: number, offset: number): readonly FoundMessage[] {
  const places = Math.max(1, Math.floor(live.length / wanted));
  const from = Math.floor(offset * places) * wanted;
  return live.slice(from, from + wanted);
}

/** Moves the message to its new key in the visibility index, under a new receipt. */
function setInvisible(tx: Transaction, queue: Queue, message: FoundMessage, seconds: number, nonce: bigint): Message {
  const { key, id, expires, text } = message;
  const dequeueCount = message.dequeueCount + 1;
  const hidden: StoredMessage = {
    id,
    expires,
    text,
    visibleAt: addSeconds(tx.now, seconds),
    nonce,
    dequeueCount,
  };
  // Only the messages that are dequeued are checked at the commit: consumers that take others are no conflict.
  tx.addReadCheck(message);
  tx.commitBefore(expires);
  tx.remove(key);
  tx.put(messageKey(queue, hidden.visibleAt, hidden.id), encodeMessage(hidden));
  return toMessage(hidden);
}
