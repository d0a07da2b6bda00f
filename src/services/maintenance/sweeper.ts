/** Gives back the rows of what was deleted in O(1) or has expired, in slices, beside everything else. The trash remembers what is left. */
import { startBackgroundTask } from '../../base/background-task.ts';
import type { LowWatermark } from '../../content/gc/active-reads.ts';
import { activeEpochs } from '../../content/membership/epochs.ts';
import { deletionsIn, parseId } from '../../content/rows.ts';
import { type Key, keyAfter } from '../../partition/keys.ts';
import type { Row } from '../../partition/partition.ts';
import { expiredIn } from '../blob/rows.ts';
import { decodeDeletion } from '../common/deletions.ts';
import type { AccountId } from '../common/storage.ts';
import { createTtlScan } from '../queue/ttl-scan.ts';
import { emptyAccount, hasContents } from './reset.ts';
import { expireUncommitted, type SweepContext, sweepSlice } from './sweep-slice.ts';

export interface Sweeper {
  wake(): void;
  /** Resolves once all is swept that can be swept now; what a running read still needs waits for its end. */
  idle(): Promise<void>;
  stop(): Promise<void>;
}

export interface SweeperOptions extends SweepContext {
  /** All whose rows there may be: they come and go. */
  readonly accounts: () => Iterable<AccountId>;
  /** Those among them that are gone, and with them all that they held. */
  readonly removed?: () => readonly AccountId[];
  readonly lowWatermark: LowWatermark;
  /** Of several processes one sweeps. */
  readonly isLeader?: () => boolean;
  readonly onFailure?: (error: unknown) => void;
}

/** Trash rows that are swept side by side; their commits share a sync. */
const PARALLEL_ROWS = 32;
/** After so long the rows behind have their turn, too. */
const TURN_MILLISECONDS = 1_000;
/** The pause between slices, in lengths of the slice before: the disk belongs to the requests. */
const PAUSE_FACTOR = 2;
const RETRY_MILLISECONDS = 5_000;
const EVERY_MILLISECONDS = 60_000;
/** Contents of which it is known since when nobody can find them. More of them wait until these are gone. */
const WAITING_MAX = 100_000;

export function startSweeper(options: SweeperOptions): Sweeper {
  const { partition, lowWatermark, isLeader = () => true, onFailure = () => {} } = options;
  /** By trash row: what has to pass until no read can have found its content. */
  const waitingForReads = new Map<Key, number>();
  /** Up to where the trash of an account is known to wait for this read. Most new trash lies behind. */
  const scannedUpTo = new Map<AccountId, { readonly oldest: number; readonly upTo: Key }>();
  const failed = new Set<Key>();
  let isWaiting = false;
  const background = startBackgroundTask(run, EVERY_MILLISECONDS, restart);

  const mayWork = (): boolean => !background.isStopping && isLeader();
  const ttlScan = createTtlScan({ partition, mayWork, pause: (worked) => background.sleep(PAUSE_FACTOR * worked) });
  /** A long queue does not keep the trash waiting. */
  const ttlBackground = startBackgroundTask(scanAllTtl, EVERY_MILLISECONDS);

  async function run(): Promise<void> {
    if (!mayWork()) return;
    await emptyRemovedAccounts();
    for (const account of options.accounts()) {
      try {
        await sweepExpired(account);
        while (mayWork() && (await sweepAccount(account)));
      } catch (error) {
        if (!background.isStopping) retry(error);
      }
    }
  }

  async function scanAllTtl(): Promise<void> {
    for (const account of options.accounts()) {
      try {
        if (mayWork()) await ttlScan.run(account);
      } catch (error) {
        if (!background.isStopping) onFailure(error);
      }
    }
  }

  async function emptyRemovedAccounts(): Promise<void> {
    for (const account of options.removed?.() ?? []) {
      try {
        if (mayWork() && (await hasContents(partition, account)))
          await emptyAccount({ partition, account, sweeper: { wake: background.wake } });
      } catch (error) {
        if (!background.isStopping) retry(error);
      }
    }
  }

  async function sweepExpired(account: AccountId): Promise<void> {
    for (let from: Key | undefined; mayWork(); ) {
      const rows = await partition.read((at) => {
        const range = expiredIn(account, at.now);
        return at.scan({ from: from ?? range.from, to: range.to }, { limit: PARALLEL_ROWS });
      });
      const last = rows.at(-1);
      if (!last) return;
      from = keyAfter(last.key);
      const started = performance.now();
      await settleAll(rows, (row) => expireUncommitted(options, account, row));
      await background.sleep(PAUSE_FACTOR * (performance.now() - started));
    }
  }

  /** Once through the trash; true: there is more to do now. */
  async function sweepAccount(account: AccountId): Promise<boolean> {
    const range = deletionsIn(account);
    const oldest = lowWatermark.oldest();
    const known = scannedUpTo.get(account);
    let from = known && oldest < Infinity && known.oldest === oldest ? keyAfter(known.upTo) : range.from;
    let isUnfinished = false;
    let upTo: Key | undefined;
    while (mayWork()) {
      // In one snapshot: a process that joins later has made none of these.
      const [rows, living] = await partition.read((at) =>
        Promise.all([at.scan({ from, to: range.to }, { limit: PARALLEL_ROWS }), activeEpochs(at)]),
      );
      upTo = rows.at(-1)?.key;
      if (!upTo) break;
      from = keyAfter(upTo);
      if (
        !(await sweepParallel(
          account,
          rows.filter((row) => isReady(row, living)),
        ))
      )
        isUnfinished = true;
      if (!isUnfinished) scannedUpTo.set(account, { oldest, upTo });
    }
    return isUnfinished;
  }

  /** Slice after slice of each, until nothing is left or others should have their turn. */
  async function sweepParallel(account: AccountId, rows: readonly Row[]): Promise<boolean> {
    const end = performance.now() + TURN_MILLISECONDS;
    for (let left = rows; left.length > 0; ) {
      const started = performance.now();
      if (started > end || !mayWork()) return false;
      const done = new Set<Row>();
      await settleAll(left, async (row) => {
        if (!(await sweepSlice(options, account, row.key))) return;
        done.add(row);
        waitingForReads.delete(row.key);
      });
      left = left.filter((row) => !done.has(row) && !failed.has(row.key));
      await background.sleep(PAUSE_FACTOR * (performance.now() - started));
    }
    return true;
  }

  function isReady(row: Row, living: ReadonlySet<bigint>): boolean {
    if (failed.has(row.key)) return false;
    try {
      return isReclaimable(row, living);
    } catch (error) {
      failed.add(row.key);
      retry(error);
      return false;
    }
  }

  /** Contents wait for the reads that may have found them before nobody could any more; pending ones for those who work on them. */
  function isReclaimable(row: Row, living: ReadonlySet<bigint>): boolean {
    const trash = decodeDeletion(row);
    if (trash.kind !== 'content') return true;
    if (trash.pending) return !living.has(parseId(trash.content).epoch);
    let since = waitingForReads.get(row.key);
    if (since === undefined) {
      since = lowWatermark.next();
      if (lowWatermark.oldest() >= since) return true;
      if (waitingForReads.size >= WAITING_MAX) return false;
      waitingForReads.set(row.key, since);
    }
    if (lowWatermark.oldest() >= since) return true;
    wakeAfter(since);
    return false;
  }

  function wakeAfter(read: number): void {
    if (isWaiting) return;
    isWaiting = true;
    void lowWatermark.whenReached(read).then(() => {
      isWaiting = false;
      background.wake();
    });
  }

  /** What fails does not keep the others waiting. */
  async function settleAll(rows: readonly Row[], work: (row: Row) => Promise<void>): Promise<void> {
    const results = await Promise.allSettled(rows.map(work));
    for (const [i, { status }] of results.entries()) if (status === 'rejected') failed.add(rows[i]!.key);
    const failure = results.find((result) => result.status === 'rejected');
    if (failure && !background.isStopping) retry(failure.reason);
  }

  function retry(error: unknown): void {
    onFailure(error);
    void background.sleep(RETRY_MILLISECONDS).then(restart);
  }

  function restart(): void {
    failed.clear();
    scannedUpTo.clear();
    background.wake();
  }

  const both = [background, ttlBackground];
  return {
    wake() {
      for (const each of both) each.wake();
    },
    async idle() {
      await Promise.all(both.map((each) => each.idle()));
    },
    async stop() {
      await Promise.all(both.map((each) => each.stop()));
    },
  };
}
