/**
 * The embedded engine: rows in one folder on a local disk, by a write-ahead log, a memory overlay and a checkpointed LMDB. Commits go in
 * groups, one group at a time: it is validated and written into the overlay, where nobody sees it, appended to the log, synced, shown, and
 * answered.
 */
import { type ClockOptions, ReservedClock } from '../clock.ts';
import { type Commit, type Engine, type Instant, type Outcome, Unavailable } from '../partition.ts';
import { freesSpace, LOW_SPACE, walBytes } from './disk-space.ts';
import { isDiskFull, type LmdbFiles } from './files.ts';
import { type Decision, validateGroup } from './group-validation.ts';
import { type CheckpointOptions, Layers } from './layers.ts';
import { type LmdbSnapshot, makeSnapshot } from './reads.ts';
import { type Recovered, recover } from './recovery.ts';
import type { Wal } from './wal.ts';
import { encodeRecord } from './wal-record.ts';

export interface LmdbOptions extends Pick<ClockOptions, 'wall' | 'monotonic'>, CheckpointOptions {
  location: string;
  /** Called before each record: the last moment to find out that the folder is another's. */
  beforeWrite?: () => void;
}

/** How often a checkpoint is thought of, apart from the log's length. */
const TICK_MILLISECONDS = 1_000;
/** A group is validated in one go, and the event loop waits for it. */
const GROUP_BYTES_MAX = 1 << 20;
/** So many callers go on in one turn of the event loop: they come back together, too. */
const ANSWERS_PER_TURN = 16;

const EMPTY_COMMIT: Commit = { id: '', queueKeys: [], checks: [], ranges: [], writeSets: [] };

interface PendingCommit {
  readonly data: Commit;
  readonly bytes: number;
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
  /** The last group that is durable: what snapshots show. */
  private group = 0;
  /** How many snapshots are open of each group, oldest first: groups only rise, and a Map keeps the order of insertion. */
  private readonly openSnapshots = new Map<number, number>();
  private readonly waiting: PendingCommit[] = [];
  private isScheduled = false;
  /** A group is on its way to the disk, or the next has to wait. */
  private isWriting = false;
  /** When the group was decided that is not shown yet, or 0. */
  private decidedAt: Instant = 0n;
  /** After a failed sync nobody knows what is on disk, until the store is opened again. Nothing is written from then on. */
  private failure: Unavailable | undefined;
  private isClosing = false;

  constructor({ location, wall, monotonic, beforeWrite = () => {}, ...options }: LmdbOptions, recovered: Recovered) {
    this.beforeWrite = beforeWrite;
    this.files = recovered.files;
    this.wal = recovered.wal;
    const schedule = (): void => this.schedule();
    const drain = (): Promise<Outcome> => this.commit(EMPTY_COMMIT);
    this.clock = new ReservedClock({ wall, monotonic, atLeast: recovered.highWater }, schedule, drain);
    this.layers = new Layers(location, recovered, options, schedule, (error) => this.fail(error));
    this.ticker = setInterval(() => {
      if (!this.isWriting) this.layers.tick();
    }, TICK_MILLISECONDS).unref();
  }

  snapshot(): LmdbSnapshot {
    const { group } = this;
    const { view, release } = this.layers.view(group);
    this.openSnapshots.set(group, (this.openSnapshots.get(group) ?? 0) + 1);
    return makeSnapshot(view, this.nowForReads(), () => {
      release();
      const others = this.openSnapshots.get(group)! - 1;
      if (others > 0) this.openSnapshots.set(group, others);
      else this.openSnapshots.delete(group);
    });
  }

  commit(data: Commit): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      const refusal = this.failure ?? (this.isClosing ? new Unavailable('The store is closed.') : undefined);
      if (refusal) throw refusal;
      this.waiting.push({ data, bytes: walBytes(data), resolve, reject });
      this.schedule();
    });
  }

  isBroken(): boolean {
    return this.failure !== undefined;
  }

  /** After a failure it only closes: the log has what was acknowledged. */
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
    const isBusy = () => this.isWriting || (!this.failure && (this.isScheduled || this.waiting.length > 0));
    while (isBusy()) await new Promise((done) => setTimeout(done, 1));
  }

  /**
   * It stands still while a group is on its way: otherwise a reader could find a lease expired, and see afterwards what was written
   * under it in time; see docs/adr/0005-timestamps-and-clock.md. Of a group whose sync failed nobody knows whether it will be seen.
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
    if (this.isWriting || (this.waiting.length === 0 && !this.clock.isReservationPending)) return;
    if (this.failure) {
      for (const { reject } of this.waiting.splice(0)) reject(this.failure);
      return;
    }
    // The end of the checkpoint goes on here; one that has no space can be waited for in vain.
    if (this.layers.isBehind && this.layers.checkpointNow()) return;
    const commits = this.takeGroup();
    const admitted = this.admit(commits);
    if (!admitted) this.waiting.unshift(...commits);
    else if (admitted.length > 0 || this.clock.isReservationPending) this.write(admitted);
    else if (this.waiting.length > 0) this.schedule();
  }

  private takeGroup(): PendingCommit[] {
    let bytes = 0;
    let count = 0;
    while (count < this.waiting.length && bytes < GROUP_BYTES_MAX) bytes += this.waiting[count++]!.bytes;
    return this.waiting.splice(0, count);
  }

  /** Those that the disk has room for; the others are refused. undefined: the checkpoint that is under way has to end first. */
  private admit(commits: PendingCommit[]): PendingCommit[] | undefined {
    const { layers } = this;
    const all = commits.map(({ data }) => data);
    if (layers.space.hasAmpleSpace(() => layers.sizeEstimateWith(all))) return commits;
    // LMDB's file is made to grow in advance, which nobody may do while a checkpoint writes to it.
    if (layers.isCheckpointing) return undefined;
    const used = layers.usedBytes();
    if (!layers.space.lowSpaceFor(layers.sizeEstimateWith(all, used), 'any')) return commits;
    // What commits have freed is used again once LMDB's file knows of it.
    if (layers.sizeEstimateWith([]) > 0 && layers.checkpointNow()) return undefined;
    // The log has room for them; a checkpoint waits until they have led to some.
    const freeing = commits.filter(({ data }) => freesSpace(data));
    for (const each of commits) if (!freeing.includes(each)) each.reject(new Unavailable(LOW_SPACE.message));
    return freeing;
  }

  private write(commits: readonly PendingCommit[]): void {
    this.isWriting = true;
    const { layers, clock, wal } = this;
    const { active } = layers;
    const number = this.group + 1;
    const oldest = this.openSnapshots.keys().next().value ?? this.group;
    const now = clock.current();
    const all = commits.map(({ data }) => data);
    const decisions = validateGroup(all, layers, clock, { number, oldestSnapshot: oldest, now });
    const until = clock.takeReservation();
    if (active.written.length === 0 && until === undefined) {
      this.answer(commits, decisions, 0);
      return;
    }
    this.decidedAt = now;
    const before = wal.bytes;
    this.beforeWrite();
    wal.append(encodeRecord(active.written, until), (error) => {
      const insteadOfCommitted = (other: Decision) => decisions.map((each) => (each === 'committed' ? other : each));
      if (!error) {
        this.group = number;
        this.decidedAt = 0n;
        this.answer(commits, decisions, wal.bytes - before);
      } else if (isDiskFull(error)) {
        active.undoGroup();
        clock.isReservationPending ||= until !== undefined;
        this.decidedAt = 0n;
        this.answer(commits, insteadOfCommitted(new Unavailable(LOW_SPACE.message)), 0);
      } else {
        layers.fail(error);
        this.answer(commits, insteadOfCommitted('unknown'), 0);
      }
    });
  }

  /** Conflicts, too, are answered when the group is shown: run again before that, a body would meet the same rows. */
  private answer(commits: readonly PendingCommit[], decisions: readonly Decision[], logged: number): void {
    this.layers.checkpointIfDue();
    const resume = (): void => {
      this.isWriting = false;
      this.schedule();
    };
    const pause = this.layers.pauseAfter(logged);
    if (pause < 1) resume();
    else setTimeout(resume, pause);
    answerInSlices(commits, decisions, 0);
  }

  private fail({ message }: Error): void {
    this.failure ??= new Unavailable(
      `A write to disk failed (${message}). Writes are refused until the server is started again.`,
    );
    this.schedule();
  }
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
