import type { Timestamp } from '../../partition/partition.ts';
import type { Storage } from '../common/storage.ts';
import {
  applyChange,
  type Change,
  type ChangeResult,
  type Delete,
  entityKeyFor,
  type Insert,
  prepareChange,
  type Update,
} from './changes.ts';
import { type EntityKeys, entityFromRow, type StoredEntity } from './entity-rows.ts';
import { fail } from './errors.ts';
import { checkGranted, checkKeyLengths, checkReadableName, checkTableName } from './request-checks.ts';
import { entityTxQueueKey, readTableId } from './rows.ts';
import type { TableInput } from './tables.ts';

export async function insertEntity(storage: Storage, input: TableInput & Omit<Insert, 'kind'>): Promise<StoredEntity> {
  const done = await changeEntity(storage, input.table, { ...input, kind: 'insert' });
  return (done as ChangeResult & { kind: 'insert' }).entity;
}

/** Replaces or merges; without a condition it is also made, where it is not there yet. */
export async function updateEntity(
  storage: Storage,
  input: TableInput & Omit<Update, 'kind'>,
): Promise<{ stamp: Timestamp }> {
  const done = await changeEntity(storage, input.table, { ...input, kind: 'update' });
  return { stamp: (done as ChangeResult & { kind: 'update' }).stamp };
}

export async function deleteEntity(storage: Storage, input: TableInput & Omit<Delete, 'kind'>): Promise<void> {
  await changeEntity(storage, input.table, { ...input, kind: 'delete' });
}

export async function getEntity(storage: Storage, input: TableInput & EntityKeys): Promise<StoredEntity> {
  checkReadableName(input.table);
  checkGranted(storage, input);
  checkKeyLengths(input);
  return storage.partition.read(async (at) => {
    const id = await readTableId(at, storage, input.table);
    const row = await at.get(entityKeyFor(storage, id, input));
    if (!row) throw fail('ResourceNotFound');
    return entityFromRow(row);
  });
}

export async function changeEntity(storage: Storage, table: string, sent: Change): Promise<ChangeResult> {
  checkTableName(table);
  const prepared = prepareChange(storage, sent);
  const { value } = await storage.partition.transact(entityTxQueueKey(storage, table, prepared), async (tx) => {
    const key = entityKeyFor(storage, await readTableId(tx, storage, table), prepared);
    return applyChange(tx, prepared, key, await tx.get(key));
  });
  return value;
}
