/**
 * Dequeue: each dequeued row is read-checked and moved within the visibility index (messages in the order in which they become visible), so
 * that of several consumers one commit wins a message. Get Messages requests that wait for one queue share one scan of the index and one
 * commit. Expired messages are removed on the way. Under contention from other processes, a batch starts at a random offset.
 */
import { randomFillSync } from 'node:crypto';
import { type Key, keyAfter, type Range } from '../../partition/keys.ts';
import type {
  CombinedFunction,
  CombinedResult,
  Instant,
  Partition,
  Row,
  ScanOptions,
  Snapshot,
  Transaction,
} from '../../partition/partition.ts';
import { stoppedEarly } from '../../partition/values.ts';
import { addSeconds, isVisible } from '../../rules/queue/messages.ts';
import type { Storage } from '../common/storage.ts';
import {
  countMessage,
  decodeMessage,
  encodeMessage,
  type FoundMessage,
  firstMessageKey,
  type Message,
  messageKey,
  type StoredMessage,
  toMessage,
  visibilityKey,
} from './message-rows.ts';
import { checkQueueAccess, decodeQueue, nameKey, type Queue, type QueueScope, txQueueKey } from './rows.ts';

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

/** How far the clocks of processes that share a store may differ. */
const SKEW_TICKS = 1_000_000n;
/** Rows and bytes that are scanned for one commit at most. Each expired message changes three rows, and a commit at most a thousand. */
const ROWS_MAX = 300;
const BYTES_MAX = 4 << 20;

export interface VisibleMessages {
  /** Visible and not expired, in their order. */
  readonly live: readonly FoundMessage[];
  readonly expired: readonly Key[];
  /** No other message is visible. */
  readonly isComplete: boolean;
}

type ScanFn = (range: Range, options: ScanOptions) => Promise<Row[]>;

/** Of a snapshot. */
export function readVisible(at: Snapshot, queue: Queue, wanted: number): Promise<VisibleMessages> {
  return scanVisible((range, options) => at.scan(range, options), queue, at.now, wanted);
}

/** For a transaction that is to check only the messages it changes: the commit validates nothing of the scan. */
export function findVisible(tx: Transaction, queue: Queue, wanted: number): Promise<VisibleMessages> {
  return scanVisible((range, options) => tx.scanUnchecked(range, options), queue, tx.now, wanted);
}

/** Scans from the head until `wanted` messages are found. Expired messages are in between, and count for the limits. */
async function scanVisible(scan: ScanFn, queue: Queue, now: Instant, wanted: number): Promise<VisibleMessages> {
  const live: FoundMessage[] = [];
  const expired: Key[] = [];
  const to = visibilityKey(queue, now + SKEW_TICKS);
  let from = firstMessageKey(queue);
  let rowsLeft = ROWS_MAX;
  let bytesLeft = BYTES_MAX;
  while (live.length < wanted) {
    // After an expired message more are likely.
    const limit = Math.min(rowsLeft, expired.length > 0 ? ROWS_MAX : wanted - live.length);
    const bounds = { limit, bytesMax: bytesLeft };
    const rows = await scan({ from, to }, bounds);
    let isPastNow = false;
    for (const row of rows) {
      const message = decodeMessage(row);
      isPastNow = message.visibleAt > now;
      rowsLeft--;
      bytesLeft -= row.value.length;
      if (!isVisible(message.visibleAt, row.version, now)) continue;
      if (message.expires <= now) expired.push(row.key);
      else if (live.length < wanted) live.push(message);
    }
    if (isPastNow || !stoppedEarly(rows, bounds)) return { live, expired, isComplete: true };
    if (rowsLeft <= 0 || bytesLeft <= 0) break;
    from = keyAfter(rows.at(-1)!.key);
  }
  return { live, expired, isComplete: false };
}

/** Deletes those that still exist, and counts each once. */
export async function deleteExpired(tx: Transaction, queue: Queue, keys: readonly Key[]): Promise<void> {
  const rows = await tx.getMany(keys);
  const found = rows.filter((row) => row !== undefined);
  for (const row of found) {
    tx.remove(row.key);
    countMessage(tx, queue, decodeMessage(row), -1);
  }
}

const POOL_BYTES = 4_096;
const pool = Buffer.alloc(POOL_BYTES);
let used = POOL_BYTES;

/** 64 random bits, from a pool: a call of the generator costs more than the bytes. */
export function random64(): bigint {
  if (used === POOL_BYTES) {
    randomFillSync(pool);
    used = 0;
  }
  const bits = pool.readBigUInt64BE(used);
  used += 8;
  return bits;
}
