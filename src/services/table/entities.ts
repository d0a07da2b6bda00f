import type { Stamp } from '../../partition/partition.ts';
import type { Storage } from '../common/storage.ts';
import { apply, type Change, type Changed, type Delete, type Insert, keyOf, prepare, type Update } from './changes.ts';
import { type EntityKeys, type StoredEntity, storedEntity } from './entity-rows.ts';
import { fail } from './errors.ts';
import { checkFindable, checkGranted, checkReadableName, checkTableName } from './request-checks.ts';
import { entityAnchor, tableIdAt } from './rows.ts';
import type { TableInput } from './tables.ts';

export async function insertEntity(storage: Storage, input: TableInput & Omit<Insert, 'kind'>): Promise<StoredEntity> {
  const done = await changeEntity(storage, input.table, { ...input, kind: 'insert' });
  return (done as Changed & { kind: 'insert' }).entity;
}

/** Replaces or merges; without a condition it is also made, where it is not there yet. */
export async function updateEntity(
  storage: Storage,
  input: TableInput & Omit<Update, 'kind'>,
): Promise<{ stamp: Stamp }> {
  const done = await changeEntity(storage, input.table, { ...input, kind: 'update' });
  return { stamp: (done as Changed & { kind: 'update' }).stamp };
}

export async function deleteEntity(storage: Storage, input: TableInput & Omit<Delete, 'kind'>): Promise<void> {
  await changeEntity(storage, input.table, { ...input, kind: 'delete' });
}

export async function getEntity(storage: Storage, input: TableInput & EntityKeys): Promise<StoredEntity> {
  checkReadableName(input.table);
  checkGranted(storage, input);
  checkFindable(input);
  return storage.partition.read(async (at) => {
    const id = await tableIdAt(at, storage, input.table);
    const row = await at.get(keyOf(storage, id, input));
    if (!row) throw fail('ResourceNotFound');
    return storedEntity(row);
  });
}

export async function changeEntity(storage: Storage, table: string, sent: Change): Promise<Changed> {
  checkTableName(table);
  const prepared = prepare(storage, sent);
  const { value } = await storage.partition.transact(entityAnchor(storage, table, prepared), async (tx) => {
    const key = keyOf(storage, await tableIdAt(tx, storage, table), prepared);
    return apply(tx, prepared, key, await tx.get(key));
  });
  return value;
}
