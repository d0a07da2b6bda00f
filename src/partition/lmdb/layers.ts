/**
 * The layers of the store, as in an LSM tree: the active generation (memtable), which commits write; a frozen one, while a checkpoint
 * applies it to LMDB's file; below them the last checkpoint. Starts checkpoints, and slows writers down while one falls behind. The frozen
 * generation shows the same rows over the checkpoint before and after its own, so the switch between the two is one assignment.
 */
import { statSync } from 'node:fs';
import { Histogram, SECONDS_BOUNDS } from '../../base/histogram.ts';
import type { EngineFigures } from '../partition.ts';
import { Checkpointer } from './checkpoint.ts';
import { ROWS_PER_TRANSACTION, SizeEstimate, SpaceGuard } from './disk-space.ts';
import { dataFile, fileUsage, type LmdbFiles } from './files.ts';
import { EmptyRanges, Generation } from './overlay.ts';
import { CheckpointState, LayeredView } from './reads.ts';
import type { Recovered } from './recovery.ts';
import { VolatileRows } from './volatile-rows.ts';
import { RECORDS_AT, type Wal } from './wal.ts';

export interface CheckpointOptions {
  /** What the log and its rows take in memory when a checkpoint starts. */
  checkpointBytes?: number;
  /** For tests: a delay in each checkpoint. */
  checkpointDelayMilliseconds?: number;
  checkpointRowsPerTransaction?: number;
}

/** The longer the log, the more writes of one row, or of neighbours in one page of LMDB, are one: as long as memory allows. */
const CHECKPOINT_BYTES = 32 << 20;
/** Writers stop at this multiple of `checkpointBytes` while a checkpoint runs, so that memory stays bounded. */
const BEHIND_MAX = 2;
/** Of a row, beside its bytes in the log: its objects in both generations and in the checkpoint thread. */
const ROW_OBJECT_BYTES = 1_024;
const PAUSE_MAX_MILLISECONDS = 100;
/** A log that never rests is checkpointed after this many ticks. */
const TICKS_MAX = 30;

export class Layers {
  active: Generation;
  /** Newest first; replaced, never changed, since views keep it. */
  generations: readonly Generation[] = [];
  /** Beside the generations: no checkpoint and no log has them. */
  readonly volatile = new VolatileRows();
  readonly emptyRanges = new EmptyRanges();
  readonly space: SpaceGuard;
  /** The frozen generation is being applied. */
  isCheckpointing = false;
  private readonly files: LmdbFiles;
  private readonly wal: Wal;
  private readonly dataFile: string;
  private readonly checkpointer: Checkpointer;
  private readonly checkpointBytes: number;
  private readonly onFailure: (error: Error) => void;
  /** Kept until LMDB's file durably holds its segment; no other generation is frozen before, since there are two files. */
  private frozen: Recovered['frozen'];
  private checkpoint: CheckpointState;
  /** The overlay has every group after this one. */
  private checkpointedGroup = 0;
  /** The speed of the last checkpoint. */
  private bytesPerMillisecond = Infinity;
  private checkpointStartedAt = 0;
  private isFailed = false;
  private isClosing = false;
  private ticks = 0;
  private bytesAtTick = 0;
  private readonly checkpointSeconds = new Histogram(SECONDS_BOUNDS);

  /** @param onSwitch a checkpoint has ended; @param onFailure final */
  constructor(
    location: string,
    { files, wal, active, frozen }: Recovered,
    options: CheckpointOptions,
    onSwitch: () => void,
    onFailure: (error: Error) => void,
  ) {
    this.files = files;
    this.wal = wal;
    this.checkpointBytes = options.checkpointBytes ?? CHECKPOINT_BYTES;
    this.onFailure = onFailure;
    this.dataFile = dataFile(location);
    this.space = new SpaceGuard(this.dataFile, () => fileUsage(files));
    this.checkpoint = new CheckpointState(files.rows);
    this.active = active ?? new Generation();
    this.frozen = frozen;
    const delayMilliseconds = options.checkpointDelayMilliseconds ?? 0;
    const rowsPerTransaction = options.checkpointRowsPerTransaction ?? ROWS_PER_TRANSACTION;
    this.checkpointer = new Checkpointer(location, files, { delayMilliseconds, rowsPerTransaction }, (error) => {
      if (error) this.fail(error);
      else {
        this.switchCheckpoint();
        onSwitch();
      }
    });
    this.updateGenerations();
  }

  /** Back-pressure: how long writers wait after this many bytes of log, so that they approach the checkpoint's speed. */
  pauseAfter(bytes: number): number {
    const behind = this.activeBytes / this.checkpointBytes - 1;
    if (!this.isCheckpointing || behind <= 0) return 0;
    return Math.min(PAUSE_MAX_MILLISECONDS, (behind * bytes) / this.bytesPerMillisecond);
  }

  /** Writers must wait for the checkpoint. */
  get isBehind(): boolean {
    return this.frozen !== undefined && this.activeBytes > BEHIND_MAX * this.checkpointBytes;
  }

  /** What the active generation takes in memory: its rows refer to the records of the log. */
  private get activeBytes(): number {
    return this.wal.bytes + ROW_OBJECT_BYTES * this.active.entries.size;
  }

  /** An upper bound of what checkpoints add to LMDB's file, with these commits. */
  sizeEstimateWith(commits: readonly SizeEstimate[], used?: number): number {
    const overlay = this.generations.reduce((sum, { sizeEstimate }) => sum + sizeEstimate.bytesMax(used), 0);
    return overlay + new SizeEstimate().addAll(commits).bytesMax(used);
  }

  /** Bytes of LMDB's file in use. */
  usedBytes(): number {
    const { end, free } = fileUsage(this.files);
    return end - free;
  }

  figures(): EngineFigures {
    const { checkpointSeconds, wal, frozen, dataFile: file } = this;
    const frozenBytes = frozen ? frozen.end.position - RECORDS_AT : 0;
    return { checkpointSeconds, walBytes: wal.bytes + frozenBytes, dataFileBytes: statSync(file).size };
  }

  /** The caller releases it. */
  view(group: number): LayeredView {
    this.checkpoint.retain();
    return new LayeredView(this.generations, this.checkpoint, this.volatile, group, this.emptyRanges);
  }

  /** For the validation of a group, which may be undone; valid until the next checkpoint. */
  uncommittedView(group: number): LayeredView {
    return new LayeredView(this.generations, this.checkpoint, this.volatile, group);
  }

  overlayHasAllSince(group: number): boolean {
    return group >= this.checkpointedGroup;
  }

  /** Between two groups. */
  checkpointIfDue(): void {
    if (!this.frozen && this.activeBytes > this.checkpointBytes) this.freeze();
  }

  /** Between two groups. False: no checkpoint can run. */
  checkpointNow(): boolean {
    if (!this.frozen) this.freeze();
    return this.startCheckpoint();
  }

  /** Between two groups: a log without writes since the last tick is checkpointed. */
  tick(): void {
    const { bytes } = this.wal;
    const isQuiet = bytes === this.bytesAtTick;
    this.bytesAtTick = bytes;
    if (this.frozen) this.startCheckpoint();
    else if (this.active.entries.size > 0 && (isQuiet || ++this.ticks >= TICKS_MAX)) {
      this.ticks = 0;
      this.freeze();
    }
  }

  /** At a close, as far as space allows: the log has every commit already. */
  async checkpointAll(): Promise<void> {
    this.isClosing = true;
    while (!this.isFailed && (this.frozen || this.wal.bytes > 0)) {
      if (!this.isCheckpointing && !this.checkpointNow()) return;
      await new Promise((done) => setTimeout(done, 1));
    }
  }

  async close(): Promise<void> {
    await this.checkpointer.stop();
    this.checkpoint.release();
  }

  fail(error: Error): void {
    this.isFailed = true;
    this.onFailure(error);
  }

  private updateGenerations(): void {
    this.generations = this.frozen ? [this.active, this.frozen.generation] : [this.active];
  }

  /** Only while nothing is frozen: the log continues in the other file. */
  private freeze(): void {
    if (this.isFailed) return;
    try {
      this.frozen = { generation: this.active, end: this.wal.rotate() };
    } catch (error) {
      this.fail(error as Error);
      return;
    }
    this.active = new Generation();
    this.updateGenerations();
    this.startCheckpoint();
  }

  /** False: it failed, or LMDB would meet a full disk. */
  private startCheckpoint(): boolean {
    const { frozen } = this;
    if (!frozen || this.isFailed) return false;
    if (this.isCheckpointing) return true;
    if (!this.space.hasSpaceFor(frozen.generation.sizeEstimate.bytesMax(this.usedBytes()), 'frees')) return false;
    this.isCheckpointing = true;
    this.checkpointStartedAt = performance.now();
    if (!this.isClosing || !this.checkpointer.applyInline(frozen.end)) this.checkpointer.apply(frozen.end);
    return true;
  }

  private switchCheckpoint(): void {
    // The checkpoint's sync made this length durable, and no preallocation ran since.
    this.wal.dataBytes = statSync(this.dataFile).size;
    this.checkpoint.release();
    this.checkpoint = new CheckpointState(this.files.rows);
    const milliseconds = performance.now() - this.checkpointStartedAt;
    this.checkpointSeconds.observe(milliseconds / 1_000);
    this.bytesPerMillisecond = this.frozen!.end.position / milliseconds;
    this.checkpointedGroup = Math.max(this.checkpointedGroup, this.frozen!.generation.lastGroup);
    this.frozen = undefined;
    this.isCheckpointing = false;
    this.emptyRanges.clear();
    this.updateGenerations();
  }
}
