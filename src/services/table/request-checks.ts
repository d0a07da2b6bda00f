/** Checks of a request that need no stored row. */
import { type EtagMatch, parseIfMatch } from '../../rules/table/etag.ts';
import { isMetricsTable, tableNameFault } from '../../rules/table/table-names.ts';
import type { EntityBound, Storage } from '../common/storage.ts';
import { KEY_MAX } from './entity-limits.ts';
import type { EntityKeys } from './entity-rows.ts';
import { fail } from './errors.ts';

export function checkTableName(name: string): void {
  const fault = tableNameFault(name);
  if (fault) throw fail(fault);
}

/** The metrics tables can be read, too. */
export function checkReadableName(name: string): void {
  if (!isMetricsTable(name)) checkTableName(name);
}

export function checkIfMatch(ifMatch: string | undefined): EtagMatch | undefined {
  if (ifMatch === undefined) return undefined;
  const match = parseIfMatch(ifMatch);
  if (match !== undefined) return match;
  throw fail(
    'InvalidInput',
    undefined,
    `The etag value '${ifMatch}' specified in one of the request headers is not valid. Please make sure only one etag value is specified and is valid.`,
  );
}

/** No entity with a longer key was ever stored, and no engine accepts a longer one. */
export function checkKeyLengths({ partitionKey, rowKey }: EntityKeys): void {
  if (partitionKey.length > KEY_MAX || rowKey.length > KEY_MAX) throw fail('ResourceNotFound');
}

/** Whether the shared access signature covers this entity. */
export function checkGranted({ granted }: Pick<Storage, 'granted'>, { partitionKey, rowKey }: EntityKeys): void {
  const { from, to } = granted?.entities ?? {};
  if (from && isBeyond(from, partitionKey, rowKey, -1)) throw fail('AuthorizationFailure');
  if (to && isBeyond(to, partitionKey, rowKey, 1)) throw fail('AuthorizationFailure');
}

/** Strings compare by UTF-16 code units, which is the order of the rows. */
function isBeyond(bound: EntityBound, partitionKey: string, rowKey: string, side: -1 | 1): boolean {
  const order = compare(partitionKey, bound.partitionKey);
  if (order !== 0) return order === side;
  return bound.rowKey !== undefined && compare(rowKey, bound.rowKey) === side;
}

function compare(one: string, other: string): -1 | 0 | 1 {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}
