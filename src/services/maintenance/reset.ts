import { under } from '../../partition/keys.ts';
import type { Partition, Row, Transaction } from '../../partition/partition.ts';
import { anchorOf, trashContainer } from '../blob/rows.ts';
import { decodeName, namesIn, propertiesKey, type ServiceName } from '../common/names.ts';
import type { AccountId, Storage } from '../common/storage.ts';
import { trashQueue } from '../queue/rows.ts';
import { trashTable } from '../table/rows.ts';

const SLICE = { limit: 200 };

type LetGo = (tx: Transaction, account: AccountId, name: Row) => void;

/** What becomes of all that a name led to. */
const trashOf: Readonly<Partial<Record<ServiceName, LetGo>>> = {
  blob: (tx, account, name) => trashContainer(tx, account, decodeName(name)),
  queue: (tx, account, name) => trashQueue(tx, account, decodeName(name)),
  table: (tx, account, name) => trashTable(tx, account, decodeName(name)),
};

/** Removes every container, leased or not, every queue and table, and the settings of the services. */
export async function emptyAccount(storage: Pick<Storage, 'partition' | 'account' | 'sweeper'>): Promise<void> {
  const { partition, account, sweeper } = storage;
  for (const [service, trash] of Object.entries(trashOf) as [ServiceName, LetGo][]) {
    while (await emptySlice(storage, service, trash));
  }
  await partition.transact(anchorOf(account), async (tx) => {
    for (const { key } of await tx.scan(under([account, 's']), SLICE)) tx.remove(key);
  });
  sweeper.wake();
}

async function emptySlice(
  { partition, account }: Pick<Storage, 'partition' | 'account'>,
  service: ServiceName,
  trash: LetGo,
): Promise<boolean> {
  const { value } = await partition.transact(anchorOf(account), async (tx) => {
    const names = await tx.scan(namesIn(account, service), SLICE);
    for (const name of names) {
      tx.remove(name.key);
      tx.remove(propertiesKey(account, service, decodeName(name)));
      trash(tx, account, name);
    }
    return names.length > 0;
  });
  return value;
}

/** Whether there is anything that `emptyAccount` would remove. */
export function hasContents(partition: Partition, account: AccountId): Promise<boolean> {
  return partition.read(async (at) => {
    for (const kind of ['n', 's']) if ((await at.scan(under([account, kind]), { limit: 1 })).length > 0) return true;
    return false;
  });
}
