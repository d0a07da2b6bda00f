/** The deletion of everything in a share. */
import { deletionKey } from '../../content/rows.ts';
import type { Transaction } from '../../partition/partition.ts';
import { encodeDeletion } from '../common/deletions.ts';
import type { ShareKeys } from './rows.ts';

/** The caller removes the name and the properties: without the name, nothing in the share can be reached. */
export function scheduleShareDeletion(tx: Transaction, { account, id }: ShareKeys): void {
  const share = id.toString();
  tx.put(deletionKey(account, tx.timestamp, share), encodeDeletion({ kind: 'share', share }));
}
