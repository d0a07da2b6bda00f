/** The bodies of requests → entities and names of tables. */
import { kept } from '../../base/kept.ts';
import { type Property, type Scalar, type SentEntity, sentValue } from '../../services/table/entity-rows.ts';
import { fail } from '../../services/table/errors.ts';
import { type Member, readMembers } from './json.ts';

const TYPE_ANNOTATION = '@odata.type';
const KEY_TYPE = 'Edm.String';

export function readEntity(body: Uint8Array): SentEntity {
  const members = typed(readMembers(body));
  const properties: Property[] = [];
  for (const member of members) {
    const { name } = member;
    if (member.isNull || !roleOf(name).isProperty) continue;
    properties.push({ name, value: sentValue(member, member.type) });
  }
  return {
    partitionKey: readText('PartitionKey', members),
    rowKey: readText('RowKey', members),
    properties,
  };
}

/** `{"TableName":"mytable"}` */
export function readTableName(body: Uint8Array): string {
  const name = readText('TableName', typed(readMembers(body)));
  if (name === undefined) throw fail('PropertiesNeedValue');
  return name;
}

/** What a member is by its name alone. */
interface Role {
  readonly isProperty: boolean;
  /** Whose type it tells. */
  readonly annotates?: string;
}

/** The service sets the Timestamp; what a client says of it is not heard. */
const SYSTEM = new Set(['PartitionKey', 'RowKey', 'Timestamp']);
const roleOf = kept((name): Role => {
  if (name.endsWith(TYPE_ANNOTATION)) return { isProperty: false, annotates: name.slice(0, -TYPE_ANNOTATION.length) };
  // What speaks of the entity or a property: odata.etag, photo@odata.mediaReadLink.
  return { isProperty: !SYSTEM.has(name) && !name.startsWith('odata.') && !name.includes('@odata.') };
});

/** Annotations may stand before the property or behind it, but not without it. */
function typed(members: readonly Member[]): readonly Member[] {
  let byName: Map<string, Member> | undefined;
  for (let at = 0; at < members.length; at++) {
    const { annotates } = roleOf(members[at]!.name);
    if (annotates === undefined) continue;
    let property = members[at - 1];
    if (property?.name !== annotates) property = members[at + 1];
    if (property?.name !== annotates) {
      byName ??= new Map(members.map((member) => [member.name, member]));
      property = byName.get(annotates);
    }
    if (!property) throw fail('InvalidEntity');
    if (!members[at]!.isNull) property.type = textOf(members[at]!);
  }
  return members;
}

function readText(name: string, members: readonly Member[]): string | undefined {
  const member = members.find((one) => one.name === name);
  if (member === undefined || member.isNull) return undefined;
  if ((member.type ?? KEY_TYPE) !== KEY_TYPE) throw fail('InvalidEntity');
  return textOf(member);
}

function textOf(scalar: Scalar): string {
  if (scalar.kind !== 'string') throw fail('InvalidEntity');
  return scalar.text;
}
