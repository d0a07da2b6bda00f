/**
 * Optimistic concurrency control with group commit. Transactions of one queue key run one after another over one snapshot plus
 * the writes of those before, and share a commit. The queues only save conflicts: the engine's validation decides. In each turn of
 * the event loop the scheduler starts reads and queues of transactions on one snapshot.
 */

import { randomUUID } from 'node:crypto';
import {
  type Attempt,
  type BatchLimits,
  CombinedTransaction,
  ExpectedCalls,
  type GatherLimits,
  makeCommit,
  type PendingTransaction,
  runBatch,
  settleBatch,
  tryCommit,
  WaitQueues,
} from './group-commit.ts';
import type { Key } from './keys.ts';
import {
  type CombinedFunction,
  type Engine,
  type MaybePromise,
  type PagedSnapshot,
  type Partition,
  type Timestamp,
  type Transaction,
  Unavailable,
} from './partition.ts';

const DEFAULTS: SchedulerOptions = {
  attemptsMax: 100,
  attemptsShared: 2,
  attemptsBeside: 5,
  batchMax: 128,
  turnsGatheredMax: 4,
  gatherMillisecondsMax: 0.3,
  writesMax: 1_000,
  bytesMax: 8 << 20,
};

export function openPartition(engine: Engine, options: Partial<SchedulerOptions> = {}): Partition {
  const scheduler = new Scheduler(engine, { ...DEFAULTS, ...options });
  return {
    read: (fn) => scheduler.read(fn),
    transact: (queueKey, fn) => scheduler.transact(queueKey, fn),
    transactCombined: (queueKey, input, combined) => scheduler.transactCombined(queueKey, input, combined),
    clock: engine.clock,
    settledCommits: () => scheduler.settledCommits,
    isBroken: () => engine.isBroken?.() ?? false,
    figures: () => engine.figures?.() ?? {},
    close: () => scheduler.close(),
  };
}

export interface SchedulerOptions extends BatchLimits, GatherLimits {
  /** Attempts of a transaction before its caller is told to try again later. */
  readonly attemptsMax: number;
  /** Attempts before commits of other processes for the same queue key wait for the transaction. */
  readonly attemptsShared: number;
  /** Attempts beside other queues of this process before the transaction runs alone. */
  readonly attemptsBeside: number;
  /** Transactions that share a commit at most: their run must not hold the event loop. */
  readonly batchMax: number;
}

interface PendingRead {
  readonly fn: (at: PagedSnapshot) => MaybePromise<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

interface Batch {
  readonly queueKey: Key;
  readonly transactions: PendingTransaction[];
}

type EngineSnapshot = ReturnType<Engine['snapshot']>;

class Scheduler {
  /** Ended commits, whatever their outcome. */
  settledCommits = 0;
  private readonly engine: Engine;
  private readonly options: SchedulerOptions;
  private readonly reads: PendingRead[] = [];
  private readsRunning = 0;
  private readonly queues: WaitQueues;
  /** Queues that wait for further calls of their first transaction, until the next turn. */
  private readonly gathering: [Key, PendingTransaction][] = [];
  /** A turn is about to run. */
  private isScheduled = false;
  private readonly expected = new ExpectedCalls();
  private readonly sessionId = randomUUID();
  private commitCount = 0;

  constructor(engine: Engine, options: SchedulerOptions) {
    this.engine = engine;
    this.options = options;
    this.queues = new WaitQueues(options.attemptsBeside);
  }

  read<T>(fn: (at: PagedSnapshot) => MaybePromise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.reads.push({ fn, resolve: resolve as PendingRead['resolve'], reject });
      this.schedule();
    });
  }

  transact<T>(
    queueKey: Key,
    fn: (tx: Transaction) => MaybePromise<T>,
  ): Promise<{ readonly value: T; readonly timestamp: Timestamp }> {
    return new Promise((resolve, reject) => {
      this.enqueue(queueKey, { fn, resolve: resolve as PendingTransaction['resolve'], reject, attempts: 0 });
    });
  }

  transactCombined<Input, Output>(
    queueKey: Key,
    input: Input,
    combined: CombinedFunction<Input, Output>,
  ): Promise<Output> {
    return new Promise((resolve, reject) => {
      const waiting = this.queues
        .waiting(queueKey)
        ?.findLast((pending) => pending instanceof CombinedTransaction && pending.hasRoomFor(combined, input));
      const transaction = (waiting as CombinedTransaction<Input, Output>) ?? new CombinedTransaction(combined);
      transaction.add({ input, resolve, reject });
      if (!waiting) this.enqueue(queueKey, transaction);
    });
  }

  async close(): Promise<void> {
    while (this.readsRunning > 0 || this.isScheduled || !this.queues.isIdle())
      await new Promise((resolve) => setTimeout(resolve, 1));
    await this.engine.close();
  }

  private enqueue(queueKey: Key, transaction: PendingTransaction): void {
    if (this.queues.add(queueKey, transaction)) this.makeReady(queueKey, transaction);
  }

  /** The queue does not run, and the transaction is its first. */
  private makeReady(queueKey: Key, first: PendingTransaction): void {
    const { expected, options } = this;
    const expectsMore = expected.exceed(queueKey, this.queues.waiting(queueKey)!);
    if (first instanceof CombinedTransaction && first.waitsAnotherTurn(options, expectsMore)) {
      if (this.gathering.push([queueKey, first]) === 1) setImmediate(this.endGathering);
      return;
    }
    this.queues.makeReady(queueKey);
    if (this.queues.next() !== undefined) this.schedule();
  }

  private readonly endGathering = (): void => {
    for (const [queueKey, first] of this.gathering.splice(0)) this.makeReady(queueKey, first);
  };

  /** A microtask runs after all code that is about to call `read` or `transact` in this turn. */
  private schedule(when: (run: () => void) => void = queueMicrotask): void {
    if (this.isScheduled) return;
    this.isScheduled = true;
    when(this.runTurn);
  }

  /**
   * Reads and transactions of one turn of the event loop share a snapshot, which is taken after the last of them was called. That
   * also costs less: a Get Blob at 64 clients about a third of the CPU; see docs/adr/0003-optimistic-concurrency-and-group-commit.md.
   */
  private readonly runTurn = (): void => {
    this.isScheduled = false;
    const { queues, engine } = this;
    let room = this.options.batchMax;
    // Where both reads and transactions wait, each has half of the turn.
    const reads = this.reads.splice(0, Math.max(room >> 1, room - queues.startable()));
    room -= reads.length;
    const batches: Batch[] = [];
    for (let queueKey = queues.next(); queueKey !== undefined && room > 0; queueKey = queues.next()) {
      queues.start();
      if (engine.exclusive && queues.waiting(queueKey)![0]!.attempts >= this.options.attemptsShared) {
        room--;
        void this.runExclusively(queueKey, engine.exclusive.bind(engine));
        continue;
      }
      // Transactions that come later wait: their callers may know of a commit that this snapshot does not show.
      const transactions = queues.take(queueKey, room);
      room -= transactions.length;
      batches.push({ queueKey, transactions });
    }
    if (this.reads.length > 0 || queues.next() !== undefined) this.schedule(setImmediate);
    if (reads.length > 0 || batches.length > 0) this.runOnSnapshot(reads, batches);
  };

  /** The snapshot is taken once commits of other processes wait, so that none of them can conflict any more. */
  private async runExclusively(queueKey: Key, exclusive: NonNullable<Engine['exclusive']>): Promise<void> {
    const take = (): Batch => ({ queueKey, transactions: this.queues.take(queueKey, this.options.batchMax) });
    let isRun = false;
    try {
      await exclusive(queueKey, async () => {
        isRun = true;
        await Promise.all(this.runOnSnapshot([], [take()]));
      });
    } catch (error) {
      if (!isRun) this.failBatch(take(), error);
    }
  }

  private runOnSnapshot(reads: readonly PendingRead[], batches: readonly Batch[]): Promise<void>[] {
    let snapshot: EngineSnapshot;
    try {
      snapshot = this.engine.snapshot();
    } catch (error) {
      for (const { reject } of reads) reject(error);
      for (const batch of batches) this.failBatch(batch, error);
      return [];
    }
    let users = reads.length + batches.length;
    const release = (): void => {
      if (--users === 0) snapshot.end();
    };
    for (const read of reads) void this.runRead(read, snapshot, release);
    return batches.map((batch) => this.runQueue(batch, snapshot, release));
  }

  private async runRead(
    { fn, resolve, reject }: PendingRead,
    snapshot: PagedSnapshot,
    release: () => void,
  ): Promise<void> {
    this.readsRunning++;
    try {
      resolve(await fn(snapshot));
    } catch (error) {
      reject(error);
    }
    this.readsRunning--;
    release();
  }

  private async runQueue(
    { queueKey, transactions }: Batch,
    snapshot: EngineSnapshot,
    release: () => void,
  ): Promise<void> {
    const attempts = await runBatch(transactions, snapshot, this.propose, this.options);
    release();
    if (transactions.length > 0) this.queues.putBack(queueKey, transactions);
    const commit = makeCommit(this.nextCommitId, queueKey, attempts, snapshot.group);
    const answer = commit ? tryCommit(this.engine, commit) : 'committed';
    const outcome = answer instanceof Promise ? await answer : answer;
    if (commit) this.settledCommits++;
    this.queues.finish();
    if (outcome === 'conflict') await this.requeue(queueKey, attempts);
    else {
      this.expected.note(queueKey, attempts);
      settleBatch(attempts, outcome);
    }
    this.reschedule(queueKey);
  }

  private readonly propose = (): Timestamp => this.engine.clock.nextTimestamp();

  private readonly nextCommitId = (): string => `${this.sessionId}/${this.commitCount++}`;

  /** After a conflict the transactions return to the head of their queue. */
  private async requeue(queueKey: Key, attempts: readonly Attempt[]): Promise<void> {
    const again: PendingTransaction[] = [];
    let attemptsMost = 0;
    for (const { pending } of attempts) {
      attemptsMost = Math.max(attemptsMost, ++pending.attempts);
      if (pending.attempts < this.options.attemptsMax) again.push(pending);
      else pending.reject(new Unavailable('Too many others write here at the same time.'));
    }
    this.queues.putBack(queueKey, again);
    await backOff(attemptsMost);
  }

  private failBatch({ queueKey, transactions }: Batch, error: unknown): void {
    for (const transaction of transactions) transaction.reject(error);
    this.queues.finish();
    this.reschedule(queueKey);
  }

  private reschedule(queueKey: Key): void {
    const first = this.queues.firstLeft(queueKey);
    if (first) this.makeReady(queueKey, first);
    else if (this.queues.next() !== undefined) this.schedule();
  }
}

/** A random wait after several conflicts: without it the same transaction would win again and again. */
function backOff(attempts: number): Promise<void> {
  return new Promise((resolve) => {
    if (attempts < 3) setImmediate(resolve);
    else setTimeout(resolve, Math.random() * Math.min(2 ** attempts, 50));
  });
}
