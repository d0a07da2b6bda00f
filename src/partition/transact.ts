/**
 * Transactions, once for all engines. Bodies that wait for one anchor run one after another over one view, the snapshot plus
 * the writes of those before, and go as one commit. Turns are an optimisation; the checks in the commit are the truth.
 */
import { randomUUID } from 'node:crypto';
import { mergeAdds } from './counters.ts';
import type { Key } from './keys.ts';
import {
  type Commit,
  type Engine,
  type Instant,
  OutcomeUnknown,
  type PagedSnapshot,
  type Partition,
  type RangeCheck,
  type ReadCheck,
  type Snapshot,
  type Timestamp,
  type Transaction,
  Unavailable,
} from './partition.ts';
import { type BufferedWrite, mergeWrite, TransactionView } from './transaction-view.ts';

export interface TransactOptions {
  /** How often a body runs before its caller is told to come back later. */
  attemptsMax?: number;
  /** How often it runs before commits of other processes for its anchor wait for it. */
  attemptsShared?: number;
  /** How often it runs beside others of this process before it runs alone. */
  attemptsBeside?: number;
  /** How many bodies share a commit: their run must not hold the event loop. */
  batchMax?: number;
  /** Bodies that share a commit leave at most about this many rows and bytes. */
  writesMax?: number;
  bytesMax?: number;
}

interface PendingTransaction {
  readonly fn: (tx: Transaction) => Promise<unknown>;
  readonly resolve: (result: { value: unknown; timestamp: Timestamp }) => void;
  readonly reject: (error: unknown) => void;
  attempts: number;
}

interface PendingRead {
  readonly fn: (at: PagedSnapshot) => Promise<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

type EngineSnapshot = ReturnType<Engine['snapshot']>;

/** A body that ran: what it leaves, or what it threw. */
interface Attempt {
  readonly job: PendingTransaction;
  readonly view: TransactionView;
  readonly value?: unknown;
  readonly timestamp?: Timestamp;
  readonly thrown?: { readonly error: unknown };
}

export function openPartition(engine: Engine, options: TransactOptions = {}): Partition {
  const { attemptsMax = 100, attemptsShared = 2, attemptsBeside = 5 } = options;
  const { batchMax = 128, writesMax = 1_000, bytesMax = 8 << 20 } = options;
  const reads: PendingRead[] = [];
  const waitQueues = new Map<Key, PendingTransaction[]>();
  /** Whose lines go on in the next turn. */
  const ready: Key[] = [];
  /** Whose lines have lost too many races: each runs with no other beside it. */
  const starved: Key[] = [];
  /** Lines that run or commit; whether it is one that is to be alone. */
  let queuesRunning = 0;
  let isExclusive = false;
  /** Reads that run. */
  let readsRunning = 0;
  const sessionId = randomUUID();
  let commitCount = 0;
  let settledCommits = 0;
  let scheduled = false;
  const propose = (): Timestamp => engine.clock.nextTimestamp();

  function read<T>(fn: (at: PagedSnapshot) => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      reads.push({ fn, resolve: resolve as PendingRead['resolve'], reject });
      schedule();
    });
  }

  function transact<T>(
    queueKey: Key,
    fn: (tx: Transaction) => Promise<T>,
  ): Promise<{ value: T; timestamp: Timestamp }> {
    return new Promise((resolve, reject) => {
      const job: PendingTransaction = { fn, resolve: resolve as PendingTransaction['resolve'], reject, attempts: 0 };
      const queue = waitQueues.get(queueKey);
      if (queue) {
        queue.push(job);
        return;
      }
      waitQueues.set(queueKey, [job]);
      ready.push(queueKey);
      schedule();
    });
  }

  /** Behind everything that is already about to ask, too. */
  function schedule(when: (serve: () => void) => void = queueMicrotask): void {
    if (scheduled) return;
    scheduled = true;
    when(() => {
      scheduled = false;
      runTurn();
    });
  }

  /**
   * What was asked for in one turn of the event loop shares a snapshot, taken after the last of it was asked for. Side by side
   * they also cost less: a Get Blob at 64 clients about a third of the CPU; see docs/adr/0003-optimistic-concurrency-and-group-commit.md.
   */
  function runTurn(): void {
    let room = batchMax;
    // Where both wait, each has its half.
    const waiting = nextQueue() === undefined ? 0 : starved.length + ready.length;
    const asked = reads.splice(0, Math.max(room >> 1, room - waiting));
    room -= asked.length;
    const taken: { queueKey: Key; jobs: PendingTransaction[] }[] = [];
    for (let queueKey = nextQueue(); queueKey !== undefined && room > 0; queueKey = nextQueue()) {
      isExclusive = starved.length > 0;
      (isExclusive ? starved : ready).shift();
      queuesRunning++;
      const queue = waitQueues.get(queueKey)!;
      if (engine.exclusive && queue[0]!.attempts >= attemptsShared) {
        room--;
        void runExclusively(queueKey, engine.exclusive.bind(engine));
        continue;
      }
      // Who joins the line later may know of a commit that this snapshot does not show.
      const jobs = queue.splice(0, room);
      room -= jobs.length;
      taken.push({ queueKey, jobs });
    }
    if (reads.length > 0 || nextQueue() !== undefined) schedule(setImmediate);
    if (asked.length > 0 || taken.length > 0) serve(asked, taken);
  }

  /** Its snapshot is taken once the others wait, so that nobody overtakes it any more. */
  async function runExclusively(queueKey: Key, exclusive: NonNullable<Engine['exclusive']>): Promise<void> {
    const take = (): PendingTransaction[] => waitQueues.get(queueKey)!.splice(0, batchMax);
    let isServed = false;
    try {
      await exclusive(queueKey, async () => {
        isServed = true;
        await Promise.all(serve([], [{ queueKey, jobs: take() }]));
      });
    } catch (error) {
      if (!isServed) failBatch(queueKey, take(), error);
    }
  }

  function serve(
    asked: readonly PendingRead[],
    taken: readonly { queueKey: Key; jobs: PendingTransaction[] }[],
  ): Promise<void>[] {
    let snapshot: EngineSnapshot;
    try {
      snapshot = engine.snapshot();
    } catch (error) {
      for (const { reject } of asked) reject(error);
      for (const { queueKey, jobs } of taken) failBatch(queueKey, jobs, error);
      return [];
    }
    let users = asked.length + taken.length;
    const release = (): void => {
      if (--users === 0) snapshot.end();
    };
    for (const read of asked) void runRead(read, snapshot, release);
    return taken.map(({ queueKey, jobs }) => runQueue(queueKey, jobs, snapshot, release));
  }

  async function runRead(
    { fn, resolve, reject }: PendingRead,
    snapshot: PagedSnapshot,
    release: () => void,
  ): Promise<void> {
    readsRunning++;
    try {
      resolve(await fn(snapshot));
    } catch (error) {
      reject(error);
    }
    readsRunning--;
    release();
  }

  async function runQueue(
    queueKey: Key,
    jobs: PendingTransaction[],
    snapshot: EngineSnapshot,
    release: () => void,
  ): Promise<void> {
    const runs = await runBatch(queueKey, jobs, snapshot);
    release();
    await commitBatch(queueKey, runs, snapshot.group);
  }

  /** While somebody is tired, the others wait until he is through. */
  function nextQueue(): Key | undefined {
    if (isExclusive) return undefined;
    if (starved.length === 0) return ready[0];
    return queuesRunning === 0 ? starved[0] : undefined;
  }

  /** Those for whom there is no room in the commit wait for the next. */
  async function runBatch(queueKey: Key, jobs: PendingTransaction[], snapshot: Snapshot): Promise<Attempt[]> {
    const runs: Attempt[] = [];
    const writeSet = new Map<Key, BufferedWrite>();
    let bytes = 0;
    while (jobs.length > 0 && writeSet.size < writesMax && bytes < bytesMax) {
      const job = jobs.shift()!;
      const view = new TransactionView(snapshot, writeSet, propose);
      try {
        const value = await job.fn(view);
        // Bodies behind this one propose later stamps.
        runs.push({ job, view, value, timestamp: view.timestamp });
      } catch (error) {
        if (view.readUncommitted) runs.push({ job, view, thrown: { error } });
        else job.reject(error);
        continue;
      }
      if (jobs.length === 0) return runs;
      for (const [key, write] of view.writes) {
        writeSet.set(key, mergeWrite(writeSet.get(key), write));
        if (write.kind === 'put') bytes += write.value.length;
      }
    }
    waitQueues.get(queueKey)!.unshift(...jobs);
    return runs;
  }

  /** Commits what the bodies left, and answers. Those that must run again go back to the head of their line. */
  async function commitBatch(
    queueKey: Key,
    runs: readonly Attempt[],
    snapshotGroup: number | undefined,
  ): Promise<void> {
    const data = makeCommit(queueKey, runs, snapshotGroup);
    const outcome = data ? await commit(data) : 'committed';
    finish();
    if (outcome === 'conflict') {
      for (const { job } of runs) job.attempts++;
      const givenUp = runs.filter(({ job }) => job.attempts >= attemptsMax);
      for (const { job } of givenUp) job.reject(new Unavailable('Too many others write here at the same time.'));
      waitQueues.get(queueKey)!.unshift(...runs.filter((run) => !givenUp.includes(run)).map((run) => run.job));
      await backOff(Math.max(...runs.map(({ job }) => job.attempts)));
    } else {
      for (const { job, view, value, timestamp, thrown } of runs) {
        if (outcome !== 'committed' && (view.writes.size > 0 || view.readUncommitted)) job.reject(outcome);
        else if (thrown) job.reject(thrown.error);
        else job.resolve({ value, timestamp: timestamp! });
      }
    }
    reschedule(queueKey);
  }

  function failBatch(queueKey: Key, jobs: readonly PendingTransaction[], error: unknown): void {
    for (const { reject } of jobs) reject(error);
    finish();
    reschedule(queueKey);
  }

  function finish(): void {
    queuesRunning--;
    isExclusive = false;
  }

  function reschedule(queueKey: Key): void {
    const queue = waitQueues.get(queueKey)!;
    if (queue.length === 0) waitQueues.delete(queueKey);
    else if (queue[0]!.attempts >= attemptsBeside) starved.push(queueKey);
    else ready.push(queueKey);
    if (nextQueue() !== undefined) schedule();
  }

  /** What the bodies ask of the store; undefined: nothing. */
  function makeCommit(queueKey: Key, runs: readonly Attempt[], snapshotGroup: number | undefined): Commit | undefined {
    const writeSets: Commit['writeSets'][number][] = [];
    const checks = new Map<Key, ReadCheck>();
    const ranges: RangeCheck[] = [];
    let deadline: Instant | undefined;
    for (const { view, thrown } of runs) {
      const writes = !thrown && view.writes.size > 0;
      if (writes) writeSets.push({ timestamp: view.timestamp, writes: [...view.writes.values()] });
      // An answer that rests on a write of this commit and on other rows is true only if those still stand beside it.
      else if (!view.readUncommitted) continue;
      for (const check of view.checks) checks.set(check.key, check);
      ranges.push(...view.ranges);
      if (view.deadline !== undefined && (deadline === undefined || view.deadline < deadline)) deadline = view.deadline;
    }
    if (writeSets.length === 0) return undefined;
    const id = `${sessionId}/${commitCount++}`;
    return {
      id,
      queueKeys: [queueKey],
      checks: [...checks.values()],
      ranges,
      writeSets: mergeAdds(writeSets),
      ...(deadline !== undefined && { deadline }),
      ...(snapshotGroup !== undefined && { snapshotGroup }),
    };
  }

  async function commit(data: Commit): Promise<'committed' | 'conflict' | Error> {
    try {
      const outcome = await engine.commit(data);
      return outcome === 'unknown' ? new OutcomeUnknown('The store did not say whether the write happened.') : outcome;
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    } finally {
      settledCommits++;
    }
  }

  return {
    read,
    transact,
    clock: engine.clock,
    settledCommits: () => settledCommits,
    isBroken: () => engine.isBroken?.() ?? false,
    async close() {
      while (readsRunning > 0 || scheduled || waitQueues.size > 0)
        await new Promise((resolve) => setTimeout(resolve, 1));
      await engine.close();
    },
  };
}

/** Who lost a race several times waits at random, or the winner would be first again and again. */
function backOff(attempts: number): Promise<void> {
  return new Promise((resolve) => {
    if (attempts < 3) setImmediate(resolve);
    else setTimeout(resolve, Math.random() * Math.min(2 ** attempts, 50));
  });
}
