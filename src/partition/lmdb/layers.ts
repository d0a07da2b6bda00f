/**
 * The layers of the store, newest first: the active generation, which commits write; a frozen one, while a checkpoint applies it to
 * LMDB's file; and the base, which is the last checkpoint. To read the frozen generation over the base before or after its checkpoint is the
 * same, so that the switch is one assignment.
 */
import { statSync } from 'node:fs';
import type { Commit } from '../partition.ts';
import { Checkpointer } from './checkpoint.ts';
import { guardSpace, SizeEstimate, type SpaceGuard } from './disk-space.ts';
import { dataFile, fileUsage, type LmdbFiles } from './files.ts';
import { EmptyRanges, Generation } from './overlay.ts';
import { CheckpointState, LayeredView } from './reads.ts';
import type { Recovered } from './recovery.ts';
import type { SegmentEnd, Wal } from './wal.ts';

export interface CheckpointOptions {
  /** How much log makes a checkpoint due. */
  checkpointBytes?: number;
  /** For tests: how much longer a checkpoint takes. */
  checkpointDelayMilliseconds?: number;
}

const CHECKPOINT_BYTES = 8 << 20;
/** A checkpoint that is so many times behind stops writers, so that memory stays bounded; one that is behind slows them down before. */
const BEHIND_MAX = 4;
const PAUSE_MAX_MILLISECONDS = 100;
/** A log that goes on slowly is checkpointed all the same. */
const TICKS_MAX = 30;

/** A segment that has ended. It stays until LMDB's file durably holds it. */
interface FrozenGeneration {
  readonly generation: Generation;
  readonly end: SegmentEnd;
  /** Its checkpoint is under way. */
  isCheckpointing: boolean;
}

export class Layers {
  active: Generation;
  generations: readonly Generation[] = [];
  readonly emptyRanges = new EmptyRanges();
  readonly space: SpaceGuard;
  private readonly files: LmdbFiles;
  private readonly wal: Wal;
  private readonly dataFile: string;
  private readonly checkpointer: Checkpointer;
  private readonly checkpointBytes: number;
  private readonly onFailure: (error: Error) => void;
  private frozen: FrozenGeneration | undefined;
  private checkpoint: CheckpointState;
  /** Groups up to this one may have left the overlay. */
  private checkpointedGroup = 0;
  /** How fast the last checkpoint was. */
  private bytesPerMillisecond = Infinity;
  private checkpointStartedAt = 0;
  private isFailed = false;
  private isClosing = false;
  private ticks = 0;
  private bytesAtTick = 0;

  /** @param onSwitch a checkpoint has ended; @param onFailure one has failed, which is final */
  constructor(
    location: string,
    { files, wal, active, frozen }: Recovered,
    { checkpointBytes = CHECKPOINT_BYTES, checkpointDelayMilliseconds = 0 }: CheckpointOptions,
    onSwitch: () => void,
    onFailure: (error: Error) => void,
  ) {
    this.files = files;
    this.wal = wal;
    this.checkpointBytes = checkpointBytes;
    this.onFailure = onFailure;
    this.dataFile = dataFile(location);
    this.space = guardSpace(this.dataFile, () => fileUsage(files));
    this.checkpoint = new CheckpointState(files.rows);
    this.active = active ?? new Generation();
    this.frozen = frozen && { ...frozen, isCheckpointing: false };
    this.checkpointer = new Checkpointer(location, files, checkpointDelayMilliseconds, (error) => {
      if (error) this.fail(error);
      else {
        this.switchCheckpoint();
        onSwitch();
      }
    });
    this.updateGenerations();
  }

  get isCheckpointing(): boolean {
    return this.frozen?.isCheckpointing ?? false;
  }

  /** Milliseconds for which writers wait after so much log: the more the checkpoint is behind, the nearer its speed is theirs. */
  pauseAfter(bytes: number): number {
    const behind = this.wal.bytes / this.checkpointBytes - 1;
    if (!this.isCheckpointing || behind <= 0) return 0;
    return Math.min(PAUSE_MAX_MILLISECONDS, (behind * bytes) / this.bytesPerMillisecond);
  }

  /** Writers must wait for the checkpoint. */
  get isBehind(): boolean {
    return this.frozen !== undefined && this.wal.bytes > BEHIND_MAX * this.checkpointBytes;
  }

  /** What checkpoints may add to LMDB's file, with these commits. */
  sizeEstimateWith(commits: readonly Commit[], used?: number): number {
    const own = this.generations.reduce((sum, { sizeEstimate }) => sum + sizeEstimate.bytesMax(used), 0);
    return own + new SizeEstimate().addAll(commits).bytesMax(used);
  }

  /** Of LMDB's file. */
  usedBytes(): number {
    const { end, free } = fileUsage(this.files);
    return end - free;
  }

  /** Whoever has it releases its base. */
  view(group: number): { view: LayeredView; release(): void } {
    const { checkpoint } = this;
    checkpoint.retain();
    return {
      view: new LayeredView(this.generations, checkpoint, group, this.emptyRanges),
      release: () => checkpoint.release(),
    };
  }

  /** For the validation of a group that may come to nothing. */
  uncommittedView(group: number): LayeredView {
    return new LayeredView(this.generations, this.checkpoint, group);
  }

  /** Whether all that later groups have written is still in the overlay. */
  overlayHasAllSince(group: number): boolean {
    return group >= this.checkpointedGroup;
  }

  /** Between two groups. */
  checkpointIfDue(): void {
    if (!this.frozen && this.wal.bytes > this.checkpointBytes) this.freeze();
  }

  /** Between two groups. Whether a checkpoint is under way. */
  checkpointNow(): boolean {
    if (!this.frozen) this.freeze();
    return this.startCheckpoint();
  }

  /** Now and then, between two groups: a log that rests is applied. */
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

  /** The log has everything already: here LMDB's file gets it, where that can be. */
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

  /** The segment ends here; what follows goes into the other file, which nobody needs: nothing is frozen. */
  private freeze(): void {
    if (this.isFailed) return;
    try {
      this.frozen = { generation: this.active, end: this.wal.rotate(), isCheckpointing: false };
    } catch (error) {
      this.fail(error as Error);
      return;
    }
    this.active = new Generation();
    this.updateGenerations();
    this.startCheckpoint();
  }

  /** LMDB must not meet a full disk. */
  private startCheckpoint(): boolean {
    const { frozen } = this;
    if (!frozen || this.isFailed) return false;
    if (frozen.isCheckpointing) return true;
    if (this.space.lowSpaceFor(frozen.generation.sizeEstimate.bytesMax(this.usedBytes()), 'frees')) return false;
    frozen.isCheckpointing = true;
    this.checkpointStartedAt = performance.now();
    if (!this.isClosing || !this.checkpointer.applyInline(frozen.end)) this.checkpointer.apply(frozen.end);
    return true;
  }

  private switchCheckpoint(): void {
    // Durable by the sync of the checkpoint, and nobody has made it longer since.
    this.wal.dataBytes = statSync(this.dataFile).size;
    this.checkpoint.release();
    this.checkpoint = new CheckpointState(this.files.rows);
    this.bytesPerMillisecond = this.frozen!.end.position / (performance.now() - this.checkpointStartedAt);
    this.checkpointedGroup = Math.max(this.checkpointedGroup, this.frozen!.generation.lastGroup);
    this.frozen = undefined;
    this.emptyRanges.clear();
    this.updateGenerations();
  }
}
