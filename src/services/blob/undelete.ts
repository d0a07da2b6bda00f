/** Undelete Blob: the deleted blob, its deleted snapshots and the states that writes have replaced are there again, the last two as snapshots. */
import { type Key, keyAfter } from '../../partition/keys.ts';
import type { Timestamp, Transaction } from '../../partition/partition.ts';
import { encodeText } from '../../partition/values.ts';
import { isRetained } from '../../rules/soft-delete.ts';
import type { Storage } from '../common/storage.ts';
import { parseBlobRecord } from './blob-record.ts';
import { fail } from './errors.ts';
import {
  decodeDeletedBlob,
  deletedBlobKey,
  deletedStatesIn,
  markKey,
  readMark,
  retentionKey,
  snapshotKey,
} from './old-rows.ts';
import { checkBlobName, checkContainerName, checkWritable } from './request-checks.ts';
import { blobKey, txQueueKey } from './rows.ts';
import { settleMark, UnsettledMark } from './snapshots.ts';
import { moveInline } from './soft-delete.ts';
import { updateTagIndex } from './tag-index.ts';
import { readTarget, type WriteTarget } from './write-target.ts';

export interface UndeleteInput {
  readonly container: string;
  readonly blob: string;
}

/** States that one commit restores: each is three rows. */
const SLICE_ROWS = 200;

/** Where the next slice begins. */
interface Progress {
  readonly from: Key;
  /** States that are deleted later are not meant. */
  readonly upTo: Timestamp;
}

/** The blob comes back with the first commit, and up to 200 states with it; more follow in commits of their own, before the answer. */
export async function undeleteBlob(storage: Storage, input: UndeleteInput): Promise<void> {
  const { container, blob } = input;
  checkContainerName(container);
  checkBlobName(blob);
  checkWritable(storage, container);
  const queueKey = txQueueKey(storage.account, container, blob);
  let done: Progress | undefined;
  for (;;) {
    const progress = done;
    try {
      const { value } = await storage.partition.transact(queueKey, (tx) => restoreSlice(tx, storage, input, progress));
      if (!value) return;
      done = value;
    } catch (error) {
      if (!(error instanceof UnsettledMark)) throw error;
      await settleMark(storage, error, blob);
    }
  }
}

/** Undefined: nothing is left to restore. */
async function restoreSlice(
  tx: Transaction,
  storage: Storage,
  input: UndeleteInput,
  progress: Progress | undefined,
): Promise<Progress | undefined> {
  const { account } = storage;
  const target = await readTarget(tx, storage, input);
  const { containerId: id, name } = target;
  if (!target.blob && progress) return undefined;
  if (!target.blob) await restoreBlob(tx, storage, target);
  await forgetMark(tx, storage, target);
  const range = deletedStatesIn(account, id, name);
  const { from, upTo } = progress ?? { from: range.from, upTo: tx.timestamp };
  const rows = await tx.scan({ from, to: range.to }, { limit: SLICE_ROWS });
  for (const row of rows) {
    const { stamp, until, deleted, record } = decodeDeletedBlob(row);
    if (deleted > upTo || !isRetained({ until }, tx.now)) continue;
    tx.commitBefore(until);
    tx.remove(row.key);
    tx.remove(retentionKey(account, until, id, name, stamp));
    tx.put(snapshotKey(account, id, name, stamp), encodeText(record));
  }
  const last = rows.at(-1)?.key;
  return last === undefined || rows.length < SLICE_ROWS ? undefined : { from: keyAfter(last), upTo };
}

async function restoreBlob(tx: Transaction, { account }: Storage, target: WriteTarget): Promise<void> {
  const { containerId: id, name, deleted: row } = target;
  const deleted = row && decodeDeletedBlob(row);
  if (!deleted || !isRetained(deleted, tx.now)) throw fail('BlobNotFound');
  const { stamp, until, record } = deleted;
  tx.commitBefore(until);
  tx.remove(deletedBlobKey(account, id, name));
  tx.remove(retentionKey(account, until, id, name, stamp));
  // With the ETag that it had.
  tx.put(blobKey(account, id, name), encodeText(record));
  const { contentId, tags } = parseBlobRecord(record, row!);
  if (contentId === undefined) await moveInline(tx, account, id, name, stamp, undefined);
  await updateTagIndex(tx, account, target, undefined, tags);
}

/** Snapshots that a mark says are deleted exist again without it, unless it also says that others are gone, or their retention has ended. */
async function forgetMark(
  tx: Transaction,
  { account }: Storage,
  { containerId: id, name }: WriteTarget,
): Promise<void> {
  const { upTo, kept } = await readMark(tx, account, id, name);
  if (upTo > 0n || (kept && !isRetained(kept, tx.now))) throw new UnsettledMark(id);
  if (!kept) return;
  tx.commitBefore(kept.until);
  tx.remove(markKey(account, id, name));
}
