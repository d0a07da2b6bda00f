/** One slice of a deletion-queue or expiry-index entry: idempotent, one commit each, so a crash between two loses nothing. */
import type { ContentStore } from '../../content/content.ts';
import type { Merged } from '../../content/ranges/merge.ts';
import type { RangeMaps } from '../../content/ranges/range-maps.ts';
import { type ChunkRef, manifestPagesIn, parseId } from '../../content/rows.ts';
import { decodeKey, type Key, prefixEnd, type Range } from '../../partition/keys.ts';
import type { Partition, Row, Transaction } from '../../partition/partition.ts';
import { encodeValue } from '../../partition/values.ts';
import { decodeBlobRecord } from '../blob/blob-record.ts';
import { expireDeletedContainer } from '../blob/deleted-containers.ts';
import { deletedBlobKeyPrefix, deletedStateKeyPrefix, snapshotKeyPrefix, stampInKey } from '../blob/old-rows.ts';
import { releaseContent } from '../blob/release-content.ts';
import {
  blobKeyPrefix,
  blocksIn,
  decodeBlock,
  decodeUncommitted,
  encodeUncommitted,
  expiryKey,
  inlineKey,
  nameFromKey,
  runningCopiesIn,
  scheduleUncommittedDeletion,
  type UncommittedId,
  uncommittedExpiry,
  uncommittedKey,
  uncommittedKeyPrefix,
} from '../blob/rows.ts';
import { removeSnapshot, settleMarkSlice } from '../blob/snapshots.ts';
import { expireDeletedState, removeDeletedState } from '../blob/soft-delete.ts';
import { updateTagIndex } from '../blob/tag-index.ts';
import { decodeDeletion, keyPrefixesIn } from '../common/deletions.ts';
import { decodeRunningCopy } from '../common/running-copies.ts';
import type { AccountId } from '../common/storage.ts';
import { expireDeletedShare } from '../file/deleted-shares.ts';
import { sweepSnapshot } from '../file/sweep-history.ts';
import { sweepShare } from '../file/sweep-share.ts';

export interface SweepContext {
  readonly partition: Partition;
  readonly content: Pick<ContentStore, 'decrefContent' | 'decrefChunks' | 'discardContent' | 'sweepContent'> & {
    readonly ranges: Pick<RangeMaps, 'merge' | 'sweepEntry' | 'sweepContent' | 'release' | 'endCurrent'>;
  };
}

/** Blobs or blocks of a slice: a blob has up to ten tags, each a row and a counter. */
const SLICE_ROWS = 50;
/** Rows without references, of a slice. */
const SLICE_BARE_ROWS = 500;
/** A block has up to 500 chunks: a slice ends after the block that reaches this number. */
const SLICE_CHUNKS = 300;

/** One slice of this entry of the deletion queue. True: the entry is done and removed. */
export async function sweepSlice(context: SweepContext, account: AccountId, entry: Row): Promise<boolean> {
  const deletion = decodeDeletion(entry);
  const { key } = entry;
  // Bytes are written before the transaction that names them.
  let merged: Merged | undefined;
  if (deletion.kind === 'merge') {
    const { content, offset } = deletion;
    merged = await context.content.ranges.merge(account, { content: parseId(content), offset });
    if (!merged.isComplete) return false;
  }
  const { value } = await context.partition.transact(key, async (tx) => {
    const row = await tx.get(key);
    if (!row) return true;
    const isDone = await sweepEntry(context, tx, account, row, merged);
    if (isDone) tx.remove(key);
    return isDone;
  });
  return value;
}

/** @param merged of an entry of a merge */
function sweepEntry(
  { content }: SweepContext,
  tx: Transaction,
  account: AccountId,
  row: Row,
  merged?: Merged,
): Promise<boolean> {
  const deletion = decodeDeletion(row);
  switch (deletion.kind) {
    case 'container':
      return sweepContainer(content, tx, account, BigInt(deletion.container));
    case 'share':
      return sweepShare(tx, { account, content }, BigInt(deletion.share));
    case 'shareSnapshot':
      return sweepSnapshot(tx, { account, content }, row.key, deletion);
    case 'snapshots':
      return settleMarkSlice(tx, content, account, BigInt(deletion.container), deletion.blob);
    case 'stage': {
      const id = parseId(deletion.stage);
      return deletion.uncounted ? sweepRange(tx, blocksIn(account, id)) : sweepUncommitted(content, tx, account, id);
    }
    case 'content': {
      const id = parseId(deletion.content);
      if (deletion.ranges) return content.ranges.sweepContent(tx, account, id);
      return deletion.uncounted ? sweepRange(tx, manifestPagesIn(account, id)) : content.sweepContent(tx, account, id);
    }
    case 'generation':
    case 'void':
    case 'merge':
      return content.ranges.sweepEntry(tx, account, row.key, deletion, merged);
    case 'rows':
      return sweepRows(tx, keyPrefixesIn(deletion));
  }
}

/** Without the container's name and properties no write can add rows, so unchecked scans are enough. */
async function sweepContainer(
  content: SweepContext['content'],
  tx: Transaction,
  account: AccountId,
  id: bigint,
): Promise<boolean> {
  const copies = await tx.scanUnchecked(runningCopiesIn(account, id), { limit: SLICE_ROWS });
  for (const row of copies) {
    const copy = decodeRunningCopy(row);
    if (!copy.inPlace) content.discardContent(tx, account, copy.content);
    tx.remove(row.key);
  }
  const blobPrefix = blobKeyPrefix(account, id, '');
  const blobs = await tx.scanUnchecked({ from: blobPrefix, to: prefixEnd(blobPrefix) }, { limit: SLICE_ROWS });
  for (const row of blobs) {
    const record = decodeBlobRecord(row);
    const { contentId, tags } = record;
    const name = nameFromKey(row.key);
    if (contentId) await releaseContent(tx, content, account, record);
    else tx.remove(inlineKey(account, id, name));
    await updateTagIndex(tx, account, { containerId: id, container: '', name }, tags);
    tx.remove(row.key);
  }
  if (copies.length + blobs.length > 0) return false;
  if (await sweepOldStates(content, tx, account, id)) return false;
  const prefix = uncommittedKeyPrefix(account, id, '');
  const rows = await tx.scanUnchecked({ from: prefix, to: prefixEnd(prefix) }, { limit: SLICE_ROWS });
  for (const row of rows) scheduleUncommittedDeletion(tx, account, id, nameFromKey(row.key), decodeUncommitted(row));
  return rows.length === 0;
}

/** One slice of the snapshots, marks and deleted states of a container. True: there were some. */
async function sweepOldStates(
  content: SweepContext['content'],
  tx: Transaction,
  account: AccountId,
  container: bigint,
): Promise<boolean> {
  const prefixes = [snapshotKeyPrefix, deletedBlobKeyPrefix, deletedStateKeyPrefix];
  for (const prefix of prefixes.map((of) => of(account, container, ''))) {
    const rows = await tx.scanUnchecked({ from: prefix, to: prefixEnd(prefix) }, { limit: SLICE_ROWS });
    for (const row of rows) {
      const [, kind, id, , name] = decodeKey(row.key) as [bigint, string, bigint, bigint, string];
      if (kind !== 'v') await removeDeletedState(tx, content, account, id, name, row);
      else if (stampInKey(row.key) === undefined) tx.remove(row.key);
      else await removeSnapshot(tx, content, account, id, name, row);
    }
    if (rows.length > 0) return true;
  }
  return false;
}

/** No write can add rows under these prefixes any more, either. */
async function sweepRows(tx: Transaction, prefixes: readonly Key[]): Promise<boolean> {
  for (const from of prefixes) if (!(await sweepRange(tx, { from, to: prefixEnd(from) }))) return false;
  return true;
}

async function sweepRange(tx: Transaction, range: Range): Promise<boolean> {
  const rows = await tx.scanUnchecked(range, { limit: SLICE_BARE_ROWS });
  for (const { key } of rows) tx.remove(key);
  return rows.length === 0;
}

/** Put Block checks the uncommitted-blocks row, which is gone, so no block can be added. */
async function sweepUncommitted(
  content: SweepContext['content'],
  tx: Transaction,
  account: AccountId,
  id: UncommittedId,
): Promise<boolean> {
  const rows = await tx.scanUnchecked(blocksIn(account, id), { limit: SLICE_ROWS });
  const released: ChunkRef[] = [];
  for (const row of rows) {
    if (released.length >= SLICE_CHUNKS) break;
    released.push(...decodeBlock(row).chunkRefs);
    tx.remove(row.key);
  }
  await content.decrefChunks(tx, account, released);
  return rows.length === 0;
}

/** Whatever the entry of the expiry index names has reached its end, or has another one by now. */
export async function expireEntry(context: SweepContext, account: AccountId, indexRow: Row): Promise<void> {
  const { partition, content } = context;
  const kind = decodeKey(indexRow.key)[3];
  if (kind === 'retention') {
    await partition.transact(indexRow.key, (tx) => expireDeletedState(tx, content, account, indexRow));
    return;
  }
  const expire = { container: expireDeletedContainer, share: expireDeletedShare }[String(kind)] ?? expireUncommitted;
  return expire(partition, account, indexRow);
}

async function expireUncommitted(partition: Partition, account: AccountId, indexRow: Row): Promise<void> {
  const [, , instant, , id, blob] = decodeKey(indexRow.key) as [bigint, string, bigint, string, bigint, string];
  await partition.transact(indexRow.key, async (tx) => {
    tx.remove(indexRow.key);
    const row = await tx.get(uncommittedKey(account, id, blob));
    const uncommitted = row && decodeUncommitted(row);
    // The entry may belong to earlier uncommitted blocks of this blob.
    if (!uncommitted || uncommitted.due !== instant) return;
    const end = uncommittedExpiry(uncommitted.touched);
    if (tx.now < end) {
      tx.put(row.key, encodeUncommitted({ ...uncommitted, due: end }));
      tx.put(expiryKey(account, end, id, blob), encodeValue({}));
      return;
    }
    scheduleUncommittedDeletion(tx, account, id, blob, uncommitted);
  });
}
