/** The one thread that writes. A synchronous commit here keeps the event loop free of the disk; a full one it must never meet. */
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { readClock } from './clock.ts';
import { plus, versionOfAdd } from './counters.ts';
import { FULL, type Full, guardSpace } from './free-space.ts';
import type { Key } from './keys.ts';
import { dataFile, startBases } from './lmdb-base.ts';
import { openReceiver } from './lmdb-channel.ts';
import { extentOf, highWaterIn, openFiles, setHighWater, versionIn } from './lmdb-files.ts';
import { frees, type Growth, growthOf } from './lmdb-growth.ts';
import { openLog, segmentsIn } from './lmdb-log.ts';
import { type Judged, unpack } from './lmdb-parcel.ts';
import { createRecord } from './lmdb-record.ts';
import type { Instant, Outcome, Stamp } from './partition.ts';
import { isFull } from './synced-files.ts';
import { holds, type Versions } from './verify.ts';

export interface WriterData {
  readonly location: string;
  readonly clock: SharedArrayBuffer;
  /** Eight bytes: the instant at which commits that nobody sees yet were decided, or 0. */
  readonly deciding: SharedArrayBuffer;
  /** Eight bytes: the instant that is to be remembered with the next group. */
  readonly reserving: SharedArrayBuffer;
  readonly channel: SharedArrayBuffer;
  /** Where groups come from that have no room in it. */
  readonly large: MessagePort;
  /** Another engine has the log: what this one commits is seen, and lost in a crash. */
  readonly isGuest: boolean;
}

/** Nothing comes behind it. */
export interface Close {
  readonly close: Instant;
}

/** Of a group that was not just committed. */
export interface Told {
  readonly outcomes: readonly (Outcome | { readonly unavailable: string })[];
  /** Nothing will be written any more. */
  readonly broken: boolean;
  /** A version in the store that the sender's clock had not reached. */
  readonly observed?: Stamp;
}

/** A group stays small enough that nobody waits long for it. */
const GROUP_BYTES_MAX = 16 << 20;
/** So few are seen by the time that their owner is awake. */
const ANNOUNCED_MAX = 4;
/** As far as is seen, where the most is not what counts. */
const PAGES_PER_GROUP = 6;

const { location, clock, deciding, reserving, channel, large, isGuest } = workerData as WriterData;
const decidingAt = new BigInt64Array(deciding);
const reservedUntil = new BigInt64Array(reserving);
const port = parentPort!;
const receiver = openReceiver(channel, () => receiveMessageOnPort(large)!.message);
const files = openFiles(location);
const { environment, rows, own } = files;
const space = guardSpace(dataFile(location), () => extentOf(files));
const record = createRecord();
const log = isGuest ? undefined : openLog(location, segmentsIn(location));
const bases = log && startBases(location, files, log, fail);
/** After a failed fsync nobody knows what is on disk, until the store is opened again. */
let broken: string | undefined;
let reserved = 0n;

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
  bytesOf: (key) => rows.getBinaryFast(key) && rows.lastSize - 8,
};

port.on('message', (order: Close | undefined) => {
  if (order) close(order.close);
  else serve();
});

function serve(): void {
  do {
    while (obeyNext()) {
      // What the file's sync leads to is done by the event loop.
      if (bases?.isFollowing()) return void setImmediate(serve);
    }
  } while (receiver.lingers());
}

/** False: nothing was there. */
function obeyNext(): boolean {
  const groups = receiver.take(GROUP_BYTES_MAX);
  if (groups.length > 0) obey(groups);
  return groups.length > 0;
}

function close(at: Instant): void {
  while (obeyNext());
  attempt(() => {
    logged(() => reserve(at));
    bases?.catchUp();
  });
  void environment.close().then(() => process.exit());
}

function obey(groups: readonly Uint8Array[]): void {
  const parcels = groups.map(unpack);
  const commits = parcels.flat();
  const growth = growthOf(commits);
  let isAwake = false;
  const decided = writeTogether(commits, growth, (outcomes) => {
    if (groups.length > 1 || commits.length > ANNOUNCED_MAX || !areCommitted(outcomes)) return;
    receiver.announce();
    port.postMessage(undefined);
    isAwake = true;
  });
  for (const { length } of parcels) {
    const outcomes = decided.splice(0, length);
    const isCommitted = areCommitted(outcomes);
    receiver.settle(isCommitted);
    if (!isCommitted) port.postMessage(toldOf(outcomes));
  }
  if (!isAwake) port.postMessage(undefined);
  if (!broken) attempt(() => bases?.written(PAGES_PER_GROUP + growth.rows));
}

type Decided = Outcome | { readonly unavailable: string } | { readonly inTheWay: Stamp };

const areCommitted = (decided: readonly Decided[]): boolean => decided.every((one) => one === 'committed');

/**
 * All in one transaction, which is in the log, on disk, when this returns.
 * @param onDurable nothing but an error is between these outcomes and everybody's sight
 */
function writeTogether(commits: readonly Judged[], growth: Growth, onDurable: (decided: Decided[]) => void): Decided[] {
  if (broken) return commits.map(() => ({ unavailable: broken! }));
  const decided = attempt((): Decided[] => {
    const full = shortFor(growth, 'any');
    const goOn = full ? commits.filter(frees) : commits;
    const stuck = full && shortFor(growthOf(goOn), 'frees');
    if (stuck) return commits.map(() => stuck);
    const now = readClock(clock);
    Atomics.store(decidingAt, 0, now);
    const wanted = Atomics.load(reservedUntil, 0);
    const work = () => {
      if (wanted > reserved && wanted > highWaterIn(own)) reserve(wanted);
      return commits.map((commit) => (full && !goOn.includes(commit) ? full : apply(commit, now)));
    };
    const outcomes = logged(work, onDurable);
    if (outcomes) reserved = wanted;
    return outcomes ?? commits.map(() => FULL);
  });
  Atomics.store(decidingAt, 0, 0n);
  return decided ?? commits.map(() => ({ unavailable: broken! }));
}

/** What the work writes is durable before anybody can see it; undefined: the log has no room for it, and nothing was written. */
function logged<T>(work: () => T, onDurable?: (result: T) => void): T | undefined {
  let isLogged = false;
  record.clear();
  try {
    return rows.transactionSync(() => {
      const result = work();
      if (log && !record.isEmpty()) {
        log.append(record);
        isLogged = true;
        onDurable?.(result);
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

function toldOf(decided: readonly Decided[]): Told {
  let observed: Stamp | undefined;
  const outcomes = decided.map((one) => {
    if (typeof one === 'string' || 'unavailable' in one) return one;
    if (observed === undefined || one.inTheWay > observed) observed = one.inTheWay;
    return 'conflict';
  });
  const isBroken = broken !== undefined;
  return observed === undefined ? { outcomes, broken: isBroken } : { outcomes, broken: isBroken, observed };
}
