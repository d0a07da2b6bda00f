/** The removal of all rows of a deleted share, in slices. Without its name no write can add rows, so unchecked scans are enough. */
import { decodeKey } from '../../partition/keys.ts';
import type { Transaction } from '../../partition/partition.ts';
import { decodeRunningCopy } from '../common/running-copies.ts';
import { heldGenerationsIn } from './generations.ts';
import { decodeNode } from './node-rows.ts';
import { dropFileContent, type FileContents } from './release-content.ts';
import {
  entriesIn,
  historyIn,
  nodesIn,
  permissionsIn,
  runningCopiesIn,
  type ShareId,
  snapshotsIn,
  timesIn,
  usageIn,
} from './rows.ts';
import { dropHistoryRow } from './sweep-history.ts';

/** Each may release a content, which is a few rows more. */
const SLICE_NODES = 100;
const SLICE_BARE_ROWS = 500;

/** One slice; true: nothing is left. */
export async function sweepShare(tx: Transaction, contents: FileContents, id: ShareId): Promise<boolean> {
  const share = { account: contents.account, id };
  const copies = await tx.scanUnchecked(runningCopiesIn(contents.account, id), { limit: SLICE_NODES });
  for (const row of copies) {
    contents.content.discardContent(tx, contents.account, decodeRunningCopy(row).content, 'ranges');
    tx.remove(row.key);
  }
  // Before the nodes: while a kept row uses a content, `check` expects the file to use it, too, or its current state to have ended.
  const history = await tx.scanUnchecked(historyIn(share), { limit: SLICE_NODES });
  for (const row of history) await dropHistoryRow(tx, contents, row);
  if (copies.length + history.length > 0) return false;
  const nodes = await tx.scanUnchecked(nodesIn(share), { limit: SLICE_NODES });
  for (const row of nodes) {
    const node = decodeNode(decodeKey(row.key).at(-1) as bigint, row);
    if (node.kind === 'file') await dropFileContent(tx, contents, node);
    tx.remove(row.key);
  }
  if (nodes.length > 0) return false;
  for (const rangeOf of [entriesIn, timesIn, permissionsIn, usageIn, snapshotsIn, heldGenerationsIn]) {
    const rows = await tx.scanUnchecked(rangeOf(share), { limit: SLICE_BARE_ROWS });
    for (const { key } of rows) tx.remove(key);
    if (rows.length > 0) return false;
  }
  return true;
}
