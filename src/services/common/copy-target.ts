/** The blob or file onto which a copy runs, as the process that runs it needs it. */
import type { Key, Range } from '../../partition/keys.ts';
import type { Snapshot, Transaction } from '../../partition/partition.ts';
import type { CopyState } from '../../rules/copy-state.ts';
import type { RunningCopy } from './running-copies.ts';
import type { SourceContext } from './slice-sources.ts';
import type { AccountId, Storage } from './storage.ts';

/** What its row says. */
export interface CopiedResource {
  readonly copy?: CopyState | undefined;
}

export type PendingResource<Found> = Found & { readonly copy: CopyState };

export interface CopyContext extends SourceContext {
  readonly sweeper: Storage['sweeper'];
}

/** What the transfer of a copy's bytes needs of the job that runs it. */
export interface CopyRun<Found> {
  readonly context: CopyContext;
  readonly signal: AbortSignal;
  /** Throws unless this process still runs the copy. */
  readOwn(tx: Transaction, copy: RunningCopy): Promise<PendingResource<Found>>;
  /** Fails when the copy is stopped. */
  checked(bytes: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>;
  /** A slice was committed. */
  advanced(): void;
}

/** The functions that take a transaction only read and write rows, so they may run again. */
export interface CopyTarget<Found extends CopiedResource> {
  /** Of the row of the running copy. */
  readonly key: Key;
  /** Undefined: it is gone, or its container is, although its rows may still be there. */
  read(at: Snapshot): Promise<Found | undefined>;
  /** A change that is no write of the resource, and leaves its ETag alone. */
  putState(tx: Transaction, found: Found, copy: CopyState): void | Promise<void>;
  /** Transfers the bytes that are not copied yet, slice by slice, until the copy is complete. */
  copy(run: CopyRun<Found>, copy: RunningCopy, state: CopyState): Promise<void>;
  /** The copy ends in this state, without its bytes: the resource stays empty. True: the sweeper has work to do. */
  end(tx: Transaction, copy: RunningCopy, found: PendingResource<Found>, state: CopyState): Promise<boolean>;
}

/** The running copies of a service. */
export interface CopyTargets {
  rowsIn(account: AccountId): Range;
  /** Undefined: the row is one of another service. */
  open(content: Storage['content'], key: Key): CopyTarget<CopiedResource> | undefined;
}
