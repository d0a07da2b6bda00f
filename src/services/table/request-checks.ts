/** Checks of a request that need no stored row, and the limits of an entity: keys, names, values, number of properties, size. */

import { isMetricsTable, tableNameFault } from '../../rules/names.ts';
import { PROPERTY_NAME_MAX } from '../../rules/table/edm.ts';
import { type EtagMatch, parseIfMatch } from '../../rules/table/entity-group.ts';
import type { EntityBound, Storage } from '../common/storage.ts';
import { propertyCount, storedSize } from './entity-layout.ts';
import type { EntityKeys, Property, SentEntity } from './entity-rows.ts';
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

const PROPERTIES_MAX = 252;
export const KEY_MAX = 512;
/** A string of 32 Ki characters, or 64 KiB of binary: Azure counts four bytes more for the length of either. */
const VALUE_SIZE_MAX = 64 * 1024 + 4;
const ENTITY_BYTES_MAX = 1024 * 1024;

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are forbidden in keys
const FORBIDDEN_IN_KEYS = /[/\\#?\x00-\x1f\x7f-\x9f]/;

/** All limits but the size of the entity, which is known once it is encoded: see `checkStored`. */
export function checkEntity(entity: SentEntity): SentEntity & EntityKeys {
  const { partitionKey, rowKey, properties } = entity;
  if (partitionKey === undefined || rowKey === undefined) throw fail('PropertiesNeedValue');
  checkKey(partitionKey);
  checkKey(rowKey);
  if (properties.length > PROPERTIES_MAX) throw fail('TooManyProperties');
  for (const property of properties) checkProperty(property);
  return { partitionKey, rowKey, properties };
}

/** Limits of the encoded entity: a merge of two entities that keep them can exceed them. */
export function checkStored(value: Buffer): void {
  if (propertyCount(value) > PROPERTIES_MAX) throw fail('TooManyProperties');
  if (storedSize(value) > ENTITY_BYTES_MAX) throw fail('EntityTooLarge');
}

function checkKey(key: string): void {
  if (key.length > KEY_MAX) throw fail('KeyValueTooLarge');
  // An unpaired surrogate cannot be written in a URL.
  if (FORBIDDEN_IN_KEYS.test(key) || !key.isWellFormed()) throw fail('OutOfRangeInput');
}

function checkProperty({ name, value }: Property): void {
  if (name.text.length > PROPERTY_NAME_MAX) throw fail('PropertyNameTooLong');
  if (!name.isValid) throw fail('PropertyNameInvalid');
  if (value.size > VALUE_SIZE_MAX) throw fail('PropertyValueTooLarge');
}
