/** Emptying of an account: every name is removed in slices, and the deletion queue has the rest. */
import { keysUnder } from '../../partition/keys.ts';
import type { Partition, Row, Transaction } from '../../partition/partition.ts';
import { scheduleDeletedContainer } from '../blob/deleted-containers.ts';
import { scheduleContainerDeletion, txQueueKey } from '../blob/rows.ts';
import { deletedNamesIn, type RestorableService } from '../common/deleted-names.ts';
import { decodeName, namesIn, propertiesKey, type ServiceName } from '../common/names.ts';
import type { AccountId, Storage } from '../common/storage.ts';
import { scheduleDeletedShare } from '../file/deleted-shares.ts';
import { scheduleShareDeletion } from '../file/share-deletion.ts';
import { scheduleQueueDeletion } from '../queue/rows.ts';
import { scheduleTableDeletion } from '../table/rows.ts';

const SLICE = { limit: 200 };

type ScheduleDeletion = (tx: Transaction, account: AccountId, name: Row) => void;

/** Schedules the deletion of everything under the id in a name row. */
const deletionByService: Readonly<Record<ServiceName, ScheduleDeletion>> = {
  blob: (tx, account, name) => scheduleContainerDeletion(tx, account, decodeName(name)),
  queue: (tx, account, name) => scheduleQueueDeletion(tx, account, decodeName(name)),
  table: (tx, account, name) => scheduleTableDeletion(tx, account, decodeName(name)),
  file: (tx, account, name) => scheduleShareDeletion(tx, { account, id: decodeName(name) }),
};

/** Likewise, of everything under the id of a soft-deleted name. */
const deletionOfDeleted: Readonly<Record<RestorableService, ScheduleDeletion>> = {
  blob: scheduleDeletedContainer,
  file: scheduleDeletedShare,
};

/** Removes every container and share, leased or not, every queue and table, and the service properties. */
export async function emptyAccount(storage: Pick<Storage, 'partition' | 'account' | 'sweeper'>): Promise<void> {
  const { partition, account, sweeper } = storage;
  for (const [service, schedule] of Object.entries(deletionByService) as [ServiceName, ScheduleDeletion][]) {
    while (await emptySlice(storage, service, schedule));
  }
  for (const service of ['blob', 'file'] as const) while (await emptyDeletedSlice(storage, service));
  await partition.transact(txQueueKey(account), async (tx) => {
    for (const { key } of await tx.scan(keysUnder([account, 's']), SLICE)) tx.remove(key);
  });
  sweeper.wake();
}

async function emptySlice(
  { partition, account }: Pick<Storage, 'partition' | 'account'>,
  service: ServiceName,
  schedule: ScheduleDeletion,
): Promise<boolean> {
  const { value } = await partition.transact(txQueueKey(account), async (tx) => {
    const names = await tx.scan(namesIn(account, service), SLICE);
    for (const name of names) {
      tx.remove(name.key);
      tx.remove(propertiesKey(account, service, decodeName(name)));
      schedule(tx, account, name);
    }
    return names.length > 0;
  });
  return value;
}

async function emptyDeletedSlice(
  { partition, account }: Pick<Storage, 'partition' | 'account'>,
  service: RestorableService,
): Promise<boolean> {
  const { value } = await partition.transact(txQueueKey(account), async (tx) => {
    const rows = await tx.scan(deletedNamesIn(account, service), SLICE);
    for (const row of rows) deletionOfDeleted[service](tx, account, row);
    return rows.length > 0;
  });
  return value;
}

/** Whether `emptyAccount` would remove anything. */
export function hasContents(partition: Partition, account: AccountId): Promise<boolean> {
  return partition.read(async (at) => {
    for (const kind of ['n', 'g', 's'])
      if ((await at.scan(keysUnder([account, kind]), { limit: 1 })).length > 0) return true;
    return false;
  });
}
