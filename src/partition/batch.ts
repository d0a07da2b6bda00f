/** One batch of group commit: transactions of one queue key run in order over one snapshot, and become one commit. */
import { mergeAdds } from './counters.ts';
import type { Key } from './keys.ts';
import {
  type Commit,
  type Engine,
  type Instant,
  OutcomeUnknown,
  type RangeCheck,
  type ReadCheck,
  type Snapshot,
  type Timestamp,
  type Transaction,
} from './partition.ts';
import { type BufferedWrite, mergeWrite, TransactionView } from './transaction-view.ts';

/** A transaction that waits for its turn. */
export interface PendingTransaction {
  fn(tx: Transaction): Promise<unknown>;
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

/** Transactions for which the commit has no room are left in `waiting`. */
export async function runBatch(
  waiting: PendingTransaction[],
  snapshot: Snapshot,
  propose: () => Timestamp,
  { writesMax, bytesMax }: BatchLimits,
): Promise<Attempt[]> {
  const attempts: Attempt[] = [];
  const writeSet = new Map<Key, BufferedWrite>();
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
  const writeSets: Commit['writeSets'][number][] = [];
  const checks = new Map<Key, ReadCheck>();
  const ranges: RangeCheck[] = [];
  let deadline: Instant | undefined;
  for (const { view, thrown } of attempts) {
    const writes = !thrown && view.writes.size > 0;
    if (writes) writeSets.push({ timestamp: view.timestamp, writes: [...view.writes.values()] });
    // A result that depends on a write of this commit and on other rows is true only if those are unchanged at the commit.
    else if (!view.readUncommitted) continue;
    for (const check of view.checks) checks.set(check.key, check);
    ranges.push(...view.ranges);
    if (view.deadline !== undefined && (deadline === undefined || view.deadline < deadline)) deadline = view.deadline;
  }
  if (writeSets.length === 0) return undefined;
  return {
    id: nextId(),
    queueKeys: [queueKey],
    checks: [...checks.values()],
    ranges,
    writeSets: mergeAdds(writeSets),
    ...(deadline !== undefined && { deadline }),
    ...(snapshotGroup !== undefined && { snapshotGroup }),
  };
}

export async function tryCommit(engine: Engine, commit: Commit): Promise<'committed' | 'conflict' | Error> {
  try {
    const outcome = await engine.commit(commit);
    return outcome === 'unknown' ? new OutcomeUnknown('The store did not say whether the write happened.') : outcome;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** A failed commit is the answer of every transaction that wrote, or read a write of this batch. */
export function settleBatch(attempts: readonly Attempt[], outcome: 'committed' | Error): void {
  for (const { pending, view, value, timestamp, thrown } of attempts) {
    if (outcome !== 'committed' && (view.writes.size > 0 || view.readUncommitted)) pending.reject(outcome);
    else if (thrown) pending.reject(thrown.error);
    else pending.resolve({ value, timestamp: timestamp! });
  }
}
