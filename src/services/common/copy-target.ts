/** The blob or file onto which a copy runs, as the process that runs it needs it. */
import type { UploadedContent, WantedUpload } from '../../content/content.ts';
import type { Key, Range } from '../../partition/keys.ts';
import type { Snapshot, Transaction } from '../../partition/partition.ts';
import type { BlobSegment } from '../../rules/copy-slices.ts';
import type { CopyState } from '../../rules/copy-state.ts';
import type { RunningCopy } from './running-copies.ts';
import type { AccountId, Storage } from './storage.ts';

/** What its row says. */
export interface CopiedResource {
  readonly copy?: CopyState | undefined;
}

export type PendingResource<Found> = Found & { readonly copy: CopyState };

/** The functions that take a transaction only read and write rows, so they may run again. */
export interface CopyTarget<Found extends CopiedResource> {
  readonly account: AccountId;
  /** Of the row of the running copy. */
  readonly key: Key;
  /** A copy of at most as many bytes is one commit. */
  readonly wholeBytesMax: number;
  /** Undefined: it is gone, or its container is, although its rows may still be there. */
  read(at: Snapshot): Promise<Found | undefined>;
  /** A change that is no write of the resource, and leaves its ETag alone. */
  putState(tx: Transaction, found: Found, copy: CopyState): void;
  wantedUpload(offset: number): WantedUpload;
  /** The content of the copy names the bytes of a slice. */
  addSlice(
    tx: Transaction,
    copy: RunningCopy,
    offset: number,
    segments: readonly BlobSegment[],
    uploaded: UploadedContent,
  ): Promise<void>;
  /**
   * The resource has all bytes, and no copy runs.
   * @param whole undefined: the content of the copy has them
   */
  complete(tx: Transaction, copy: RunningCopy, found: PendingResource<Found>, whole: Buffer | undefined): void;
  /** The copy ends in this state, without its bytes: the resource stays empty. True: the sweeper has work to do. */
  end(tx: Transaction, copy: RunningCopy, found: PendingResource<Found>, state: CopyState): boolean | Promise<boolean>;
}

/** The running copies of a service. */
export interface CopyTargets {
  rowsIn(account: AccountId): Range;
  /** Undefined: the row is one of another service. */
  open(content: Storage['content'], key: Key): CopyTarget<CopiedResource> | undefined;
}
