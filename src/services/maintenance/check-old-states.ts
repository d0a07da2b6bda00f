/** The check of a blob's content, of its snapshots, and of what is soft-deleted. */
import { parseId } from '../../content/rows.ts';
import { crc64Base64 } from '../../hashing/hasher.ts';
import { decodeKey } from '../../partition/keys.ts';
import type { Row, Snapshot } from '../../partition/partition.ts';
import { decodeBytes } from '../../partition/values.ts';
import { decodeBlobRecord, parseBlobRecord } from '../blob/blob-record.ts';
import {
  decodeDeletedBlob,
  decodeMark,
  deletedBlobKey,
  deletedStateKey,
  hiddenUpTo,
  readMark,
  recordKey,
  retentionKey,
  stampInKey,
} from '../blob/old-rows.ts';
import { type Blob, blobKey, inlineKey } from '../blob/rows.ts';
import type { AccountId } from '../common/storage.ts';
import { checkRangesRecord } from './check-ranges.ts';
import { qualifiedId, type ReferenceCounts } from './check-refcounts.ts';

type StateKey = [account: bigint, kind: string, container: bigint, root: bigint, blob: string];

/** A snapshot has its blob, or the mark before it says that it is deleted. */
export async function checkSnapshot(at: Snapshot, row: Row, counts: ReferenceCounts): Promise<void> {
  const [account, , id, , blob] = decodeKey(row.key) as StateKey;
  const isSwept = counts.deletionQueue.has(`container ${qualifiedId(account, id)}`);
  const stamp = stampInKey(row.key);
  if (stamp === undefined) {
    decodeMark(row);
    if (isSwept || counts.deletionQueue.has(`snapshots ${qualifiedId(account, `${id} ${blob}`)}`)) return;
    throw new Error('snapshots that would never be removed');
  }
  const isDeleted = isSwept || stamp <= hiddenUpTo(await readMark(at, account, id, blob));
  if (!isDeleted && !(await at.get(blobKey(account, id, blob)))) throw new Error('a snapshot without its blob');
  return checkBlobContent(at, row, decodeBlobRecord(row), counts, stamp);
}

/** What is kept after its deletion has an end. A blob is not deleted and there at the same time. */
export async function checkDeletedState(at: Snapshot, row: Row, counts: ReferenceCounts): Promise<void> {
  const [account, kind, id, , blob] = decodeKey(row.key) as StateKey;
  const { stamp, until, record } = decodeDeletedBlob(row);
  if (!(await at.get(retentionKey(account, until, id, blob, stamp)))) throw new Error('its retention would never end');
  if (kind === 'D' && (await at.get(blobKey(account, id, blob)))) throw new Error('a deleted blob that exists');
  return checkBlobContent(at, row, parseBlobRecord(record, row), counts, stamp);
}

export async function checkRetention(at: Snapshot, row: Row): Promise<void> {
  const [account, , , , id, blob, stamp] = decodeKey(row.key) as [
    ...[bigint, string, bigint, string, bigint, string, bigint],
  ];
  if (!(await hasDeletedState(at, account, id, blob, stamp))) throw new Error('a retention of nothing');
}

/** Whether the blob has a state with this stamp; undefined: whether it exists. */
export async function hasState(
  at: Snapshot,
  account: AccountId,
  id: bigint,
  blob: string,
  stamp: bigint | undefined,
): Promise<boolean> {
  if (await at.get(recordKey(account, id, blob, stamp))) return true;
  return stamp !== undefined && hasDeletedState(at, account, id, blob, stamp);
}

async function hasDeletedState(at: Snapshot, account: AccountId, id: bigint, blob: string, stamp: bigint) {
  const rows = await at.getMany([deletedBlobKey(account, id, blob), deletedStateKey(account, id, blob, stamp)]);
  return rows.some((row) => row && decodeDeletedBlob(row).stamp === stamp);
}

/** The bytes of a record: those of a blob, or of an older state with this stamp. */
export async function checkBlobContent(
  at: Snapshot,
  row: Row,
  record: Blob,
  counts: ReferenceCounts,
  stamp?: bigint,
): Promise<void> {
  const [account, , container, , blob] = decodeKey(row.key) as [bigint, string, bigint, bigint, string];
  if (record.contentId !== undefined) {
    parseId(record.contentId);
    const content = counts.contents.get(qualifiedId(account, record.contentId))?.row;
    if (!content) throw new Error('its content is missing');
    if (content.kind === 'ranges') {
      checkRangesRecord(record, qualifiedId(account, record.contentId), counts);
    } else if (content.length !== record.length)
      throw new Error(`its content has ${content.length} bytes, not ${record.length}`);
    return;
  }
  const inline = await at.get(inlineKey(account, container, blob, stamp));
  if (!inline) throw new Error('its content is missing');
  const bytes = decodeBytes(inline);
  if (bytes.length !== record.length) throw new Error(`its content has ${bytes.length} bytes, not ${record.length}`);
  if (crc64Base64(bytes) !== record.crc64) throw new Error('its content does not match its checksum');
}
