/** The limits of an entity: keys, names, values, number of properties, size. */
import { PROPERTY_NAME_MAX } from '../../rules/table/edm.ts';
import { propertyCount, storedSize } from './entity-layout.ts';
import type { EntityKeys, Property, SentEntity } from './entity-rows.ts';
import { fail } from './errors.ts';
import { propertyName } from './property-names.ts';

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
  if (name.length > PROPERTY_NAME_MAX) throw fail('PropertyNameTooLong');
  if (!propertyName(name).isValid) throw fail('PropertyNameInvalid');
  if (value.size > VALUE_SIZE_MAX) throw fail('PropertyValueTooLarge');
}
