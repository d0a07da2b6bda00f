/** Replies: made of outputs and StorageErrors as status, headers and XML, and written to the response. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { formatIso7, formatRfc1123 } from '../base/time.ts';
import { escapeXml } from '../base/xml.ts';
import type { StorageError } from '../services/common/errors.ts';
import { bearerChallenge } from './auth/bearer.ts';
import { prepend, SLICE_BYTES, type StreamedDocument, streamSlices } from './http/streamed.ts';

/** Metadata as stored: the case of the names is kept. */
type StoredMetadata = Readonly<Record<string, string>>;

export interface Reply {
  readonly status: number;
  /** Undefined values are left out. The server adds request id, date, version, length of the body and the other common headers. */
  readonly headers?: Readonly<Record<string, string | number | undefined>>;
  /** A stream is sent with back-pressure and always released; its row sets Content-Length or Transfer-Encoding. */
  readonly body?: string | Uint8Array | StreamedDocument | undefined;
  /** The reason phrase of the status line, where it is not the default one. */
  readonly reason?: string;
}

/** Every XML reply of Azure begins with a byte order mark. It is kept as bytes: in a string it would make V8 use two bytes per character. */
const XML_START = Buffer.from('\ufeff<?xml version="1.0" encoding="utf-8"?>');

export function xmlReply(status: number, xml: string, headers?: Reply['headers']): Reply {
  const body = Buffer.concat([XML_START, Buffer.from(xml)]);
  return { status, headers: { 'Content-Type': 'application/xml', ...headers }, body };
}

/** A long document in the pieces in which it was produced: joining them would block the event loop. */
export function streamedXmlReply(status: number, pieces: StreamedDocument): Reply {
  const body = prepend(XML_START, pieces);
  const coding = Symbol.asyncIterator in body ? { 'Transfer-Encoding': 'chunked' } : undefined;
  return { status, headers: { 'Content-Type': 'application/xml', ...coding }, body };
}

/** Headers that a row adds to, one by one. */
export type ReplyHeaders = Record<string, string | number | undefined>;

/** ETag and Last-Modified, and more. A property after a spread costs ten times as much as one before it. */
export function validatorHeaders<More extends object>(
  found: { readonly etag: string; readonly modified: bigint },
  more?: More,
) {
  return { ETag: `"${found.etag}"`, 'Last-Modified': formatRfc1123(found.modified), ...more };
}

export function metadataHeaders(metadata: StoredMetadata): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const name in metadata) headers[`x-ms-meta-${name}`] = metadata[name]!;
  return headers;
}

/** The headers of an error that are the same in every service. */
export function errorHeaders(error: StorageError): Record<string, string | number | undefined> {
  return {
    'Retry-After': error.retryAfterSeconds,
    // RFC 9110 asks for a challenge with every 401.
    'WWW-Authenticate': error.status === 401 ? bearerChallenge() : undefined,
    ...error.headers,
  };
}

/** An error as the Blob, Queue and File services send it: XML. */
export function errorReply(
  error: StorageError,
  requestId: string,
  now: bigint,
  { method }: Pick<IncomingMessage, 'method'>,
): Reply {
  const headers = { ...errorHeaders(error), 'x-ms-error-code': error.code };
  const reason = reasonPhrase(error.message);
  if (error.status === 304) return { status: 304, headers, reason };
  if (method === 'HEAD')
    return { status: error.status, headers: { ...headers, 'Transfer-Encoding': 'chunked' }, reason };
  let details = '';
  for (const name in error.details) details += `<${name}>${escapeXml(error.details[name]!)}</${name}>`;
  const message = `${error.message}\nRequestId:${requestId}\nTime:${formatIso7(now)}`;
  const xml = `<Error><Code>${error.code}</Code><Message>${escapeXml(message)}</Message>${details}</Error>`;
  return { ...xmlReply(error.status, xml, headers), reason };
}

/** A status line is one line of printable ASCII. */
function reasonPhrase(message: string): string {
  const lineEnd = message.indexOf('\n');
  const line = lineEnd < 0 ? message : message.slice(0, lineEnd);
  return line.replace(/[^\x20-\x7e]/g, '?').slice(0, 512);
}

interface SendOptions {
  readonly id: string;
  readonly now: bigint;
  readonly serverName: string;
  /** Whether the connection is closed after this reply. */
  readonly close: boolean;
  /** Otherwise the caller ends the response. */
  readonly endsResponse: boolean;
}

const CLIENT_REQUEST_ID_MAX = 1024;
/** A body of at most this many bytes is sent in one write with its headers. */
const ONE_WRITE_BYTES_MAX = 16 * 1024;

/** Headers are passed as one flat array, which Node writes without validating each again, in one write with a small body. */
export function sendReply(
  outgoing: ServerResponse,
  incoming: IncomingMessage,
  reply: Reply,
  options: SendOptions,
): void {
  const length = bodyLength(reply.body);
  const headers: string[] = [
    'Server',
    options.serverName,
    'x-ms-request-id',
    options.id,
    'Date',
    formatRfc1123(options.now),
  ];
  const version = incoming.headers['x-ms-version'];
  if (typeof version === 'string') headers.push('x-ms-version', version);
  const clientId = echoedClientId(incoming.headers);
  if (clientId !== undefined) headers.push('x-ms-client-request-id', clientId);
  if (options.close) headers.push('Connection', 'close');
  let hasLength = reply.status === 304;
  for (const name in reply.headers) {
    const value = reply.headers[name];
    if (value === undefined) continue;
    headers.push(name, String(value));
    if (name === 'Content-Length' || name === 'Transfer-Encoding') hasLength = true;
  }
  if (!hasLength) headers.push('Content-Length', String(length));
  outgoing.sendDate = false;
  if (reply.reason === undefined) outgoing.writeHead(reply.status, headers);
  else outgoing.writeHead(reply.status, reply.reason, headers);
  if (length === 0 || incoming.method === 'HEAD') {
    if (options.endsResponse) outgoing.end();
  } else if (length <= ONE_WRITE_BYTES_MAX) {
    outgoing.write(toLatin1(reply.body!, length), 'latin1');
    // Node writes in the next tick. The end comes after that: before it, the kernel would get two pieces to gather.
    if (options.endsResponse) process.nextTick(end, outgoing);
  } else {
    for (const piece of bodyPieces(reply.body!)) outgoing.write(piece);
    if (options.endsResponse) outgoing.end();
  }
}

/** The x-ms-client-request-id of a request, which its reply has, too. */
export function echoedClientId({ 'x-ms-client-request-id': id }: IncomingMessage['headers']): string | undefined {
  return typeof id === 'string' && id.length <= CLIENT_REQUEST_ID_MAX ? id : undefined;
}

/** The headers of a reply that is part of another one. */
export function headerLines(headers: NonNullable<Reply['headers']>, without?: ReadonlySet<string>): string {
  let text = '';
  for (const name in headers) {
    const value = headers[name];
    if (value !== undefined && !without?.has(name)) text += `${name}: ${value}\r\n`;
  }
  return text;
}

/** In bytes; 0 for a stream, which sendReply does not send. */
export function bodyLength(body: Reply['body']): number {
  if (body === undefined) return 0;
  if (typeof body === 'string') return Buffer.byteLength(body);
  if (body instanceof Uint8Array) return body.length;
  return Symbol.asyncIterator in body ? 0 : body.reduce((sum, piece) => sum + piece.length, 0);
}

type Body = NonNullable<Reply['body']>;

/** Empty for a stream. */
export function bodyPieces(body: Body): readonly Uint8Array[] {
  if (typeof body === 'string') return [Buffer.from(body)];
  if (body instanceof Uint8Array) return [body];
  return Symbol.asyncIterator in body ? [] : body;
}

function end(outgoing: ServerResponse): void {
  outgoing.end();
}

/** As a latin1 string, one character per byte like the headers, a body joins the headers in Node's buffer. */
function toLatin1(body: Body, length: number): string {
  // As many bytes as characters: all of it is ASCII.
  if (typeof body === 'string' && body.length === length) return body;
  return (Buffer.isBuffer(body) ? body : Buffer.concat(bodyPieces(body))).toString('latin1');
}

/** Estimated sizes of replies that are produced whole: this many bytes of the budget are reserved before the operation runs. */
const KIB = 1 << 10;
const RESULTS_MAX = 5_000;
/** Metadata of one container, queue or blob. */
const METADATA_BYTES_MAX = 8 * KIB;
const MESSAGE_BYTES_MAX = 64 * KIB;

/** Few pages are larger. */
export const PAGE_BYTES = 2_048 * KIB;
const METADATA_PAGE_BYTES = 16_384 * KIB;

interface Listing {
  readonly resultsMax: number | undefined;
  readonly include: readonly string[];
}

export function estimateListBytes({ resultsMax = RESULTS_MAX, include }: Listing): number {
  const most = include.includes('metadata') ? METADATA_PAGE_BYTES : PAGE_BYTES;
  return Math.min(most, resultsMax * METADATA_BYTES_MAX);
}

export function estimateMessagesBytes({ messageCount = 1 }: { readonly messageCount: number | undefined }): number {
  return messageCount * MESSAGE_BYTES_MAX;
}

export function isStream(body: Reply['body']): body is AsyncIterable<Uint8Array> {
  return typeof body === 'object' && !(body instanceof Uint8Array) && Symbol.asyncIterator in body;
}

/** More than the system's socket buffer takes at once: a client may never receive it. */
const UNSTREAMED_BYTES_MAX = 256 << 10;
/** A large reply is sent as a stream, so that a client that does not receive it is detected. */
export function streamIfLarge(reply: Reply): Reply {
  const { body, headers } = reply;
  if (body === undefined || isStream(body)) return reply;
  const length = bodyLength(body);
  if (length <= UNSTREAMED_BYTES_MAX) return reply;
  const pieces = streamSlices(bodyPieces(body), SLICE_BYTES);
  return { ...reply, headers: { ...headers, 'Content-Length': length }, body: pieces };
}
