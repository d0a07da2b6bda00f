/** The one thread that writes. A synchronous commit here keeps the event loop free of the disk; a full one it must never meet. */
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { readClock } from './clock.ts';
import { plus, versionOfAdd } from './counters.ts';
import { FULL, type Full, guardSpace } from './free-space.ts';
import type { Key } from './keys.ts';
import { dataFile, startBases } from './lmdb-base.ts';
import { extentOf, highWaterIn, openFiles, PAGE_BYTES, setHighWater, versionIn } from './lmdb-files.ts';
import { openLog, segmentsIn } from './lmdb-log.ts';
import { type Judged, type Parcel, unpack } from './lmdb-parcel.ts';
import { createRecord } from './lmdb-record.ts';
import { COUNTER_BYTES, type Instant, type Outcome, type Stamp } from './partition.ts';
import { isFull } from './synced-files.ts';
import { holds, type Versions } from './verify.ts';

export interface WriterData {
  readonly location: string;
  readonly clock: SharedArrayBuffer;
  /** Eight bytes: the instant at which commits that nobody sees yet were decided, or 0. */
  readonly deciding: SharedArrayBuffer;
  /** Another engine has the log: what this one commits is seen, and lost in a crash. */
  readonly isGuest: boolean;
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
/** As far as is seen, where the most is not what counts. */
const PAGES_PER_GROUP = 6;
const LOGGED_PER_ROW = 32;

const { location, clock, deciding, isGuest } = workerData as WriterData;
const decidingAt = new BigInt64Array(deciding);
const port = parentPort!;
const files = openFiles(location);
const { environment, rows, own } = files;
const space = guardSpace(dataFile(location), () => extentOf(files));
const record = createRecord();
const log = isGuest ? undefined : openLog(location, segmentsIn(location));
const bases = log && startBases(location, files, log, fail);
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
      version: value.version,
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
      attempt(() => {
        logged(() => reserve(order.close));
        bases?.catchUp();
      });
      void environment.close().then(() => process.exit());
    }
  }
}

type Decided = Outcome | { readonly unavailable: string } | { readonly inTheWay: Stamp };

/** All in one transaction, which is in the log, on disk, when this returns. */
function writeTogether(commits: readonly Judged[], reserved: Instant | undefined): Decided[] {
  if (commits.length === 0 && reserved === undefined) return [];
  if (broken) return commits.map(() => ({ unavailable: broken! }));
  const growth = growthOf(commits);
  const decided = attempt((): Decided[] => {
    const full = shortFor(growth, 'any');
    const goOn = full ? commits.filter(frees) : commits;
    const stuck = full && shortFor(growthOf(goOn), 'frees');
    if (stuck) return commits.map(() => stuck);
    const now = readClock(clock);
    Atomics.store(decidingAt, 0, now);
    const work = () => {
      if (reserved !== undefined && reserved > highWaterIn(own)) reserve(reserved);
      return commits.map((commit) => (full && !goOn.includes(commit) ? full : apply(commit, now)));
    };
    return logged(work) ?? commits.map(() => FULL);
  });
  Atomics.store(decidingAt, 0, 0n);
  if (!broken) attempt(() => bases?.written(PAGES_PER_GROUP + growth.rows));
  return decided ?? commits.map(() => ({ unavailable: broken! }));
}

/** What the work writes is durable before anybody can see it; undefined: the log has no room for it, and nothing was written. */
function logged<T>(work: () => T): T | undefined {
  let isLogged = false;
  record.clear();
  try {
    return rows.transactionSync(() => {
      const result = work();
      if (log && !record.isEmpty()) {
        log.append(record);
        isLogged = true;
      }
      return result;
    });
  } catch (error) {
    if (isLogged) log!.takeBack();
    else if (isFull(error)) return undefined;
    throw error;
  }
}

/** Where space is short, what was freed since the last base has to be used again. */
function shortFor(growth: Growth, kind: 'any' | 'frees'): Full | undefined {
  const short = space.shortFor(growth.bytes, kind);
  if (!short || !log?.bytes) return short;
  bases!.catchUp();
  return space.shortFor(growth.bytes, kind);
}

function apply(commit: Judged, now: Instant): Decided {
  const verdict = holds(commit, versions, now);
  if (verdict === 'changed') return 'conflict';
  if (verdict !== 'holds') return 'mistake' in verdict ? { unavailable: verdict.mistake } : verdict;
  for (const { stamp, writes } of commit.bodies) {
    for (const write of writes) {
      if (write.kind === 'put') put(write.key, stamp, write.value);
      else if (write.kind === 'remove') remove(write.key);
      else add(write.key, write.n, stamp);
    }
  }
  return 'committed';
}

function add(key: Key, n: bigint, stamp: Stamp): void {
  const found = foundAt(key);
  const value = plus(found?.value, n);
  if (value) put(key, versionOfAdd(stamp, found?.version), value);
  else if (found) remove(key);
}

function put(key: Key, version: Stamp, value: Uint8Array): void {
  rows.putSync(key, record.put(key, version, value));
}

function remove(key: Key): void {
  record.remove(key);
  rows.removeSync(key);
}

function reserve(until: Instant): void {
  record.highWater(until);
  setHighWater(own, until);
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
    fail(error as Error);
    return undefined;
  }
}

function fail({ message }: Error): void {
  broken = `A write to disk failed (${message}). Writes are refused until the server is started again.`;
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

interface Growth {
  readonly rows: number;
  readonly bytes: number;
}

/** The most that these commits take on disk: every row may lie on a page of its own, which is copied with its parent; and the log. */
function growthOf(commits: readonly Judged[]): Growth {
  let rows = 0;
  let pages = PAGES_PER_COMMIT;
  let logged = 0;
  for (const { bodies } of commits) {
    for (const { writes } of bodies) {
      rows += writes.length;
      for (const write of writes) {
        logged += LOGGED_PER_ROW + write.key.length;
        if (write.kind === 'remove') continue;
        const bytes = write.kind === 'put' ? write.value.length : COUNTER_BYTES;
        logged += bytes;
        pages += Math.ceil((bytes + 64) / PAGE_BYTES);
      }
    }
  }
  return { rows, bytes: (pages + PAGES_PER_ROW * rows) * PAGE_BYTES + logged };
}

function sizeOf(order: Order): number {
  return 'parcel' in order ? order.parcel.keys.length + order.parcel.bytes.length : 0;
}
