/** What the transfer of a copy's bytes needs of the job that runs it. */
import type { Transaction } from '../../partition/partition.ts';
import type { Storage } from '../common/storage.ts';
import type { CopiedBlob, CopyPlace, RunningCopy } from './running-copies.ts';
import type { SourceContext } from './slice-sources.ts';

export interface CopyContext extends SourceContext {
  readonly sweeper: Storage['sweeper'];
}

export interface CopyRun {
  readonly context: CopyContext;
  readonly place: CopyPlace;
  readonly signal: AbortSignal;
  /** Throws unless this process still runs the copy. */
  readOwn(tx: Transaction, copy: RunningCopy): Promise<CopiedBlob>;
  /** Fails when the copy is stopped. */
  checked(bytes: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>;
  /** A slice was committed. */
  advanced(): void;
}
