/** The reply to a Blob Batch: one part for each part of the request, in their order. */
import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Request } from '../operation.ts';
import { bodyLength, bodyPieces, echoedClientId, headerLines, type Reply } from '../reply.ts';

/** All of a part but its boundary. */
export type FormattedPart = readonly Uint8Array[];

/** `contentId`: undefined in the only part, which answers the batch as a whole. */
export function formatPart(
  { id, headers, version }: Request,
  reply: Reply,
  contentId: string | undefined,
): FormattedPart {
  const partHeaders = headerLines({ 'Content-Type': 'application/http', 'Content-ID': contentId });
  const replyHeaders = headerLines(reply.headers ?? {}, PUT_LAST);
  const commonHeaders = headerLines({
    'x-ms-request-id': id,
    'x-ms-version': version || undefined,
    'x-ms-client-request-id': echoedClientId(headers),
    'Content-Length': reply.body === undefined ? undefined : bodyLength(reply.body),
    'Content-Type': reply.headers?.['Content-Type'],
    Server: 'Windows-Azure-Blob/1.0',
  });
  const statusLine = `HTTP/1.1 ${reply.status} ${reply.reason ?? STATUS_CODES[reply.status]}\r\n`;
  const head = Buffer.from(`${partHeaders}\r\n${statusLine}${replyHeaders}${commonHeaders}\r\n`);
  // Operations that can be parts do not stream their replies.
  return reply.body === undefined ? [head] : [head, ...bodyPieces(reply.body), LINE_BREAK];
}

const PUT_LAST = new Set(['Content-Type']);
const LINE_BREAK = Buffer.from('\r\n');

export function batchReply(parts: readonly FormattedPart[]): Reply {
  const boundary = `batchresponse_${randomUUID()}`;
  const delimiter = Buffer.from(`--${boundary}\r\n`);
  return {
    status: 202,
    headers: { 'Content-Type': `multipart/mixed; boundary=${boundary}` },
    body: [...parts.flatMap((part) => [delimiter, ...part]), Buffer.from(`--${boundary}--`)],
  };
}
