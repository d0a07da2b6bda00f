/** Ordered transactional rows: what every engine offers, and all that the layers above know of one. */
import type { Key, KeyGrouping, Range } from './keys.ts';

/** 100-ns ticks since 0001-01-01, as .NET counts them: the store's time. */
export type Instant = bigint;

/** The instant of a write, never repeated for a key: the version of every row that the write left. */
export type Timestamp = bigint;

export interface Row {
  readonly key: Key;
  readonly value: Buffer;
  readonly version: Timestamp;
}

export interface ScanOptions {
  /** At most this many rows. */
  limit: number;
  /** Stop behind the row that reaches this many bytes of values. */
  bytesMax?: number;
  reverse?: boolean;
}

/** One committed state. */
export interface Snapshot {
  readonly now: Instant;
  get(key: Key): Promise<Row | undefined>;
  getMany(keys: readonly Key[]): Promise<(Row | undefined)[]>;
  scan(range: Range, options: ScanOptions): Promise<Row[]>;
}

export interface PageOptions {
  /** At most this many rows, and not less than one. */
  limit: number;
  /** Of rows that are joined, only the first; those behind it cost one step, however many they are. */
  grouping?: KeyGrouping | undefined;
}

export interface Page {
  readonly rows: readonly Row[];
  /** Where to go on; undefined: nothing follows. */
  readonly next: Key | undefined;
}

/** A state that is only looked at. */
export interface PagedSnapshot extends Snapshot {
  /**
   * The first rows of the range. It may end before the limit: an engine in this process gives few at a time, so that others
   * have their turn, and one across a network many, so that the way is made once.
   */
  page(range: Range, options: PageOptions): Promise<Page>;
}

/** A body's view: every get is a check and every scan a range check at the commit. */
export interface Transaction extends Snapshot {
  /** The stamp that this body's writes will carry. */
  readonly timestamp: Timestamp;
  /** A scan that is not checked at the commit: a hint. */
  scanUnchecked(range: Range, options: ScanOptions): Promise<Row[]>;
  /** A row that was glanced at is a check after all, as if it had been got. */
  addReadCheck(row: Pick<Row, 'key' | 'version'>): void;
  put(key: Key, value: Uint8Array): void;
  remove(key: Key): void;
  /**
   * Adds to a counter; see `counterOf`. Adds conflict with nobody, so nobody may rest on what they come to: to get or scan
   * a key that this commit adds to throws, and a glance does not see it. After a put or a removal of its key in the same body,
   * an add counts from there; a put or a removal after it stands alone.
   */
  add(key: Key, n: bigint): void;
  /** Past this instant the commit is a conflict, and the body runs again. */
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
  read<T>(fn: (at: PagedSnapshot) => Promise<T>): Promise<T>;
  /**
   * Runs the transaction function and commits its writes, all or nothing. Transactions that wait for one queue key share a commit.
   * The function may run more than once, and one that throws writes nothing. So it touches nothing but `tx`, and uses neither clock
   * nor chance: what it needs of them is drawn before the call.
   */
  transact<T>(queueKey: Key, fn: (tx: Transaction) => Promise<T>): Promise<{ value: T; timestamp: Timestamp }>;
  /** As `transact`, but calls with the same `combined` that wait for one queue key at the same time run as one function. */
  transactCombined<Input, Output>(
    queueKey: Key,
    input: Input,
    combined: CombinedFunction<Input, Output>,
  ): Promise<Output>;
  readonly clock: Clock;
  /** Commits of this process that have ended, however they did. While the number stands still, a process that owns the store has changed no row. */
  settledCommits(): number;
  /** Nothing can be written until the store is opened again. */
  isBroken(): boolean;
  close(): Promise<void>;
}

export interface Clock {
  now(): Instant;
  /** Moves the store's time forward, for all who use the store. Only tests do. */
  advance(ticks: bigint): Promise<void>;
}

export type Write =
  | { readonly kind: 'put'; readonly key: Key; readonly value: Uint8Array }
  | { readonly kind: 'remove'; readonly key: Key }
  /** Whatever the row's version is, this is no conflict; see counters.ts. */
  | { readonly kind: 'add'; readonly key: Key; readonly n: bigint };

/** A key as a body found it; no version: it was absent. */
export interface ReadCheck {
  readonly key: Key;
  readonly version?: Timestamp;
}

/** A stretch of keys as a body found it: just these rows, in these versions, in order. */
export interface RangeCheck {
  readonly range: Range;
  readonly rows: readonly { readonly key: Key; readonly version: Timestamp }[];
}

/** Everything a commit needs, as plain data: it can cross to another thread, process or server. */
export interface Commit {
  readonly id: string;
  readonly queueKeys: readonly Key[];
  readonly checks: readonly ReadCheck[];
  readonly ranges: readonly RangeCheck[];
  readonly deadline?: Instant;
  /** The snapshot that all of it rests on, as the engine has numbered it: an engine may look only at what was written since. */
  readonly snapshotGroup?: number;
  /** In the order in which the bodies ran. Each stamp lies above every version that its body puts over or removes, or it is a conflict. */
  readonly writeSets: readonly { readonly timestamp: Timestamp; readonly writes: readonly Write[] }[];
}

/** 'unknown': the store did not say whether the commit happened. */
export type Outcome = 'committed' | 'conflict' | 'unknown';

/** All that LMDB, PostgreSQL and memory implement; `transact.ts` makes a Partition of it. */
export interface Engine {
  /** Besides the time: the stamp that a body will propose. */
  readonly clock: Clock & { nextTimestamp(): Timestamp };
  /** The latest committed state: nothing that was acknowledged before this call is missing. */
  snapshot(): PagedSnapshot & { end(): void; readonly group?: number };
  commit(data: Commit): Promise<Outcome>;
  /**
   * Runs the work while commits of other processes for this anchor wait. Stores that only one process writes have none. It is for
   * those who would be overtaken again and again; nothing rests on it.
   */
  exclusive?(queueKey: Key, work: () => Promise<void>): Promise<void>;
  /** As of the last commit. Engines without a disk have none. */
  isBroken?(): boolean;
  close(): Promise<void>;
}

/** The same bytes, not a copy. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}

export const COUNTER_BYTES = 8;

/** What was added up in this row, from -2^63 to 2^63 - 1; a counter at zero has no row. */
export function decodeCounter(row: Pick<Row, 'value'> | undefined): bigint {
  if (!row) return 0n;
  if (row.value.length !== COUNTER_BYTES) throw new RangeError(`a counter of ${row.value.length} bytes`);
  return row.value.readBigInt64BE();
}

/** Whether a scan stopped at its bounds, so that more rows may follow. */
export function stoppedEarly(rows: readonly Row[], { limit, bytesMax = Infinity }: ScanOptions): boolean {
  return rows.length >= limit || rows.reduce((sum, row) => sum + row.value.length, 0) >= bytesMax;
}

/** The store cannot take this write now: the disk is full, or an fsync failed. Nothing was written. */
export class Unavailable extends Error {
  override readonly name = 'Unavailable';
}

/** Nobody can say whether the write happened. It is not tried again: it might happen twice. */
export class OutcomeUnknown extends Error {
  override readonly name = 'OutcomeUnknown';
}
