/** How much an entity may be. */
import { kept } from '../../base/kept.ts';
import { countOf, storedSizeOf } from './entity-layout.ts';
import type { EntityKeys, Property, SentEntity } from './entity-rows.ts';
import { fail } from './errors.ts';

const PROPERTIES_MAX = 252;
const PROPERTY_NAME_MAX = 255;
export const KEY_MAX = 512;
const STRING_MAX = 32 * 1024;
const BINARY_BYTES_MAX = 64 * 1024;
const ENTITY_BYTES_MAX = 1024 * 1024;

/** What C# takes for a name. */
const IDENTIFIER = /^[\p{L}\p{Nl}_][\p{L}\p{Nl}\p{Mn}\p{Mc}\p{Nd}\p{Pc}\p{Cf}]*$/u;
const isIdentifier = kept((name) => IDENTIFIER.test(name));
// biome-ignore lint/suspicious/noControlCharactersInRegex: keys may hold no control characters
const FORBIDDEN_IN_KEYS = /[/\\#?\x00-\x1f\x7f-\x9f]/;

/** All but the size, which comes with the bytes: see `checkStored`. */
export function checkEntity(entity: SentEntity): SentEntity & EntityKeys {
  const { partitionKey, rowKey, properties } = entity;
  if (partitionKey === undefined || rowKey === undefined) throw fail('PropertiesNeedValue');
  checkKey(partitionKey);
  checkKey(rowKey);
  if (properties.length > PROPERTIES_MAX) throw fail('TooManyProperties');
  for (const property of properties) checkProperty(property);
  return { partitionKey, rowKey, properties };
}

/** Of an entity as it will be stored: a merge can make too much of what each was little enough. */
export function checkStored(value: Buffer): void {
  if (countOf(value) > PROPERTIES_MAX) throw fail('TooManyProperties');
  if (storedSizeOf(value) > ENTITY_BYTES_MAX) throw fail('EntityTooLarge');
}

/** The partition's, or the row's. */
export function checkKey(key: string): void {
  if (key.length > KEY_MAX) throw fail('KeyValueTooLarge');
  // Half a character could not be named in a URL.
  if (FORBIDDEN_IN_KEYS.test(key) || !key.isWellFormed()) throw fail('OutOfRangeInput');
}

function checkProperty({ name, value }: Property): void {
  if (name.length > PROPERTY_NAME_MAX) throw fail('PropertyNameTooLong');
  if (!isIdentifier(name)) throw fail('PropertyNameInvalid');
  if (value.type === 'Edm.String' && value.value.length > STRING_MAX) throw fail('PropertyValueTooLarge');
  if (value.type === 'Edm.Binary' && value.value.length > BINARY_BYTES_MAX) throw fail('PropertyValueTooLarge');
}
