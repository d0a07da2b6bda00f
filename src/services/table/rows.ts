/** Tables as rows; docs/adr/0002-row-schema.md has the schema. Their entities are in entity-rows.ts. */
import { deletionKey } from '../../content/rows.ts';
import { encodeKey, type Key } from '../../partition/keys.ts';
import type { Row, Snapshot, Transaction } from '../../partition/partition.ts';
import { decodeValue, encodeValue } from '../../partition/values.ts';
import { foldTableName } from '../../rules/names.ts';
import { deletionOfRows, encodeDeletion } from '../common/deletions.ts';
import * as names from '../common/names.ts';
import type { AccessPolicy } from '../common/policies.ts';
import type { AccountId, Storage } from '../common/storage.ts';
import { type EntityKeys, entitiesIn, type TableId } from './entity-rows.ts';
import { fail } from './errors.ts';

export const nameKey = (account: AccountId, table: string): Key =>
  names.nameKey(account, 'table', foldTableName(table));
export const propertiesKey = (account: AccountId, id: TableId): Key => names.propertiesKey(account, 'table', id);
/** Queue keys are made of names: the table's id is not known before the transaction. */
export const tableTxQueueKey = (account: AccountId, table: string): Key =>
  encodeKey([account, 'table', foldTableName(table)]);
export const entityTxQueueKey = ({ account }: TableScope, table: string, { partitionKey }: EntityKeys): Key =>
  encodeKey([account, 'table', foldTableName(table), partitionKey]);

/** The value has the name as it was created; the key has it folded, so that it is found in any case. */
export const encodeTable = (id: TableId, name: string): Buffer => names.encodeName(id, Buffer.from(name));
export const decodeTableName = (row: Row): string => names.bytesAfterId(row).toString();

export interface TableProperties {
  readonly policies: readonly AccessPolicy[];
}

export const encodeProperties = ({ policies }: TableProperties): Buffer => encodeValue({ policies });
export const decodeProperties = (row: Row): TableProperties => decodeValue<TableProperties>(row);

/** The account of a table, and what the caller was granted. */
type TableScope = Pick<Storage, 'account' | 'granted'>;

/** ResourceNotFound: the request is about the table itself. TableNotFound: it is about entities of the table. */
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

/** For requests about entities of the table. */
export async function readTableId(at: Snapshot, scope: TableScope, table: string): Promise<TableId> {
  return names.decodeName(await readTableRow(at, scope, table, 'TableNotFound'));
}

/** For the deletion queue. The caller removes the name, so that no request finds the entities any more. */
export function scheduleTableDeletion(tx: Transaction, account: AccountId, id: TableId): void {
  tx.put(
    deletionKey(account, tx.timestamp, id.toString()),
    encodeDeletion(deletionOfRows(entitiesIn(account, id).from)),
  );
}
