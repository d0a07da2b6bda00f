/**
 * Group commit: transactions of one queue key run in order over one snapshot, and become one commit. One first-in-first-out queue per
 * queue key, an exclusive turn for queues that starve, and flat combining of calls that wait at the same time.
 */
import type { Key } from './keys.ts';
import {
  type CombinedFunction,
  type CombinedResult,
  type Commit,
  type Engine,
  type Instant,
  type MaybePromise,
  type Outcome,
  OutcomeUnknown,
  type ReadCheck,
  type Snapshot,
  type Timestamp,
  type Transaction,
} from './partition.ts';
import { type BufferedWrite, mergeWrite, TransactionView } from './transaction-view.ts';
import { mergeCommutativeSets } from './values.ts';

/** A transaction that waits for its turn. */
export interface PendingTransaction {
  fn(tx: Transaction): MaybePromise<unknown>;
  resolve(result: { readonly value: unknown; readonly timestamp: Timestamp }): void;
  reject(error: unknown): void;
  /** How often the function ran and its commit was a conflict. */
  attempts: number;
}

/** A transaction function that ran: its result, or the error that it threw. */
export interface Attempt {
  readonly pending: PendingTransaction;
  readonly view: TransactionView;
  readonly value?: unknown;
  readonly timestamp?: Timestamp;
  readonly thrown?: { readonly error: unknown };
}

/** Transactions that share a commit write at most about this many rows and bytes. */
export interface BatchLimits {
  readonly writesMax: number;
  readonly bytesMax: number;
}

/** Most batches are of one transaction. */
const NO_WRITES = new Map<Key, BufferedWrite>();

/** Transactions for which the commit has no room are left in `waiting`. */
export async function runBatch(
  waiting: PendingTransaction[],
  snapshot: Snapshot,
  propose: () => Timestamp,
  { writesMax, bytesMax }: BatchLimits,
): Promise<Attempt[]> {
  const attempts: Attempt[] = [];
  let writeSet = NO_WRITES;
  let bytes = 0;
  while (waiting.length > 0 && writeSet.size < writesMax && bytes < bytesMax) {
    const pending = waiting.shift()!;
    const view = new TransactionView(snapshot, writeSet, propose);
    try {
      const value = await pending.fn(view);
      // Read now: the transactions after this one must propose later timestamps.
      attempts.push({ pending, view, value, timestamp: view.timestamp });
    } catch (error) {
      if (view.readUncommitted) attempts.push({ pending, view, thrown: { error } });
      else pending.reject(error);
      continue;
    }
    if (waiting.length === 0) return attempts;
    if (writeSet === NO_WRITES) writeSet = new Map();
    for (const [key, write] of view.writes) {
      writeSet.set(key, mergeWrite(writeSet.get(key), write));
      if (write.kind === 'put') bytes += write.value.length;
    }
  }
  return attempts;
}

/** Undefined: the batch writes nothing. */
export function makeCommit(
  nextId: () => string,
  queueKey: Key,
  attempts: readonly Attempt[],
  snapshotGroup: number | undefined,
): Commit | undefined {
  if (!attempts.some(isWriter)) return undefined;
  const { checks, ranges, writeSets, deadline } =
    attempts.length === 1 ? transactionOf(attempts[0]!) : mergeTransactions(attempts);
  return { id: nextId(), queueKeys: [queueKey], checks, ranges, writeSets, deadline, snapshotGroup };
}

const isWriter = ({ view, thrown }: Attempt): boolean => !thrown && view.writes.size > 0;

type CommittedTransaction = Pick<Commit, 'checks' | 'ranges' | 'writeSets' | 'deadline'>;

/** Most batches are of one transaction. */
function transactionOf({ view }: Attempt): CommittedTransaction {
  const { checks, ranges, deadline } = view;
  return { checks: withoutDuplicates(checks), ranges, writeSets: [writeSetOf(view)], deadline };
}

function mergeTransactions(attempts: readonly Attempt[]): CommittedTransaction {
  const writers = attempts.filter(isWriter);
  // A result that depends on a write of this commit and on other rows is true only if those are unchanged at the commit.
  const views = attempts.filter((each) => isWriter(each) || each.view.readUncommitted).map(({ view }) => view);
  return {
    checks: withoutDuplicates(views.flatMap(({ checks }) => checks)),
    ranges: views.flatMap(({ ranges }) => ranges),
    writeSets: mergeCommutativeSets(writers.map(({ view }) => writeSetOf(view))),
    deadline: views.map(({ deadline }) => deadline).reduce(earliest),
  };
}

const writeSetOf = ({ timestamp, writes }: TransactionView): Commit['writeSets'][number] => ({
  timestamp,
  writes: [...writes.values()],
});

const earliest = (one: Instant | undefined, other: Instant | undefined): Instant | undefined =>
  one === undefined || (other !== undefined && other < one) ? other : one;

/** Below this number, comparing all with each other costs less than a map of them. */
const CHECKS_FEW = 8;

/** The transactions of a batch read many rows in common. */
function withoutDuplicates(checks: readonly ReadCheck[]): readonly ReadCheck[] {
  if (checks.length < CHECKS_FEW && !hasDuplicate(checks)) return checks;
  return [...new Map(checks.map((check) => [check.key, check])).values()];
}

function hasDuplicate(checks: readonly ReadCheck[]): boolean {
  for (let i = 1; i < checks.length; i++) {
    for (let k = 0; k < i; k++) if (checks[i]!.key === checks[k]!.key) return true;
  }
  return false;
}

type Settled = 'committed' | 'conflict' | Error;

export function tryCommit(engine: Engine, commit: Commit): Settled | Promise<Settled> {
  const outcome = engine.commit(commit);
  return typeof outcome === 'string' ? settledFrom(outcome) : outcome.then(settledFrom, errorFrom);
}

const settledFrom = (outcome: Outcome): Settled =>
  outcome === 'unknown' ? new OutcomeUnknown('The store did not say whether the write happened.') : outcome;

const errorFrom = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));

/** A failed commit is the answer of every transaction that wrote, or read a write of this batch. */
export function settleBatch(attempts: readonly Attempt[], outcome: 'committed' | Error): void {
  for (const { pending, view, value, timestamp, thrown } of attempts) {
    if (outcome !== 'committed' && (view.writes.size > 0 || view.readUncommitted)) pending.reject(outcome);
    else if (thrown) pending.reject(thrown.error);
    else pending.resolve({ value, timestamp: timestamp! });
  }
}

export class WaitQueues {
  /** Conflicts of its first transaction after which a queue is starved. */
  private readonly attemptsBeside: number;
  /** Has a queue as long as a transaction of its key waits, runs or commits; transactions that run are not in their queue. */
  private readonly queues = new Map<Key, PendingTransaction[]>();
  /** Every key of `queues` is in one of these two, once, or its queue runs or is not ready yet: so no queue runs twice at a time. */
  private readonly ready: Key[] = [];
  /** Queues that lost too many races: each runs with no other queue beside it. */
  private readonly starved: Key[] = [];
  /** Queues that run or commit. */
  private running = 0;
  /** A starved queue runs; then `running` is 1. */
  private isExclusive = false;

  constructor(attemptsBeside: number) {
    this.attemptsBeside = attemptsBeside;
  }

  isIdle(): boolean {
    return this.queues.size === 0;
  }

  /** The key of the queue to start next. While a starved queue waits or runs, no other queue is started. */
  next(): Key | undefined {
    if (this.isExclusive) return undefined;
    if (this.starved.length === 0) return this.ready[0];
    return this.running === 0 ? this.starved[0] : undefined;
  }

  /** How many queues wait to be started; none where none may be. */
  startable(): number {
    return this.next() === undefined ? 0 : this.starved.length + this.ready.length;
  }

  waiting(queueKey: Key): readonly PendingTransaction[] | undefined {
    return this.queues.get(queueKey);
  }

  /** True: the queue is new, and the caller calls `makeReady`. */
  add(queueKey: Key, transaction: PendingTransaction): boolean {
    const queue = this.queues.get(queueKey);
    if (queue) queue.push(transaction);
    else this.queues.set(queueKey, [transaction]);
    return !queue;
  }

  /** The queue may be started. */
  makeReady(queueKey: Key): void {
    const [first] = this.queues.get(queueKey)!;
    (first!.attempts >= this.attemptsBeside ? this.starved : this.ready).push(queueKey);
  }

  /** Begins with the queue that `next` names. It ends with `finish`, and then `firstLeft`. */
  start(): void {
    this.isExclusive = this.starved.length > 0;
    (this.isExclusive ? this.starved : this.ready).shift();
    this.running++;
  }

  take(queueKey: Key, max: number): PendingTransaction[] {
    return this.queues.get(queueKey)!.splice(0, max);
  }

  /** At the head: these came before all that wait. */
  putBack(queueKey: Key, transactions: readonly PendingTransaction[]): void {
    this.queues.get(queueKey)!.unshift(...transactions);
  }

  /** Other queues may be started; this one only after `makeReady`. */
  finish(): void {
    this.running--;
    this.isExclusive = false;
  }

  /** The first transaction that is left: the caller calls `makeReady`. Without one the queue is removed. */
  firstLeft(queueKey: Key): PendingTransaction | undefined {
    const [first] = this.queues.get(queueKey)!;
    if (!first) this.queues.delete(queueKey);
    return first;
  }
}

/** How long a combined transaction waits for further calls. */
export interface GatherLimits {
  /** Turns of the event loop, while each of them brings calls. */
  readonly turnsGatheredMax: number;
  /** After that, while fewer calls wait than were answered together before. */
  readonly gatherMillisecondsMax: number;
}

/** Queue keys whose calls are counted. */
const EXPECTED_MAX = 64;

/** The calls that were answered together last, by their queue key: as many are expected again. */
export class ExpectedCalls {
  /** Of at least two; the latest last. */
  private readonly counts = new Map<Key, number>();

  /** These transactions are about to be answered. */
  note(queueKey: Key, attempts: readonly Attempt[]): void {
    let count = 0;
    for (const { pending } of attempts) count += countCalls(pending);
    // Most queues have one caller.
    if (this.counts.size > 0) this.counts.delete(queueKey);
    if (count > 1) this.counts.set(queueKey, count);
    if (this.counts.size > EXPECTED_MAX) this.counts.delete(this.counts.keys().next().value!);
  }

  exceed(queueKey: Key, waiting: readonly PendingTransaction[]): boolean {
    const expected = this.counts.size > 0 ? this.counts.get(queueKey) : undefined;
    return expected !== undefined && waiting.reduce((sum, pending) => sum + countCalls(pending), 0) < expected;
  }
}

const countCalls = (pending: PendingTransaction): number =>
  pending instanceof CombinedTransaction ? pending.callCount : 0;

interface Call<Input, Output> {
  readonly input: Input;
  readonly resolve: (value: Output) => void;
  readonly reject: (error: unknown) => void;
}

export class CombinedTransaction<Input, Output> implements PendingTransaction {
  attempts = 0;
  private readonly combined: CombinedFunction<Input, Output>;
  /** Complete before the first attempt: `lost` has a result for each. */
  private readonly calls: Call<Input, Output>[] = [];
  private weight = 0;
  private callsSeen = 0;
  private turnsGathered = 0;
  private gatherUntil: number | undefined;
  private lost: readonly CombinedResult<Output>[] | undefined;

  constructor(combined: CombinedFunction<Input, Output>) {
    this.combined = combined;
  }

  get callCount(): number {
    return this.calls.length;
  }

  /**
   * Asked once in each turn of the event loop. Clients that are answered together send their next requests within some turns, and one
   * transaction for all of them costs less than one for the first and another for the rest: so it starts after a turn without a call, and if
   * others are expected a little later.
   */
  waitsAnotherTurn({ turnsGatheredMax, gatherMillisecondsMax }: GatherLimits, expectsMore: boolean): boolean {
    const hasGrown = this.calls.length > this.callsSeen;
    this.callsSeen = this.calls.length;
    if (this.attempts > 0) return false;
    if (hasGrown && this.turnsGathered++ < turnsGatheredMax) return true;
    if (!expectsMore) return false;
    const now = performance.now();
    this.gatherUntil ??= now + gatherMillisecondsMax;
    return now < this.gatherUntil;
  }

  /** Only a transaction that waits for its first attempt may be asked: its snapshot will be later than the call. */
  hasRoomFor(combined: CombinedFunction<Input, Output>, input: Input): boolean {
    if (this.combined !== combined || this.attempts > 0) return false;
    return this.weight + combined.weight(input) <= combined.weightMax;
  }

  add(call: Call<Input, Output>): void {
    this.calls.push(call);
    this.weight += this.combined.weight(call.input);
  }

  async fn(tx: Transaction): Promise<readonly CombinedResult<Output>[]> {
    const inputs = this.calls.map(({ input }) => input);
    this.lost = await this.combined.run(tx, inputs, this.lost);
    return this.lost;
  }

  resolve({ value }: { readonly value: unknown }): void {
    for (const [i, result] of (value as readonly CombinedResult<Output>[]).entries()) {
      if ('error' in result) this.calls[i]!.reject(result.error);
      else this.calls[i]!.resolve(result.value);
    }
  }

  reject(error: unknown): void {
    for (const call of this.calls) call.reject(error);
  }
}
