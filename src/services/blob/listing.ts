/** List Blobs. */
import { prefixEnd } from '../../partition/keys.ts';
import type { Timestamp } from '../../partition/partition.ts';
import { type Lease, type LeaseState, leaseState } from '../../rules/lease.ts';
import { type Deletion, remainingDays } from '../../rules/soft-delete.ts';
import { type TierState, tierState } from '../../rules/tiers.ts';
import { type ListInput, type NameSource, readPage } from '../common/list-pages.ts';
import type { Storage } from '../common/storage.ts';
import { decodeBlobRecord, parseBlobRecord } from './blob-record.ts';
import { fail } from './errors.ts';
import {
  deletedBlobStream,
  deletedStateStream,
  type ListedStates,
  type ListRow,
  mergeStreams,
  recordStream,
  snapshotStream,
  uncommittedStream,
} from './list-streams.ts';
import { checkContainerName } from './request-checks.ts';
import { type Blob, blobKey, blobKeyPrefix, readContainerId } from './rows.ts';

export interface ListBlobsInput extends ListInput {
  readonly container: string;
  readonly delimiter: string | undefined;
  /** The first name that may be listed, whether it exists or not. */
  readonly startFrom?: string | undefined;
  /** Belongs to lists in Arrow's format, which accounts have only if Microsoft has enabled it for them. */
  readonly endBefore?: string | undefined;
  /** With blobs that consist of uncommitted blocks only. */
  readonly uncommitted: boolean;
  readonly snapshots?: boolean;
  /** With what is soft-deleted. */
  readonly deleted?: boolean;
  /** Without what exists. */
  readonly onlyDeleted?: boolean;
}

export interface ListedBlob {
  readonly name: string;
  /** Undefined: the base blob. */
  readonly snapshot: Timestamp | undefined;
  /** Undefined: it is not deleted. */
  readonly deletion: (Deletion & { readonly remainingDays: number }) | undefined;
  /** Undefined: the blob consists of uncommitted blocks only. */
  readonly blob: Blob | undefined;
  readonly lease: Lease | undefined;
  readonly leaseState: LeaseState;
  readonly tier: TierState;
}

/** In the order of their names: a blob after its snapshots, or a common prefix of names up to the delimiter. */
export type ListedItem = ListedBlob | { readonly prefix: string };

/**
 * `emit` gets the items of a page in slices, so that memory holds one slice, not thousands of items.
 * Resolves with the marker of the next page.
 */
export async function listBlobs(
  storage: Storage,
  input: ListBlobsInput,
  emit: (items: readonly ListedItem[]) => void,
): Promise<string> {
  checkContainerName(input.container);
  if (input.endBefore) throw fail('OperationNotSupportedWithFeatureMissing');
  const { account, partition } = storage;
  return partition.read(async (at) => {
    const id = await readContainerId(at, storage, input.container);
    const source = { at, account, id };
    const { snapshots = false, deleted = false, onlyDeleted = false } = input;
    const states = { snapshots, deleted: deleted || onlyDeleted, onlyDeleted };
    const streams = streamsOf(states, input.uncommitted);
    const names: NameSource<ListRow, ListedBlob> = {
      under: (prefix) => blobKeyPrefix(account, id, prefix),
      at: (name) => blobKey(account, id, name),
      after: (name) => prefixEnd(blobKey(account, id, name)),
      open(range) {
        const opened = streams.map((open) => open(source, range, states));
        return opened.length === 1 ? opened[0]! : mergeStreams(opened);
      },
      item({ name, row, record, uncommitted, snapshot, deletion }) {
        const decode = () => (record === undefined ? decodeBlobRecord(row) : parseBlobRecord(record, row));
        const blob = uncommitted ? undefined : decode();
        const { lease } = uncommitted ?? blob!;
        const tier = tierState(blob?.tier, at.now);
        const remaining = deletion && { ...deletion, remainingDays: remainingDays(deletion, at.now) };
        return { name, snapshot, deletion: remaining, blob, lease, leaseState: leaseState(lease, at.now), tier };
      },
      bytesOf: ({ row }) => row.value.length,
    };
    return readPage(names, input, input.delimiter ?? '', emit);
  });
}

/** Records first: they hide uncommitted blocks of the same name. */
function streamsOf({ snapshots, deleted, onlyDeleted }: ListedStates, uncommitted: boolean) {
  return [
    ...(onlyDeleted ? [] : [recordStream]),
    ...(uncommitted && !onlyDeleted ? [uncommittedStream] : []),
    ...(deleted ? [deletedBlobStream] : []),
    ...(snapshots ? [snapshotStream] : []),
    ...(deleted && snapshots ? [deletedStateStream] : []),
  ];
}
