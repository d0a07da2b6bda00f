/**
 * Runs the copies of this process in the background, a few at a time: those that it started, and those whose process is gone. The
 * rows are the queue; memory holds the first of them.
 */
import { type BackgroundTask, startBackgroundTask } from '../../base/background-task.ts';
import { activeEpochs } from '../../content/membership/epochs.ts';
import { type Key, keyAfter } from '../../partition/keys.ts';
import { isOverdue } from '../../rules/copy-state.ts';
import { CopyJob, type JobContext } from './copy-job.ts';
import type { CopiedResource, CopyTargets } from './copy-target.ts';
import { decodeRunningCopy } from './running-copies.ts';
import type { AccountId, CopyQueue } from './storage.ts';

export interface CopyRunnerOptions extends JobContext {
  /** Of each service that has copies. */
  readonly targets: readonly CopyTargets[];
  readonly accounts: () => Iterable<AccountId>;
  readonly rescanMilliseconds?: number;
}

/** Copies that run at the same time. */
const RUNNING_MAX = 8;
/** Copies that wait in memory. Further ones are found by the next scan. */
const WAITING_MAX = 1_000;
const SCAN_ROWS = { limit: 200 };
const EVERY_MILLISECONDS = 2_000;
/** A copy whose start had an unknown outcome was not queued: the rows tell. */
const RESCAN_MILLISECONDS = 60_000;

interface RunningJob {
  readonly job: CopyJob<CopiedResource>;
  readonly stopping: AbortController;
  readonly ended: Promise<void>;
}

export class CopyRunner implements CopyQueue {
  private readonly options: CopyRunnerOptions;
  private readonly background: BackgroundTask;
  private readonly running = new Map<Key, RunningJob>();
  private readonly waiting = new Set<Key>();
  /** There may be rows that are neither running nor waiting here. */
  private needsScan = true;
  private scannedAt = 0;
  /** The members as of the last scan: what one of them ran is taken over when it is gone. */
  private epochs = '';

  constructor(options: CopyRunnerOptions) {
    this.options = options;
    this.background = startBackgroundTask(() => this.run(), EVERY_MILLISECONDS);
    this.background.wake();
  }

  start(key: Key): void {
    if (this.waiting.size < WAITING_MAX) this.waiting.add(key);
    else this.needsScan = true;
    this.background.wake();
  }

  wake(): void {
    this.background.wake();
  }

  async stop(): Promise<void> {
    await this.background.stop();
    const running = [...this.running.values()];
    for (const { stopping } of running) stopping.abort();
    await Promise.all(running.map(({ ended }) => ended));
  }

  private async run(): Promise<void> {
    try {
      await this.stopEnded();
      if (this.waiting.size === 0) await this.findCopies();
      for (const key of this.waiting) {
        if (this.running.size >= RUNNING_MAX) break;
        // The copy before it on the same blob is not stopped yet.
        if (this.running.has(key)) continue;
        this.waiting.delete(key);
        this.begin(key);
      }
    } catch (error) {
      // The next run, after two seconds, tries again.
      if (!this.background.isStopping) this.options.onFailure?.(error);
    }
  }

  private begin(key: Key): void {
    const { content, targets } = this.options;
    const stopping = new AbortController();
    const target = targets.map((each) => each.open(content, key)).find((each) => each !== undefined);
    if (!target) throw new Error('a running copy of no service');
    const job = new CopyJob(this.options, target, stopping.signal);
    const ended = job
      .run()
      .catch((error: unknown) => this.options.onFailure?.(error))
      .then(() => {
        this.running.delete(key);
        this.background.wake();
      });
    this.running.set(key, { job, stopping, ended });
  }

  /** Copies that were aborted, deleted or taken over are stopped; an overdue one is stopped, and ended by its next job. */
  private async stopEnded(): Promise<void> {
    const keys = [...this.running.keys()];
    if (keys.length === 0) return;
    const { rows, now } = await this.options.partition.read(async (at) => ({
      rows: await at.getMany(keys),
      now: at.now,
    }));
    for (const [at, key] of keys.entries()) {
      const row = rows[at];
      const copy = row && decodeRunningCopy(row);
      const { job, stopping } = this.running.get(key) ?? {};
      const isLate = copy !== undefined && isOverdue(copy.started, now);
      const isOther = job?.copyId !== undefined && job.copyId !== copy?.id;
      if (copy?.owner === this.options.epoch && !isOther && !isLate) continue;
      stopping?.abort();
      if (isLate) this.waiting.add(key);
    }
  }

  /** Fills the waiting copies from the rows, if any of these can be without a process. */
  private async findCopies(): Promise<void> {
    const { partition, accounts, epoch, rescanMilliseconds = RESCAN_MILLISECONDS } = this.options;
    const members = await partition.read(activeEpochs);
    const epochs = [...members].join();
    const isRecent = performance.now() - this.scannedAt < rescanMilliseconds;
    if (!this.needsScan && isRecent && epochs === this.epochs) return;
    this.needsScan = false;
    this.scannedAt = performance.now();
    const ranges = [...accounts()].flatMap((account) => this.options.targets.map(({ rowsIn }) => rowsIn(account)));
    for (const { from, to } of ranges) {
      for (let next = from; ; ) {
        const rows = await partition.read((at) => at.scan({ from: next, to }, SCAN_ROWS));
        for (const row of rows) {
          const { owner } = decodeRunningCopy(row);
          if (owner !== epoch && members.has(owner)) continue;
          if (this.waiting.size >= WAITING_MAX) {
            this.needsScan = true;
            return;
          }
          if (!this.running.has(row.key)) this.waiting.add(row.key);
        }
        const last = rows.at(-1);
        if (!last) break;
        next = keyAfter(last.key);
      }
    }
    this.epochs = epochs;
  }
}
