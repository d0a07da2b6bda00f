/** Snapshot Blob, and the deletion of snapshots. A snapshot is a row and a reference to the content of its blob, whatever its length. */
import { deletionKey, parseId } from '../../content/rows.ts';
import type { Row, Snapshot, Timestamp, Transaction } from '../../partition/partition.ts';
import { decodeText } from '../../partition/values.ts';
import { formatEtag } from '../../rules/conditions.ts';
import { parseSnapshotTime } from '../../rules/snapshots.ts';
import { type Deletion, isRetained } from '../../rules/soft-delete.ts';
import { encodeDeletion } from '../common/deletions.ts';
import type { AccountId, Storage } from '../common/storage.ts';
import { decodeBlobRecord, encodeBlobRecord, readBlob } from './blob-record.ts';
import { fail } from './errors.ts';
import {
  decodeMark,
  encodeMark,
  hiddenUpTo,
  markAndSnapshots,
  markKey,
  NO_MARK,
  nextStamp,
  readMark,
  type SnapshotMark,
  snapshotKey,
  snapshotsBetween,
  stampInKey,
} from './old-rows.ts';
import { type ReleasingStore, releaseContent } from './release-content.ts';
import {
  type BlobInput,
  checkChangeable,
  checkLease,
  checkOnline,
  checkWritable,
  checkWriteConditions,
  checkWriteInput,
  parseMetadata,
  type SentMetadata,
} from './request-checks.ts';
import { type Blob, type ContainerId, changesInPlace, inlineKey, recordFrom, txQueueKey } from './rows.ts';
import { shareContent } from './shared-content.ts';
import { putDeleted } from './soft-delete.ts';

/** The query parameter as it was sent. */
export function parseSnapshot(text: string): Timestamp {
  const stamp = parseSnapshotTime(text);
  if (stamp !== undefined) return stamp;
  throw fail('InvalidQueryParameterValue', { QueryParameterName: 'snapshot', QueryParameterValue: text });
}

export interface SnapshotBlobInput extends BlobInput {
  /** Unless empty, it replaces the metadata of the blob, and the snapshot has an ETag of its own. */
  readonly metadata: SentMetadata;
  /** When another server took the snapshot, from which it is imported. */
  readonly taken?: Timestamp | undefined;
}

/** The lease of the blob does not matter, unless the request names one; the snapshot has none. */
export async function snapshotBlob(storage: Storage, input: SnapshotBlobInput) {
  const { container, blob: name, conditions } = input;
  const { account } = storage;
  const leaseId = checkWriteInput(input);
  const metadata = parseMetadata(input.metadata);
  checkWritable(storage, container);
  const { value } = await storage.partition.transact(txQueueKey(account, container, name), async (tx) => {
    // The commit checks the record, which every Delete Blob of the base removes.
    const { id, blob } = await readBlob(tx, storage, container, name);
    checkLease(tx, blob.lease, leaseId, 'read', 'blob');
    checkWriteConditions(blob, conditions, leaseId);
    checkChangeable(blob);
    checkOnline(tx, blob);
    const snapshot = await nextStamp(tx, account, id, name, input.taken);
    const putInline = await shareContent(tx, storage, { id, name, blob });
    putInline(inlineKey(account, id, name, snapshot));
    const generation = changesInPlace(blob) ? await holdState(tx, storage, blob) : undefined;
    const changed = input.metadata.length > 0;
    const etag = changed ? snapshot : blob.version;
    const record = { ...recordFrom(blob), lease: undefined, generation, etag, ...(changed && { metadata }) };
    tx.put(snapshotKey(account, id, name, snapshot), encodeBlobRecord(record));
    return { snapshot, etag: formatEtag(etag), modified: etag };
  });
  return value;
}

/** Later writes leave the bytes of this state where they are. @returns its generation */
async function holdState(tx: Transaction, { account, content }: Storage, { contentId }: Blob): Promise<number> {
  const map = await content.ranges.read(tx, account, parseId(contentId!));
  return content.ranges.hold(tx, account, map);
}

/** The newest snapshot and the mark of the deleted ones. In a transaction the commit checks the mark, and that there is no newer snapshot. */
export async function readLastSnapshot(
  at: Snapshot,
  account: AccountId,
  id: ContainerId,
  blob: string,
): Promise<{ readonly last: Timestamp | undefined; readonly mark: SnapshotMark }> {
  // Most blobs have neither, and then one scan says so.
  const [first] = await at.scan(markAndSnapshots(account, id, blob), { limit: 1 });
  if (!first) return { last: undefined, mark: NO_MARK };
  const mark = stampInKey(first.key) === undefined ? decodeMark(first) : NO_MARK;
  const range = snapshotsBetween(account, id, blob, hiddenUpTo(mark));
  const [row] = await at.scan(range, { limit: 1, reverse: true });
  return { last: row && stampInKey(row.key), mark };
}

/** A mark has to be carried out before another one can be set. */
export class UnsettledMark extends Error {
  readonly id: ContainerId;
  constructor(id: ContainerId) {
    super('A mark of snapshots is not carried out yet.');
    this.id = id;
  }
}

/**
 * One commit for any number of snapshots: those up to now are deleted, and the sweeper does to each what the mark says. A snapshot that is
 * taken at the same time checks the mark.
 * @param kept undefined: they do not exist any more
 */
export function deleteSnapshots(
  tx: Transaction,
  account: AccountId,
  id: ContainerId,
  blob: string,
  { last, mark, kept }: { last: Timestamp; mark: SnapshotMark; kept: Deletion | undefined },
): void {
  if (mark.kept) throw new UnsettledMark(id);
  const upTo = last > tx.timestamp ? last : tx.timestamp;
  const next = kept ? { upTo: mark.upTo, kept: { ...kept, upTo } } : { upTo };
  tx.put(markKey(account, id, blob), encodeMark(next));
  const container = id.toString();
  const deletion = encodeDeletion({ kind: 'snapshots', container, blob });
  tx.put(deletionKey(account, tx.timestamp, `${container} ${blob}`), deletion);
}

/** Carries out the mark of a blob now, instead of the sweeper. */
export async function settleMark(
  { partition, account, content }: Storage,
  { id }: UnsettledMark,
  blob: string,
): Promise<void> {
  const key = markKey(account, id, blob);
  while (!(await partition.transact(key, (tx) => settleMarkSlice(tx, content, account, id, blob))).value);
}

const SLICE_ROWS = 50;

/** True: it is carried out. The mark goes last: until then it hides the snapshots that are left. */
export async function settleMarkSlice(
  tx: Transaction,
  content: ReleasingStore,
  account: AccountId,
  id: ContainerId,
  blob: string,
): Promise<boolean> {
  const { upTo, kept } = await readMark(tx, account, id, blob);
  const slice = (first: Timestamp, last: Timestamp) =>
    tx.scanUnchecked(snapshotsBetween(account, id, blob, first, last), { limit: SLICE_ROWS });
  const gone = await slice(0n, upTo);
  for (const row of gone) await removeSnapshot(tx, content, account, id, blob, row);
  if (gone.length > 0) return false;
  const deleted = kept ? await slice(upTo, kept.upTo) : [];
  for (const row of deleted) {
    if (!isRetained(kept!, tx.now)) await removeSnapshot(tx, content, account, id, blob, row);
    else keepSnapshot(tx, account, id, blob, row, kept!);
  }
  if (deleted.length > 0) return false;
  tx.remove(markKey(account, id, blob));
  return true;
}

/** The snapshot is deleted, and can be restored: its row moves, and its bytes stay where they are. */
export function keepSnapshot(
  tx: Transaction,
  account: AccountId,
  id: ContainerId,
  blob: string,
  row: Row,
  deletion: Deletion,
): void {
  tx.remove(row.key);
  putDeleted(tx, account, id, blob, { ...deletion, stamp: stampInKey(row.key)! }, decodeText(row));
}

export async function removeSnapshot(
  tx: Transaction,
  content: ReleasingStore,
  account: AccountId,
  id: ContainerId,
  blob: string,
  row: Row,
): Promise<void> {
  const record = decodeBlobRecord(row);
  tx.remove(row.key);
  if (record.contentId) await releaseContent(tx, content, account, record);
  else tx.remove(inlineKey(account, id, blob, stampInKey(row.key)!));
}
