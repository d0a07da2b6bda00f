/** What the suite needs from an engine's test, and helpers of its tests. */
import { onTestFinished } from 'vitest';
import { encodeKey, type Key, type Part } from '../keys.ts';
import type {
  Commit,
  Engine,
  Instant,
  MaybePromise,
  Outcome,
  Partition,
  Snapshot,
  Timestamp,
  Transaction,
} from '../partition.ts';
import { openPartition } from '../transact.ts';

export interface StoreOptions {
  wall?: () => Instant;
}

/** One store, with an engine open on it. */
export interface Store {
  readonly engine: Engine;
  /** Another engine on this store, or the same one where a store has only one. */
  beside(): Promise<Engine>;
  /** Closes every engine cleanly and opens the store again; undefined where nothing is durable. */
  reopen?(options?: StoreOptions): Promise<Engine>;
  drop(): Promise<void>;
}

/** A writer to the same store in another thread or process. */
export interface OtherWriter {
  /** Puts this number under the key and resolves when the commit was acknowledged there. */
  put(key: Key, value: number): Promise<void>;
  /** Adds this number to the counter. */
  add(key: Key, n: number): Promise<void>;
  end(): Promise<void>;
}

export interface Harness {
  /** Commits survive when the store is closed and opened again. */
  durable: boolean;
  /** Processes share a store: volatile rows stay when one of them closes. */
  isShared?: boolean;
  /** Each engine has its own clock. Outside of tests only one engine uses such a store. */
  ownClockPerEngine?: boolean;
  /** How many writes are read back; fewer where each is a round trip to a server. */
  readBack?: number;
  open(options?: StoreOptions): Promise<Store>;
  /** By the name that titles its test: 'a second thread', 'a second process'. */
  otherWriters?: Record<string, (store: Store) => Promise<OtherWriter>>;
}

export async function openStore(harness: Harness, options?: StoreOptions): Promise<Store> {
  const store = await harness.open(options);
  onTestFinished(() => store.drop());
  return store;
}

/** Two partitions on one store, with wait queues of their own: only validation keeps them apart. */
export async function openTwo(harness: Harness): Promise<[Partition, Partition]> {
  const store = await openStore(harness);
  return [openPartition(store.engine), openPartition(await store.beside())];
}

export async function openOne(harness: Harness): Promise<Partition> {
  return openPartition((await openStore(harness)).engine);
}

export const key = (...parts: Part[]): Key => encodeKey(parts);
export const bytes = (value: string | number): Uint8Array => Buffer.from(String(value));
export const rowText = (row: { value: Uint8Array } | undefined): string | undefined =>
  row && Buffer.from(row.value).toString();
export const rowNumber = (row: { value: Uint8Array } | undefined): number => Number(rowText(row) ?? 0);

export const put = (partition: Partition, at: Key, value: string | number): Promise<{ timestamp: Timestamp }> =>
  partition.transact(at, async (tx) => tx.put(at, bytes(value)));
export const get = async (partition: Partition, at: Key): Promise<string | undefined> =>
  rowText(await partition.read((snapshot) => snapshot.get(at)));

export const nextTick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
export async function nextTicks(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await nextTick();
}
export const times = <T>(count: number, make: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i));

/** Resolves all callers once `count` have arrived; later callers pass. */
export function barrier(count: number): () => Promise<void> {
  const { promise, resolve } = gate();
  let come = 0;
  return () => {
    if (++come === count) resolve();
    return promise;
  };
}

export function gate(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

/** The engine, with every commit passing through `commit`. */
export function intercept(
  engine: Engine,
  commit: (data: Commit, pass: () => Promise<Outcome>) => Promise<Outcome>,
): Engine {
  return {
    clock: engine.clock,
    snapshot: () => engine.snapshot(),
    commit: (data) => commit(data, async () => engine.commit(data)),
    ...(engine.exclusive && { exclusive: (queueKey, work) => engine.exclusive!(queueKey, work) }),
    close: () => engine.close(),
  };
}

export const writesTo = (data: Commit, at: Key): boolean =>
  data.writeSets.some(({ writes }) => writes.some((write) => write.key === at));

/** A commit without checks and writes, except for the given parts. */
export function makeCommit(parts: Partial<Commit>): Commit {
  return { id: crypto.randomUUID(), queueKeys: [key('queue key')], checks: [], ranges: [], writeSets: [], ...parts };
}

export async function readEngine<T>(engine: Engine, fn: (snapshot: Snapshot) => MaybePromise<T>): Promise<T> {
  const snapshot = engine.snapshot();
  try {
    return await fn(snapshot);
  } finally {
    snapshot.end();
  }
}

/** Transactions that share one commit. */
export async function runInOneCommit(
  partition: Partition,
  ...transactions: ((tx: Transaction) => MaybePromise<unknown>)[]
) {
  const { promise, resolve } = gate();
  const first = partition.transact(key('together'), () => promise);
  const settled = Promise.allSettled(transactions.map((fn) => partition.transact(key('together'), fn)));
  resolve();
  await first;
  return settled;
}
