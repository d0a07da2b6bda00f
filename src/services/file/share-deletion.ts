/** The deletion of everything in a share. */
import { deletionKey } from '../../content/rows.ts';
import type { Transaction } from '../../partition/partition.ts';
import { deletionOfRows, encodeDeletion } from '../common/deletions.ts';
import { entriesIn, nodesIn, permissionsIn, type ShareKeys, timesIn, usageIn } from './rows.ts';

/** The caller removes the name and the properties: without the name, nothing in the share can be reached. */
export function scheduleShareDeletion(tx: Transaction, share: ShareKeys): void {
  const rows = [entriesIn, nodesIn, timesIn, permissionsIn, usageIn].map((rangeOf) => rangeOf(share).from);
  tx.put(deletionKey(share.account, tx.timestamp, share.id.toString()), encodeDeletion(deletionOfRows(...rows)));
}
