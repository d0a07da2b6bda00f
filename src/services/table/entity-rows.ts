/** Rows of entities; docs/adr/0002-row-schema.md has the schema. */
import { decodeKey, encodeKey, type Key, keysUnder, type Range } from '../../partition/keys.ts';
import type { Row, Timestamp } from '../../partition/partition.ts';
import {
  type CanonicalValue,
  canonicalizeAs,
  formatJsonString,
  type parseType,
  type SentValue,
  valueSize,
} from '../../rules/table/canonical-json.ts';
import { formatDateTime } from '../../rules/table/date-times.ts';
import type { EdmValue } from '../../rules/table/edm.ts';
import { formatTableEtag } from '../../rules/table/entity-group.ts';
import type { AccountId } from '../common/storage.ts';
import {
  ascii,
  bareStart,
  findProperties,
  findProperty,
  keysLength,
  keysOffset,
  LayoutEncoder,
  type NameTable,
  nameAt,
  propertyOffsets,
  storedSize,
  valueAt,
} from './entity-layout.ts';
import { fail } from './errors.ts';
import { type PropertyName, propertyName } from './property-names.ts';

export type TableId = bigint;
export { canonicalize, parseText, parseType, type SentValue } from '../../rules/table/canonical-json.ts';
export { makeNameTable, type NameTable } from './entity-layout.ts';
export { type PropertyName, propertyName } from './property-names.ts';

export interface EntityKeys {
  readonly partitionKey: string;
  readonly rowKey: string;
}

export interface Property {
  readonly name: PropertyName;
  readonly value: CanonicalValue;
}

/** An entity of a request, without its nulls. Its limits are not checked yet: see request-checks.ts. */
export interface SentEntity {
  readonly partitionKey?: string | undefined;
  readonly rowKey?: string | undefined;
  readonly properties: readonly Property[];
}

/** An entity that is not decoded. */
export interface StoredEntity extends EntityKeys {
  readonly version: Timestamp;
  readonly value: Buffer;
}

const keyParts = (account: AccountId, table: TableId) => [account, 'e', table] as const;

let lastAccount: AccountId | undefined;
let lastTable: TableId | undefined;
let lastPartition: string | undefined;
let tableStart = '';
let partitionStart = '';

/** Memoizes the last prefix: successive keys are mostly of one table and one partition. */
export function entityKey(account: AccountId, table: TableId, partitionKey: string, rowKey: string): Key {
  if (account !== lastAccount || table !== lastTable) {
    tableStart = encodeKey(keyParts(account, table));
    lastAccount = account;
    lastTable = table;
    lastPartition = undefined;
  }
  if (partitionKey !== lastPartition) {
    partitionStart = tableStart + encodeKey([partitionKey]);
    lastPartition = partitionKey;
  }
  return (partitionStart + encodeKey([rowKey])) as Key;
}

export const entitiesIn = (account: AccountId, table: TableId): Range => keysUnder(keyParts(account, table));

const KEYS_AT = encodeKey(keyParts(0n, 0n)).length;

/** Decodes its keys when they are first used: a query needs them of few of the rows that it scans. */
class RowEntity implements StoredEntity {
  readonly value: Buffer;
  readonly version: Timestamp;
  #key: Key | undefined;
  #keys: readonly [string, string] | undefined;

  constructor(row: Row) {
    this.value = row.value;
    this.version = row.version;
    this.#key = row.key;
  }

  get partitionKey(): string {
    return this.#decoded()[0];
  }

  get rowKey(): string {
    return this.#decoded()[1];
  }

  #decoded(): readonly [string, string] {
    this.#keys ??= decodeKey(this.#key!.slice(KEYS_AT) as Key) as [string, string];
    return this.#keys;
  }
}

export function entityFromRow(row: Row): StoredEntity {
  return new RowEntity(row);
}

/** Keeps the order of the properties, as Azure does for an inserted entity. */
export function encodeEntity({ partitionKey, rowKey }: EntityKeys, properties: readonly Property[]): Buffer {
  const encoder = new LayoutEncoder(
    `"PartitionKey":${formatJsonString(partitionKey)},"RowKey":${formatJsonString(rowKey)}`,
  );
  let size = sizeOfKeys(partitionKey, rowKey);
  for (const { name, value } of properties) {
    size += sizeOfName(name) + value.size;
    encoder.add(name, value);
  }
  return encoder.finish(size);
}

/** Azure shows the properties of an updated, merged or upserted entity by name. */
export function sortByName(properties: readonly Property[]): Property[] {
  return properties.toSorted((one, other) => (one.name.text < other.name.text ? -1 : 1));
}

/** Fragments that no change names are copied undecoded. */
export function mergeEntity({ value }: StoredEntity, changes: readonly Property[]): Buffer {
  const offsets = new Map(propertyOffsets(value).map((offset) => [nameAt(value, offset), offset]));
  const changed = new Map(changes.map((change) => [change.name.text, change]));
  let size = storedSize(value);
  for (const [text, change] of changed) {
    const replaced = offsets.get(text);
    if (replaced) size -= valueSize(valueAt(value, replaced));
    else size += sizeOfName(change.name);
    size += change.value.size;
  }
  const textAt = keysOffset(value);
  const encoder = new LayoutEncoder(ascii(value, textAt, textAt + keysLength(value)));
  for (const text of [...new Set([...offsets.keys(), ...changed.keys()])].sort()) {
    const change = changed.get(text);
    if (change) {
      encoder.add(change.name, change.value);
      continue;
    }
    const { code, start, end } = offsets.get(text)!;
    encoder.addFragment(propertyName(text), code, ascii(value, start, end));
  }
  return encoder.finish(size);
}

export function propertyValue(
  entity: StoredEntity,
  name: string,
  lengthMax = Number.POSITIVE_INFINITY,
): EdmValue | undefined {
  if (name === 'PartitionKey') return { type: 'Edm.String', value: entity.partitionKey };
  if (name === 'RowKey') return { type: 'Edm.String', value: entity.rowKey };
  if (name === 'Timestamp') return { type: 'Edm.DateTime', value: entity.version };
  const offset = findProperty(entity.value, name);
  return offset && valueAt(entity.value, offset, lengthMax);
}

/** All but the keys and the Timestamp. */
export function decodeEntityProperties({
  value,
}: StoredEntity): readonly { readonly name: string; readonly value: EdmValue }[] {
  return propertyOffsets(value).map((offset) => ({ name: nameAt(value, offset), value: valueAt(value, offset) }));
}

export function formatTimestamp({ version }: Pick<StoredEntity, 'version'>): string {
  return formatDateTime(version);
}

export function entityEtag({ version }: Pick<StoredEntity, 'version'>): string {
  return formatTableEtag(version);
}

/** A JSON string as answers have it: in quotes, all ASCII. */
export const jsonString: (text: string) => string = formatJsonString;

/** `type`: the annotation of the value. */
export function parseSentValue(sent: SentValue, type: ReturnType<typeof parseType> | undefined): CanonicalValue {
  const value = canonicalizeAs(sent, type);
  if (value === 'out of range') throw fail('OutOfRangeInput');
  if (value === 'not of this type') throw fail('InvalidEntity');
  return value;
}

/** Azure's formula: 4 bytes, and 2 for each character of the keys. */
function sizeOfKeys(partitionKey: string, rowKey: string): number {
  return 4 + 2 * (partitionKey.length + rowKey.length);
}

/** Azure's formula: for each property 8 bytes and 2 for each character of its name, besides the value. */
function sizeOfName({ text }: PropertyName): number {
  return 8 + 2 * text.length;
}

/** Copies `"PartitionKey":"...","RowKey":"..."`. Returns the offset after it. */
export function copyKeys({ value }: StoredEntity, target: Buffer, at: number): number {
  const start = keysOffset(value);
  const length = keysLength(value);
  value.copy(target, at, start, start + length);
  return at + length;
}

/** Copies each property with a comma before it. Returns the offset after them. `annotated`: with the types that JSON does not show. */
export function copyProperties({ value }: StoredEntity, annotated: boolean, target: Buffer, at: number): number {
  if (annotated) {
    const start = keysOffset(value) + keysLength(value);
    value.copy(target, at, start);
    return at + value.length - start;
  }
  let end = at;
  for (const offset of propertyOffsets(value)) {
    const start = bareStart(offset);
    value.copy(target, end, start, offset.end);
    end += offset.end - start;
  }
  return end;
}

/** For each name the range of its property within the value, without the comma. Undefined: the entity lacks it. */
export function findFragments(
  { value }: StoredEntity,
  names: NameTable,
  annotated: boolean,
): ({ readonly start: number; readonly end: number } | undefined)[] {
  return findProperties(value, names).map(
    (offset) => offset && { start: 1 + (annotated ? offset.start : bareStart(offset)), end: offset.end },
  );
}
