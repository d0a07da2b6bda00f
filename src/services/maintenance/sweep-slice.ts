/** What is left of something unreachable, let go of slice by slice: each is one commit, and a kill between two costs nothing. */
import type { ContentStore } from '../../content/content.ts';
import { beginningsIn, cellsIn, decodeTrash, idOf, type Part } from '../../content/rows.ts';
import { decodeKey, type Key, past, type Range } from '../../partition/keys.ts';
import type { Partition, Row, Transaction } from '../../partition/partition.ts';
import { encodeValue } from '../../partition/values.ts';
import { decodeHead } from '../blob/blob-record.ts';
import {
  blocksIn,
  decodeBlock,
  decodeStage,
  dueKey,
  encodeStage,
  headsIn,
  inlineKey,
  nameIn,
  type StageId,
  stageEnd,
  stageKey,
  stagesIn,
  trashStage,
} from '../blob/rows.ts';
import type { AccountId } from '../common/storage.ts';

export interface Sweeping {
  readonly partition: Partition;
  readonly content: Pick<ContentStore, 'releaseContent' | 'releaseParts' | 'sweepContent'>;
}

/** Blobs or blocks a slice. */
const SLICE_ROWS = 100;
/** Rows that name no others. */
const SLICE_BARE_ROWS = 500;
/** Blocks have up to 500 parts: a slice stops behind the block that reaches so many. */
const SLICE_PARTS = 300;

/** One slice of what a trash row names; true once nothing is left. */
export async function sweepSlice(sweeping: Sweeping, account: AccountId, key: Row['key']): Promise<boolean> {
  const { value } = await sweeping.partition.transact(key, async (tx) => {
    const row = await tx.get(key);
    if (!row) return true;
    const isDone = await sweepTrash(sweeping, tx, account, row);
    if (isDone) tx.remove(key);
    return isDone;
  });
  return value;
}

function sweepTrash({ content }: Sweeping, tx: Transaction, account: AccountId, row: Row): Promise<boolean> {
  const trash = decodeTrash(row);
  switch (trash.kind) {
    case 'container':
      return sweepContainer(content, tx, account, BigInt(trash.container));
    case 'stage': {
      const id = idOf(trash.stage);
      return trash.uncounted ? sweepRange(tx, blocksIn(account, id)) : sweepStage(content, tx, account, id);
    }
    case 'content': {
      const id = idOf(trash.content);
      return trash.uncounted ? sweepRange(tx, cellsIn(account, id)) : content.sweepContent(tx, account, id);
    }
    case 'rows':
      return sweepRows(tx, beginningsIn(trash));
  }
}

/** The container's name is gone, so nobody adds to it: a look at its rows is enough. */
async function sweepContainer(
  content: Sweeping['content'],
  tx: Transaction,
  account: AccountId,
  id: bigint,
): Promise<boolean> {
  const heads = headsIn(account, id, '');
  const blobs = await tx.glance({ from: heads, to: past(heads) }, { limit: SLICE_ROWS });
  for (const row of blobs) {
    const { contentId } = decodeHead(row);
    if (contentId) await content.releaseContent(tx, account, idOf(contentId));
    else tx.remove(inlineKey(account, id, nameIn(row.key)));
    tx.remove(row.key);
  }
  if (blobs.length > 0) return false;
  const staged = stagesIn(account, id, '');
  const stages = await tx.glance({ from: staged, to: past(staged) }, { limit: SLICE_ROWS });
  for (const row of stages) trashStage(tx, account, id, nameIn(row.key), decodeStage(row));
  return stages.length === 0;
}

/** Nobody can add to them any more, either. */
async function sweepRows(tx: Transaction, beginnings: readonly Key[]): Promise<boolean> {
  for (const from of beginnings) if (!(await sweepRange(tx, { from, to: past(from) }))) return false;
  return true;
}

async function sweepRange(tx: Transaction, range: Range): Promise<boolean> {
  const rows = await tx.glance(range, { limit: SLICE_BARE_ROWS });
  for (const { key } of rows) tx.remove(key);
  return rows.length === 0;
}

/** Whoever adds a block checks the stage's row, which is gone. */
async function sweepStage(
  content: Sweeping['content'],
  tx: Transaction,
  account: AccountId,
  stage: StageId,
): Promise<boolean> {
  const rows = await tx.glance(blocksIn(account, stage), { limit: SLICE_ROWS });
  const gone: Part[] = [];
  for (const row of rows) {
    if (gone.length >= SLICE_PARTS) break;
    gone.push(...decodeBlock(row).parts);
    tx.remove(row.key);
  }
  await content.releaseParts(tx, account, gone);
  return rows.length === 0;
}

/** Looks again at a stage whose row said when: it has expired, or was touched since and is looked at later. */
export async function lookAtDue({ partition }: Sweeping, account: AccountId, due: Row): Promise<void> {
  const [, , instant, , id, blob] = decodeKey(due.key) as [bigint, string, bigint, string, bigint, string];
  await partition.transact(due.key, async (tx) => {
    tx.remove(due.key);
    const row = await tx.get(stageKey(account, id, blob));
    const stage = row && decodeStage(row);
    // It may belong to an earlier stage of this blob.
    if (!stage || stage.due !== instant) return;
    const end = stageEnd(stage.touched);
    if (tx.now < end) {
      tx.put(row.key, encodeStage({ ...stage, due: end }));
      tx.put(dueKey(account, end, id, blob), encodeValue({}));
      return;
    }
    trashStage(tx, account, id, blob, stage);
  });
}
