/** The operations on one table: create, get, delete and access policies. */
import { checkNotRemoved } from '../common/account-rows.ts';
import { decodeName } from '../common/names.ts';
import type { AccessPolicy } from '../common/policies.ts';
import type { Storage } from '../common/storage.ts';
import { fail } from './errors.ts';
import { checkTableName } from './request-checks.ts';
import {
  decodeProperties,
  decodeTableName,
  encodeProperties,
  encodeTable,
  nameKey,
  propertiesKey,
  readTableRow,
  scheduleTableDeletion,
  tableTxQueueKey,
} from './rows.ts';

export interface TableInput {
  readonly table: string;
}

const POLICIES_MAX = 5;

export async function createTable(storage: Storage, { table }: TableInput): Promise<TableInput> {
  checkTableName(table);
  const { account } = storage;
  await storage.partition.transact(tableTxQueueKey(account, table), async (tx) => {
    const name = nameKey(account, table);
    if (await tx.get(name)) throw fail('TableAlreadyExists');
    await checkNotRemoved(tx, account);
    const properties = propertiesKey(account, tx.timestamp);
    // A read check: two processes may choose one timestamp for two names, and only one of them may use it as an id.
    await tx.get(properties);
    tx.put(name, encodeTable(tx.timestamp, table));
    tx.put(properties, encodeProperties({ policies: [] }));
  });
  return { table };
}

/** The name as it was created. */
export async function getTable(storage: Storage, { table }: TableInput): Promise<TableInput> {
  checkTableName(table);
  return storage.partition.read(async (at) => ({
    table: decodeTableName(await readTableRow(at, storage, table, 'ResourceNotFound')),
  }));
}

export async function deleteTable(storage: Storage, { table }: TableInput): Promise<void> {
  checkTableName(table);
  const { account } = storage;
  await storage.partition.transact(tableTxQueueKey(account, table), async (tx) => {
    const row = await readTableRow(tx, storage, table, 'ResourceNotFound');
    const id = decodeName(row);
    tx.remove(row.key);
    tx.remove(propertiesKey(account, id));
    scheduleTableDeletion(tx, account, id);
  });
  storage.sweeper.wake();
}

export async function getTableAcl(storage: Storage, { table }: TableInput): Promise<readonly AccessPolicy[]> {
  checkTableName(table);
  const { account } = storage;
  return storage.partition.read(async (at) => {
    const id = decodeName(await readTableRow(at, storage, table, 'ResourceNotFound'));
    return decodeProperties((await at.get(propertiesKey(account, id)))!).policies;
  });
}

export async function setTableAcl(
  storage: Storage,
  { table, policies }: TableInput & { policies: readonly AccessPolicy[] },
): Promise<void> {
  checkTableName(table);
  if (policies.length > POLICIES_MAX) throw fail('InvalidXmlDocument');
  const { account } = storage;
  await storage.partition.transact(tableTxQueueKey(account, table), async (tx) => {
    const id = decodeName(await readTableRow(tx, storage, table, 'ResourceNotFound'));
    tx.put(propertiesKey(account, id), encodeProperties({ policies }));
  });
}
