/**
 * One running copy in this process: slice by slice, each uploaded and then committed together with the progress, until the copy ends.
 * A kill loses the slice that was under way; the process that takes the copy over goes on after the last one that was committed.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { epochKey } from '../../content/rows.ts';
import { OutcomeUnknown, type Transaction, Unavailable } from '../../partition/partition.ts';
import {
  advanceCopy,
  type CopyState,
  copiedBytes,
  failCopy,
  isOverdue,
  OVERDUE,
  retriedSource,
  retriedTarget,
  TOO_MANY_FAILURES,
  TOO_MANY_WRITE_FAILURES,
  unreadableSource,
} from '../../rules/copy-state.ts';
import type { CopiedResource, CopyTarget, PendingResource } from './copy-target.ts';
import { StorageError } from './errors.ts';
import { readWhole } from './remote-source.ts';
import { decodeRunningCopy, encodeRunningCopy, type RunningCopy } from './running-copies.ts';
import { openSlices, type SourceContext, type SourceSlice } from './slice-sources.ts';
import type { Storage } from './storage.ts';
import { withUpload } from './upload.ts';

export interface JobContext extends SourceContext {
  /** Of this process. */
  readonly epoch: bigint;
  readonly sweeper: Storage['sweeper'];
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

export class CopyJob<Found extends CopiedResource> {
  private readonly context: JobContext;
  private readonly target: CopyTarget<Found>;
  private readonly signal: AbortSignal;
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

  private async copy(copy: RunningCopy, { bytes, copied = 0 }: CopyState): Promise<void> {
    const source = openSlices(this.context, copy.source, bytes, this.signal);
    try {
      if (bytes <= this.target.wholeBytesMax) {
        const whole = bytes === 0 ? undefined : await readWhole(this.checked((await source.next(0)).bytes()));
        return await this.commitWhole(copy, whole ?? Buffer.alloc(0));
      }
      for (let offset = copied; offset < bytes; )
        offset = await this.copySlice(copy, offset, await source.next(offset));
    } finally {
      source.close();
    }
  }

  /** Returns the offset after the slice. */
  private async copySlice(copy: RunningCopy, offset: number, slice: SourceSlice): Promise<number> {
    const { context, target } = this;
    const { partition, content } = context;
    const { account } = target;
    const length = slice.segments.reduce((sum, segment) => sum + segment.length, 0);
    const end = offset + length;
    const sent = { length, expected: {}, bytes: () => this.checked(slice.bytes()) };
    await withUpload({ content, account }, sent, target.wantedUpload(offset), async (uploaded) => {
      await partition.transact(target.key, async (tx) => {
        const found = await this.readOwn(tx, copy);
        if (copiedBytes(found.copy) !== offset) throw new Error('the progress of a copy has changed');
        await content.commitUpload(tx, account, uploaded);
        await target.addSlice(tx, copy, offset, slice.segments, uploaded);
        if (end < found.copy.bytes) target.putState(tx, found, advanceCopy(found.copy, end));
        else target.complete(tx, copy, found, undefined);
      });
    });
    this.failures = 0;
    return end;
  }

  private async commitWhole(copy: RunningCopy, bytes: Buffer): Promise<void> {
    await this.context.partition.transact(this.target.key, async (tx) => {
      const found = await this.readOwn(tx, copy);
      if (bytes.length !== found.copy.bytes) throw new Error('a source of another length');
      this.target.complete(tx, copy, found, bytes);
    });
  }

  /** Throws unless this process still runs the copy. */
  private async readOwn(tx: Transaction, { id }: RunningCopy): Promise<PendingResource<Found>> {
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
      this.target.putState(tx, found, { ...found.copy, description });
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
  private async *checked(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const piece of bytes) {
      this.signal.throwIfAborted();
      yield piece;
    }
  }
}
