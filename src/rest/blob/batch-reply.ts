/** The reply to a Blob Batch: one part for each part of the request, in their order. */
import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Request } from '../operation.ts';
import { bodyLength, bodyPieces, echoedClientId, headerLines, type Reply } from '../reply.ts';

export interface BlobPartReply {
  readonly id: string;
  /** Undefined: the reply is to the batch as a whole. */
  readonly contentId?: string;
  /** Of the request. */
  readonly headers: Request['headers'];
  readonly reply: Reply;
}

export function batchReply(parts: readonly BlobPartReply[], version: string): Reply {
  const boundary = `batchresponse_${randomUUID()}`;
  const body = parts.flatMap((part) => [
    Buffer.from(`--${boundary}\r\n${partHead(part, version)}\r\n`),
    ...partBody(part.reply),
  ]);
  return {
    status: 202,
    headers: { 'Content-Type': `multipart/mixed; boundary=${boundary}` },
    body: [...body, Buffer.from(`--${boundary}--`)],
  };
}

function partHead({ id, contentId, headers, reply }: BlobPartReply, version: string): string {
  const { 'Content-Type': type, ...others } = reply.headers ?? {};
  const partHeaders = headerLines({ 'Content-Type': 'application/http', 'Content-ID': contentId });
  const requestHeaders = headerLines({
    ...others,
    'x-ms-request-id': id,
    'x-ms-version': version || undefined,
    'x-ms-client-request-id': echoedClientId(headers),
    'Content-Length': reply.body === undefined ? undefined : bodyLength(reply.body),
    'Content-Type': type,
    Server: 'Windows-Azure-Blob/1.0',
  });
  return `${partHeaders}\r\nHTTP/1.1 ${reply.status} ${reply.reason ?? STATUS_CODES[reply.status]}\r\n${requestHeaders}`;
}

/** Operations that can be parts do not stream their replies. */
function partBody({ body }: Reply): readonly Uint8Array[] {
  return body === undefined ? [] : [...bodyPieces(body), LINE_BREAK];
}

const LINE_BREAK = Buffer.from('\r\n');
