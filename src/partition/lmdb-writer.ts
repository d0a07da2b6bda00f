/** The one thread that writes. A synchronous commit bounds what the event loop waits for and fails cleanly on a full disk. */
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { TICKS_PER_SECOND } from '../base/time.ts';
import { readClock } from './clock.ts';
import { guardSpace } from './free-space.ts';
import { highWaterIn, openFiles, store, versionIn } from './lmdb-files.ts';
import type { Commit, Instant, Outcome, Stamp } from './partition.ts';
import { holds, type Versions } from './verify.ts';

export interface WriterData {
  readonly location: string;
  readonly clock: SharedArrayBuffer;
}

export type Order =
  | { readonly commits: readonly Commit[] }
  | { readonly reserve: Instant }
  | { readonly close: Instant };

export interface Answer {
  readonly outcomes: readonly (Outcome | { readonly unavailable: string })[];
  /** A version in the store that the sender's clock had not reached. */
  readonly observed?: Stamp;
}

/** A group stays small enough that nobody waits long for it. */
const GROUP_BYTES_MAX = 16 << 20;
/** How far ahead of its use time is reserved, so that a restart after a crash never goes back. */
const RESERVED = TICKS_PER_SECOND;

const { location, clock } = workerData as WriterData;
const port = parentPort!;
const { environment, rows, own } = openFiles(location);
const space = guardSpace(location);
let highWater = highWaterIn(own);
/** After a failed fsync nobody knows what is on disk, until the store is opened again. */
let broken: string | undefined;

const versions: Versions = {
  versionOf(key) {
    const stored = rows.getBinaryFast(key);
    return stored && versionIn(stored);
  },
  rowsIn(range, limit) {
    if (range.from >= range.to) return [];
    return Array.from(rows.getRange({ start: range.from, end: range.to, limit }), ({ key, value }) => ({
      key,
      version: versionIn(value),
    }));
  },
};

port.on('message', (first: Order) => {
  const orders = [first];
  for (let bytes = sizeOf(first); bytes < GROUP_BYTES_MAX; ) {
    const next = receiveMessageOnPort(port)?.message as Order | undefined;
    if (!next) break;
    orders.push(next);
    bytes += sizeOf(next);
  }
  obey(orders);
});

function obey(orders: readonly Order[]): void {
  const commits = orders.flatMap((order) => ('commits' in order ? order.commits : []));
  const answers = commits.length > 0 ? commitTogether(commits) : [];
  let at = 0;
  for (const order of orders) {
    if ('commits' in order) {
      port.postMessage(answerOf(answers.slice(at, at + order.commits.length)));
      at += order.commits.length;
    } else if ('reserve' in order) {
      attempt(() => reserve(order.reserve + RESERVED));
    } else {
      attempt(() => reserve(order.close));
      void environment.close().then(() => process.exit());
    }
  }
}

type Decided = Outcome | { readonly unavailable: string } | { readonly inTheWay: Stamp };

function commitTogether(commits: readonly Commit[]): Decided[] {
  if (broken) return commits.map(() => ({ unavailable: broken! }));
  const full = space.shortFor(commits.reduce((sum, commit) => sum + bytesOf(commit), 0));
  return (
    attempt(() =>
      rows.transactionSync(() => commits.map((commit) => (full && !frees(commit) ? full : apply(commit)))),
    ) ?? commits.map(() => ({ unavailable: broken ?? space.message }))
  );
}

function apply(commit: Commit): Decided {
  const verdict = holds(commit, versions, readClock(clock));
  if (verdict !== 'holds') return verdict === 'changed' ? 'conflict' : verdict;
  for (const { stamp, writes } of commit.bodies) {
    for (const write of writes) {
      if (write.kind === 'put') rows.putSync(write.key, store(stamp, write.value));
      else rows.removeSync(write.key);
    }
    if (stamp + RESERVED / 2n > highWater) setHighWater(stamp + RESERVED);
  }
  return 'committed';
}

/** Runs a write; a full disk passes, any other failure ends writing. Nothing of a failed transaction is left. */
function attempt<T>(write: () => T): T | undefined {
  try {
    return write();
  } catch (error) {
    const { message } = error as Error;
    highWater = highWaterIn(own);
    if (space.isFull(message)) return undefined;
    broken = `A write to disk failed (${message}). Writes are refused until the server is started again.`;
    return undefined;
  }
}

function reserve(until: Instant): void {
  if (until !== highWater) rows.transactionSync(() => setHighWater(until));
}

function setHighWater(until: Instant): void {
  highWater = until;
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(until);
  own.putSync('high-water', bytes);
}

/** On a full disk only what gives space back goes on. */
function frees({ bodies }: Commit): boolean {
  const writes = bodies.flatMap((body) => body.writes);
  return writes.filter(({ kind }) => kind === 'remove').length * 2 > writes.length;
}

function answerOf(decided: readonly Decided[]): Answer {
  let observed: Stamp | undefined;
  const outcomes = decided.map((one) => {
    if (typeof one === 'string' || 'unavailable' in one) return one;
    if (observed === undefined || one.inTheWay > observed) observed = one.inTheWay;
    return 'conflict';
  });
  return observed === undefined ? { outcomes } : { outcomes, observed };
}

function sizeOf(order: Order): number {
  return 'commits' in order ? order.commits.reduce((sum, commit) => sum + bytesOf(commit), 0) : 0;
}

function bytesOf({ bodies }: Commit): number {
  let bytes = 0;
  for (const { writes } of bodies) {
    for (const write of writes) bytes += write.key.length + (write.kind === 'put' ? write.value.length : 0);
  }
  return bytes;
}
