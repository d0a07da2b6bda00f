/** What the suite asks of an engine's test, and the few words its tests share. */
import { onTestFinished } from 'vitest';
import { encodeKey, type Key, type Part } from '../keys.ts';
import type { Commit, Engine, Instant, Outcome, Partition, Snapshot, Timestamp } from '../partition.ts';
import { openPartition } from '../transact.ts';

export interface StoreOptions {
  wall?: () => Instant;
}

/** One store, with an engine open on it. */
export interface Store {
  readonly engine: Engine;
  /** One more engine on this store, or the same one where a store has only one. */
  beside(): Promise<Engine>;
  /** Closes every engine cleanly and opens the store again; engines that keep nothing have none. */
  reopen?(options?: StoreOptions): Promise<Engine>;
  drop(): Promise<void>;
}

/** Somebody in another thread or process who writes to the same store. */
export interface OtherWriter {
  /** Puts this number under the key and resolves when the commit was acknowledged over there. */
  put(key: Key, value: number): Promise<void>;
  /** Adds this number to the counter, likewise. */
  add(key: Key, n: number): Promise<void>;
  end(): Promise<void>;
}

export interface Harness {
  /** What was committed is there when the store is opened again. */
  durable: boolean;
  /** Each engine keeps a time of its own. Only one works on such a store, but in tests. */
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

/** Two partitions on one store that share no turns, so that only the checks stand between them. */
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

/** Resolves for everybody once `count` have come; who comes later passes. */
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
    commit: (data) => commit(data, () => engine.commit(data)),
    ...(engine.exclusive && { exclusive: (anchor, work) => engine.exclusive!(anchor, work) }),
    close: () => engine.close(),
  };
}

export const writesTo = (data: Commit, at: Key): boolean =>
  data.writeSets.some((body) => body.writes.some((write) => write.key === at));

/** A commit that tests nothing and writes nothing, but for what is said. */
export function makeCommit(parts: Partial<Commit>): Commit {
  return { id: crypto.randomUUID(), queueKeys: [key('anchor')], checks: [], ranges: [], writeSets: [], ...parts };
}

export async function readEngine<T>(engine: Engine, fn: (snapshot: Snapshot) => Promise<T>): Promise<T> {
  const snapshot = engine.snapshot();
  try {
    return await fn(snapshot);
  } finally {
    snapshot.end();
  }
}
