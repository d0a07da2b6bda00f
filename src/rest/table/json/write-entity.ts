/** Entities and tables → JSON, at each level of metadata. */

import {
  copyKeys,
  copyProperties,
  entityEtag,
  findFragments,
  formatTimestamp,
  jsonString,
  type StoredEntity,
} from '../../../services/table/entity-rows.ts';
import { entityAddress, tableAddress } from '../params.ts';
import type { SelectedNames, Selection } from '../selection.ts';
import { appendBytes, appendText, type GrowingBuffer, reserve } from './growing-buffer.ts';

export type MetadataLevel = 'nometadata' | 'minimalmetadata' | 'fullmetadata';

/** What the JSON depends on besides the entities. */
export interface AnswerFormat {
  readonly level: MetadataLevel;
  readonly account: string;
  /** The URL of the service without a trailing slash: https://account.table.core.windows.net */
  readonly endpoint: string;
  readonly table: string;
  readonly selection?: Selection | undefined;
}

export function formatEntity(entity: StoredEntity, answer: AnswerFormat): Buffer {
  const output = { bytes: Buffer.allocUnsafe(entity.value.length + ROOM_BYTES), at: 0 };
  appendText(output, answer.level === 'nometadata' ? '{' : `{${contextMetadata(answer, answer.table, '/@Element')},`);
  writeEntity(output, entity, answer);
  return output.bytes.subarray(0, output.at);
}

export function writePageStart(output: GrowingBuffer, answer: AnswerFormat): void {
  appendText(
    output,
    answer.level === 'nometadata' ? '{"value":[' : `{${contextMetadata(answer, answer.table, '')},"value":[`,
  );
}

type TableFormat = Omit<AnswerFormat, 'table'>;

export function formatTable(table: string, answer: TableFormat): string {
  const metadata = answer.level === 'nometadata' ? '' : `${contextMetadata(answer, 'Tables', '/@Element')},`;
  return `{${metadata}${formatTableMembers(table, answer)}}`;
}

export function formatTables(tables: readonly string[], answer: TableFormat): string {
  const metadata = answer.level === 'nometadata' ? '' : `${contextMetadata(answer, 'Tables', '')},`;
  return `{${metadata}"value":[${tables.map((table) => `{${formatTableMembers(table, answer)}}`).join(',')}]}`;
}

function formatTableMembers(table: string, { level, account, endpoint }: TableFormat): string {
  const name = `"TableName":${jsonString(table)}`;
  if (level !== 'fullmetadata') return name;
  const address = tableAddress(table);
  return `"odata.type":"${account}.Tables","odata.id":"${endpoint}/${address}","odata.editLink":"${address}",${name}`;
}

function contextMetadata({ endpoint, selection }: TableFormat, set: string, element: '' | '/@Element'): string {
  const selected = selection === undefined ? '' : `&$select=${encodeURI(selection.text.toWellFormed())}`;
  return `"odata.metadata":${jsonString(`${endpoint}/$metadata#${set}${element}${selected}`)}`;
}

/** An estimate of the metadata of an entity; long keys need more. */
const ROOM_BYTES = 300;

/** All but the opening brace. */
export function writeEntity(output: GrowingBuffer, entity: StoredEntity, answer: AnswerFormat): void {
  const selected = answer.selection?.names;
  if (selected) {
    writeSelected(output, entity, answer, selected);
    return;
  }
  const annotated = answer.level !== 'nometadata';
  const { etag, timestamp } = cachedTexts(entity, answer);
  if (answer.level === 'fullmetadata') appendText(output, `${entityMetadata(entity, answer)},`);
  else if (annotated) appendBytes(output, etag);
  reserve(output, entity.value.length);
  output.at = copyKeys(entity, output.bytes, output.at);
  appendBytes(output, timestamp);
  reserve(output, entity.value.length);
  output.at = copyProperties(entity, annotated, output.bytes, output.at);
  appendBytes(output, CLOSING);
}

const CLOSING = Buffer.from('}');
const COMMA = Buffer.from(',');

/** With commas: after the ETag, before the Timestamp. */
interface CachedTexts {
  readonly version: StoredEntity['version'];
  readonly level: MetadataLevel;
  readonly etag: Buffer;
  readonly timestamp: Buffer;
}

let lastTexts: CachedTexts | undefined;

/** Memoizes the last texts: entities of one batch have one version. */
function cachedTexts(entity: StoredEntity, answer: AnswerFormat): CachedTexts {
  const { version } = entity;
  const { level } = answer;
  if (lastTexts?.version !== version || lastTexts.level !== level) {
    const timestamp = Buffer.from(`,${timestampText(entity, answer)}`, 'latin1');
    lastTexts = { version, level, etag: Buffer.from(`${etagText(entity)},`, 'latin1'), timestamp };
  }
  return lastTexts;
}

function etagText(entity: StoredEntity): string {
  return `"odata.etag":"${entityEtag(entity).replaceAll('"', '\\"')}"`;
}

/** Without a trailing comma. */
function entityMetadata(entity: StoredEntity, { level, account, endpoint, table }: AnswerFormat): string {
  if (level === 'nometadata') return '';
  if (level === 'minimalmetadata') return etagText(entity);
  const address = entityAddress(table, entity);
  return `"odata.type":"${account}.${table}","odata.id":"${endpoint}/${address}",${etagText(entity)},"odata.editLink":"${address}"`;
}

function timestampText(entity: StoredEntity, { level }: AnswerFormat): string {
  const type = level === 'fullmetadata' ? '"Timestamp@odata.type":"Edm.DateTime",' : '';
  return `${type}"Timestamp":"${formatTimestamp(entity)}"`;
}

/** The selected properties alone, keys and Timestamp only if they are selected. A property that the entity lacks is null. */
function writeSelected(
  output: GrowingBuffer,
  entity: StoredEntity,
  answer: AnswerFormat,
  selected: SelectedNames,
): void {
  const head = entityMetadata(entity, answer);
  const texts = head === '' ? [] : [head];
  if (selected.partitionKey) texts.push(`"PartitionKey":${jsonString(entity.partitionKey)}`);
  if (selected.rowKey) texts.push(`"RowKey":${jsonString(entity.rowKey)}`);
  if (selected.timestamp) texts.push(timestampText(entity, answer));
  appendText(output, texts.join(','));
  let isFirst = texts.length === 0;
  const { value } = entity;
  const append = (text: Buffer): void => {
    if (!isFirst) appendBytes(output, COMMA);
    isFirst = false;
    appendBytes(output, text);
  };
  const { nulls, nullStarts } = selected;
  let missing = 0;
  const appendNulls = (end: number): void => {
    if (end > missing) append(nulls.subarray(nullStarts[missing], nullStarts[end]! - 1));
    missing = end + 1;
  };
  const fragments = findFragments(entity, selected.properties, answer.level !== 'nometadata');
  for (const [index, found] of fragments.entries()) {
    if (!found) continue;
    appendNulls(index);
    append(value.subarray(found.start, found.end));
  }
  appendNulls(fragments.length);
  appendBytes(output, CLOSING);
}
