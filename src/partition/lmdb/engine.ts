/**
 * The embedded engine: write-ahead log, memory overlay and checkpoints in LMDB, in one folder on a local disk. Group commit, with one
 * group in flight: validated, written into the overlay (not visible yet), appended to the log, synced, made visible, answered. Commits of
 * volatile rows alone are a group of their own, which is visible as soon as it is validated.
 */
import { COUNT_BOUNDS, Histogram, SECONDS_BOUNDS } from '../../base/histogram.ts';
import { type ClockOptions, ReservedClock } from '../clock.ts';
import {
  type Commit,
  DiskFull,
  type Engine,
  type EngineFigures,
  type Instant,
  type Outcome,
  Unavailable,
} from '../partition.ts';
import { estimateCommit, freesSpace, isVolatileAlone, LOW_SPACE, type SizeEstimate } from './disk-space.ts';
import { isDiskFull, type LmdbFiles } from './files.ts';
import { type Decision, GroupValidation } from './group-validation.ts';
import { type CheckpointOptions, Layers } from './layers.ts';
import { type LmdbSnapshot, makeSnapshot } from './reads.ts';
import { type Recovered, recover } from './recovery.ts';
import type { Wal } from './wal.ts';
import { encodeRecord } from './wal-record.ts';

export interface LmdbOptions extends Pick<ClockOptions, 'wall' | 'monotonic'>, CheckpointOptions {
  location: string;
  /** Called before each record; throws if another process owns the folder by now. */
  beforeWrite?: () => void;
}

const TICK_MILLISECONDS = 1_000;
/** The validation of a group blocks the event loop. */
const GROUP_BYTES_MAX = 1 << 20;
/** Volatile commits answered in one turn of the event loop; further answers would keep sockets and timers waiting. */
const VOLATILE_PER_TURN = 128;
/** Callers answered in one turn of the event loop send their next commits together, too. */
const ANSWERS_PER_TURN = 16;

/** One for the transaction, and one for what many operations read before it. */
const SNAPSHOTS_OF_A_WRITE = 2;

const EMPTY_COMMIT: Commit = { id: '', queueKeys: [], checks: [], ranges: [], writeSets: [] };

interface PendingCommit {
  readonly data: Commit;
  readonly size: SizeEstimate;
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: Error) => void;
}

/** Throws CorruptionError. */
export async function openLmdb(options: LmdbOptions): Promise<Engine> {
  return new LmdbEngine(options, await recover(options.location));
}

class LmdbEngine implements Engine {
  readonly clock: ReservedClock;
  private readonly beforeWrite: () => void;
  private readonly files: LmdbFiles;
  private readonly wal: Wal;
  private readonly layers: Layers;
  private readonly ticker: NodeJS.Timeout;
  /** The last durable group: new snapshots show the groups up to this one. */
  private group = 0;
  /** Open snapshots by group, oldest first: group numbers only rise, and a Map keeps the order of insertion. */
  private readonly openSnapshots = new Map<number, number>();
  /** Since the last group was written. */
  private snapshotsTaken = 0;
  private readonly waiting: PendingCommit[] = [];
  /** Commits of volatile rows alone that came while a group was in flight. */
  private readonly waitingVolatile: PendingCommit[] = [];
  private isScheduled = false;
  /** A group is in flight. While true, no other group is validated: it might rest on rows that are lost. */
  private isWriting = false;
  /** Writers wait, so that the checkpoint can follow. */
  private isPaused = false;
  /** In this turn of the event loop. */
  private volatileAnswers = 0;
  private nextTurn: Promise<void> | undefined;
  /** The validation instant of the group that is not visible yet; 0: there is none. */
  private decidedAt: Instant = 0n;
  /** Final: after a failed sync the state on disk is unknown until the next start, so nothing more is written. */
  private failure: Unavailable | undefined;
  private isClosing = false;
  private readonly groupTransactions = new Histogram(COUNT_BOUNDS);
  private readonly flushSeconds = new Histogram(SECONDS_BOUNDS);

  constructor({ location, wall, monotonic, beforeWrite = () => {}, ...options }: LmdbOptions, recovered: Recovered) {
    this.beforeWrite = beforeWrite;
    this.files = recovered.files;
    this.wal = recovered.wal;
    const schedule = (): void => this.schedule();
    const drain = (): Promise<Outcome> => this.enqueue(EMPTY_COMMIT);
    this.clock = new ReservedClock({ wall, monotonic, atLeast: recovered.highWater }, schedule, drain);
    this.layers = new Layers(location, recovered, options, schedule, (error) => this.fail(error));
    this.ticker = setInterval(() => {
      if (!this.isWriting && !this.isPaused) this.layers.tick();
    }, TICK_MILLISECONDS).unref();
  }

  snapshot(): LmdbSnapshot {
    const { group } = this;
    this.snapshotsTaken++;
    this.openSnapshots.set(group, (this.openSnapshots.get(group) ?? 0) + 1);
    return makeSnapshot(this.layers.view(group), this.nowForReads(), () => {
      const others = this.openSnapshots.get(group)! - 1;
      if (others > 0) this.openSnapshots.set(group, others);
      else this.openSnapshots.delete(group);
    });
  }

  commit(data: Commit): Outcome | Promise<Outcome> {
    const mustWait = this.isWriting || this.failure || this.isClosing;
    return mustWait || !isVolatileAlone(data) ? this.enqueue(data) : this.answerVolatile(this.decideVolatile(data));
  }

  private enqueue(data: Commit): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      const refusal = this.failure ?? (this.isClosing ? new Unavailable('The store is closed.') : undefined);
      if (refusal) throw refusal;
      const size = estimateCommit(data);
      (isVolatileAlone(data) ? this.waitingVolatile : this.waiting).push({ data, size, resolve, reject });
      this.schedule();
    });
  }

  isBroken(): boolean {
    return this.failure !== undefined;
  }

  figures(): EngineFigures {
    const { groupTransactions, flushSeconds } = this;
    return { groupTransactions, flushSeconds, ...this.layers.figures() };
  }

  async close(): Promise<void> {
    this.isClosing = true;
    clearInterval(this.ticker);
    await this.settle();
    this.clock.reserveExactly();
    this.schedule();
    await this.settle();
    await this.layers.checkpointAll();
    await this.layers.close();
    this.wal.close();
    await this.files.environment.close();
  }

  private async settle(): Promise<void> {
    const isWaiting = () => this.isScheduled || this.isPaused || this.waiting.length + this.waitingVolatile.length > 0;
    const isBusy = () => this.isWriting || (!this.failure && isWaiting());
    while (isBusy()) await new Promise((done) => setTimeout(done, 1));
  }

  /**
   * Stands still while a group is in flight, and after a failed sync: otherwise a reader could find a lease expired, and see later a
   * write that was committed under the lease in time; see docs/adr/0005-timestamps-and-clock.md.
   */
  private nowForReads(): Instant {
    const now = this.clock.now();
    return this.decidedAt === 0n || now < this.decidedAt ? now : this.decidedAt;
  }

  private schedule(): void {
    if (this.isScheduled || this.isWriting) return;
    this.isScheduled = true;
    queueMicrotask(() => {
      this.isScheduled = false;
      this.run();
    });
  }

  private run(): void {
    if (this.isWriting) return;
    if (this.failure) {
      for (const { reject } of [...this.waiting.splice(0), ...this.waitingVolatile.splice(0)]) reject(this.failure);
      return;
    }
    if (this.waitingVolatile.length > 0) {
      const commits = this.waitingVolatile.splice(0);
      const decisions = commits.map(({ data }) => this.decideVolatile(data));
      answerInSlices(commits, decisions, 0);
    }
    if (this.isPaused || (this.waiting.length === 0 && !this.clock.isReservationPending)) return;
    // The end of the checkpoint schedules again. A checkpoint that cannot start for lack of space must not stop the writers.
    if (this.layers.isBehind && this.layers.checkpointNow()) return;
    const commits = this.takeGroup();
    const admitted = this.admit(commits);
    if (!admitted) this.waiting.unshift(...commits);
    else if (admitted.length > 0 || this.clock.isReservationPending) this.write(admitted);
    else if (this.waiting.length > 0) this.schedule();
  }

  /** Nothing is in flight, so all that this commit read is durable, and it needs no sync. */
  private decideVolatile(commit: Commit): Decision {
    const group = this.beginGroup(this.clock.current());
    const decision = group.decide(commit);
    group.end();
    this.group++;
    return decision;
  }

  private answerVolatile(decision: Decision): Outcome | Promise<Outcome> {
    if (typeof decision !== 'string') return Promise.reject(decision);
    if (this.volatileAnswers++ === 0) setImmediate(this.endTurn);
    if (this.volatileAnswers <= VOLATILE_PER_TURN) return decision;
    this.nextTurn ??= new Promise((resolve) => setImmediate(resolve));
    return this.nextTurn.then(() => decision);
  }

  private readonly endTurn = (): void => {
    this.volatileAnswers = 0;
    this.nextTurn = undefined;
  };

  private beginGroup(now: Instant): GroupValidation {
    const oldestSnapshot = this.openSnapshots.keys().next().value ?? this.group;
    return new GroupValidation(this.layers, this.clock, { number: this.group + 1, oldestSnapshot, now });
  }

  private takeGroup(): PendingCommit[] {
    let bytes = 0;
    let count = 0;
    while (count < this.waiting.length && bytes < GROUP_BYTES_MAX) bytes += this.waiting[count++]!.size.bytes;
    return this.waiting.splice(0, count);
  }

  /** The commits that the disk has room for; the others are refused. undefined: the running checkpoint has to end first. */
  private admit(commits: PendingCommit[]): PendingCommit[] | undefined {
    const { layers } = this;
    const all = commits.map(({ size }) => size);
    if (layers.space.hasAmpleSpace(() => layers.sizeEstimateWith(all))) return commits;
    // Preallocation must not write to LMDB's file while a checkpoint does.
    if (layers.isCheckpointing) return undefined;
    const used = layers.usedBytes();
    if (layers.space.hasSpaceFor(layers.sizeEstimateWith(all, used), 'any')) return commits;
    // Pages freed by commits become usable with the next checkpoint.
    if (layers.sizeEstimateWith([]) > 0 && layers.checkpointNow()) return undefined;
    // The log has room for these; the checkpoint starts once they have freed space.
    const freeing = commits.filter(({ data }) => freesSpace(data));
    for (const each of commits) if (!freeing.includes(each)) each.reject(new DiskFull(LOW_SPACE));
    return freeing;
  }

  private write(commits: readonly PendingCommit[]): void {
    this.isWriting = true;
    const { layers, clock, wal } = this;
    const { active, volatile } = layers;
    const now = clock.current();
    const number = this.group + 1;
    const group = this.beginGroup(now);
    const decisions = commits.map(({ data }) => group.decide(data));
    group.end();
    const until = clock.takeReservation();
    if (active.written.length === 0 && until === undefined) {
      this.group = number;
      this.answer(commits, decisions, 0);
      return;
    }
    this.decidedAt = now;
    const before = wal.bytes;
    this.beforeWrite();
    const started = performance.now();
    wal.append(encodeRecord(active.written, until), this.isLoneWriter(commits), (error) => {
      const insteadOfCommitted = (other: Decision) => decisions.map((each) => (each === 'committed' ? other : each));
      if (!error) {
        this.flushSeconds.observe((performance.now() - started) / 1_000);
        this.groupTransactions.observe(countTransactions(commits));
        this.group = number;
        this.decidedAt = 0n;
        this.answer(commits, decisions, wal.bytes - before);
      } else if (isDiskFull(error)) {
        active.undoGroup();
        volatile.undoGroup();
        clock.isReservationPending ||= until !== undefined;
        this.decidedAt = 0n;
        this.answer(commits, insteadOfCommitted(new DiskFull(LOW_SPACE)), 0);
      } else {
        layers.fail(error);
        this.answer(commits, insteadOfCommitted('unknown'), 0);
      }
    });
  }

  /** No other commit waits, no checkpoint runs, and the snapshots since the last group are those that one write takes. */
  private isLoneWriter(commits: readonly PendingCommit[]): boolean {
    const hasReaders = this.snapshotsTaken > SNAPSHOTS_OF_A_WRITE;
    this.snapshotsTaken = 0;
    return commits.length === 1 && this.waiting.length === 0 && !hasReaders && !this.layers.isCheckpointing;
  }

  /** Conflicts, too, are answered only when the group is visible: a transaction that runs again before that would read the same rows. */
  private answer(commits: readonly PendingCommit[], decisions: readonly Decision[], loggedBytes: number): void {
    this.layers.checkpointIfDue();
    this.isWriting = false;
    const pause = this.layers.pauseAfter(loggedBytes);
    if (pause >= 1) {
      this.isPaused = true;
      setTimeout(() => {
        this.isPaused = false;
        this.schedule();
      }, pause);
    }
    this.schedule();
    answerInSlices(commits, decisions, 0);
  }

  private fail({ message }: Error): void {
    this.failure ??= new Unavailable(
      `A write to disk failed (${message}). Writes are refused until the server is started again.`,
    );
    this.schedule();
  }
}

function countTransactions(commits: readonly PendingCommit[]): number {
  let count = 0;
  for (const { data } of commits) count += data.writeSets.length;
  return count;
}

function answerInSlices(commits: readonly PendingCommit[], decisions: readonly Decision[], from: number): void {
  const to = Math.min(from + ANSWERS_PER_TURN, commits.length);
  for (let i = from; i < to; i++) {
    const decision = decisions[i]!;
    if (typeof decision === 'string') commits[i]!.resolve(decision);
    else commits[i]!.reject(decision);
  }
  if (to < commits.length) setImmediate(answerInSlices, commits, decisions, to);
}
