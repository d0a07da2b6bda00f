/**
 * The head of a blob as it is stored: its fields as lines of text, in this order. A page of a list decodes thousands of them, and
 * to find the lines costs a third of what JSON does.
 */
import type { Row, Snapshot } from '../../partition/partition.ts';
import { decodeText, encodeText } from '../../partition/values.ts';
import type { AccountId } from '../common/storage.ts';
import { fail } from './errors.ts';
import {
  type Blob,
  type BlobHead,
  type ContainerId,
  type CopyState,
  containerIdAt,
  headKey,
  loadedLease,
  located,
  type Metadata,
  type Place,
  type StoredLease,
  storedLease,
} from './rows.ts';

const TYPE = 'block';
/** Stands for a field that is there, with nothing in it. */
const EMPTY = '\0';

export function encodeHead(head: BlobHead): Buffer {
  const { content, metadata, lease, copy } = head;
  const fields = [
    TYPE,
    String(head.length),
    head.created.toString(),
    lineOf(head.crc64),
    lineOf(content.contentType),
    lineOf(content.contentMd5),
    lineOf(head.contentId),
    lineOf(content.contentEncoding),
    lineOf(content.contentLanguage),
    lineOf(content.contentDisposition),
    lineOf(content.cacheControl),
    head.etag?.toString() ?? '',
    Object.keys(metadata).length === 0 ? '' : JSON.stringify(metadata),
    lease ? JSON.stringify(storedLease(lease)) : '',
    copy ? JSON.stringify({ ...copy, completed: copy.completed.toString() }) : '',
  ];
  while (fields.at(-1) === '') fields.pop();
  return encodeText(`${fields.join('\n')}\n`);
}

export function decodeHead(row: Row): Blob {
  const fields = linesOf(decodeText(row));
  const { etag, modified, stamp } = located(row, fields[11] || undefined);
  return {
    length: Number(fields[1]),
    created: BigInt(fields[2]!),
    crc64: textOf(fields[3]),
    content: {
      contentType: textOf(fields[4]),
      contentMd5: textOf(fields[5]),
      contentEncoding: textOf(fields[7]),
      contentLanguage: textOf(fields[8]),
      contentDisposition: textOf(fields[9]),
      cacheControl: textOf(fields[10]),
    },
    contentId: textOf(fields[6]),
    metadata: fields[12] ? (JSON.parse(fields[12]) as Metadata) : NO_METADATA,
    lease: fields[13] ? loadedLease(JSON.parse(fields[13]) as StoredLease) : undefined,
    copy: fields[14] ? copyOf(JSON.parse(fields[14])) : undefined,
    etag,
    modified,
    stamp,
  };
}

export async function findBlob(
  at: Snapshot,
  account: AccountId,
  id: ContainerId,
  blob: string,
): Promise<Blob | undefined> {
  const row = await at.get(headKey(account, id, blob));
  return row && decodeHead(row);
}

export async function blobAt(at: Snapshot, place: Place, container: string, blob: string) {
  const id = await containerIdAt(at, place, container);
  const head = await at.get(headKey(place.account, id, blob));
  if (!head) throw fail('BlobNotFound');
  return { id, blob: decodeHead(head) };
}

const NO_METADATA: Metadata = {};

function lineOf(text: string | undefined): string {
  if (text === undefined) return '';
  // HTTP has no header with a line feed, so that this is a bug.
  if (text.includes('\n')) throw new Error('a field of a head has two lines');
  return text === '' ? EMPTY : text;
}

/** `split` would take twice as long. */
function linesOf(text: string): string[] {
  const lines: string[] = [];
  let from = 0;
  for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', from)) {
    lines.push(text.slice(from, end));
    from = end + 1;
  }
  if (lines.length < 3 || from < text.length) throw new Error('a head without its end');
  return lines;
}

/** Behind the last field that is there, a line is missing. */
function textOf(line: string | undefined): string | undefined {
  if (!line) return undefined;
  return line === EMPTY ? '' : line;
}

function copyOf({ completed, ...copy }: Omit<CopyState, 'completed'> & { completed: string }): CopyState {
  return { ...copy, completed: BigInt(completed) };
}
