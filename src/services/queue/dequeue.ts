/**
 * Get Messages. Those who wait for one queue are served by one body: it looks at the head of the line once for all of them, where
 * each for himself would look again at all that those before him took.
 */
import type { Key } from '../../partition/keys.ts';
import type { Partition, Transaction } from '../../partition/partition.ts';
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
import { checkMessageCount, checkQueueName, checkVisibility } from './request-checks.ts';
import { checkQueueAccess, decodeQueue, nameKey, type Queue, type QueueScope, readQueue, txQueueKey } from './rows.ts';
import { deleteExpired, random64, scanVisible, type VisibleMessages } from './visibility-index.ts';

export interface GetMessagesInput {
  readonly queue: string;
  readonly count: number;
  readonly visibilitySeconds: number;
}

interface DequeueRequest extends GetMessagesInput {
  readonly scope: QueueScope;
  readonly resolve: (messages: readonly Message[]) => void;
  readonly reject: (error: unknown) => void;
}

/** What he gets, or why he does not. */
type DequeueResult = { readonly messages: readonly Message[] } | { readonly error: unknown };

/** Messages that are taken in one commit: each leaves two rows. */
const DEQUEUE_MAX = 200;
/** Where other processes take messages too, each begins at one of so many places at the head of the line. */
const START_OFFSETS = 8;
const CONTENTION_MILLISECONDS = 1_000;

/** Those of this process who wait for one queue. */
interface WaitQueue {
  readonly requests: DequeueRequest[];
  isRunning: boolean;
  /** Until then it is likely that other processes take messages from this queue. */
  contendedUntil: number;
}

/** By the anchor of the queue. One with rivals is kept while nobody waits for it. */
const waitQueues = new WeakMap<Partition, Map<Key, WaitQueue>>();

export async function getMessages(storage: Storage, input: GetMessagesInput): Promise<readonly Message[]> {
  checkQueueName(input.queue);
  checkMessageCount(input.count);
  checkVisibility(input.visibilitySeconds, 1);
  for (;;) {
    const messages = await enqueueRequest(storage, input);
    if (messages.length > 0) return messages;
    // Others were faster, or there were only such as have expired. That nothing is there is said of one committed state.
    if (await isEmpty(storage, input.queue)) return messages;
  }
}

async function isEmpty(storage: Storage, queue: string): Promise<boolean> {
  return storage.partition.read(async (at) => {
    const found = await readQueue(at, storage, queue);
    const { live, isComplete } = await scanVisible(at.scan, found, at.now, 1);
    return live.length === 0 && isComplete;
  });
}

function enqueueRequest(
  { partition, account, granted }: Storage,
  input: GetMessagesInput,
): Promise<readonly Message[]> {
  const queues = waitQueues.get(partition) ?? new Map<Key, WaitQueue>();
  waitQueues.set(partition, queues);
  return new Promise((resolve, reject) => {
    const queueKey = txQueueKey(account, input.queue);
    const { count, visibilitySeconds } = input;
    const request = { queue: input.queue, count, visibilitySeconds, scope: { account, granted }, resolve, reject };
    const waitQueue = queues.get(queueKey) ?? { requests: [], isRunning: false, contendedUntil: 0 };
    queues.set(queueKey, waitQueue);
    waitQueue.requests.push(request);
    if (!waitQueue.isRunning) void runBatches(partition, queues, queueKey, waitQueue);
  });
}

/** Who comes while others are served waits for the next body: he may know of a commit that this one does not see. */
async function runBatches(
  partition: Partition,
  queues: Map<Key, WaitQueue>,
  queueKey: Key,
  waitQueue: WaitQueue,
): Promise<void> {
  waitQueue.isRunning = true;
  while (waitQueue.requests.length > 0) {
    const batch = waitQueue.requests.splice(0, batchSize(waitQueue.requests));
    try {
      const { value } = await partition.transact(queueKey, makeDequeue(batch, waitQueue));
      for (const [i, result] of value.entries()) {
        if ('error' in result) batch[i]!.reject(result.error);
        else batch[i]!.resolve(result.messages);
      }
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }
  waitQueue.isRunning = false;
  if (!isContended(waitQueue)) queues.delete(queueKey);
}

const isContended = ({ contendedUntil }: WaitQueue): boolean => performance.now() < contendedUntil;

/** How many of those in line are served in one commit. */
function batchSize(requests: readonly DequeueRequest[]): number {
  let taken = 0;
  const tooMany = requests.findIndex(({ count }) => {
    taken += count;
    return taken > DEQUEUE_MAX;
  });
  return tooMany < 0 ? requests.length : tooMany;
}

function makeDequeue(
  requests: readonly DequeueRequest[],
  waitQueue: WaitQueue,
): (tx: Transaction) => Promise<readonly DequeueResult[]> {
  const { queue, scope } = requests[0]!;
  const wanted = requests.reduce((sum, { count }) => sum + count, 0);
  let tried: readonly Key[] = [];
  return async (tx) => {
    const name = await tx.get(nameKey(scope.account, queue));
    const accessErrors = requests.map((request) => accessError(request, name));
    if (!name || accessErrors.every((error) => error !== undefined)) return accessErrors.map((error) => ({ error }));
    const found = decodeQueue(scope.account, name);
    const isWide = tried.length > 0 || isContended(waitQueue);
    const visible = await scanVisible(
      tx.scanUnchecked.bind(tx),
      found,
      tx.now,
      isWide ? wanted * START_OFFSETS : wanted,
    );
    if (wereTakenByOthers(tried, visible)) waitQueue.contendedUntil = performance.now() + CONTENTION_MILLISECONDS;
    const { expired } = visible;
    const live = chooseMessages(visible.live, wanted, isContended(waitQueue));
    tried = live.map(({ key }) => key);
    if (expired.length > 0) await deleteExpired(tx, found, expired);
    let next = 0;
    return requests.map(({ count, visibilitySeconds }, i): DequeueResult => {
      if (accessErrors[i]) return { error: accessErrors[i] };
      const mine = live.slice(next, next + count);
      next += mine.length;
      return { messages: mine.map((message) => setInvisible(tx, found, message, visibilitySeconds)) };
    });
  };
}

function accessError({ scope }: DequeueRequest, name: Parameters<typeof checkQueueAccess>[1]): unknown {
  try {
    checkQueueAccess(scope, name);
    return undefined;
  } catch (error) {
    return error;
  }
}

/** The bodies of one process take turns: only another process can have taken what this one found before. */
function wereTakenByOthers(tried: readonly Key[], { live, expired }: VisibleMessages): boolean {
  if (tried.length === 0) return false;
  const found = new Set([...expired, ...live.map(({ key }) => key)]);
  return tried.some((key) => !found.has(key));
}

/** So many from the head of the line; or from a place near it, so that processes do not always want the same ones. */
function chooseMessages(live: readonly FoundMessage[], wanted: number, isAnywhere: boolean): readonly FoundMessage[] {
  const places = isAnywhere ? Math.max(1, Math.floor(live.length / wanted)) : 1;
  const from = Math.floor(Math.random() * places) * wanted;
  return live.slice(from, from + wanted);
}

/** To its new place in line, under a new receipt. */
function setInvisible(tx: Transaction, queue: Queue, message: FoundMessage, seconds: number): Message {
  const { key, id, expires, text } = message;
  const dequeueCount = message.dequeueCount + 1;
  const hidden: StoredMessage = {
    id,
    expires,
    text,
    visibleAt: addSeconds(tx.now, seconds),
    nonce: random64(),
    dequeueCount,
  };
  // Only what is taken is checked at the commit: who takes others is no conflict.
  tx.addReadCheck(message);
  tx.commitBefore(expires);
  tx.remove(key);
  tx.put(messageKey(queue, hidden.visibleAt, hidden.id), encodeMessage(hidden));
  return toMessage(hidden);
}
