/** HTTP server: listening, connections, limits, admission and batching of requests, and close. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { EpisodeLog } from '../../base/episode-log.ts';
import { HEADERS_MAX } from '../../base/input-limits.ts';
import type { Log } from '../../base/log.ts';
import { StorageError } from '../../services/common/errors.ts';
import { createPipeline, type PipelineOptions, type ServedAccount } from '../pipeline.ts';
import type { RequestContext } from '../request.ts';
import { ByteBudget } from './byte-budget.ts';
import { ConnectionLimit } from './connection-limit.ts';
import { Connections, endsConnection, framingFault, hasBody } from './connections.ts';
import { HEADERS_BYTES_MAX, LIMITS, type Limits, serverBusy } from './limits.ts';
import { IDLE_MILLISECONDS } from './min-rate.ts';
import { LINGER_MILLISECONDS } from './request-body.ts';
import { type LifecycleOptions, RequestLifecycle, RunningRequests } from './request-lifecycle.ts';
import { createHttpServer, type TlsOptions } from './tls.ts';

/** More would block the event loop too long; fewer while connections are accepted, of which Node accepts one per turn. */
const BATCH_MAX = 64;
const BATCH_MAX_ACCEPTING = 4;
/** Connections that the system queues until they are accepted; further clients must retry seconds later. */
const BACKLOG = 4_096;
/** How long streams whose connections were cut may take to release their resources. */
const RELEASE_MILLISECONDS = 2_000;

const TOO_MANY_CONNECTIONS =
  'there are too many connections, and further ones are closed: raise the limit of open files (ulimit -n)';

export interface RestServerOptions<Context, Known extends ServedAccount = ServedAccount>
  extends PipelineOptions<Context, Known>,
    Omit<LifecycleOptions, 'definition'> {
  /** For HTTPS. */
  readonly tls?: TlsOptions | undefined;
  readonly keepAliveSeconds?: number;
  /** How long a client may be silent in the middle of a body, in either direction. */
  readonly idleMilliseconds?: number;
  /** The waiting time that a client slower than the minimum rate may use up before its connection is cut. */
  readonly rateGraceMilliseconds?: number;
  readonly limits?: Partial<Limits>;
  /** Shared with other servers of the process; by default this server has its own, of `limits.bodyBytesMax`. */
  readonly budget?: ByteBudget;
  /** Shared in the same way; by default of `limits.connectionsMax`. */
  readonly connectionLimit?: ConnectionLimit;
}

export interface RestServer {
  /** Returns the port, which differs from the one given if that was 0. */
  listen(port: number, host: string): Promise<number>;
  /** Accepts no more requests, finishes the running ones, and after this time cuts all connections that are left, streams too. */
  close(graceMilliseconds?: number): Promise<void>;
}

export function createRestServer<Context, Known extends ServedAccount>(
  options: RestServerOptions<Context, Known>,
): RestServer {
  return new HttpServer(options);
}

class HttpServer<Context, Known extends ServedAccount> implements RestServer {
  readonly #server: Server;
  readonly #limits: Limits;
  readonly #budget: ByteBudget;
  readonly #connections: Connections;
  readonly #running: RunningRequests;
  readonly #lifecycle: RequestLifecycle;
  readonly #sockets = new Set<Socket>();
  /** Requests that arrive in one turn of the event loop go through each stage together, which costs less CPU: docs/adr/0003. */
  readonly #arrived: RequestContext[] = [];

  constructor(options: RestServerOptions<Context, Known>) {
    const { log, idleMilliseconds = IDLE_MILLISECONDS, rateGraceMilliseconds = IDLE_MILLISECONDS } = options;
    const limits: Limits = { ...LIMITS, ...options.limits };
    const budget = options.budget ?? new ByteBudget(limits.bodyBytesMax);
    const running = new RunningRequests(limits.runningMax);
    const { bytesPerSecondMin } = limits;
    const bodyOptions = { idleMilliseconds, rateGraceMilliseconds, bytesPerSecondMin, budget, running };
    this.#limits = limits;
    this.#budget = budget;
    this.#running = running;
    this.#connections = new Connections({ ...limits, idleMilliseconds });
    this.#lifecycle = new RequestLifecycle(options, createPipeline(options), this.#connections, bodyOptions);
    this.#server = createHttpServer(options.tls, httpOptions(limits, options.keepAliveSeconds), log);
    // Node drops further headers silently; with one more than the limit, connections.ts refuses the request.
    this.#server.maxHeadersCount = HEADERS_MAX + 1;
    this.#listenForConnections(options.connectionLimit ?? new ConnectionLimit(limits.connectionsMax), log);
    this.#listenForRequests();
  }

  listen(port: number, host: string): Promise<number> {
    const server = this.#server;
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, host, BACKLOG, () => {
        server.off('error', reject);
        resolve((server.address() as AddressInfo).port);
      });
    });
  }

  async close(graceMilliseconds = 10_000): Promise<void> {
    this.#lifecycle.isClosing = true;
    this.#connections.close();
    await new Promise<void>((resolve) => {
      const idle = setInterval(() => this.#closeIdleConnections(), 50);
      const cut = setTimeout(() => this.#server.closeAllConnections(), graceMilliseconds);
      this.#server.close(() => {
        clearInterval(idle);
        clearTimeout(cut);
        resolve();
      });
      this.#closeIdleConnections();
    });
    await this.#running.streamsEnded(RELEASE_MILLISECONDS);
  }

  #listenForConnections(limit: ConnectionLimit, log: Log): void {
    const tooMany = new EpisodeLog();
    this.#server.on('connection', (socket) => {
      if (!limit.tryAdd()) {
        socket.destroy();
        return tooMany.happened(() => log.warn({ connections: limit.max }, TOO_MANY_CONNECTIONS));
      }
      socket.once('close', () => limit.remove());
      this.#budget.connectionAccepted();
      this.#sockets.add(socket);
      // Each of several pipelined streams adds a listener for the end of the connection.
      socket.setMaxListeners(0);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    this.#server.on('connect', (_incoming, socket: Socket) => rejectSocket('405 Method Not Allowed', socket));
    this.#server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
      const status = STATUS_LINES[error.code ?? ''] ?? '400 Bad Request';
      this.#connections.parserError(socket, () => rejectSocket(status, socket));
    });
  }

  #closeIdleConnections(): void {
    this.#server.closeIdleConnections();
    // Node does not count a connection as idle that has not sent a byte yet.
    for (const socket of this.#sockets) if (socket.bytesRead === 0) socket.destroy();
  }

  #listenForRequests(): void {
    this.#server.on('request', (incoming, outgoing) => this.#onRequest(incoming, outgoing, false));
    this.#server.on('checkContinue', (incoming, outgoing) => this.#onRequest(incoming, outgoing, true));
    this.#server.on('checkExpectation', (incoming, outgoing) =>
      this.#onRequest(incoming, outgoing, false, expectationFailed(incoming)),
    );
  }

  #onRequest(incoming: IncomingMessage, outgoing: ServerResponse, awaitsContinue: boolean, fault?: StorageError): void {
    if (!this.#connections.requestArrived(incoming, outgoing)) return;
    const ctx = this.#lifecycle.createContext(incoming, outgoing, awaitsContinue);
    const refusal = framingFault(incoming, this.#limits.urlBytesMax) ?? fault;
    // Before the parser continues: requests that it finds after this one must not run.
    if (refusal || endsConnection(incoming)) this.#connections.markLast(incoming);
    if (refusal) this.#lifecycle.reject(ctx, refusal);
    else if (this.#running.isFull()) this.#lifecycle.reject(ctx, serverBusy());
    else {
      this.#running.begin();
      if (this.#arrived.push(ctx) > 1) return;
      // With one connection there are no other requests to wait for. A body is complete only at the end of the turn.
      if (this.#sockets.size === 1 && !hasBody(incoming)) process.nextTick(() => this.#serveBatch());
      else setImmediate(() => this.#serveBatch());
    }
  }

  #serveBatch(): void {
    const batchMax = this.#budget.isAccepting() ? BATCH_MAX_ACCEPTING : BATCH_MAX;
    for (const ctx of this.#arrived.splice(0, batchMax)) void this.#lifecycle.serve(ctx);
    if (this.#arrived.length > 0) setImmediate(() => this.#serveBatch());
  }
}

function httpOptions(limits: Limits, keepAliveSeconds = 5) {
  return {
    maxHeaderSize: HEADERS_BYTES_MAX,
    insecureHTTPParser: false,
    // Node would refuse the request, and run the one after it.
    requireHostHeader: false,
    headersTimeout: limits.headersMilliseconds,
    connectionsCheckingInterval: Math.ceil(limits.headersMilliseconds / 4),
    // A timeout of the whole request: a legitimate upload may take hours. Silence in the middle of a body is detected in min-rate.ts.
    requestTimeout: 0,
    keepAliveTimeout: keepAliveSeconds * 1_000,
  };
}

function expectationFailed({ headers: { expect } }: IncomingMessage): StorageError {
  return new StorageError('InvalidHeaderValue', 417, `The expectation ${expect} cannot be met.`);
}

/** For bytes that are not HTTP, or too long or too slow to become a request. */
const STATUS_LINES: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};

/** Closing at once would reset a client that is still sending; waiting for the client to close might never end. */
function rejectSocket(status: string, socket: Socket): void {
  if (!socket.writable) return void socket.destroy();
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  const timer = setTimeout(() => socket.destroy(), LINGER_MILLISECONDS).unref();
  socket.once('close', () => clearTimeout(timer));
  socket.resume();
}
