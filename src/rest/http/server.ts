/** Connections, and the life of a request on them: taken up, answered (answering.ts), sent, logged. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { HEADERS_MAX } from '../../base/input-limits.ts';
import type { Log } from '../../base/log.ts';
import { asStorageError, commonErrors, errorFactory, StorageError } from '../../services/common/errors.ts';
import type { Account } from '../auth/shared-key.ts';
import { type Analytics, buildAccessRecord, sentBodyBytes } from '../logging/analytics-record.ts';
import { createRequestLog } from '../logging/request-log.ts';
import { createPipeline, type PipelineOptions } from '../pipeline.ts';
import { bodyLength, type Reply, sendReply } from '../reply.ts';
import { createRequestContext, type RequestContext } from '../request-context.ts';
import { BudgetShare, type ByteBudget, createByteBudget } from './byte-budget.ts';
import { trackConnections } from './connections.ts';
import { endsConnection, framingFault, hasBody } from './framing.ts';
import { HEADERS_BYTES_MAX, LIMITS, type Limits, serverBusy } from './limits.ts';
import { IDLE_MILLISECONDS, waitForEvent } from './min-rate.ts';
import {
  type BodyStream,
  ClientDisconnected,
  concatBody,
  drainWithin,
  hasUnreadBody,
  LINGER_MILLISECONDS,
  lingeringClose,
  streamBody,
} from './request-body.ts';
import {
  createResponseStream,
  isBudgetChecked,
  isStream,
  type ResponseStream,
  streamIfLarge,
} from './response-stream.ts';
import { createHttpServer, type TlsOptions } from './tls.ts';

const fail = errorFactory(commonErrors);
const SLOW_MILLISECONDS = 1_000;
/** Answers of no more bytes are most of them, and gone with one write. */
const UNCHARGED_BYTES_MAX = 16 << 10;
/** More would hold the event loop too long; fewer while connections are accepted, of which Node takes one a turn. */
const BATCH_MAX = 64;
const BATCH_MAX_ACCEPTING = 4;
/** Connections that the system keeps until they are taken; what comes beyond must try again seconds later. */
const BACKLOG = 4_096;
/** How long what was cut may take to put its things in order. */
const SETTLE_MILLISECONDS = 2_000;

export interface RestServerOptions<Context, Known extends Account = Account> extends PipelineOptions<Context, Known> {
  readonly log: Log;
  readonly analytics?: Analytics;
  /** For HTTPS. */
  readonly tls?: TlsOptions | undefined;
  readonly keepAliveSeconds?: number;
  /** How long a client may be silent in the middle of a body, its own or the one that it is sent. */
  readonly idleMilliseconds?: number;
  /** How much slowness of a body adds up to before its connection is cut. */
  readonly rateGraceMilliseconds?: number;
  readonly limits?: Partial<Limits>;
  /** Shared with other servers of the process; without it `limits.bodyBytesMax` is for this one. */
  readonly memory?: ByteBudget;
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
  const { service, serverName, errorReply, headers: commonHeaders } = options.definition;
  const limits: Limits = { ...LIMITS, ...options.limits };
  const runPipeline = createPipeline(options, receiveBody, reserveReply);
  const requests = createRequestLog(log);
  const connections = trackConnections({ ...limits, idleMilliseconds });
  const memory = options.memory ?? createByteBudget(limits.bodyBytesMax);
  const { rateGraceMilliseconds = IDLE_MILLISECONDS } = options;
  const bodyOptions = { ...limits, idleMilliseconds, memory, rateGraceMilliseconds };
  let closing = false;
  /** Requests that have arrived and are not answered yet. */
  let runningCount = 0;
  /** Requests whose body or answer streams: they hold things of the services. */
  const streaming = new Set<RequestContext>();
  let onStreamsEnded = () => {};

  async function respond(ctx: RequestContext): Promise<void> {
    const started = performance.now();
    let reply: Reply;
    let responseStream: ResponseStream | undefined;
    try {
      reply = streamIfLarge(await runPipeline(ctx));
      if (reply.status === 401 || reply.status === 403) requests.refused(ctx, reply.headers?.['x-ms-error-code']);
      if (isStream(reply.body)) responseStream = await startStream(ctx, reply, reply.body);
      else chargeUntilSent(ctx, bodyLength(reply.body));
    } catch (error) {
      ctx.replyShare.set(0);
      if (error instanceof ClientDisconnected) {
        if (analytics?.isOn) recordAccess(ctx, started, performance.now() - started, undefined, 0);
        return clientDisconnected(ctx);
      }
      reply = errorReplyFor(error, ctx);
    }
    const waited = ctx.body?.waitedMilliseconds() ?? 0;
    const serverMilliseconds = performance.now() - started - waited;
    const slow = serverMilliseconds > SLOW_MILLISECONDS;
    const isSentAsMade = sendResponse(ctx, reply, responseStream);
    if (responseStream && !isSentAsMade) await responseStream.release();
    else if (responseStream && !(await sendStream(ctx, responseStream))) {
      if (analytics?.isOn) recordAccess(ctx, started, serverMilliseconds, undefined, responseStream.bytesSent());
      return;
    }
    if (slow) requests.slow(ctx, reply, started, responseStream?.bytesSent());
    else requests.answered(ctx, reply, started, responseStream?.bytesSent());
    if (analytics?.isOn) {
      const bytes = responseStream?.bytesSent() ?? sentBodyBytes(reply, ctx.incoming.method);
      recordAccess(ctx, started, serverMilliseconds, reply, bytes);
    }
  }

  function recordAccess(
    ctx: RequestContext,
    started: number,
    serverMilliseconds: number,
    reply: Reply | undefined,
    bytes: number,
  ) {
    const timing = { now: now(), milliseconds: performance.now() - started, serverMilliseconds };
    const record = buildAccessRecord(ctx, service, reply, bytes, timing);
    if (record) analytics!.record(record);
  }

  async function receiveBody(ctx: RequestContext, length: number, whole: boolean): Promise<Buffer | BodyStream> {
    if (whole) return await whileReceiving(receiveWholeBody(ctx, length));
    if (memory.isFull()) throw serverBusy();
    ctx.body = streamBody(ctx.incoming, length, bodyOptions);
    streaming.add(ctx);
    return ctx.body;
  }

  async function receiveWholeBody(ctx: RequestContext, length: number): Promise<Buffer> {
    if (!(await memory.reserve(length))) throw serverBusy();
    ctx.body = streamBody(ctx.incoming, length, { ...bodyOptions, isReserved: true });
    return await concatBody(ctx.body, length);
  }

  async function reserveReply({ incoming, replyShare }: RequestContext, bytes: number): Promise<void> {
    if (!(await replyShare.reserve(bytes))) throw serverBusy();
    if (incoming.socket.destroyed)
      throw new ClientDisconnected('the connection broke while its request waited for room');
  }

  /** Of an answer that goes out at once: the client may leave it lying. */
  function chargeUntilSent({ incoming, outgoing, replyShare }: RequestContext, bytes: number): void {
    const { socket } = incoming;
    const isCharged = bytes > UNCHARGED_BYTES_MAX && !socket.destroyed;
    if (isCharged && isBudgetChecked(incoming, replyShare) && memory.isFull()) throw serverBusy();
    replyShare.set(isCharged ? bytes : 0);
    if (isCharged) void waitForEvent(outgoing, 'close', socket).done.then(() => replyShare.set(0));
  }

  /** Who waits for a client does not run. */
  async function whileReceiving<T>(body: Promise<T>): Promise<T> {
    runningCount--;
    try {
      return await body;
    } finally {
      runningCount++;
    }
  }

  /** The first piece of a streamed answer, or what is wrong with it. */
  async function startStream(
    ctx: RequestContext,
    reply: Reply,
    body: AsyncIterable<Uint8Array>,
  ): Promise<ResponseStream> {
    const { incoming, outgoing } = ctx;
    streaming.add(ctx);
    const responseStream = createResponseStream(body, reply, incoming, outgoing, bodyOptions, ctx.replyShare);
    await responseStream.start();
    return responseStream;
  }

  /** The rest of a streamed answer. Whether all of it was sent. */
  async function sendStream(ctx: RequestContext, responseStream: ResponseStream): Promise<boolean> {
    const { incoming, outgoing } = ctx;
    try {
      await responseStream.sendPieces();
      connections.markResponseWritten(incoming);
      if (ctx.bodyUnread) lingeringClose(incoming, outgoing, memory);
      else await responseStream.end();
      return true;
    } catch (error) {
      const bytes = responseStream.bytesSent();
      outgoing.destroy();
      if (error instanceof ClientDisconnected) clientDisconnected(ctx, bytes);
      else requests.failed(ctx, error, { bytes });
      return false;
    }
  }

  function clientDisconnected(ctx: RequestContext, bytes?: number): void {
    ctx.incoming.socket.destroy();
    ctx.body?.discard();
    requests.clientDisconnected(ctx, bytes);
  }

  /** A StorageError is an answer, anything else is a bug, or damage. */
  function errorReplyFor(error: unknown, ctx: RequestContext): Reply {
    const { incoming, id } = ctx;
    let known = asStorageError(error);
    if (!known) {
      known = fail('InternalError');
      requests.failed(ctx, error);
    } else if (isAuthError(known)) {
      requests.refused(ctx, known.code, known.details);
    }
    ctx.code = known.code;
    return errorReply(known, id, now(), incoming);
  }

  /** Of a streamed answer the head. Whether it could be sent as it was meant. */
  function sendResponse(ctx: RequestContext, made: Reply, responseStream: ResponseStream | undefined): boolean {
    const { incoming, outgoing, id, awaitsContinue, body, extraHeaders } = ctx;
    const reply =
      extraHeaders || commonHeaders
        ? { ...made, headers: { ...commonHeaders, ...made.headers, ...extraHeaders?.(made) } }
        : made;
    const bodyUnread = hasUnreadBody(incoming, body);
    body?.discard();
    ctx.bodyUnread = bodyUnread;
    if (!bodyUnread && !incoming.complete) drainWithin(incoming, idleMilliseconds);
    const close = closing || bodyUnread || awaitsContinue || connections.isLast(incoming);
    const sending = { id, now: now(), serverName, close, endsResponse: !bodyUnread && !responseStream };
    if (!responseStream) connections.markResponseWritten(incoming);
    try {
      sendReply(outgoing, incoming, reply, sending);
      if (bodyUnread && !responseStream) lingeringClose(incoming, outgoing, memory);
      return true;
    } catch (error) {
      // A header that HTTP cannot carry. Nothing has been sent yet.
      sendReply(outgoing, incoming, errorReplyFor(error, ctx), { ...sending, close: true, endsResponse: !bodyUnread });
      if (bodyUnread) lingeringClose(incoming, outgoing, memory);
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
  const server = createHttpServer(options.tls, httpOptions, log);
  // Node drops further headers without a word; with one more than the bound, framing.ts refuses the request.
  server.maxHeadersCount = HEADERS_MAX + 1;
  server.maxConnections = limits.connectionsMax;
  async function serve(ctx: RequestContext): Promise<void> {
    try {
      await respond(ctx);
    } catch (error) {
      // What fails even to be refused must end neither the process nor the connections of others.
      requests.failed(ctx, error);
      ctx.outgoing.destroy();
    }
    runningCount--;
    if (streaming.delete(ctx) && streaming.size === 0) onStreamsEnded();
  }
  // Requests that arrive in one turn of the event loop go through each stage together, which costs less CPU: docs/adr/0003.
  const arrivedRequests: RequestContext[] = [];
  const serveBatch = (): void => {
    for (const ctx of arrivedRequests.splice(0, memory.isAccepting() ? BATCH_MAX_ACCEPTING : BATCH_MAX))
      void serve(ctx);
    if (arrivedRequests.length > 0) setImmediate(serveBatch);
  };
  function onRequest(
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    awaitsContinue: boolean,
    fault?: StorageError,
  ) {
    if (!connections.requestArrived(incoming, outgoing)) return;
    const ctx = createRequestContext(incoming, outgoing, awaitsContinue, new BudgetShare(memory));
    const refusal = framingFault(incoming, limits.urlBytesMax) ?? fault;
    // Before the parser goes on: what it finds next is not to be run.
    if (refusal || endsConnection(incoming)) connections.markLast(incoming);
    if (refusal) rejectImmediately(ctx, refusal);
    else if (runningCount - streaming.size >= limits.runningMax) rejectImmediately(ctx, serverBusy());
    else {
      runningCount++;
      if (arrivedRequests.push(ctx) > 1) return;
      // Who is alone has nobody to go with. A body is whole only at the end of the turn.
      if (sockets.size === 1 && !hasBody(incoming)) process.nextTick(serveBatch);
      else setImmediate(serveBatch);
    }
  }
  function rejectImmediately(ctx: RequestContext, error: StorageError): void {
    const reply = errorReplyFor(error, ctx);
    try {
      sendResponse(ctx, reply, undefined);
      requests.answered(ctx, reply, performance.now());
    } catch {
      ctx.outgoing.destroy();
    }
  }
  server.on('request', (incoming, outgoing) => onRequest(incoming, outgoing, false));
  server.on('checkContinue', (incoming, outgoing) => onRequest(incoming, outgoing, true));
  server.on('checkExpectation', (incoming, outgoing) =>
    onRequest(incoming, outgoing, false, expectationFailed(incoming)),
  );
  server.on('connect', (_incoming, socket: Socket) => rejectSocket('405 Method Not Allowed', socket));
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) =>
    connections.parserError(socket, () => rejectSocket(STATUS_LINES[error.code ?? ''] ?? '400 Bad Request', socket)),
  );
  server.on('drop', () => log.debug({ connections: limits.connectionsMax }, 'too many connections'));
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    memory.connectionAccepted();
    sockets.add(socket);
    // Each of the streams that were asked for at once, one behind the other, waits for its end.
    socket.setMaxListeners(0);
    socket.once('close', () => sockets.delete(socket));
  });
  function closeIdleConnections(): void {
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
        const idle = setInterval(closeIdleConnections, 50);
        const cut = setTimeout(() => server.closeAllConnections(), graceMilliseconds);
        server.close(() => {
          clearInterval(idle);
          clearTimeout(cut);
          resolve();
        });
        closeIdleConnections();
      });
      if (streaming.size === 0) return;
      await new Promise<void>((resolve) => {
        onStreamsEnded = resolve;
        setTimeout(resolve, SETTLE_MILLISECONDS).unref();
      });
    },
  };
}

/** Whether the caller was not let in, rather than asked for something that cannot be. */
function isAuthError({ status, code }: StorageError): boolean {
  return status === 401 || status === 403 || code === 'InvalidAuthenticationInfo';
}

function expectationFailed({ headers: { expect } }: IncomingMessage): StorageError {
  return new StorageError('InvalidHeaderValue', 417, `The expectation ${expect} cannot be met.`);
}

/** Of what is not HTTP, or too long or too slow to be taken for it. */
const STATUS_LINES: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};

/** Closing at once would reset a client that still sends, and waiting for it to close would be waiting for ever. */
function rejectSocket(status: string, socket: Socket): void {
  if (!socket.writable) return void socket.destroy();
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  const timer = setTimeout(() => socket.destroy(), LINGER_MILLISECONDS).unref();
  socket.once('close', () => clearTimeout(timer));
  socket.resume();
}
