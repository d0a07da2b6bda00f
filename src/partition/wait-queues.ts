/** Scheduling of transactions: one first-in-first-out queue per queue key, and an exclusive turn for queues that starve. */
import type { PendingTransaction } from './batch.ts';
import type { Key } from './keys.ts';

export class WaitQueues {
  /** Conflicts of its first transaction after which a queue is starved. */
  private readonly attemptsBeside: number;
  /** Has a queue as long as a transaction of its key waits, runs or commits; transactions that run are not in their queue. */
  private readonly queues = new Map<Key, PendingTransaction[]>();
  /** Every key of `queues` is in one of these two, once, or its queue runs: so no queue runs twice at a time. */
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

  add(queueKey: Key, transaction: PendingTransaction): void {
    const queue = this.queues.get(queueKey);
    if (queue) {
      queue.push(transaction);
      return;
    }
    this.queues.set(queueKey, [transaction]);
    this.ready.push(queueKey);
  }

  /** Begins with the queue that `next` names. It ends with `finish`, and then `reschedule`. */
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

  /** Other queues may be started; this one only after `reschedule`. */
  finish(): void {
    this.running--;
    this.isExclusive = false;
  }

  reschedule(queueKey: Key): void {
    const queue = this.queues.get(queueKey)!;
    if (queue.length === 0) this.queues.delete(queueKey);
    else if (queue[0]!.attempts >= this.attemptsBeside) this.starved.push(queueKey);
    else this.ready.push(queueKey);
  }
}
