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
  for (const { sent, reply } of parts) text += `${start}${headOf(sent, reply)}${textOf(reply.body)}\r\n`;
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

function headOf(sent: Headers, { status, headers = {}, body }: Reply): string {
  const contentId = sent['content-id'];
  const applied = headers['Preference-Applied'];
  let text = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`;
  if (contentId !== undefined) text += `Content-ID: ${contentId}\r\n`;
  text += COMMON_LINES;
  if (applied !== undefined) text += `Preference-Applied: ${applied}\r\n`;
  text += `DataServiceVersion: ${body !== undefined || headers.Location !== undefined ? '3.0;' : '1.0;'}\r\n`;
  for (const name in headers) {
    const value = headers[name];
    if (value !== undefined && !FIRST.has(name)) text += `${name}: ${value}\r\n`;
  }
  return `${text}\r\n`;
}

function textOf(body: Reply['body']): string {
  if (body === undefined) return '';
  // No row of a part streams its answer.
  if (typeof body === 'string') return body;
  const { buffer, byteOffset, byteLength } = body as Uint8Array;
  return Buffer.from(buffer, byteOffset, byteLength).toString();
}
