/** Tables as rows; docs/adr/0002-row-schema.md has the schema. Their entities are in entity-rows.ts. */
import { deletionKey, deletionOfRows, encodeDeletion } from '../../content/rows.ts';
import { encodeKey, type Key } from '../../partition/keys.ts';
import type { Row, Snapshot, Transaction } from '../../partition/partition.ts';
import { decodeValue, encodeValue } from '../../partition/values.ts';
import { foldTableName } from '../../rules/table/table-names.ts';
import * as names from '../common/names.ts';
import type { AccessPolicy } from '../common/policies.ts';
import type { AccountId, Storage } from '../common/storage.ts';
import { type EntityKeys, entitiesIn, type TableId } from './entity-rows.ts';
import { fail } from './errors.ts';

export const nameKey = (account: AccountId, table: string): Key =>
  names.nameKey(account, 'table', foldTableName(table));
export const propertiesKey = (account: AccountId, id: TableId): Key => names.propertiesKey(account, 'table', id);
/** Where requests for one table, and for one entity, take turns: before the table's id is known. */
export const tableTxQueueKey = (account: AccountId, table: string): Key =>
  encodeKey([account, 'table', foldTableName(table)]);
export const entityTxQueueKey = ({ account }: TableScope, table: string, { partitionKey }: EntityKeys): Key =>
  encodeKey([account, 'table', foldTableName(table), partitionKey]);

/** With the name as it was given: it is found in any case, and shown in this one. */
export const encodeTable = (id: TableId, name: string): Buffer => names.encodeName(id, Buffer.from(name));
export const decodeTableName = (row: Row): string => names.bytesAfterId(row).toString();

export interface TableProperties {
  readonly policies: readonly AccessPolicy[];
}

export const encodeProperties = ({ policies }: TableProperties): Buffer => encodeValue({ policies });
export const decodeProperties = (row: Row): TableProperties => decodeValue<TableProperties>(row);

/** Whose table, and for whom. */
export type TableScope = Pick<Storage, 'account' | 'granted'>;

/** What a table is that is not there depends on whether it is the thing asked for, or only holds it. */
type NotFoundCode = 'TableNotFound' | 'ResourceNotFound';

export async function readTableRow(
  at: Snapshot,
  scope: TableScope,
  table: string,
  missing: NotFoundCode,
): Promise<Row> {
  const { account, granted } = scope;
  const row = await at.get(nameKey(account, table));
  if (!row) throw fail(missing);
  if (granted?.container !== undefined && granted.container !== names.decodeName(row)) throw fail(missing);
  return row;
}

/** For what is done to its entities. */
export async function readTableId(at: Snapshot, scope: TableScope, table: string): Promise<TableId> {
  return names.decodeName(await readTableRow(at, scope, table, 'TableNotFound'));
}

/** Its entities can be reached no more, once its name is gone too. */
export function scheduleTableDeletion(tx: Transaction, account: AccountId, id: TableId): void {
  tx.put(
    deletionKey(account, tx.timestamp, id.toString()),
    encodeDeletion(deletionOfRows(entitiesIn(account, id).from)),
  );
}
