/** JSON bodies → entities and names of tables. */
import { isSmall, runSliced, type SlicedWork } from '../../../base/time-slices.ts';
import {
  type Property,
  type PropertyName,
  parseSentValue,
  parseText,
  parseType,
  propertyName,
  type SentEntity,
  type SentValue,
} from '../../../services/table/entity-rows.ts';
import { fail } from '../../../services/table/errors.ts';
import { type Names, readMembers, readMembersSliced, SLICE_BYTES } from './read-object.ts';

const TYPE_ANNOTATION = '@odata.type';
const KEY_TYPE = 'Edm.String';

export function readEntity(body: Buffer): SentEntity | Promise<SentEntity> {
  if (!isSmall(body.length)) return runSliced(readEntitySliced(body), body.length);
  const { names, values } = readMembers(body);
  const shape = cachedShape(names);
  checkAnnotations(shape, values);
  const properties: Property[] = [];
  addProperties(properties, shape, values, { from: 0, bytesMax: Number.POSITIVE_INFINITY });
  return makeEntity(shape, values, properties);
}

function* readEntitySliced(body: Buffer): SlicedWork<SentEntity> {
  const { names, values } = yield* readMembersSliced(body);
  const shape = cachedShape(names);
  checkAnnotations(shape, values);
  const properties: Property[] = [];
  for (let from = 0; ; ) {
    from = addProperties(properties, shape, values, { from, bytesMax: SLICE_BYTES });
    if (from === shape.properties.length) return makeEntity(shape, values, properties);
    yield;
  }
}

/** Leaves out nulls. Returns the index of the first member that is not added, since `bytesMax` is reached. */
function addProperties(
  properties: Property[],
  shape: EntityShape,
  values: readonly SentValue[],
  { from, bytesMax }: { readonly from: number; readonly bytesMax: number },
): number {
  let index = from;
  for (let bytes = 0; index < shape.properties.length && bytes < bytesMax; index++) {
    const member = shape.properties[index]!;
    const { at, annotatedAt } = member;
    const value = values[at]!;
    if (value.kind === 'null') continue;
    member.name ??= propertyName(member.text);
    properties.push({ name: member.name, value: parseSentValue(value, annotatedType(values, annotatedAt)) });
    bytes += value.json.length;
  }
  return index;
}

function makeEntity(shape: EntityShape, values: readonly SentValue[], properties: readonly Property[]): SentEntity {
  return {
    partitionKey: readText(values, shape.partitionKey),
    rowKey: readText(values, shape.rowKey),
    properties,
  };
}

/** `{"TableName":"mytable"}` */
export const readTableName = (body: Buffer): string | Promise<string> =>
  runSliced(readTableNameSliced(body), body.length);

function* readTableNameSliced(body: Buffer): SlicedWork<string> {
  const { names, values } = yield* readMembersSliced(body);
  checkAnnotations(cachedShape(names), values);
  const name = readText(values, findMember(names, 'TableName'));
  if (name === undefined) throw fail('PropertiesNeedValue');
  return name;
}

/** A member of the object: its index, and that of its type annotation. */
interface Member {
  readonly at: number;
  readonly annotatedAt: number | undefined;
}

interface PropertyMember extends Member {
  readonly text: string;
  /** Found when first needed: a null needs none. */
  name: PropertyName | undefined;
}

/** What follows from the names alone: the same for all entities with the same names. */
interface EntityShape {
  readonly annotations: readonly number[];
  readonly properties: readonly PropertyMember[];
  readonly partitionKey: Member | undefined;
  readonly rowKey: Member | undefined;
}

let lastNames: Names | undefined;
let lastShape: EntityShape | undefined;

/** Memoizes the last shape: most entities have the names of the one before. */
function cachedShape(names: Names): EntityShape {
  if (names === lastNames) return lastShape!;
  if (!names.isCached) return buildShape(names);
  lastShape = buildShape(names);
  lastNames = names;
  return lastShape;
}

/** An annotation may stand before its property or after it, but not without it. */
function buildShape(names: Names): EntityShape {
  const annotations: number[] = [];
  const properties: PropertyMember[] = [];
  for (const name of names.all) {
    const member = findMember(names, name)!;
    if (isProperty(name)) properties.push({ ...member, text: name, name: undefined });
    if (!name.endsWith(TYPE_ANNOTATION)) continue;
    if (!names.positions.has(name.slice(0, -TYPE_ANNOTATION.length))) throw fail('InvalidEntity');
    annotations.push(member.at);
  }
  const [partitionKey, rowKey] = [findMember(names, 'PartitionKey'), findMember(names, 'RowKey')];
  return { annotations, properties, partitionKey, rowKey };
}

/** The service sets the Timestamp; one that a client sends is ignored. */
const SYSTEM = new Set(['PartitionKey', 'RowKey', 'Timestamp']);

/** Other members are metadata of the entity or of a property: odata.etag, photo@odata.mediaReadLink. */
function isProperty(name: string): boolean {
  return !SYSTEM.has(name) && !name.startsWith('odata.') && !name.includes('@odata.');
}

function findMember({ positions }: Names, name: string): Member | undefined {
  const at = positions.get(name);
  return at === undefined ? undefined : { at, annotatedAt: positions.get(name + TYPE_ANNOTATION) };
}

/** Also the annotations of members whose values are not used. */
function checkAnnotations({ annotations }: EntityShape, values: readonly SentValue[]): void {
  for (const at of annotations) {
    const { kind } = values[at]!;
    if (kind !== 'string' && kind !== 'null') throw fail('InvalidEntity');
  }
}

function annotatedType(values: readonly SentValue[], at: number | undefined) {
  return at === undefined || values[at]!.kind === 'null' ? undefined : parseType(values[at]!);
}

function readText(values: readonly SentValue[], member: Member | undefined): string | undefined {
  const value = member && values[member.at]!;
  if (!value || value.kind === 'null') return undefined;
  if ((annotatedType(values, member.annotatedAt) ?? KEY_TYPE) !== KEY_TYPE) throw fail('InvalidEntity');
  if (value.kind !== 'string') throw fail('InvalidEntity');
  return parseText(value);
}
