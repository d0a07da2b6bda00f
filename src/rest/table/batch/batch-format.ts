/** The multipart of a batch: its request, a change set or one query, and its reply in the form that Microsoft's clients parse. */

import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { SlicedWork } from '../../../base/time-slices.ts';
import { CHANGES_MAX } from '../../../services/table/entities.ts';
import {
  type BatchPart,
  createPartReader,
  MalformedMultipart,
  type PartHeaders,
  parseBoundary,
  parseHead,
  readParts,
  splitParts,
} from '../../multipart.ts';
import type { Request } from '../../operation.ts';
import { bodyPieces, headerLines, type Reply } from '../../reply.ts';
import { parseQuery, type Routable } from '../../request.ts';
import { fail } from '../errors.ts';
import { parseTablePath } from '../params.ts';
import { COMMON_HEADERS } from '../replies.ts';

export type Batch =
  | { readonly kind: 'changes'; readonly parts: readonly BatchPart[] }
  | { readonly kind: 'query'; readonly part: BatchPart };

export function* readBatch(bytes: Buffer, contentType: string | string[] | undefined): SlicedWork<Batch> {
  try {
    return yield* parseBatch(bytes, contentType);
  } catch (error) {
    throw error instanceof MalformedMultipart ? fail('BatchSyntax') : error;
  }
}

function* parseBatch(bytes: Buffer, contentType: string | string[] | undefined): SlicedWork<Batch> {
  const text = bytes.toString('latin1');
  const outer = parseBoundary(String(contentType));
  if (outer === undefined) throw new MalformedMultipart();
  const all = yield* splitParts(text, { from: 0, to: text.length }, outer, 2);
  const [only, ...more] = all.map((part) => ({ ...part, head: parseHead(text, part, undefined) }));
  if (!only || more.length > 0) throw new MalformedMultipart();
  const inner = parseBoundary(only.head.headers['content-type']);
  if (inner === undefined) return { kind: 'query', part: createPartReader(bytes, text)(only) };
  const changes = { from: only.from + only.head.text.length, to: only.to };
  const ranges = yield* splitParts(text, changes, inner, CHANGES_MAX + 1);
  return { kind: 'changes', parts: yield* readParts(bytes, text, ranges) };
}

const ORIGIN = /^https?:\/\/[^/?#]*/i;

/** The URL may have a host and an account or not: the account is that of the batch. */
export function partRequest(
  { method, url, headers }: Pick<BatchPart, 'method' | 'url' | 'headers'>,
  outer: Request,
): Routable {
  const target = url.replace(ORIGIN, '');
  const question = target.indexOf('?');
  const path = question < 0 ? target : target.slice(0, question);
  const rawQuery = question < 0 ? '' : target.slice(question + 1);
  const rawPath = path.startsWith('/') ? path : `/${path}`;
  const { id, account, secondary, base, readsHosts, secure, version } = outer;
  const prefix = [base, `/${account}`].find((start) => start !== '' && rawPath.startsWith(`${start}/`)) ?? '';
  const { container, item, shape } = parseTablePath(rawPath.slice(prefix.length));
  return {
    id,
    method,
    rawPath,
    rawQuery,
    account,
    secondary,
    base,
    readsHosts,
    secure,
    container,
    item,
    shape,
    query: parseQuery(rawQuery),
    headers: { ...headers, host: outer.headers.host },
    rawHeaders: [],
    version,
  };
}

export interface PartReply {
  /** Of the part that it answers. */
  readonly requestHeaders: PartHeaders;
  readonly reply: Reply;
}

/** `isChangeSet`: the parts answer changes, not a query. */
export function batchReply(parts: readonly PartReply[], isChangeSet: boolean): Reply {
  const batch = `batchresponse_${randomUUID()}`;
  const inner = isChangeSet ? `changesetresponse_${randomUUID()}` : batch;
  const start = `--${inner}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n`;
  const pieces: Buffer[] = [];
  let text = isChangeSet ? `--${batch}\r\nContent-Type: multipart/mixed; boundary=${inner}\r\n\r\n` : '';
  let previous: PartReply | undefined;
  let head = '';
  for (const part of parts) {
    if (!previous || !haveSameHead(part, previous)) head = headLines(start, part);
    previous = part;
    text += `${head}${headerLines(part.reply.headers ?? {}, HEAD_NAMES)}\r\n`;
    for (const bytes of bodyBuffers(part.reply.body)) {
      if (bytes.length > INLINE_BYTES_MAX) {
        pieces.push(Buffer.from(text), bytes);
        text = '';
      } else text += bytes.toString();
    }
    text += '\r\n';
  }
  if (isChangeSet) text += `--${inner}--\r\n`;
  return {
    status: 202,
    headers: { ...COMMON_HEADERS, 'Content-Type': `multipart/mixed; boundary=${batch}` },
    body: [...pieces, Buffer.from(`${text}--${batch}--\r\n`)],
  };
}

/** A longer body is sent as it is: to decode and encode it again would hold the event loop. */
const INLINE_BYTES_MAX = 4 << 10;

const COMMON_LINES = Object.entries(COMMON_HEADERS)
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join('');
/** These headers come first, in this order. */
const HEAD_NAMES = new Set([...Object.keys(COMMON_HEADERS), 'Preference-Applied']);

/** Whether `headLines` are the same for both. */
function haveSameHead(one: PartReply, other: PartReply): boolean {
  return (
    one.reply.status === other.reply.status &&
    one.requestHeaders['content-id'] === other.requestHeaders['content-id'] &&
    one.reply.headers?.['Preference-Applied'] === other.reply.headers?.['Preference-Applied'] &&
    dataServiceVersion(one.reply) === dataServiceVersion(other.reply)
  );
}

/** `join` gives a flat string: one of `+` would be flattened again for each part. */
function headLines(start: string, { requestHeaders, reply }: PartReply): string {
  const contentId = requestHeaders['content-id'];
  const applied = reply.headers?.['Preference-Applied'];
  return [
    start,
    `HTTP/1.1 ${reply.status} ${STATUS_CODES[reply.status]}\r\n`,
    contentId === undefined ? '' : `Content-ID: ${contentId}\r\n`,
    COMMON_LINES,
    applied === undefined ? '' : `Preference-Applied: ${applied}\r\n`,
    `DataServiceVersion: ${dataServiceVersion(reply)}\r\n`,
  ].join('');
}

function dataServiceVersion({ headers, body }: Reply): string {
  return body !== undefined || headers?.Location !== undefined ? '3.0;' : '1.0;';
}

/** Operations that can be parts do not stream their replies. */
function bodyBuffers(body: Reply['body']): readonly Buffer[] {
  return body === undefined ? [] : (bodyPieces(body) as readonly Buffer[]);
}
