/**
 * The stored form of entries and nodes: numbers at fixed places, then text in lines. Every request on a file decodes several of them, and a
 * page of a list thousands; JSON takes three times as long. Rows of folders of format 7 are JSON, and are read as well.
 */
import type { Row } from '../../partition/partition.ts';
import { decodeValue, UnknownFormat } from '../../partition/values.ts';
import { formatEtag } from '../../rules/conditions.ts';
import type { CopyState } from '../../rules/copy-state.ts';
import { decodeLease, encodeLease, type StoredLease, versionFields } from '../common/etagged-rows.ts';
import type { Metadata } from '../common/names.ts';
import { formatLine, joinLines, parseLine, splitLines } from '../common/record-lines.ts';
import type { Directory, DirectoryRecord, Entry, File, FileRecord, Node, NodeKind } from './node-rows.ts';
import type { NodeId } from './rows.ts';

/** The format byte of all values, and the one that says what follows. */
const FORMAT = 1;
const DIRECTORY = 1;
const FILE = 2;
const JSON_OBJECT = '{'.charCodeAt(0);

const ENTRY = { node: 2, born: 10, name: 14 } as const;
/** `own` is the length of a file, and when the times of a directory were set. */
const NODE = {
  parent: 2,
  etag: 10,
  creation: 18,
  lastWrite: 26,
  change: 34,
  own: 42,
  attributes: 50,
  born: 54,
  text: 58,
};

export function encodeEntry({ node, name, kind, born }: Entry): Buffer {
  const value = Buffer.allocUnsafe(ENTRY.name + Buffer.byteLength(name));
  const numbers = viewOf(value);
  value[0] = FORMAT;
  value[1] = kind === 'file' ? FILE : DIRECTORY;
  numbers.setBigUint64(ENTRY.node, node);
  numbers.setUint32(ENTRY.born, born);
  value.write(name, ENTRY.name);
  return value;
}

export function decodeEntry(row: Row): Entry {
  const { value } = row;
  if (isJson(row)) return decodeJsonEntry(row);
  const kind = kindOf(row);
  const numbers = viewOf(value);
  return {
    node: numbers.getBigUint64(ENTRY.node),
    name: value.toString('utf8', ENTRY.name),
    kind,
    born: numbers.getUint32(ENTRY.born),
  };
}

export function encodeNode(record: DirectoryRecord | FileRecord): Buffer {
  const { kind, times } = record;
  const text = kind === 'file' ? fileText(record) : joinLines(commonLines(record));
  const value = Buffer.allocUnsafe(NODE.text + Buffer.byteLength(text));
  const numbers = viewOf(value);
  value[0] = FORMAT;
  value[1] = kind === 'file' ? FILE : DIRECTORY;
  numbers.setBigUint64(NODE.parent, record.parent);
  numbers.setBigUint64(NODE.etag, record.etag ?? 0n);
  numbers.setBigInt64(NODE.creation, times.creation);
  numbers.setBigInt64(NODE.lastWrite, times.lastWrite);
  numbers.setBigInt64(NODE.change, times.change);
  if (kind === 'file') numbers.setFloat64(NODE.own, record.length);
  else numbers.setBigUint64(NODE.own, record.timesSet);
  numbers.setUint32(NODE.attributes, record.attributes);
  numbers.setUint32(NODE.born, record.born);
  value.write(text, NODE.text);
  return value;
}

/** The generation in which the row of a node was written, without the rest. */
export function nodeBorn(row: Row): number {
  return isJson(row) ? decodeJsonNode(0n, row).born : viewOf(row.value).getUint32(NODE.born);
}

export function decodeNode(id: NodeId, row: Row): Node {
  if (isJson(row)) return decodeJsonNode(id, row);
  const kind = kindOf(row);
  const numbers = viewOf(row.value);
  const lines = splitLines(row.value.toString('utf8', NODE.text));
  const version = numbers.getBigUint64(NODE.etag) || row.version;
  const times = {
    creation: numbers.getBigInt64(NODE.creation),
    lastWrite: numbers.getBigInt64(NODE.lastWrite),
    change: numbers.getBigInt64(NODE.change),
    ...(lines[3] && { access: BigInt(lines[3]) }),
  };
  const parent = numbers.getBigUint64(NODE.parent);
  const attributes = numbers.getUint32(NODE.attributes);
  const born = numbers.getUint32(NODE.born);
  const name = parseLine(lines[0]) ?? '';
  const permission = lines[1];
  if (permission === undefined) throw new Error(`node ${id} without its end`);
  const metadata = lines[2] ? (JSON.parse(lines[2]) as Metadata) : NO_METADATA;
  const etag = formatEtag(version);
  if (kind === 'directory') {
    const timesSet = numbers.getBigUint64(NODE.own);
    return {
      id,
      kind,
      parent,
      name,
      attributes,
      times,
      permission,
      metadata,
      born,
      timesSet,
      etag,
      modified: version,
      version,
    };
  }
  return {
    id,
    kind,
    parent,
    name,
    attributes,
    times,
    permission,
    metadata,
    born,
    length: numbers.getFloat64(NODE.own),
    contentId: lines[4] || undefined,
    content: {
      contentType: parseLine(lines[5]),
      contentMd5: parseLine(lines[6]),
      contentEncoding: parseLine(lines[7]),
      contentLanguage: parseLine(lines[8]),
      contentDisposition: parseLine(lines[9]),
      cacheControl: parseLine(lines[10]),
    },
    lease: lines[11] ? decodeLease(JSON.parse(lines[11]) as StoredLease) : undefined,
    copy: lines[12] ? decodeCopy(JSON.parse(lines[12]) as StoredCopyState) : undefined,
    etag,
    modified: version,
    version,
  };
}

function commonLines({ name, permission, metadata, times }: DirectoryRecord | FileRecord): string[] {
  const named = Object.keys(metadata).length === 0 ? '' : JSON.stringify(metadata);
  return [formatLine(name), permission, named, times.access?.toString() ?? ''];
}

function fileText(record: FileRecord): string {
  const { contentId, content, lease, copy } = record;
  return joinLines([
    ...commonLines(record),
    contentId,
    formatLine(content.contentType),
    formatLine(content.contentMd5),
    formatLine(content.contentEncoding),
    formatLine(content.contentLanguage),
    formatLine(content.contentDisposition),
    formatLine(content.cacheControl),
    lease && JSON.stringify(encodeLease(lease)),
    copy && JSON.stringify({ ...copy, completed: copy.completed?.toString() }),
  ]);
}

const NO_METADATA: Metadata = {};

type StoredCopyState = Omit<CopyState, 'completed'> & { completed?: string };

const decodeCopy = ({ completed, ...copy }: StoredCopyState): CopyState =>
  completed === undefined ? copy : { ...copy, completed: BigInt(completed) };

const viewOf = (value: Buffer): DataView => new DataView(value.buffer, value.byteOffset, value.length);

function kindOf({ value }: Row): NodeKind {
  if (value[0] === FORMAT && value[1] === FILE) return 'file';
  if (value[0] === FORMAT && value[1] === DIRECTORY) return 'directory';
  throw new UnknownFormat(`an entry or node of format ${value[0]}.${value[1]}, which this version does not know`);
}

const isJson = ({ value }: Row): boolean => value[1] === JSON_OBJECT;

function decodeJsonEntry(row: Row): Entry {
  const { node, ...entry } = decodeValue<Omit<Entry, 'node'> & { node: string }>(row);
  return { ...entry, node: BigInt(node) };
}

interface JsonNode {
  readonly kind: NodeKind;
  readonly etag?: string;
  readonly parent: string;
  readonly times: readonly [creation: string, lastWrite: string, change: string];
  readonly timesSet?: string;
  readonly lease?: StoredLease;
  readonly copy?: StoredCopyState;
}

function decodeJsonNode(id: NodeId, row: Row): Node {
  const { etag, lease, copy, timesSet, ...stored } = decodeValue<JsonNode>(row);
  const [creation, lastWrite, change] = stored.times;
  const common = {
    ...stored,
    id,
    parent: BigInt(stored.parent),
    times: { creation: BigInt(creation), lastWrite: BigInt(lastWrite), change: BigInt(change) },
    ...versionFields(row, etag),
  };
  if (stored.kind === 'directory') return { ...common, timesSet: BigInt(timesSet!) } as Directory;
  return { ...common, lease: decodeLease(lease), copy: copy && decodeCopy(copy) } as File;
}
