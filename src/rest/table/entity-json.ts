/** The bodies of requests → entities and names of tables. */
import { type Property, type Scalar, type SentEntity, sentValue } from '../../services/table/entity-rows.ts';
import { fail } from '../../services/table/errors.ts';
import { type Members, readMembers } from './json.ts';

const TYPE_ANNOTATION = '@odata.type';
const KEY_TYPE = 'Edm.String';
const SYSTEM = new Set(['PartitionKey', 'RowKey', 'Timestamp']);

export function readEntity(body: Uint8Array): SentEntity {
  const members = readMembers(body);
  const types = typesIn(members);
  const properties: Property[] = [];
  for (const [name, scalar] of members) {
    // The service sets the Timestamp; what a client says of it is not heard.
    if (scalar === undefined || isAnnotation(name) || SYSTEM.has(name)) continue;
    properties.push({ name, value: sentValue(scalar, types.get(name)) });
  }
  return {
    partitionKey: readText('PartitionKey', members, types),
    rowKey: readText('RowKey', members, types),
    properties,
  };
}

/** `{"TableName":"mytable"}` */
export function readTableName(body: Uint8Array): string {
  const members = readMembers(body);
  const name = readText('TableName', members, typesIn(members));
  if (name === undefined) throw fail('PropertiesNeedValue');
  return name;
}

/** What speaks of the entity or a property: odata.etag, age@odata.type. */
function isAnnotation(name: string): boolean {
  return name.startsWith('odata.') || name.includes('@');
}

/** They may stand before the property or behind it, but not without it. */
function typesIn(members: Members): ReadonlyMap<string, string> {
  const types = new Map<string, string>();
  for (const [name, scalar] of members) {
    if (!name.endsWith(TYPE_ANNOTATION)) continue;
    const property = name.slice(0, -TYPE_ANNOTATION.length);
    if (!members.has(property)) throw fail('InvalidEntity');
    if (scalar !== undefined) types.set(property, textOf(scalar));
  }
  return types;
}

function readText(name: string, members: Members, types: ReadonlyMap<string, string>): string | undefined {
  const scalar = members.get(name);
  if (scalar === undefined) return undefined;
  if ((types.get(name) ?? KEY_TYPE) !== KEY_TYPE) throw fail('InvalidEntity');
  return textOf(scalar);
}

function textOf(scalar: Scalar): string {
  if (scalar.kind !== 'string') throw fail('InvalidEntity');
  return scalar.text;
}
