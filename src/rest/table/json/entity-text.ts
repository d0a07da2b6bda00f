/** Entities and tables → the JSON of answers, at each level of metadata. */
import {
  copyKeys,
  copyProperties,
  etagOf,
  fragmentsOf,
  type StoredEntity,
  textOf,
  timestampOf,
} from '../../../services/table/entity-rows.ts';
import type { SelectedNames, Selection } from '../selection.ts';
import { copy, makeRoom, type Output, write } from './output.ts';

export type MetadataLevel = 'nometadata' | 'minimalmetadata' | 'fullmetadata';

/** What an answer needs to know besides its entities. */
export interface Answer {
  readonly level: MetadataLevel;
  readonly account: string;
  /** Of the service, without a slash at its end: https://account.table.core.windows.net */
  readonly endpoint: string;
  readonly table: string;
  readonly selection?: Selection | undefined;
}

/** `Customers(PartitionKey='a',RowKey='b')` */
export function entityAddress(table: string, { partitionKey, rowKey }: Pick<StoredEntity, 'partitionKey' | 'rowKey'>) {
  return `${table}(PartitionKey=${literal(partitionKey)},RowKey=${literal(rowKey)})`;
}

export function tableAddress(table: string): string {
  return `Tables(${literal(table)})`;
}

/** What stands in a URL as it is, and is no quote. */
const PLAIN = /^[\w.~!*()-]*$/;

function literal(text: string): string {
  if (PLAIN.test(text)) return `'${text}'`;
  return `'${encodeURIComponent(text.toWellFormed()).replaceAll("'", "''")}'`;
}

export function entityText(entity: StoredEntity, answer: Answer): Buffer {
  const output = { bytes: Buffer.allocUnsafe(entity.value.length + ROOM_BYTES), at: 0 };
  write(output, answer.level === 'nometadata' ? '{' : `{${metadataOf(answer, answer.table, '/@Element')},`);
  writeEntity(output, entity, answer);
  return output.bytes.subarray(0, output.at);
}

export function writeStart(output: Output, answer: Answer): void {
  write(output, answer.level === 'nometadata' ? '{"value":[' : `{${metadataOf(answer, answer.table, '')},"value":[`);
}

type Naming = Omit<Answer, 'table'>;

export function tableText(table: string, answer: Naming): string {
  const metadata = answer.level === 'nometadata' ? '' : `${metadataOf(answer, 'Tables', '/@Element')},`;
  return `{${metadata}${tableMembers(table, answer)}}`;
}

export function tablesText(tables: readonly string[], answer: Naming): string {
  const metadata = answer.level === 'nometadata' ? '' : `${metadataOf(answer, 'Tables', '')},`;
  return `{${metadata}"value":[${tables.map((table) => `{${tableMembers(table, answer)}}`).join(',')}]}`;
}

function tableMembers(table: string, { level, account, endpoint }: Naming): string {
  const name = `"TableName":${textOf(table)}`;
  if (level !== 'fullmetadata') return name;
  const address = tableAddress(table);
  return `"odata.type":"${account}.Tables","odata.id":"${endpoint}/${address}","odata.editLink":"${address}",${name}`;
}

function metadataOf({ endpoint, selection }: Naming, set: string, element: '' | '/@Element'): string {
  const selected = selection === undefined ? '' : `&$select=${encodeURI(selection.text.toWellFormed())}`;
  return `"odata.metadata":${textOf(`${endpoint}/$metadata#${set}${element}${selected}`)}`;
}

/** For each entity besides its own bytes: the metadata, unless its keys are long. */
const ROOM_BYTES = 300;

/** Behind the brace that opens it. */
export function writeEntity(output: Output, entity: StoredEntity, answer: Answer): void {
  const selected = answer.selection?.names;
  if (selected) {
    writeSelected(output, entity, answer, selected);
    return;
  }
  const annotated = answer.level !== 'nometadata';
  const { etag, timestamp } = stampTexts(entity, answer);
  if (answer.level === 'fullmetadata') write(output, `${headOf(entity, answer)},`);
  else if (annotated) copy(output, etag);
  makeRoom(output, entity.value.length);
  output.at = copyKeys(entity, output.bytes, output.at);
  copy(output, timestamp);
  makeRoom(output, entity.value.length);
  output.at = copyProperties(entity, annotated, output.bytes, output.at);
  copy(output, CLOSING);
}

const CLOSING = Buffer.from('}');
const COMMA = Buffer.from(',');

/** With the comma that parts it from what comes next, and from what came before. */
interface StampTexts {
  readonly stamp: StoredEntity['stamp'];
  readonly level: MetadataLevel;
  readonly etag: Buffer;
  readonly timestamp: Buffer;
}

let last: StampTexts | undefined;

/** Those that came in one batch have the same. */
function stampTexts(entity: StoredEntity, answer: Answer): StampTexts {
  const { stamp } = entity;
  const { level } = answer;
  if (last?.stamp !== stamp || last.level !== level) {
    const timestamp = Buffer.from(`,${timestampText(entity, answer)}`, 'latin1');
    last = { stamp, level, etag: Buffer.from(`${etagText(entity)},`, 'latin1'), timestamp };
  }
  return last;
}

function etagText(entity: StoredEntity): string {
  return `"odata.etag":"${etagOf(entity).replaceAll('"', '\\"')}"`;
}

/** The metadata of one entity, without a comma at its end. */
function headOf(entity: StoredEntity, { level, account, endpoint, table }: Answer): string {
  if (level === 'nometadata') return '';
  if (level === 'minimalmetadata') return etagText(entity);
  const address = entityAddress(table, entity);
  return `"odata.type":"${account}.${table}","odata.id":"${endpoint}/${address}",${etagText(entity)},"odata.editLink":"${address}"`;
}

function timestampText(entity: StoredEntity, { level }: Answer): string {
  const type = level === 'fullmetadata' ? '"Timestamp@odata.type":"Edm.DateTime",' : '';
  return `${type}"Timestamp":"${timestampOf(entity)}"`;
}

/** Just these, the keys and the Timestamp only if they are among them; a property that the entity lacks is null. */
function writeSelected(output: Output, entity: StoredEntity, answer: Answer, selected: SelectedNames): void {
  const head = headOf(entity, answer);
  const texts = head === '' ? [] : [head];
  if (selected.partitionKey) texts.push(`"PartitionKey":${textOf(entity.partitionKey)}`);
  if (selected.rowKey) texts.push(`"RowKey":${textOf(entity.rowKey)}`);
  if (selected.timestamp) texts.push(timestampText(entity, answer));
  write(output, texts.join(','));
  let isFirst = texts.length === 0;
  const { value } = entity;
  for (const [index, found] of fragmentsOf(entity, selected.properties, answer.level !== 'nometadata').entries()) {
    if (!isFirst) copy(output, COMMA);
    isFirst = false;
    copy(output, found ? value.subarray(found.start, found.end) : selected.nulls[index]!);
  }
  copy(output, CLOSING);
}
