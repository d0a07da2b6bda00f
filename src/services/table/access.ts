import { isMetricsTable, tableNameFault } from '../../rules/table/table-names.ts';
import { decodeName } from '../common/names.ts';
import type { AccessPolicy } from '../common/policies.ts';
import type { Storage } from '../common/storage.ts';
import type { TableId } from './entity-rows.ts';
import { decodeProperties, nameKey, propertiesKey } from './rows.ts';

/** What of a table decides who may use it without a key. */
export interface TableAccess {
  readonly id: TableId;
  /** Nobody may without a signature. */
  readonly level: undefined;
  readonly policies: readonly AccessPolicy[];
}

/** Undefined: there is no such table. */
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
