/** Connections, and the life of a request on them: taken up, answered (answering.ts), sent, logged. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { HEADERS_MAX } from '../../base/input-limits.ts';
import type { Log } from '../../base/log.ts';
import { asStorageError, commonErrors, raising, StorageError } from '../../services/common/errors.ts';
import type { Account } from '../auth/shared-key.ts';
import { type Analytics, answeredOf, bodyBytesOf } from '../logging/analytics-record.ts';
import { requestLogOf } from '../logging/request-log.ts';
import { type AnsweringOptions, answeringOf } from '../pipeline.ts';
import { lengthOf, type Reply, sendReply } from '../reply.ts';
import { type Exchange, exchangeOf } from '../request-context.ts';
import { type BodyMemory, createBodyMemory, Share } from './byte-budget.ts';
import { connectionsOf } from './connections.ts';
import { endsConnection, framingFault, hasBody } from './framing.ts';
import { HEADERS_BYTES_MAX, LIMITS, type Limits, serverBusy } from './limits.ts';
import { IDLE_MILLISECONDS, waitFor } from './min-rate.ts';
import {
  type BodyStream,
  dropWithin,
  Gone,
  isBurdened,
  joined,
  LINGER_MILLISECONDS,
  linger,
  streamBody,
} from './request-body.ts';
import { type Download, downloadOf, isStream, mustFit, streamedIfLarge } from './response-stream.ts';
import { createServer, type TlsOptions } from './tls.ts';

const fail = raising(commonErrors);
const SLOW_MILLISECONDS = 1_000;
/** Answers of no more bytes are most of them, and gone with one write. */
const UNCOUNTED_BYTES_MAX = 16 << 10;
/** More would hold the event loop too long; fewer while connections are accepted, of which Node takes one a turn. */
const TOGETHER_MAX = 64;
const TOGETHER_MAX_ACCEPTING = 4;
/** Connections that the system keeps until they are taken; what comes beyond must try again seconds later. */
const BACKLOG = 4_096;
/** How long what was cut may take to put its things in order. */
const SETTLE_MILLISECONDS = 2_000;

export interface RestServerOptions<Context, Known extends Account = Account> extends AnsweringOptions<Context, Known> {
  readonly log: Log;
  readonly analytics?: Analytics;
  /** For HTTPS. */
  readonly tls?: TlsOptions | undefined;
  readonly keepAliveSeconds?: number;
  /** How long a client may be silent in the middle of a body, its own or the one that it is sent. */
  readonly idleMilliseconds?: number;
  /** How much slowness of a body adds up to before its connection is cut. */
  readonly patienceMilliseconds?: number;
  readonly limits?: Partial<Limits>;
  /** Shared with other servers of the process; without it `limits.bodyBytesMax` is for this one. */
  readonly memory?: BodyMemory;
}

export interface RestServer {
  /** Returns the port, which differs from the one asked for if that was 0. */
  listen(port: number, host: string): Promise<number>;
  /** Takes no more requests, finishes the running ones, and after this time cuts what is left, streams too. */
  close(graceMilliseconds?: number): Promise<void>;
}

export function createRestServer<Context, Known extends Account>(
  options: RestServerOptions<Context, Known>,
): RestServer {
  const { log, now, analytics, idleMilliseconds = IDLE_MILLISECONDS } = options;
  const { service, serverName, errorReply, headers: always } = options.front;
  const limits: Limits = { ...LIMITS, ...options.limits };
  const answer = answeringOf(options, comingBody, roomForAnswer);
  const requests = requestLogOf(log);
  const connections = connectionsOf({ ...limits, idleMilliseconds });
  const memory = options.memory ?? createBodyMemory(limits.bodyBytesMax);
  const { patienceMilliseconds = IDLE_MILLISECONDS } = options;
  const bodyOptions = { ...limits, idleMilliseconds, memory, patienceMilliseconds };
  let closing = false;
  /** Requests that have arrived and are not answered yet. */
  let open = 0;
  /** Requests whose body or answer streams: they hold things of the services. */
  const streaming = new Set<Exchange>();
  let settled = () => {};

  async function handle(exchange: Exchange): Promise<void> {
    const started = performance.now();
    let reply: Reply;
    let download: Download | undefined;
    try {
      reply = streamedIfLarge(await answer(exchange));
      if (reply.status === 401 || reply.status === 403) requests.refused(exchange, reply.headers?.['x-ms-error-code']);
      if (isStream(reply.body)) download = await begin(exchange, reply, reply.body);
      else countUntilTaken(exchange, lengthOf(reply.body));
    } catch (error) {
      exchange.answerShare.set(0);
      if (error instanceof Gone) {
        if (analytics?.isOn) tell(exchange, started, performance.now() - started, undefined, 0);
        return wentAway(exchange);
      }
      reply = refuse(error, exchange);
    }
    const waited = exchange.body?.waitedMilliseconds() ?? 0;
    const serverMilliseconds = performance.now() - started - waited;
    const slow = serverMilliseconds > SLOW_MILLISECONDS;
    const asMeant = send(exchange, reply, download);
    if (download && !asMeant) await download.release();
    else if (download && !(await stream(exchange, download))) {
      if (analytics?.isOn) tell(exchange, started, serverMilliseconds, undefined, download.bytesSent());
      return;
    }
    if (slow) requests.slow(exchange, reply, started, download?.bytesSent());
    else requests.answered(exchange, reply, started, download?.bytesSent());
    if (analytics?.isOn) {
      const bytes = download?.bytesSent() ?? bodyBytesOf(reply, exchange.incoming.method);
      tell(exchange, started, serverMilliseconds, reply, bytes);
    }
  }

  function tell(
    exchange: Exchange,
    started: number,
    serverMilliseconds: number,
    reply: Reply | undefined,
    bytes: number,
  ) {
    const timing = { now: now(), milliseconds: performance.now() - started, serverMilliseconds };
    const answered = answeredOf(exchange, service, reply, bytes, timing);
    if (answered) analytics!.answered(answered);
  }

  async function comingBody(exchange: Exchange, length: number, whole: boolean): Promise<Buffer | BodyStream> {
    if (whole) return await whileWaiting(wholeBody(exchange, length));
    if (memory.isFull()) throw serverBusy();
    exchange.body = streamBody(exchange.incoming, length, bodyOptions);
    streaming.add(exchange);
    return exchange.body;
  }

  async function wholeBody(exchange: Exchange, length: number): Promise<Buffer> {
    if (!(await memory.reserve(length))) throw serverBusy();
    exchange.body = streamBody(exchange.incoming, length, { ...bodyOptions, isKept: true });
    return await joined(exchange.body, length);
  }

  async function roomForAnswer({ incoming, answerShare }: Exchange, bytes: number): Promise<void> {
    if (!(await answerShare.reserve(bytes))) throw serverBusy();
    if (incoming.socket.destroyed) throw new Gone('the connection broke while its request waited for room');
  }

  /** Of an answer that goes out at once: the client may leave it lying. */
  function countUntilTaken({ incoming, outgoing, answerShare }: Exchange, bytes: number): void {
    const { socket } = incoming;
    const isCounted = bytes > UNCOUNTED_BYTES_MAX && !socket.destroyed;
    if (isCounted && mustFit(incoming, answerShare) && memory.isFull()) throw serverBusy();
    answerShare.set(isCounted ? bytes : 0);
    if (isCounted) void waitFor(outgoing, 'close', socket).over.then(() => answerShare.set(0));
  }

  /** Who waits for a client does not run. */
  async function whileWaiting<T>(body: Promise<T>): Promise<T> {
    open--;
    try {
      return await body;
    } finally {
      open++;
    }
  }

  /** The first piece of a streamed answer, or what is wrong with it. */
  async function begin(exchange: Exchange, reply: Reply, body: AsyncIterable<Uint8Array>): Promise<Download> {
    const { incoming, outgoing } = exchange;
    streaming.add(exchange);
    const download = downloadOf(body, reply, incoming, outgoing, bodyOptions, exchange.answerShare);
    await download.begin();
    return download;
  }

  /** The rest of a streamed answer. Whether all of it was sent. */
  async function stream(exchange: Exchange, download: Download): Promise<boolean> {
    const { incoming, outgoing } = exchange;
    try {
      await download.send();
      connections.says(incoming);
      if (exchange.burdened) linger(incoming, outgoing, memory);
      else await download.end();
      return true;
    } catch (error) {
      const bytes = download.bytesSent();
      outgoing.destroy();
      if (error instanceof Gone) wentAway(exchange, bytes);
      else requests.failed(exchange, error, { bytes });
      return false;
    }
  }

  function wentAway(exchange: Exchange, bytes?: number): void {
    exchange.incoming.socket.destroy();
    exchange.body?.letGo();
    requests.wentAway(exchange, bytes);
  }

  /** A StorageError is an answer, anything else is a bug, or damage. */
  function refuse(error: unknown, exchange: Exchange): Reply {
    const { incoming, id } = exchange;
    let known = asStorageError(error);
    if (!known) {
      known = fail('InternalError');
      requests.failed(exchange, error);
    } else if (isOfIdentity(known)) {
      requests.refused(exchange, known.code, known.details);
    }
    exchange.code = known.code;
    return errorReply(known, id, now(), incoming);
  }

  /** Of a streamed answer the head. Whether it could be sent as it was meant. */
  function send(exchange: Exchange, answered: Reply, download: Download | undefined): boolean {
    const { incoming, outgoing, id, awaitsContinue, body, besides } = exchange;
    const reply =
      besides || always
        ? { ...answered, headers: { ...always, ...answered.headers, ...besides?.(answered) } }
        : answered;
    const burdened = isBurdened(incoming, body);
    body?.letGo();
    exchange.burdened = burdened;
    if (!burdened && !incoming.complete) dropWithin(incoming, idleMilliseconds);
    const close = closing || burdened || awaitsContinue || connections.isLast(incoming);
    const sending = { id, now: now(), serverName, close, last: !burdened && !download };
    if (!download) connections.says(incoming);
    try {
      sendReply(outgoing, incoming, reply, sending);
      if (burdened && !download) linger(incoming, outgoing, memory);
      return true;
    } catch (error) {
      // A header that HTTP cannot carry. Nothing has been sent yet.
      sendReply(outgoing, incoming, refuse(error, exchange), { ...sending, close: true, last: !burdened });
      if (burdened) linger(incoming, outgoing, memory);
      return false;
    }
  }

  const httpOptions = {
    maxHeaderSize: HEADERS_BYTES_MAX,
    insecureHTTPParser: false,
    // Node would refuse the request, and run the one behind it.
    requireHostHeader: false,
    headersTimeout: limits.headersMilliseconds,
    connectionsCheckingInterval: Math.ceil(limits.headersMilliseconds / 4),
    // Of the whole request: an honest upload may take hours. Silence in the middle of a body is watched in patience.ts.
    requestTimeout: 0,
    keepAliveTimeout: (options.keepAliveSeconds ?? 5) * 1_000,
  };
  const server = createServer(options.tls, httpOptions, log);
  // Node drops further headers without a word; with one more than the bound, framing.ts refuses the request.
  server.maxHeadersCount = HEADERS_MAX + 1;
  server.maxConnections = limits.connectionsMax;
  async function take(exchange: Exchange): Promise<void> {
    try {
      await handle(exchange);
    } catch (error) {
      // What fails even to be refused must end neither the process nor the connections of others.
      requests.failed(exchange, error);
      exchange.outgoing.destroy();
    }
    open--;
    if (streaming.delete(exchange) && streaming.size === 0) settled();
  }
  // Requests that arrive in one turn of the event loop go through each stage together, which costs less CPU: docs/adr/0003.
  const arrived: Exchange[] = [];
  const takeTogether = (): void => {
    for (const exchange of arrived.splice(0, memory.isAccepting() ? TOGETHER_MAX_ACCEPTING : TOGETHER_MAX))
      void take(exchange);
    if (arrived.length > 0) setImmediate(takeTogether);
  };
  function arrive(incoming: IncomingMessage, outgoing: ServerResponse, awaitsContinue: boolean, fault?: StorageError) {
    if (!connections.arrives(incoming, outgoing)) return;
    const exchange = exchangeOf(incoming, outgoing, awaitsContinue, new Share(memory));
    const refusal = framingFault(incoming, limits.urlBytesMax) ?? fault;
    // Before the parser goes on: what it finds next is not to be run.
    if (refusal || endsConnection(incoming)) connections.endWith(incoming);
    if (refusal) refuseAtOnce(exchange, refusal);
    else if (open - streaming.size >= limits.runningMax) refuseAtOnce(exchange, serverBusy());
    else {
      open++;
      if (arrived.push(exchange) > 1) return;
      // Who is alone has nobody to go with. A body is whole only at the end of the turn.
      if (sockets.size === 1 && !hasBody(incoming)) process.nextTick(takeTogether);
      else setImmediate(takeTogether);
    }
  }
  function refuseAtOnce(exchange: Exchange, error: StorageError): void {
    const reply = refuse(error, exchange);
    try {
      send(exchange, reply, undefined);
      requests.answered(exchange, reply, performance.now());
    } catch {
      exchange.outgoing.destroy();
    }
  }
  server.on('request', (incoming, outgoing) => arrive(incoming, outgoing, false));
  server.on('checkContinue', (incoming, outgoing) => arrive(incoming, outgoing, true));
  server.on('checkExpectation', (incoming, outgoing) => arrive(incoming, outgoing, false, unmetExpectation(incoming)));
  server.on('connect', (_incoming, socket: Socket) => refuseBytes('405 Method Not Allowed', socket));
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) =>
    connections.fail(socket, () => refuseBytes(STATUS_OF[error.code ?? ''] ?? '400 Bad Request', socket)),
  );
  server.on('drop', () => log.debug({ connections: limits.connectionsMax }, 'too many connections'));
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    memory.accepted();
    sockets.add(socket);
    // Each of the streams that were asked for at once, one behind the other, waits for its end.
    socket.setMaxListeners(0);
    socket.once('close', () => sockets.delete(socket));
  });
  function closeIdle(): void {
    server.closeIdleConnections();
    // A connection that has not said a word yet is none of these to Node.
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
  }

  return {
    listen: (port, host) =>
      new Promise((resolve, reject) => {
        server.once('error', reject);
        server.listen(port, host, BACKLOG, () => {
          server.off('error', reject);
          resolve((server.address() as AddressInfo).port);
        });
      }),
    close: async (graceMilliseconds = 10_000) => {
      closing = true;
      connections.close();
      await new Promise<void>((resolve) => {
        const idle = setInterval(closeIdle, 50);
        const cut = setTimeout(() => server.closeAllConnections(), graceMilliseconds);
        server.close(() => {
          clearInterval(idle);
          clearTimeout(cut);
          resolve();
        });
        closeIdle();
      });
      if (streaming.size === 0) return;
      await new Promise<void>((resolve) => {
        settled = resolve;
        setTimeout(resolve, SETTLE_MILLISECONDS).unref();
      });
    },
  };
}

/** Whether the caller was not let in, rather than asked for something that cannot be. */
function isOfIdentity({ status, code }: StorageError): boolean {
  return status === 401 || status === 403 || code === 'InvalidAuthenticationInfo';
}

function unmetExpectation({ headers: { expect } }: IncomingMessage): StorageError {
  return new StorageError('InvalidHeaderValue', 417, `The expectation ${expect} cannot be met.`);
}

/** Of what is not HTTP, or too long or too slow to be taken for it. */
const STATUS_OF: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};

/** Closing at once would reset a client that still sends, and waiting for it to close would be waiting for ever. */
function refuseBytes(status: string, socket: Socket): void {
  if (!socket.writable) return void socket.destroy();
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  const timer = setTimeout(() => socket.destroy(), LINGER_MILLISECONDS).unref();
  socket.once('close', () => clearTimeout(timer));
  socket.resume();
}
