/** An ordered, transactional key-value store: the interface for the layers above, and the one that engines implement. */
import type { Histogram } from '../base/histogram.ts';
import type { Key, KeyGrouping, Range } from './keys.ts';

/** 100-ns ticks since 0001-01-01, as in .NET: the store's time. */
export type Instant = bigint;

/** A commit timestamp, never repeated for a key: the version of every row that the transaction wrote. */
export type Timestamp = bigint;

export interface Row {
  readonly key: Key;
  readonly value: Buffer;
  readonly version: Timestamp;
}

export interface ScanOptions {
  /** At most this many rows. */
  limit: number;
  /** Stop after the row that reaches this many bytes of values. */
  bytesMax?: number;
  reverse?: boolean;
}

/** One committed state. */
/** No promise where the engine has the rows at hand: each would cost as much as the read. */
export type MaybePromise<T> = T | Promise<T>;

export interface Snapshot {
  readonly now: Instant;
  get(key: Key): MaybePromise<Row | undefined>;
  getMany(keys: readonly Key[]): MaybePromise<(Row | undefined)[]>;
  scan(range: Range, options: ScanOptions): Promise<Row[]>;
}

export interface PageOptions {
  /** At most this many rows, and at least one. */
  limit: number;
  /** Of each group only the first row; the others are skipped at the cost of one seek. */
  grouping?: KeyGrouping | undefined;
}

export interface Page {
  readonly rows: readonly Row[];
  /** Where the next page starts; undefined: nothing follows. */
  readonly next: Key | undefined;
}

/** A snapshot for reads alone, which is not validated. */
export interface PagedSnapshot extends Snapshot {
  /**
   * The first rows of the range. A page may end before the limit: an engine in this process returns few rows, to leave the event
   * loop to others, and an engine across a network many, to save round trips.
   */
  page(range: Range, options: PageOptions): Promise<Page>;
}

/** A transaction function's view: the commit validates every get as a read check, and every scan as a range check. */
export interface Transaction extends Snapshot {
  /** Stands for the committed state that is read: the same object for all transactions that read the same state. */
  readonly state: object;
  /** The version that this transaction's writes will have. */
  readonly timestamp: Timestamp;
  /**
   * Draws a later timestamp, which is the transaction's from then on. Only before its first write: for a function that answers several calls
   * with a state of a row each, of which the last one is written.
   */
  nextTimestamp(): Timestamp;
  /** A scan that the commit does not validate: only a hint. */
  scanUnchecked(range: Range, options: ScanOptions): Promise<Row[]>;
  /** As `getMany`, and like `scanUnchecked` only a hint. */
  getUnchecked(keys: readonly Key[]): Promise<(Row | undefined)[]>;
  /** Validates a row that was read unchecked, as if it had been read by `get`. */
  addReadCheck(row: Pick<Row, 'key' | 'version'>): void;
  put(key: Key, value: Uint8Array): void;
  remove(key: Key): void;
  /**
   * Adds to a counter; see `decodeCounter`. Adds conflict with nothing, so no transaction may depend on their sum: `get` and `scan`
   * of a key that this commit adds to throw, and unchecked reads leave the adds out. An add after a put or a removal of the key in the
   * same transaction starts from there; a put or a removal after an add replaces it.
   */
  add(key: Key, n: bigint): void;
  /**
   * Sets a row of one number, above zero, to the greater of its own and this one; see `decodeCounter`. All that is said of adds is true
   * of it, but no row has both. A row that is not raised is not written: its version stays.
   */
  max(key: Key, n: bigint): void;
  /** From this instant on the commit is a conflict, and the function runs again. */
  commitBefore(instant: Instant): void;
}

/** A transaction function for several calls; it is to answer each of them. */
export interface CombinedFunction<Input, Output> {
  /**
   * One result for each input.
   * @param lost the results of the attempt before for the same inputs, whose commit was a conflict
   */
  run(
    tx: Transaction,
    inputs: readonly Input[],
    lost: readonly CombinedResult<Output>[] | undefined,
  ): Promise<readonly CombinedResult<Output>[]>;
  /** Calls run together up to this sum of their weights; further calls are a transaction of their own. */
  readonly weightMax: number;
  weight(input: Input): number;
}

export type CombinedResult<Output> = { readonly value: Output } | { readonly error: unknown };

export interface Partition {
  read<T>(fn: (at: PagedSnapshot) => MaybePromise<T>): Promise<T>;
  /**
   * Runs the transaction function and commits its writes, all or nothing. Transactions that wait for one queue key share a commit.
   * The function may run more than once, and one that throws writes nothing. So it touches nothing but `tx`, and uses neither clock
   * nor chance: what it needs of them is drawn before the call.
   */
  transact<T>(queueKey: Key, fn: (tx: Transaction) => MaybePromise<T>): Promise<{ value: T; timestamp: Timestamp }>;
  /** As `transact`, but calls with the same `combined` that wait for one queue key at the same time run as one function. */
  transactCombined<Input, Output>(
    queueKey: Key,
    input: Input,
    combined: CombinedFunction<Input, Output>,
  ): Promise<Output>;
  readonly clock: Clock;
  /** Ended commits of this process, whatever their outcome. In a store with one process, no row changes while the number does not. */
  settledCommits(): number;
  /** Nothing can be written until the store is opened again. */
  isBroken(): boolean;
  figures(): EngineFigures;
  close(): Promise<void>;
}

/** Since the engine was opened, for monitoring. An engine leaves out what it does not have. */
export interface EngineFigures {
  /** Transactions of each group of commits that was written together. */
  readonly groupTransactions?: Histogram;
  /** From the write of a group to its being durable. */
  readonly flushSeconds?: Histogram;
  readonly checkpointSeconds?: Histogram;
  /** The write-ahead log's records that no checkpoint has applied yet. */
  readonly walBytes?: number;
  /** The file that checkpoints write. */
  readonly dataFileBytes?: number;
}

export interface Clock {
  now(): Instant;
  /** Moves the store's time forward, for all processes. For tests only. */
  advance(ticks: bigint): Promise<void>;
}

export type Write =
  | { readonly kind: 'put'; readonly key: Key; readonly value: Uint8Array }
  | { readonly kind: 'remove'; readonly key: Key }
  /** No version of the row is a conflict; see values.ts. */
  | CommutativeWrite;

/** The row's number becomes the sum, or the greater one. */
export type CommutativeWrite = { readonly kind: 'add' | 'max'; readonly key: Key; readonly n: bigint };

/** A key in a transaction's read set; no version: the key was absent. */
export interface ReadCheck {
  readonly key: Key;
  readonly version?: Timestamp | undefined;
}

/** A scanned range: exactly these rows, in these versions, in order. */
export interface RangeCheck {
  readonly range: Range;
  readonly rows: readonly { readonly key: Key; readonly version: Timestamp }[];
}

/** The read set and write sets of a commit, as plain data: they can cross to another thread, process or server. */
export interface Commit {
  readonly id: string;
  readonly queueKeys: readonly Key[];
  readonly checks: readonly ReadCheck[];
  readonly ranges: readonly RangeCheck[];
  readonly deadline?: Instant | undefined;
  /** The engine's number of the snapshot that was read: an engine may validate against later writes alone. */
  readonly snapshotGroup?: number | undefined;
  /** In the order in which the functions ran. A timestamp not above every version that its writes replace is a conflict. */
  readonly writeSets: readonly { readonly timestamp: Timestamp; readonly writes: readonly Write[] }[];
}

/** 'unknown': the store did not say whether the commit happened. */
export type Outcome = 'committed' | 'conflict' | 'unknown';

/** The interface of LMDB, PostgreSQL and memory; `transact.ts` makes a Partition of it. */
export interface Engine {
  /** Also proposes the timestamps of transactions. */
  readonly clock: Clock & { nextTimestamp(): Timestamp };
  /** The latest committed state: it shows every commit that was acknowledged before this call. */
  snapshot(): PagedSnapshot & { end(): void; readonly group?: number };
  /** An outcome that needs no wait is returned at once: a promise would cost as much as a commit in memory. */
  commit(data: Commit): Outcome | Promise<Outcome>;
  /**
   * Runs the work while commits of other processes for this queue key wait. Engines for one process do not have it. It prevents
   * starvation; correctness does not depend on it.
   */
  exclusive?(queueKey: Key, work: () => Promise<void>): Promise<void>;
  /** As of the last commit. Engines without a disk do not have it. */
  isBroken?(): boolean;
  figures?(): EngineFigures;
  close(): Promise<void>;
}

/** The store cannot take this write now: the disk is full, or an fsync failed. Nothing was written. */
export class Unavailable extends Error {
  override readonly name = 'Unavailable';
}

/** For lack of space: only commits that free some are taken. */
export class DiskFull extends Unavailable {}

/** The outcome of the commit cannot be determined. No retry: the write might happen twice. */
export class OutcomeUnknown extends Error {
  override readonly name = 'OutcomeUnknown';
}
