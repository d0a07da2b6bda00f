/** Access settings of a table, for authorization. */
import { isMetricsTable, tableNameFault } from '../../rules/names.ts';
import { decodeName } from '../common/names.ts';
import type { AccessPolicy } from '../common/policies.ts';
import type { Storage } from '../common/storage.ts';
import type { TableId } from './entity-rows.ts';
import { decodeProperties, nameKey, propertiesKey } from './rows.ts';

/** Stored access policies of a table, for shared access signatures that name one. */
export interface TableAccess {
  readonly id: TableId;
  /** Tables have no anonymous access. */
  readonly level: undefined;
  readonly policies: readonly AccessPolicy[];
}

/** Undefined: the table does not exist. */
export async function tableAccess({ partition, account }: Storage, table: string): Promise<TableAccess | undefined> {
  if (tableNameFault(table) && !isMetricsTable(table)) return undefined;
  return partition.read(async (at) => {
    const row = await at.get(nameKey(account, table));
    if (!row) return undefined;
    const id = decodeName(row);
    const { policies } = decodeProperties((await at.get(propertiesKey(account, id)))!);
    return { id, level: undefined, policies };
  });
}
