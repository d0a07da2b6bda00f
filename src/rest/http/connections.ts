/**
 * Connections: HTTP pipelining limits, the last request of a connection, and detection of stalled connections. Protection against request
 * smuggling: framing is refused that Node's parser accepts and that a proxy may split into other requests; Node's strict parser
 * refuses the rest, test/truth-tables/smuggling.ts has both.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { HEADERS_MAX } from '../../base/input-limits.ts';
import { commonErrors, errorFactory, StorageError } from '../../services/common/errors.ts';

interface Connection {
  readonly socket: Socket;
  unanswered: number;
  newest: { readonly incoming: IncomingMessage; readonly outgoing: ServerResponse } | undefined;
  /** Once set, no further request of the connection may run: the bytes after it may be anything. */
  last: IncomingMessage | undefined;
  /** All of the response to the newest request is written. */
  responseWritten: boolean;
  /** While true, every 'resume' of the socket is undone: the connection is not read until some of its requests have their responses. */
  paused: boolean;
  parserFailed: boolean;
  readonly onAnswered: () => void;
  onAllAnswered: (() => void) | undefined;
  /** The bytes that the client has not received, and since when this number has not changed. */
  stalled: { readonly bytes: number; readonly since: number };
}

interface ConnectionOptions {
  readonly pipelinedMax: number;
  readonly bytesPerSecondMin: number;
  readonly idleMilliseconds: number;
}

const STALL_CHECK_MILLISECONDS = 5_000;
/** One read of the socket can contain many more requests than the limit, but at most this factor more from a well-behaved client. */
const PIPELINE_OVERRUN_FACTOR = 4;

export class Connections {
  readonly #options: ConnectionOptions;
  readonly #connections = new Map<Socket, Connection>();
  readonly #stallTimer: NodeJS.Timeout;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    const interval = Math.min(STALL_CHECK_MILLISECONDS, Math.ceil(options.idleMilliseconds / 4));
    this.#stallTimer = setInterval(() => this.#closeStalled(), interval).unref();
  }

  /** False: the request comes after the last one of its connection, and is neither run nor answered. */
  requestArrived(incoming: IncomingMessage, outgoing: ServerResponse): boolean {
    const { pipelinedMax } = this.#options;
    const connection = this.#connectionFor(incoming.socket);
    if (connection.last) return false;
    connection.unanswered++;
    connection.newest = { incoming, outgoing };
    connection.responseWritten = false;
    outgoing.once('close', connection.onAnswered);
    if (connection.unanswered >= pipelinedMax * PIPELINE_OVERRUN_FACTOR) {
      connection.last = incoming;
      incoming.socket.destroy();
      return false;
    }
    if (connection.unanswered >= pipelinedMax && !connection.paused) {
      connection.paused = true;
      incoming.socket.pause();
    }
    return true;
  }

  /** This request, which has just arrived, is the last of its connection. */
  markLast(incoming: IncomingMessage): void {
    this.#connectionFor(incoming.socket).last = incoming;
  }

  isLast(incoming: IncomingMessage): boolean {
    return this.#connections.get(incoming.socket)?.last === incoming;
  }

  /** All of the response to this request is written, though it may not be ended yet. */
  markResponseWritten(incoming: IncomingMessage): void {
    const connection = this.#connections.get(incoming.socket);
    if (connection?.newest?.incoming === incoming) connection.responseWritten = true;
  }

  /** The bytes that have come are not a request, or the request is not completed in time. `refuse` writes the error response. */
  parserError(socket: Socket, refuse: () => void): void {
    const connection = this.#connectionFor(socket);
    const { newest, unanswered, responseWritten, last } = connection;
    if (connection.parserFailed) return;
    connection.parserFailed = true;
    if (unanswered === 0) refuse();
    else if (responseWritten) {
      // The body of the newest request will not end any more.
      newest!.outgoing.end();
      if (!last) connection.onAllAnswered = refuse;
    }
    // In the middle of a response there is no place for another.
    else if (newest!.outgoing.headersSent) socket.destroy();
    // The responses to earlier requests come first: the client would take this one for the first of them.
    else if (newest!.incoming.complete) connection.onAllAnswered = refuse;
    else if (unanswered === 1) refuse();
    else socket.destroy();
  }

  /** Ends the detection of stalled connections. */
  close(): void {
    clearInterval(this.#stallTimer);
  }

  #connectionFor(socket: Socket): Connection {
    const known = this.#connections.get(socket);
    if (known) return known;
    const connection: Connection = {
      socket,
      unanswered: 0,
      newest: undefined,
      last: undefined,
      responseWritten: false,
      paused: false,
      parserFailed: false,
      onAnswered: () => this.#requestAnswered(connection),
      onAllAnswered: undefined,
      stalled: { bytes: 0, since: 0 },
    };
    this.#connections.set(socket, connection);
    socket.once('close', () => this.#connections.delete(socket));
    // Node resumes reading for reasons of its own: when a body is read, when its own responses are sent.
    socket.on('resume', () => connection.paused && socket.pause());
    return connection;
  }

  #requestAnswered(connection: Connection): void {
    connection.unanswered--;
    if (connection.paused && connection.unanswered <= this.#options.pipelinedMax / 2) {
      connection.paused = false;
      connection.socket.resume();
    }
    if (connection.unanswered === 0) connection.onAllAnswered?.();
  }

  #closeStalled(): void {
    const { idleMilliseconds, bytesPerSecondMin } = this.#options;
    const now = performance.now();
    for (const connection of this.#connections.values()) {
      const { socket, stalled } = connection;
      const bytes = socket.writableLength;
      if (bytes === 0 || bytes !== stalled.bytes) connection.stalled = { bytes, since: now };
      else if (now - stalled.since > idleMilliseconds + (bytes / bytesPerSecondMin) * 1_000) socket.destroy();
    }
  }
}

const fail = errorFactory(commonErrors);

const LENGTH = /^(?:0|[1-9]\d{0,14})$/;
/** A name, which may contain underscores as those of Docker containers do, or an IP address. */
const HOST = /^(?:[\w.-]+|\[[\da-f:.]+(?:%[\w.-]+)?\])(?::\d{1,5})?$/i;
const ABSOLUTE = /^https?:\/\/([^/?#]*)/i;
/** A body of these methods has no meaning; some parsers skip it and some do not. */
const METHODS_WITHOUT_BODY = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE']);

/** The error of a request after which nothing on its connection can be trusted; undefined: its framing is unambiguous. */
export function framingFault(incoming: IncomingMessage, urlBytesMax: number): StorageError | undefined {
  const { method = '', url = '', rawHeaders, httpVersion } = incoming;
  if (rawHeaders.length > 2 * HEADERS_MAX) return tooManyHeaders();
  // Node parses the raw headers on first access: after the check of their number.
  const { headers } = incoming;
  if (httpVersion !== '1.1' && httpVersion !== '1.0') {
    return fail('InvalidInput', undefined, `HTTP/${httpVersion} is not spoken here.`);
  }
  const coding = headers['transfer-encoding'];
  if (coding !== undefined) {
    if (httpVersion === '1.0' || coding.trim().toLowerCase() !== 'chunked')
      return badHeader('Transfer-Encoding', coding);
  }
  const length = headers['content-length'];
  if (length !== undefined && (!LENGTH.test(length) || (length !== '0' && METHODS_WITHOUT_BODY.has(method)))) {
    return badHeader('Content-Length', length);
  }
  return hostFault(incoming) ?? targetFault(url, method, headers.host, urlBytesMax);
}

/**
 * Whether the request is the last of its connection, though it gets its reply. No operation accepts a chunked body, like none of Azure's,
 * and reading the chunks to their end is not worth it. Bytes after a request for an upgrade are dropped by Node.
 */
export function endsConnection({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || headers.upgrade !== undefined;
}

/** Whether a body follows the headers. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
}

/** Of several Host headers Node keeps the first. */
function hostFault({ rawHeaders, headers: { host }, httpVersion }: IncomingMessage): StorageError | undefined {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!;
    if (name.length === 4 && name.toLowerCase() === 'host') count++;
  }
  if (count === 0 && httpVersion === '1.0') return undefined;
  if (count === 0) return fail('MissingRequiredHeader', { HeaderName: 'Host' });
  return count > 1 || !HOST.test(host!) ? badHeader('Host', host!) : undefined;
}

function targetFault(
  url: string,
  method: string,
  host: string | undefined,
  urlBytesMax: number,
): StorageError | undefined {
  if (url.length > urlBytesMax) {
    return new StorageError('InvalidUri', 414, `The URL is longer than ${urlBytesMax} bytes.`);
  }
  if (method === 'TRACE') return fail('UnsupportedHttpVerb');
  if (url.includes('#')) return fail('InvalidUri');
  if (url.startsWith('/')) return undefined;
  const authority = ABSOLUTE.exec(url)?.[1];
  return authority === undefined || authority.toLowerCase() !== host?.toLowerCase() ? fail('InvalidUri') : undefined;
}

function tooManyHeaders(): StorageError {
  return new StorageError('RequestHeaderFieldsTooLarge', 431, `The request has more than ${HEADERS_MAX} headers.`);
}

function badHeader(name: string, value: string): StorageError {
  return fail('InvalidHeaderValue', { HeaderName: name, HeaderValue: value });
}

/** More than this takes part of a millisecond to authenticate and parse. */
const LARGE_HEAD_LENGTH = 8 << 10;

/** Whether the head is so long that it is work for a slice of its own. */
export function hasLargeHead({ url = '', rawHeaders }: IncomingMessage): boolean {
  let length = url.length;
  for (const text of rawHeaders) length += text.length;
  return length > LARGE_HEAD_LENGTH;
}
