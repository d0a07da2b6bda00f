/** The one thread that writes. A synchronous commit here keeps the event loop free of the disk; a full one it must never meet. */
import { join } from 'node:path';
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { readClock } from './clock.ts';
import { plus, versionOfAdd } from './counters.ts';
import { guardSpace } from './free-space.ts';
import type { Key } from './keys.ts';
import { extentOf, highWaterIn, openFiles, PAGE_BYTES, store, versionIn } from './lmdb-files.ts';
import { type Judged, type Parcel, unpack } from './lmdb-parcel.ts';
import { COUNTER_BYTES, type Instant, type Outcome, type Stamp, type Write } from './partition.ts';
import { holds, type Versions } from './verify.ts';

export interface WriterData {
  readonly location: string;
  readonly clock: SharedArrayBuffer;
  /** Eight bytes: the instant at which commits that nobody sees yet were decided, or 0. */
  readonly deciding: SharedArrayBuffer;
}

export type Order = { readonly parcel: Parcel } | { readonly reserve: Instant } | { readonly close: Instant };

export interface Answer {
  readonly outcomes: readonly (Outcome | { readonly unavailable: string })[];
  /** Nothing will be written any more. */
  readonly broken: boolean;
  /** A version in the store that the sender's clock had not reached. */
  readonly observed?: Stamp;
}

/** A group stays small enough that nobody waits long for it. */
const GROUP_BYTES_MAX = 16 << 20;
const PAGES_PER_ROW = 2;
/** The upper levels of the trees, the list of free pages, and what the engine itself remembers. */
const PAGES_PER_COMMIT = 32;

const { location, clock, deciding } = workerData as WriterData;
const decidingAt = new BigInt64Array(deciding);
const port = parentPort!;
const files = openFiles(location);
const { environment, rows, own } = files;
const space = guardSpace(join(location, 'data.mdb'), () => extentOf(files));
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
  bytesOf: (key) => foundAt(key)?.value.length,
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
  const parcels = orders.map((order) => ('parcel' in order ? unpack(order.parcel) : []));
  const reserved = orders.findLast((order) => 'reserve' in order)?.reserve;
  const answers = writeTogether(parcels.flat(), reserved);
  for (const [i, order] of orders.entries()) {
    if ('parcel' in order) port.postMessage(answerOf(answers.splice(0, parcels[i]!.length)));
    else if ('close' in order) {
      attempt(() => rows.transactionSync(() => setHighWater(order.close)));
      void environment.close().then(() => process.exit());
    }
  }
}

type Decided = Outcome | { readonly unavailable: string } | { readonly inTheWay: Stamp };

/** All in one transaction, which is on disk when this returns. */
function writeTogether(commits: readonly Judged[], reserved: Instant | undefined): Decided[] {
  if (commits.length === 0 && reserved === undefined) return [];
  if (broken) return commits.map(() => ({ unavailable: broken! }));
  const decided = attempt(() => {
    const full = space.shortFor(growthOf(commits), 'any');
    const goOn = full ? commits.filter(frees) : commits;
    const stuck = full && space.shortFor(growthOf(goOn), 'frees');
    if (stuck) return commits.map(() => stuck);
    const now = readClock(clock);
    Atomics.store(decidingAt, 0, now);
    return rows.transactionSync(() => {
      if (reserved !== undefined && reserved > highWaterIn(own)) setHighWater(reserved);
      return commits.map((commit) => (full && !goOn.includes(commit) ? full : apply(commit, now)));
    });
  });
  Atomics.store(decidingAt, 0, 0n);
  return decided ?? commits.map(() => ({ unavailable: broken! }));
}

function apply(commit: Judged, now: Instant): Decided {
  const verdict = holds(commit, versions, now);
  if (verdict === 'changed') return 'conflict';
  if (verdict !== 'holds') return 'mistake' in verdict ? { unavailable: verdict.mistake } : verdict;
  for (const { stamp, writes } of commit.bodies) {
    for (const write of writes) {
      if (write.kind === 'put') rows.putSync(write.key, store(stamp, write.value));
      else if (write.kind === 'remove') rows.removeSync(write.key);
      else add(write.key, write.n, stamp);
    }
  }
  return 'committed';
}

function add(key: Key, n: bigint, stamp: Stamp): void {
  const found = foundAt(key);
  const value = plus(found?.value, n);
  if (value) rows.putSync(key, store(versionOfAdd(stamp, found?.version), value));
  else if (found) rows.removeSync(key);
}

function foundAt(key: Key): { value: Buffer; version: Stamp } | undefined {
  const stored = rows.getBinaryFast(key);
  return stored && { value: stored.subarray(8, rows.lastSize), version: versionIn(stored) };
}

/** Runs a write; a failure ends writing. Nothing of a failed transaction is left. */
function attempt<T>(write: () => T): T | undefined {
  try {
    return write();
  } catch (error) {
    broken = `A write to disk failed (${(error as Error).message}). Writes are refused until the server is started again.`;
    return undefined;
  }
}

function setHighWater(until: Instant): void {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(until);
  own.putSync('high-water', bytes);
}

/** On a full disk only what gives space back goes on: no fewer rows go than are written, counters aside. */
function frees({ bodies }: Judged): boolean {
  const writes = bodies.flatMap((body) => body.writes).filter(({ kind }) => kind !== 'add');
  const removed = writes.filter(({ kind }) => kind === 'remove').length;
  return removed > 0 && removed * 2 >= writes.length;
}

function answerOf(decided: readonly Decided[]): Answer {
  let observed: Stamp | undefined;
  const outcomes = decided.map((one) => {
    if (typeof one === 'string' || 'unavailable' in one) return one;
    if (observed === undefined || one.inTheWay > observed) observed = one.inTheWay;
    return 'conflict';
  });
  const isBroken = broken !== undefined;
  return observed === undefined ? { outcomes, broken: isBroken } : { outcomes, broken: isBroken, observed };
}

/** The most by which these commits make the file grow: every row may lie on a page of its own, which is copied with its parent. */
function growthOf(commits: readonly Judged[]): number {
  let pages = PAGES_PER_COMMIT;
  for (const { bodies } of commits) {
    for (const { writes } of bodies) {
      pages += PAGES_PER_ROW * writes.length;
      for (const write of writes) if (write.kind !== 'remove') pages += pagesOf(write);
    }
  }
  return pages * PAGE_BYTES;
}

function pagesOf(write: Exclude<Write, { kind: 'remove' }>): number {
  return Math.ceil(((write.kind === 'put' ? write.value.length : COUNTER_BYTES) + 64) / PAGE_BYTES);
}

function sizeOf(order: Order): number {
  return 'parcel' in order ? order.parcel.keys.length + order.parcel.values.length : 0;
}
