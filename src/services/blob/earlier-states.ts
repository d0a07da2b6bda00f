/** A snapshot that a later state of its blob is compared with. */
import type { Snapshot, Timestamp } from '../../partition/partition.ts';
import { StorageError } from '../common/errors.ts';
import type { AccountScope } from '../common/storage.ts';
import { readBlob } from './blob-record.ts';
import { fail } from './errors.ts';
import type { Blob } from './rows.ts';

export interface EarlierState {
  readonly container: string;
  readonly blob: string;
  /** Of the later state. */
  readonly snapshot?: Timestamp | undefined;
  readonly since?: Timestamp | undefined;
}

/**
 * The generation of the earlier snapshot; undefined: none was asked for. It has to be one of the same content: with another one, nothing is
 * in common.
 */
export async function findEarlierState(
  at: Snapshot,
  scope: AccountScope,
  { container, blob: name, snapshot, since }: EarlierState,
  later: Blob,
): Promise<number | undefined> {
  if (since === undefined) return undefined;
  if (snapshot !== undefined && since > snapshot) throw fail('PreviousSnapshotCannotBeNewer');
  const earlier = await readBlob(at, scope, container, name, since).catch((error: unknown) => {
    throw error instanceof StorageError && error.code === 'BlobNotFound' ? fail('PreviousSnapshotNotFound') : error;
  });
  if (earlier.blob.contentId !== later.contentId) throw fail('BlobOverwritten');
  return earlier.blob.generation;
}
