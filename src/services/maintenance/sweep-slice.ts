/** What is left of something unreachable, let go of slice by slice: each is one commit, and a kill between two costs nothing. */
import type { ContentStore } from '../../content/content.ts';
import { type ChunkRef, manifestPagesIn, parseId } from '../../content/rows.ts';
import { decodeKey, type Key, prefixEnd, type Range } from '../../partition/keys.ts';
import type { Partition, Row, Transaction } from '../../partition/partition.ts';
import { encodeValue } from '../../partition/values.ts';
import { decodeBlobRecord } from '../blob/blob-record.ts';
import {
  blobKeyPrefix,
  blocksIn,
  decodeBlock,
  decodeUncommitted,
  encodeUncommitted,
  expiryKey,
  inlineKey,
  nameFromKey,
  scheduleUncommittedDeletion,
  type UncommittedId,
  uncommittedExpiry,
  uncommittedKey,
  uncommittedKeyPrefix,
} from '../blob/rows.ts';
import { decodeDeletion, keyPrefixesIn } from '../common/deletions.ts';
import type { AccountId } from '../common/storage.ts';

export interface SweepContext {
  readonly partition: Partition;
  readonly content: Pick<ContentStore, 'decrefContent' | 'decrefChunks' | 'sweepContent'>;
}

/** Blobs or blocks a slice. */
const SLICE_ROWS = 100;
/** Rows that name no others. */
const SLICE_BARE_ROWS = 500;
/** Blocks have up to 500 parts: a slice stops behind the block that reaches so many. */
const SLICE_PARTS = 300;

/** One slice of what a trash row names; true once nothing is left. */
export async function sweepSlice(context: SweepContext, account: AccountId, key: Row['key']): Promise<boolean> {
  const { value } = await context.partition.transact(key, async (tx) => {
    const row = await tx.get(key);
    if (!row) return true;
    const isDone = await sweepEntry(context, tx, account, row);
    if (isDone) tx.remove(key);
    return isDone;
  });
  return value;
}

function sweepEntry({ content }: SweepContext, tx: Transaction, account: AccountId, row: Row): Promise<boolean> {
  const trash = decodeDeletion(row);
  switch (trash.kind) {
    case 'container':
      return sweepContainer(content, tx, account, BigInt(trash.container));
    case 'stage': {
      const id = parseId(trash.stage);
      return trash.uncounted ? sweepRange(tx, blocksIn(account, id)) : sweepUncommitted(content, tx, account, id);
    }
    case 'content': {
      const id = parseId(trash.content);
      return trash.uncounted ? sweepRange(tx, manifestPagesIn(account, id)) : content.sweepContent(tx, account, id);
    }
    case 'rows':
      return sweepRows(tx, keyPrefixesIn(trash));
  }
}

/** The container's name is gone, so nobody adds to it: a look at its rows is enough. */
async function sweepContainer(
  content: SweepContext['content'],
  tx: Transaction,
  account: AccountId,
  id: bigint,
): Promise<boolean> {
  const heads = blobKeyPrefix(account, id, '');
  const blobs = await tx.scanUnchecked({ from: heads, to: prefixEnd(heads) }, { limit: SLICE_ROWS });
  for (const row of blobs) {
    const { contentId } = decodeBlobRecord(row);
    if (contentId) await content.decrefContent(tx, account, parseId(contentId));
    else tx.remove(inlineKey(account, id, nameFromKey(row.key)));
    tx.remove(row.key);
  }
  if (blobs.length > 0) return false;
  const staged = uncommittedKeyPrefix(account, id, '');
  const stages = await tx.scanUnchecked({ from: staged, to: prefixEnd(staged) }, { limit: SLICE_ROWS });
  for (const row of stages) scheduleUncommittedDeletion(tx, account, id, nameFromKey(row.key), decodeUncommitted(row));
  return stages.length === 0;
}

/** Nobody can add to them any more, either. */
async function sweepRows(tx: Transaction, beginnings: readonly Key[]): Promise<boolean> {
  for (const from of beginnings) if (!(await sweepRange(tx, { from, to: prefixEnd(from) }))) return false;
  return true;
}

async function sweepRange(tx: Transaction, range: Range): Promise<boolean> {
  const rows = await tx.scanUnchecked(range, { limit: SLICE_BARE_ROWS });
  for (const { key } of rows) tx.remove(key);
  return rows.length === 0;
}

/** Whoever adds a block checks the stage's row, which is gone. */
async function sweepUncommitted(
  content: SweepContext['content'],
  tx: Transaction,
  account: AccountId,
  stage: UncommittedId,
): Promise<boolean> {
  const rows = await tx.scanUnchecked(blocksIn(account, stage), { limit: SLICE_ROWS });
  const released: ChunkRef[] = [];
  for (const row of rows) {
    if (released.length >= SLICE_PARTS) break;
    released.push(...decodeBlock(row).chunkRefs);
    tx.remove(row.key);
  }
  await content.decrefChunks(tx, account, released);
  return rows.length === 0;
}

/** Looks again at a stage whose row said when: it has expired, or was touched since and is looked at later. */
export async function expireUncommitted({ partition }: SweepContext, account: AccountId, indexRow: Row): Promise<void> {
  const [, , instant, , id, blob] = decodeKey(indexRow.key) as [bigint, string, bigint, string, bigint, string];
  await partition.transact(indexRow.key, async (tx) => {
    tx.remove(indexRow.key);
    const row = await tx.get(uncommittedKey(account, id, blob));
    const stage = row && decodeUncommitted(row);
    // It may belong to an earlier stage of this blob.
    if (!stage || stage.due !== instant) return;
    const end = uncommittedExpiry(stage.touched);
    if (tx.now < end) {
      tx.put(row.key, encodeUncommitted({ ...stage, due: end }));
      tx.put(expiryKey(account, end, id, blob), encodeValue({}));
      return;
    }
    scheduleUncommittedDeletion(tx, account, id, blob, stage);
  });
}
