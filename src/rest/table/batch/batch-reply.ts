/** The answers to the parts of a transaction, as one. */
import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import { piecesOf, type Reply } from '../../reply.ts';
import { COMMON_HEADERS } from '../formats.ts';
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
  const pieces: Buffer[] = [];
  let text = isSet ? `--${batch}\r\nContent-Type: multipart/mixed; boundary=${inner}\r\n\r\n` : '';
  let like: PartReply | undefined;
  let first = '';
  for (const part of parts) {
    if (!like || !areAlike(part, like)) first = firstLines(start, part);
    like = part;
    text += `${first}${ownLines(part.reply)}\r\n`;
    for (const bytes of bytesOf(part.reply.body)) {
      if (bytes.length > JOINED_BYTES_MAX) {
        pieces.push(Buffer.from(text), bytes);
        text = '';
      } else text += bytes.toString();
    }
    text += '\r\n';
  }
  if (isSet) text += `--${inner}--\r\n`;
  return {
    status: 202,
    headers: { ...COMMON_HEADERS, 'Content-Type': `multipart/mixed; boundary=${batch}` },
    body: [...pieces, Buffer.from(`${text}--${batch}--\r\n`)],
  };
}

/** A longer body goes out as it is: to make text of it and bytes again would hold the event loop. */
const JOINED_BYTES_MAX = 4 << 10;

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

/** No row of a part streams its answer. */
function bytesOf(body: Reply['body']): readonly Buffer[] {
  return body === undefined ? [] : (piecesOf(body) as readonly Buffer[]);
}
