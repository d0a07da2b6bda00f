/** The bodies of requests → entities and names of tables. */
import { inTurns, type Steps } from '../../../base/time-slices.ts';
import {
  type Property,
  type Sent,
  type SentEntity,
  sentText,
  sentValue,
  typeSent,
} from '../../../services/table/entity-rows.ts';
import { fail } from '../../../services/table/errors.ts';
import { type Names, readMembers, SLICE_BYTES } from './json.ts';

const TYPE_ANNOTATION = '@odata.type';
const KEY_TYPE = 'Edm.String';

export const readEntity = (body: Buffer): SentEntity | Promise<SentEntity> => inTurns(entitySteps(body), body.length);

function* entitySteps(body: Buffer): Steps<SentEntity> {
  const { names, values } = yield* readMembers(body);
  const shape = shapeOf(names);
  checkAnnotations(shape, values);
  const properties: Property[] = [];
  let length = 0;
  for (const { name, at, annotatedAt } of shape.properties) {
    const value = values[at]!;
    if (value.kind === 'null') continue;
    properties.push({ name, value: sentValue(value, typeIn(values, annotatedAt)) });
    length += value.json.length;
    if (length < SLICE_BYTES) continue;
    length = 0;
    yield;
  }
  return {
    partitionKey: readText(values, shape.partitionKey),
    rowKey: readText(values, shape.rowKey),
    properties,
  };
}

/** `{"TableName":"mytable"}` */
export const readTableName = (body: Buffer): string | Promise<string> => inTurns(tableNameSteps(body), body.length);

function* tableNameSteps(body: Buffer): Steps<string> {
  const { names, values } = yield* readMembers(body);
  checkAnnotations(shapeOf(names), values);
  const name = readText(values, memberOf(names, 'TableName'));
  if (name === undefined) throw fail('PropertiesNeedValue');
  return name;
}

/** One of the members, and where its type is told. */
interface Member {
  readonly name: string;
  readonly at: number;
  readonly annotatedAt: number | undefined;
}

/** What the names say, whatever the values are. */
interface Shape {
  readonly annotations: readonly number[];
  readonly properties: readonly Member[];
  readonly partitionKey: Member | undefined;
  readonly rowKey: Member | undefined;
}

let lastNames: Names | undefined;
let lastShape: Shape | undefined;

/** Most entities have that of the one before them. */
function shapeOf(names: Names): Shape {
  if (names === lastNames) return lastShape!;
  if (!names.isKept) return shapeBy(names);
  lastShape = shapeBy(names);
  lastNames = names;
  return lastShape;
}

/** Annotations may stand before the property or behind it, but not without it. */
function shapeBy(names: Names): Shape {
  const annotations: number[] = [];
  const properties: Member[] = [];
  for (const name of names.all) {
    const member = memberOf(names, name)!;
    if (isProperty(name)) properties.push(member);
    if (!name.endsWith(TYPE_ANNOTATION)) continue;
    if (!names.places.has(name.slice(0, -TYPE_ANNOTATION.length))) throw fail('InvalidEntity');
    annotations.push(member.at);
  }
  const [partitionKey, rowKey] = [memberOf(names, 'PartitionKey'), memberOf(names, 'RowKey')];
  return { annotations, properties, partitionKey, rowKey };
}

/** The service sets the Timestamp; what a client says of it is not heard. */
const SYSTEM = new Set(['PartitionKey', 'RowKey', 'Timestamp']);

/** The others speak of the entity or a property: odata.etag, photo@odata.mediaReadLink. */
function isProperty(name: string): boolean {
  return !SYSTEM.has(name) && !name.startsWith('odata.') && !name.includes('@odata.');
}

function memberOf({ places }: Names, name: string): Member | undefined {
  const at = places.get(name);
  return at === undefined ? undefined : { name, at, annotatedAt: places.get(name + TYPE_ANNOTATION) };
}

/** Those as well whose values nobody asks for. */
function checkAnnotations({ annotations }: Shape, values: readonly Sent[]): void {
  for (const at of annotations) {
    const { kind } = values[at]!;
    if (kind !== 'string' && kind !== 'null') throw fail('InvalidEntity');
  }
}

function typeIn(values: readonly Sent[], at: number | undefined) {
  return at === undefined || values[at]!.kind === 'null' ? undefined : typeSent(values[at]!);
}

function readText(values: readonly Sent[], member: Member | undefined): string | undefined {
  const value = member && values[member.at]!;
  if (!value || value.kind === 'null') return undefined;
  if ((typeIn(values, member.annotatedAt) ?? KEY_TYPE) !== KEY_TYPE) throw fail('InvalidEntity');
  if (value.kind !== 'string') throw fail('InvalidEntity');
  return sentText(value);
}
