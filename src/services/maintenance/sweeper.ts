/**
 * Sweeper, step 1 of freeing content: works off the deletion queue and the expiry index in slices, on the leader only, removes rows and
 * lowers the live bytes of extents. Contents wait for the low watermark of active reads. Step 2 is content/gc/collector.ts.
 */
import { type BackgroundTask, startBackgroundTask } from '../../base/background-task.ts';
import type { LowWatermark } from '../../content/gc/active-reads.ts';
import { activeEpochs } from '../../content/membership/epochs.ts';
import { deletionsIn, parseId } from '../../content/rows.ts';
import { type Key, keyAfter } from '../../partition/keys.ts';
import type { Partition, Row } from '../../partition/partition.ts';
import { expiredIn } from '../blob/rows.ts';
import { type Deletion, decodeDeletion } from '../common/deletions.ts';
import type { AccountId } from '../common/storage.ts';
import { removeOrphanedOpens } from '../file/orphaned-opens.ts';
import { createTtlScan, type TtlScan } from '../queue/ttl-scan.ts';
import { emptyAccount, hasContents } from './reset.ts';
import { expireEntry, type SweepContext, sweepSlice } from './sweep-slice.ts';

export interface SweeperOptions extends SweepContext {
  /** All accounts that may have rows; they come and go. */
  readonly accounts: () => Iterable<AccountId>;
  /** The removed ones among them, whose containers, queues and tables are to be deleted. */
  readonly removed?: () => readonly AccountId[];
  readonly lowWatermark: LowWatermark;
  /** Of several processes only the leader sweeps. */
  readonly isLeader?: () => boolean;
  readonly onFailure?: (error: unknown) => void;
}

/** Entries of the deletion queue that are swept in parallel; their commits share a sync. */
const PARALLEL_ROWS = 32;
/** Entries that are read to find those that are swept before merges. */
const SCANNED_ROWS = 256;
/** After this time the entries further back in the queue get their turn. */
const TURN_MILLISECONDS = 1_000;
/** The pause between slices, as a multiple of the time of the slice before: the disk belongs to the requests. */
const PAUSE_FACTOR = 2;
const RETRY_MILLISECONDS = 5_000;
const EVERY_MILLISECONDS = 60_000;
/** Contents whose watermark is known. Further ones wait until some of these are swept. */
const WAITING_MAX = 100_000;

export function startSweeper(options: SweeperOptions): Sweeper {
  return new Sweeper(options);
}

export class Sweeper {
  private readonly options: SweeperOptions;
  private readonly partition: Partition;
  private readonly lowWatermark: LowWatermark;
  private readonly background: BackgroundTask;
  /** A task of its own, so that a long queue does not delay the deletion queue. */
  private readonly ttlBackground: BackgroundTask;
  private readonly ttlScan: TtlScan;
  /**
   * By key in the deletion queue: the low watermark after which no read can have found the content. An entry is removed only after
   * its content is swept: a content without an entry would get a new, later watermark.
   */
  private readonly waitingForReads = new Map<Key, number>();
  /** The last entry of an account's deletion queue that was seen to wait for the oldest read. Most new entries come after it. */
  private readonly scannedUpTo = new Map<AccountId, { readonly oldest: number; readonly upTo: Key }>();
  /** Entries that are left out until the next retry. */
  private readonly failed = new Set<Key>();
  /** The background task will be woken when the low watermark has advanced. */
  private isWaiting = false;

  constructor(options: SweeperOptions) {
    this.options = options;
    this.partition = options.partition;
    this.lowWatermark = options.lowWatermark;
    this.background = startBackgroundTask(
      () => this.run(),
      EVERY_MILLISECONDS,
      () => this.restart(),
    );
    this.ttlScan = createTtlScan({
      partition: options.partition,
      mayWork: () => this.mayWork(),
      pause: (worked) => this.background.sleep(PAUSE_FACTOR * worked),
    });
    this.ttlBackground = startBackgroundTask(() => this.scanAllTtl(), EVERY_MILLISECONDS);
  }

  wake(): void {
    this.background.wake();
    this.ttlBackground.wake();
  }

  /** Resolves once everything that can be swept now is swept; contents that an active read needs wait for its end. */
  async idle(): Promise<void> {
    await Promise.all([this.background.idle(), this.ttlBackground.idle()]);
  }

  async stop(): Promise<void> {
    await Promise.all([this.background.stop(), this.ttlBackground.stop()]);
  }

  private mayWork(): boolean {
    return !this.background.isStopping && (this.options.isLeader?.() ?? true);
  }

  private async run(): Promise<void> {
    if (!this.mayWork()) return;
    await this.removeOrphaned();
    await this.emptyRemovedAccounts();
    for (const account of this.options.accounts()) {
      try {
        await this.sweepExpired(account);
        while (this.mayWork() && (await this.sweepAccount(account)));
      } catch (error) {
        if (!this.background.isStopping) this.retry(error);
      }
    }
  }

  private async scanAllTtl(): Promise<void> {
    for (const account of this.options.accounts()) {
      try {
        if (this.mayWork()) await this.ttlScan.run(account);
      } catch (error) {
        if (!this.background.isStopping) this.options.onFailure?.(error);
      }
    }
  }

  /** What processes that are gone had open. */
  private async removeOrphaned(): Promise<void> {
    try {
      await removeOrphanedOpens(this.partition, this.options.accounts());
    } catch (error) {
      if (!this.background.isStopping) this.retry(error);
    }
  }

  private async emptyRemovedAccounts(): Promise<void> {
    const { partition, background } = this;
    for (const account of this.options.removed?.() ?? []) {
      try {
        if (this.mayWork() && (await hasContents(partition, account)))
          await emptyAccount({ partition, account, sweeper: { wake: background.wake } });
      } catch (error) {
        if (!background.isStopping) this.retry(error);
      }
    }
  }

  private async sweepExpired(account: AccountId): Promise<void> {
    for (let from: Key | undefined; this.mayWork(); ) {
      const rows = await this.partition.read((at) => {
        const range = expiredIn(account, at.now);
        return at.scan({ from: from ?? range.from, to: range.to }, { limit: PARALLEL_ROWS });
      });
      const last = rows.at(-1);
      if (!last) return;
      from = keyAfter(last.key);
      const started = performance.now();
      await this.settleAll(rows, (row) => expireEntry(this.options, account, row));
      await this.background.sleep(PAUSE_FACTOR * (performance.now() - started));
    }
  }

  /** Merges come last: they look at all versions of a map page, of which the others may leave few. True: more can be swept now. */
  private async sweepAccount(account: AccountId): Promise<boolean> {
    await this.sweepBeforeMerges(account);
    return this.sweepAll(account);
  }

  private async sweepBeforeMerges(account: AccountId): Promise<void> {
    const range = deletionsIn(account);
    for (let { from } = range; this.mayWork(); ) {
      const [rows, living] = await this.partition.read((at) =>
        Promise.all([at.scan({ from, to: range.to }, { limit: SCANNED_ROWS }), activeEpochs(at)]),
      );
      const last = rows.at(-1);
      if (!last) return;
      from = keyAfter(last.key);
      const ready = rows.filter((row) => this.isReady(row, living) && decodeDeletion(row).kind !== 'merge');
      for (let i = 0; i < ready.length; i += PARALLEL_ROWS)
        await this.sweepParallel(account, ready.slice(i, i + PARALLEL_ROWS));
    }
  }

  /** One pass over the deletion queue. True: another pass can sweep more now. */
  private async sweepAll(account: AccountId): Promise<boolean> {
    const range = deletionsIn(account);
    const oldest = this.lowWatermark.oldest();
    const known = this.scannedUpTo.get(account);
    let from = known && oldest < Infinity && known.oldest === oldest ? keyAfter(known.upTo) : range.from;
    let isUnfinished = false;
    let upTo: Key | undefined;
    while (this.mayWork()) {
      // In one snapshot: a process that joins later has made none of these entries.
      const [rows, living] = await this.partition.read((at) =>
        Promise.all([at.scan({ from, to: range.to }, { limit: PARALLEL_ROWS }), activeEpochs(at)]),
      );
      upTo = rows.at(-1)?.key;
      if (!upTo) break;
      from = keyAfter(upTo);
      const ready = rows.filter((row) => this.isReady(row, living));
      if (!(await this.sweepParallel(account, ready))) isUnfinished = true;
      if (!isUnfinished) this.scannedUpTo.set(account, { oldest, upTo });
    }
    return isUnfinished;
  }

  /** Slice after slice of each entry. False: the turn ended before all were swept. */
  private async sweepParallel(account: AccountId, rows: readonly Row[]): Promise<boolean> {
    const end = performance.now() + TURN_MILLISECONDS;
    for (let left = rows; left.length > 0; ) {
      const started = performance.now();
      if (started > end || !this.mayWork()) return false;
      const done = new Set<Row>();
      await this.settleAll(left, async (row) => {
        if (!(await sweepSlice(this.options, account, row))) return;
        done.add(row);
        this.waitingForReads.delete(row.key);
      });
      left = left.filter((row) => !done.has(row) && !this.failed.has(row.key));
      await this.background.sleep(PAUSE_FACTOR * (performance.now() - started));
    }
    return true;
  }

  private isReady(row: Row, living: ReadonlySet<bigint>): boolean {
    if (this.failed.has(row.key)) return false;
    try {
      return this.isReclaimable(row, living);
    } catch (error) {
      this.failed.add(row.key);
      this.retry(error);
      return false;
    }
  }

  /**
   * A content, a generation of one, or a snapshot of a share waits for the reads that may have found it while it was referenced; a pending
   * one for the process that builds or reads it.
   */
  private isReclaimable(row: Row, living: ReadonlySet<bigint>): boolean {
    const { lowWatermark, waitingForReads } = this;
    const deletion = decodeDeletion(row);
    if (deletion.kind !== 'content' && deletion.kind !== 'generation' && deletion.kind !== 'shareSnapshot') return true;
    if (deletion.kind !== 'shareSnapshot' && deletion.pending) return !living.has(ownerEpoch(deletion));
    let since = waitingForReads.get(row.key);
    if (since === undefined) {
      since = lowWatermark.next();
      if (lowWatermark.oldest() >= since) return true;
      if (waitingForReads.size >= WAITING_MAX) return false;
      waitingForReads.set(row.key, since);
    }
    if (lowWatermark.oldest() >= since) return true;
    this.wakeAfter(since);
    return false;
  }

  private wakeAfter(read: number): void {
    if (this.isWaiting) return;
    this.isWaiting = true;
    void this.lowWatermark.whenReached(read).then(() => {
      this.isWaiting = false;
      this.background.wake();
    });
  }

  /** An entry that fails does not delay the others. */
  private async settleAll(rows: readonly Row[], work: (row: Row) => Promise<void>): Promise<void> {
    const results = await Promise.allSettled(rows.map(work));
    for (const [i, { status }] of results.entries()) if (status === 'rejected') this.failed.add(rows[i]!.key);
    const failure = results.find((result) => result.status === 'rejected');
    if (failure && !this.background.isStopping) this.retry(failure.reason);
  }

  private retry(error: unknown): void {
    this.options.onFailure?.(error);
    void this.background.sleep(RETRY_MILLISECONDS).then(() => this.restart());
  }

  private restart(): void {
    this.failed.clear();
    this.scannedUpTo.clear();
    this.background.wake();
  }
}

/** The process that a pending entry belongs to. */
function ownerEpoch(deletion: Deletion & { readonly kind: 'content' | 'generation' }): bigint {
  return parseId((deletion.kind === 'generation' && deletion.read) || deletion.content).epoch;
}
