import type { ContentStore } from '../../content/content.ts';
import type { Partition } from '../../partition/partition.ts';

export { nextSlice } from '../../base/time-slices.ts';

/** The first part of nearly every key, so that an account can move to another store. */
export type AccountId = bigint;

/** What a caller has been let in for, where that is less than everything: the operation itself must see to it. */
export interface Granted {
  /** The container whose settings let him in: another one of the same name does not. */
  readonly container?: bigint | undefined;
  /** He may make what is not there yet, and replace nothing. */
  readonly overwrite?: false;
  /** The container that the source of a copy was let out of. */
  readonly source?: bigint | undefined;
  /** The entities of a table that he may see and change: from the first to the last, both included. */
  readonly entities?: { readonly from?: EntityBound | undefined; readonly to?: EntityBound | undefined } | undefined;
}

/** Without a row: all of the partition. */
export interface EntityBound {
  readonly partitionKey: string;
  readonly rowKey?: string | undefined;
}

/** What every operation is handed: the store, and the account that it works for. Time comes with the snapshot. */
export interface Storage {
  readonly partition: Partition;
  readonly account: AccountId;
  /** Bytes of any length. */
  readonly content: ContentStore;
  /** Something was made unreachable: its rows can be given back. */
  readonly sweeper: { wake(): void };
  /** Undefined: everything. */
  readonly granted?: Granted | undefined;
  /** The server itself: it writes what clients can only read. */
  readonly bySystem?: true;
  /** Whoever goes by the settings of the services reads them again. */
  readonly settings?: { changed(): Promise<void> } | undefined;
}
