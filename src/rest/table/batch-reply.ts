/** The answers to the parts of a transaction, as one. */
import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Reply } from '../reply.ts';
import { COMMON_HEADERS } from './formats.ts';
import type { Headers } from './multipart.ts';

export interface PartReply {
  /** With which it was asked for. */
  readonly sent: Headers;
  readonly reply: Reply;
}

/** `isSet`: they answer changes, not a query. */
export function batchReply(parts: readonly PartReply[], isSet: boolean): Reply {
  const batch = `batchresponse_${randomUUID()}`;
  const inner = isSet ? `changesetresponse_${randomUUID()}` : batch;
  const start = `--${inner}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n`;
  let text = isSet ? `--${batch}\r\nContent-Type: multipart/mixed; boundary=${inner}\r\n\r\n` : '';
  let like: PartReply | undefined;
  let first = '';
  for (const part of parts) {
    if (!like || !areAlike(part, like)) first = firstLines(start, part);
    like = part;
    text += `${first}${ownLines(part.reply)}\r\n${textOf(part.reply.body)}\r\n`;
  }
  if (isSet) text += `--${inner}--\r\n`;
  return {
    status: 202,
    headers: { ...COMMON_HEADERS, 'Content-Type': `multipart/mixed; boundary=${batch}` },
    body: `${text}--${batch}--\r\n`,
  };
}

const COMMON_LINES = Object.entries(COMMON_HEADERS)
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join('');
/** They come first, in this order. */
const FIRST = new Set([...Object.keys(COMMON_HEADERS), 'Preference-Applied']);

/** Whether their first lines are the same. */
function areAlike(one: PartReply, other: PartReply): boolean {
  return (
    one.reply.status === other.reply.status &&
    one.sent['content-id'] === other.sent['content-id'] &&
    one.reply.headers?.['Preference-Applied'] === other.reply.headers?.['Preference-Applied'] &&
    versionOf(one.reply) === versionOf(other.reply)
  );
}

/** Joined, since what is put together with `+` is put together again wherever it is used. */
function firstLines(start: string, { sent, reply }: PartReply): string {
  const contentId = sent['content-id'];
  const applied = reply.headers?.['Preference-Applied'];
  return [
    start,
    `HTTP/1.1 ${reply.status} ${STATUS_CODES[reply.status]}\r\n`,
    contentId === undefined ? '' : `Content-ID: ${contentId}\r\n`,
    COMMON_LINES,
    applied === undefined ? '' : `Preference-Applied: ${applied}\r\n`,
    `DataServiceVersion: ${versionOf(reply)}\r\n`,
  ].join('');
}

function versionOf({ headers, body }: Reply): string {
  return body !== undefined || headers?.Location !== undefined ? '3.0;' : '1.0;';
}

function ownLines({ headers }: Reply): string {
  let text = '';
  for (const name in headers) {
    const value = headers[name];
    if (value !== undefined && !FIRST.has(name)) text += `${name}: ${value}\r\n`;
  }
  return text;
}

function textOf(body: Reply['body']): string {
  if (body === undefined) return '';
  // No row of a part streams its answer.
  if (typeof body === 'string') return body;
  const { buffer, byteOffset, byteLength } = body as Uint8Array;
  return Buffer.from(buffer, byteOffset, byteLength).toString();
}
