/** What a request must be like in itself, before anything stored is looked at. */
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

/** Those of the metrics, too. */
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

/** Longer ones were never stored, and no engine could look for them. */
export function checkKeyLengths({ partitionKey, rowKey }: EntityKeys): void {
  if (partitionKey.length > KEY_MAX || rowKey.length > KEY_MAX) throw fail('ResourceNotFound');
}

/** Whether the caller was let in for this entity. */
export function checkGranted({ granted }: Pick<Storage, 'granted'>, { partitionKey, rowKey }: EntityKeys): void {
  const { from, to } = granted?.entities ?? {};
  if (from && isBeyond(from, partitionKey, rowKey, -1)) throw fail('AuthorizationFailure');
  if (to && isBeyond(to, partitionKey, rowKey, 1)) throw fail('AuthorizationFailure');
}

/** Strings compare by UTF-16 units, as the rows are ordered. */
function isBeyond(bound: EntityBound, partitionKey: string, rowKey: string, side: -1 | 1): boolean {
  const order = compare(partitionKey, bound.partitionKey);
  if (order !== 0) return order === side;
  return bound.rowKey !== undefined && compare(rowKey, bound.rowKey) === side;
}

function compare(one: string, other: string): -1 | 0 | 1 {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}
