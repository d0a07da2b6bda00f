/** What every operation gets: the stores, the account, and the limits of the caller's authorization. */
import type { ContentStore } from '../../content/content.ts';
import type { Owner } from '../../content/membership/owner.ts';
import type { Key } from '../../partition/keys.ts';
import type { Partition } from '../../partition/partition.ts';
import type { SourceReader, SourceService } from './copy-sources.ts';
import type { HeldLeases } from './held-leases.ts';
import type { RemoteSources } from './remote-sources.ts';

export { nextSlice } from '../../base/time-slices.ts';

/** The first part of nearly every key, so that all rows of an account could be moved to another store. */
export type AccountId = bigint;

/** The limits of the caller's authorization that only the operation itself can enforce. */
export interface Granted {
  /** The container whose access settings authorized the caller: another one of the same name does not. */
  readonly container?: bigint | undefined;
  /** The caller can create blobs, but not replace any. */
  readonly overwrite?: false;
  /** The account of a copy's source, and the container whose access settings authorized the read of it. */
  readonly source?: { readonly account: AccountId; readonly container: bigint | undefined } | undefined;
  /** The entities of a table that the caller can read and change: from the first to the last, both included. */
  readonly entities?: { readonly from?: EntityBound | undefined; readonly to?: EntityBound | undefined } | undefined;
}

/** Without a row key: the whole partition. */
export interface EntityBound {
  readonly partitionKey: string;
  readonly rowKey?: string | undefined;
}

/** The first argument of every operation: the store, and the account of the request. Time comes with the snapshot. */
export interface Storage {
  readonly partition: Partition;
  readonly account: AccountId;
  /** Bytes of any length. */
  readonly content: ContentStore;
  /** Of the files that are opened through this process; undefined: none can be. */
  readonly owner?: Pick<Owner, 'claim' | 'lose'> | undefined;
  /** Woken after a commit that scheduled a deletion. */
  readonly sweeper: { wake(): void };
  /** Runs copies in the background; undefined: none can be started. */
  readonly copies?: CopyQueue | undefined;
  /** Reads other servers; undefined: none can be copied from. */
  readonly remote?: RemoteSources | undefined;
  /** Reads the resources of this server that operations of any service copy. */
  readonly sources?: Readonly<Record<SourceService, SourceReader>> | undefined;
  /** Undefined: no limits. */
  readonly granted?: Granted | undefined;
  /** The server itself acts: it writes the logs, which clients can only read. */
  readonly bySystem?: true;
  /** How long an archived blob takes to come back; undefined: the default. */
  readonly rehydrationSeconds?: number | undefined;
  /** For monitoring. */
  readonly heldLeases?: HeldLeases | undefined;
  /** Storage Analytics, which reads the service properties again. */
  readonly settings?: { refresh(): Promise<void> } | undefined;
}

export interface CopyQueue {
  /** A copy was committed under this key, for this process to run. */
  start(key: Key): void;
  /** A running copy may have ended. */
  wake(): void;
}

/** What a read of containers, queues and tables needs. */
export type AccountScope = Pick<Storage, 'account' | 'granted'>;
