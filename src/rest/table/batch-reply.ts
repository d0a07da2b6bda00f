/** The answers to the parts of a transaction, as one. */
import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Reply } from '../reply.ts';
import type { Part } from './batch-request.ts';
import { COMMON_HEADERS } from './formats.ts';

export interface PartReply {
  readonly part: Part;
  readonly reply: Reply;
}

/** `isSet`: they answer changes, not a query. */
export function batchReply(parts: readonly PartReply[], isSet: boolean): Reply {
  const batch = `batchresponse_${randomUUID()}`;
  const inner = isSet ? `changesetresponse_${randomUUID()}` : batch;
  const pieces = parts.flatMap(({ part, reply }) => [
    Buffer.from(
      `--${inner}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n${headOf(part, reply)}`,
    ),
    bytesOf(reply.body),
    LINE_END,
  ]);
  const start = isSet ? `--${batch}\r\nContent-Type: multipart/mixed; boundary=${inner}\r\n\r\n` : '';
  const end = isSet ? `--${inner}--\r\n` : '';
  return {
    status: 202,
    headers: { ...COMMON_HEADERS, 'Content-Type': `multipart/mixed; boundary=${batch}` },
    body: Buffer.concat([Buffer.from(start), ...pieces, Buffer.from(`${end}--${batch}--\r\n`)]),
  };
}

const LINE_END = Buffer.from('\r\n');

function headOf({ headers: sent }: Part, { status, headers = {}, body }: Reply): string {
  const { 'Preference-Applied': applied, ...more } = headers;
  const all = {
    'Content-ID': sent['content-id'],
    ...COMMON_HEADERS,
    'Preference-Applied': applied,
    DataServiceVersion: body !== undefined || headers.Location !== undefined ? '3.0;' : '1.0;',
    ...more,
  };
  let text = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`;
  for (const [name, value] of Object.entries(all)) if (value !== undefined) text += `${name}: ${value}\r\n`;
  return `${text}\r\n`;
}

function bytesOf(body: Reply['body']): Uint8Array {
  if (body === undefined) return Buffer.alloc(0);
  // No row of a part streams its answer.
  return typeof body === 'string' ? Buffer.from(body) : (body as Uint8Array);
}
