/**
 * One running copy in this process: slice by slice, each uploaded and then committed together with the progress, until the copy ends.
 * A kill loses the slice that was under way; the process that takes the copy over goes on after the last one that was committed.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { epochKey } from '../../content/rows.ts';
import { OutcomeUnknown, type Transaction, Unavailable } from '../../partition/partition.ts';
import {
  type CopyState,
  failCopy,
  isOverdue,
  OVERDUE,
  retriedSource,
  retriedTarget,
  TOO_MANY_FAILURES,
  TOO_MANY_WRITE_FAILURES,
  unreadableSource,
} from '../../rules/copy-state.ts';
import type { CopiedResource, CopyContext, CopyRun, CopyTarget, PendingResource } from './copy-target.ts';
import { StorageError } from './errors.ts';
import { decodeRunningCopy, encodeRunningCopy, type RunningCopy } from './running-copies.ts';

export interface JobContext extends CopyContext {
  /** Of this process. */
  readonly epoch: bigint;
  readonly onFailure?: (error: unknown) => void;
  /** The first pause after a failure; each further one is three times as long. */
  readonly retryMilliseconds?: number;
}

/** Failures in a row, without a slice between them, after which a copy is given up. */
const FAILURES_MAX = 8;
const RETRY_MILLISECONDS = 100;
const RETRY_MILLISECONDS_MAX = 30_000;
/** While the rows cannot be reached, the pause is that after as many failures. */
const UNREACHABLE_RETRIES = 3;

/** The copy was aborted, its container deleted, or another process runs it. */
class Superseded extends Error {}

/** Neither source nor target is at fault. */
const isPassing = (error: unknown): boolean => error instanceof Unavailable || error instanceof OutcomeUnknown;

export class CopyJob<Found extends CopiedResource> implements CopyRun<Found> {
  readonly context: JobContext;
  private readonly target: CopyTarget<Found>;
  readonly signal: AbortSignal;
  private failures = 0;
  /** The copy that this job is about; one that follows it on the same blob has another. */
  copyId: string | undefined;

  constructor(context: JobContext, target: CopyTarget<Found>, signal: AbortSignal) {
    this.context = context;
    this.target = target;
    this.signal = signal;
  }

  /** Resolves once the copy has ended, or is no longer this process's. */
  async run(): Promise<void> {
    while (!this.signal.aborted) {
      let isUnreachable = false;
      try {
        const claimed = await this.claim();
        if (!claimed || (await this.attempt(claimed.copy, claimed.state))) return;
      } catch (error) {
        // The copy was aborted or taken over, or the rows cannot be reached: the next claim tells.
        isUnreachable = isPassing(error);
        if (!(this.signal.aborted || isUnreachable || error instanceof Superseded)) this.context.onFailure?.(error);
      }
      const { retryMilliseconds = RETRY_MILLISECONDS } = this.context;
      const retries = isUnreachable ? UNREACHABLE_RETRIES : this.failures;
      const delay = Math.min(retryMilliseconds * 3 ** retries, RETRY_MILLISECONDS_MAX);
      await pause(delay, undefined, { signal: this.signal, ref: false }).catch(() => {});
    }
  }

  /** Undefined: there is nothing to do for this process. */
  private async claim(): Promise<{ readonly copy: RunningCopy; readonly state: CopyState } | undefined> {
    const { epoch, partition } = this.context;
    const { key } = this.target;
    const { value } = await partition.transact(key, async (tx) => {
      const row = await tx.get(key);
      const copy = row && decodeRunningCopy(row);
      const found = await this.target.read(tx);
      if (!copy || found?.copy?.id !== copy.id) return undefined;
      if (copy.owner !== epoch) {
        if (await tx.get(epochKey(copy.owner))) return undefined;
        tx.put(key, encodeRunningCopy({ ...copy, owner: epoch }));
      }
      return { copy: { ...copy, owner: epoch }, state: found.copy, isOverdue: isOverdue(copy.started, tx.now) };
    });
    this.copyId = value?.copy.id;
    if (!value?.isOverdue) return value;
    await this.end(value.copy, OVERDUE);
    return undefined;
  }

  /** True: the copy has ended. */
  private async attempt(copy: RunningCopy, state: CopyState): Promise<boolean> {
    try {
      await this.copy(copy, state);
      return true;
    } catch (error) {
      if (this.signal.aborted || error instanceof Superseded || isPassing(error)) throw error;
      this.failures++;
      await this.recordFailure(copy, error);
      if (!(error instanceof StorageError)) this.context.onFailure?.(error);
      return false;
    }
  }

  private copy(copy: RunningCopy, state: CopyState): Promise<void> {
    return this.target.copy(this, copy, state);
  }

  /** A slice was committed. */
  advanced(): void {
    this.failures = 0;
  }

  /** Throws unless this process still runs the copy. */
  async readOwn(tx: Transaction, { id }: RunningCopy): Promise<PendingResource<Found>> {
    const row = await tx.get(this.target.key);
    const current = row && decodeRunningCopy(row);
    const found = await this.target.read(tx);
    if (!found?.copy || current?.id !== id || current.owner !== this.context.epoch) throw new Superseded();
    return { ...found, copy: found.copy };
  }

  /** A source that cannot be read ends the copy; everything else is shown with it, and tried again. */
  private async recordFailure(copy: RunningCopy, error: unknown): Promise<void> {
    const isSource = error instanceof StorageError;
    if (isSource && error.status < 500) return this.end(copy, unreadableSource(error.status, error.code));
    if (this.failures > FAILURES_MAX) return this.end(copy, isSource ? TOO_MANY_FAILURES : TOO_MANY_WRITE_FAILURES);
    await this.context.partition.transact(this.target.key, async (tx) => {
      const found = await this.readOwn(tx, copy);
      const description = isSource ? retriedSource(tx.now) : retriedTarget(tx.now);
      await this.target.putState(tx, found, { ...found.copy, description });
    });
  }

  private async end(copy: RunningCopy, description: string): Promise<void> {
    const { partition, sweeper } = this.context;
    const { value: needsSweep } = await partition.transact(this.target.key, async (tx) => {
      const found = await this.readOwn(tx, copy);
      return this.target.end(tx, copy, found, failCopy(found.copy, description, tx.timestamp));
    });
    if (needsSweep) sweeper.wake();
  }

  /** Fails when the copy is stopped. */
  async *checked(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const piece of bytes) {
      this.signal.throwIfAborted();
      yield piece;
    }
  }
}
