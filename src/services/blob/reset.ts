import { past, under } from '../../partition/keys.ts';
import type { Partition } from '../../partition/partition.ts';
import type { AccountId, Storage } from '../storage.ts';
import { anchorOf, decodeName, namesIn, propertiesKey, trashContainer } from './rows.ts';

const SLICE = { limit: 200 };

/** Removes every container, leased or not, and the service's settings. */
export async function emptyAccount({
  partition,
  account,
  sweeper,
}: Pick<Storage, 'partition' | 'account' | 'sweeper'>): Promise<void> {
  const names = { from: namesIn(account, ''), to: past(namesIn(account, '')) };
  for (let more = true; more; ) {
    const { value } = await partition.transact(anchorOf(account), async (tx) => {
      const rows = await tx.scan(names, SLICE);
      for (const row of rows) {
        const id = decodeName(row);
        tx.remove(row.key);
        tx.remove(propertiesKey(account, id));
        trashContainer(tx, account, id);
      }
      for (const { key } of await tx.scan(under([account, 's']), SLICE)) tx.remove(key);
      return rows.length > 0;
    });
    more = value;
  }
  sweeper.wake();
}

/** Whether there is anything that `emptyAccount` would remove. */
export function hasContents(partition: Partition, account: AccountId): Promise<boolean> {
  return partition.read(async (at) => {
    for (const kind of ['n', 's']) if ((await at.scan(under([account, kind]), { limit: 1 })).length > 0) return true;
    return false;
  });
}
