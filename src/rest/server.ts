/** The life of one request, top to bottom. */
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Log } from '../base/log.ts';
import { asStorageError, commonErrors, raising, type StorageError } from '../services/errors.ts';
import { type Account, sharedKeyOf } from './auth/shared-key.ts';
import { checkLength, Gone, isBurdened, linger, readBody } from './body.ts';
import type { Operation } from './operation.ts';
import { errorReply, type Reply, sendReply } from './reply.ts';
import { requestOf } from './request.ts';
import { routerOf } from './router.ts';

const fail = raising(commonErrors);
const SLOW_MILLISECONDS = 1_000;
/** More would hold the event loop too long. */
const TOGETHER_MAX = 64;

/** An endpoint of the server itself, outside all accounts and without a signature. */
export type OwnEndpoint = (query: Readonly<Record<string, string>>) => Promise<Reply>;

export interface RestServerOptions<Context> {
  /** The rows of one service. */
  readonly table: readonly Operation<Context>[];
  readonly accounts: readonly Account[];
  /** What the operations of an account are handed. */
  readonly context: (account: string) => Context;
  readonly log: Log;
  /** The store's time, for Date and for errors. */
  readonly now: () => bigint;
  /** What the service calls itself. */
  readonly serverName?: string;
  /** By method and path: 'POST /_holdfast/reset'. */
  readonly own?: Readonly<Record<string, OwnEndpoint>>;
  /** Whether requests can be answered, for GET /health/ready. */
  readonly isReady?: () => boolean;
  readonly keepAliveSeconds?: number;
}

export interface RestServer {
  /** Returns the port, which differs from the one asked for if that was 0. */
  listen(port: number, host: string): Promise<number>;
  /** Takes no more requests, finishes the running ones, and after this time cuts what is left. */
  close(graceMilliseconds?: number): Promise<void>;
}

export function createRestServer<Context>(options: RestServerOptions<Context>): RestServer {
  const { log, now, context, serverName = 'Windows-Azure-Blob/1.0 Microsoft-HTTPAPI/2.0' } = options;
  const router = routerOf(options.table);
  const authenticate = new Map(options.accounts.map((account) => [account.name, sharedKeyOf(account)]));
  const own = new Map(Object.entries({ ...health(options.isReady), ...options.own }));
  let closing = false;

  async function handle(incoming: IncomingMessage, outgoing: ServerResponse, awaitsContinue: boolean): Promise<void> {
    const started = performance.now();
    const id = randomUUID();
    const exchange: Exchange = { incoming, outgoing, id, awaitsContinue, operation: undefined };
    let reply: Reply;
    try {
      reply = await answer(exchange);
    } catch (error) {
      if (error instanceof Gone) {
        return log.debug({ requestId: id, method: incoming.method, url: incoming.url }, 'client went away');
      }
      reply = refuse(error, exchange);
    }
    send(exchange, reply);
    const milliseconds = performance.now() - started;
    if (milliseconds > SLOW_MILLISECONDS) log.warn(lineOf(exchange, reply, milliseconds), 'slow request');
    else if (log.isLevelEnabled('debug')) log.debug(lineOf(exchange, reply, milliseconds), 'request');
  }

  async function answer(exchange: Exchange): Promise<Reply> {
    const { incoming, outgoing, id } = exchange;
    const request = requestOf(incoming, id);
    const check = authenticate.get(request.account);
    if (!check) {
      const endpoint = own.get(`${request.method} ${request.rawPath}`);
      if (endpoint) return await endpoint(request.query);
      throw unknownAccount(request.account, incoming.headers.host);
    }
    check(request);
    const row = router.match(request);
    exchange.operation = row.name;

    const input = row.read(request);
    const storage = context(request.account);
    if (row.body) {
      checkLength(incoming, row.body, request);
      if (exchange.awaitsContinue) {
        await row.look?.(storage, input);
        outgoing.writeContinue();
        exchange.awaitsContinue = false;
      }
      row.readBody(input, await readBody(incoming), request);
    }
    return row.reply(await row.run(storage, input), request);
  }

  /** A StorageError is an answer, anything else is a bug. */
  function refuse(error: unknown, { incoming, id, operation }: Exchange): Reply {
    let known = asStorageError(error);
    if (!known) {
      known = fail('InternalError');
      log.error({ err: error, requestId: id, operation, method: incoming.method, url: incoming.url }, 'bug');
    }
    return errorReply(known, id, now(), incoming.method!);
  }

  function send(exchange: Exchange, reply: Reply): void {
    const { incoming, outgoing, id, awaitsContinue } = exchange;
    const burdened = isBurdened(incoming);
    const close = closing || burdened || awaitsContinue;
    try {
      sendReply(outgoing, incoming, reply, { id, now: now(), serverName, close, last: !burdened });
    } catch (error) {
      // A header that HTTP cannot carry. Nothing has been sent yet.
      sendReply(outgoing, incoming, refuse(error, exchange), {
        id,
        now: now(),
        serverName,
        close: true,
        last: !burdened,
      });
    }
    if (burdened) linger(incoming, outgoing);
  }

  const server = createServer({
    // The longest legal blob name, percent-encoded, and 8 KiB of metadata are more than Node's 16 KiB.
    maxHeaderSize: 64 * 1024,
    headersTimeout: 20_000,
    requestTimeout: 15 * 60_000,
    keepAliveTimeout: (options.keepAliveSeconds ?? 5) * 1_000,
  });
  // Headers past a count would be dropped without a word; the size bounds them anyway.
  server.maxHeadersCount = 0;
  // What fails even to be refused must end neither the process nor the connections of others.
  const take = (incoming: IncomingMessage, outgoing: ServerResponse, awaitsContinue: boolean) =>
    handle(incoming, outgoing, awaitsContinue).catch((error) => {
      log.error({ err: error, method: incoming.method, url: incoming.url }, 'no answer could be sent');
      outgoing.destroy();
    });
  // Requests that arrive in one turn of the event loop go through each stage together, which costs less CPU: docs/adr/0003.
  const arrived: Parameters<typeof take>[] = [];
  const takeTogether = (): void => {
    for (const exchange of arrived.splice(0, TOGETHER_MAX)) void take(...exchange);
    if (arrived.length > 0) setImmediate(takeTogether);
  };
  const gather = (...exchange: Parameters<typeof take>): void => {
    if (arrived.push(exchange) === 1) setImmediate(takeTogether);
  };
  server.on('request', (incoming, outgoing) => gather(incoming, outgoing, false));
  server.on('checkContinue', (incoming, outgoing) => gather(incoming, outgoing, true));
  server.on('clientError', refuseBytes);
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
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
        server.listen(port, host, () => {
          server.off('error', reject);
          resolve((server.address() as AddressInfo).port);
        });
      }),
    close: (graceMilliseconds = 10_000) =>
      new Promise((resolve) => {
        closing = true;
        const idle = setInterval(closeIdle, 50);
        const cut = setTimeout(() => server.closeAllConnections(), graceMilliseconds);
        server.close(() => {
          clearInterval(idle);
          clearTimeout(cut);
          resolve();
        });
        closeIdle();
      }),
  };
}

/** A request on its way, with what its log line needs. */
interface Exchange {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly id: string;
  /** The caller holds its body back until it is asked for it. */
  awaitsContinue: boolean;
  operation: string | undefined;
}

function lineOf({ incoming, id, operation }: Exchange, reply: Reply, milliseconds: number) {
  const { method, url } = incoming;
  const code = reply.headers?.['x-ms-error-code'];
  return { requestId: id, method, url, operation, status: reply.status, code, ms: Math.round(milliseconds * 10) / 10 };
}

function health(isReady: () => boolean = () => true): Record<string, OwnEndpoint> {
  const say = (status: number, text: string): Reply => ({
    status,
    headers: { 'Content-Type': 'text/plain' },
    body: text,
  });
  return {
    'GET /health/live': async () => say(200, 'live\n'),
    'HEAD /health/live': async () => say(200, ''),
    'HEAD /health/ready': async () => say(isReady() ? 200 : 503, ''),
    'GET /health/ready': async () => (isReady() ? say(200, 'ready\n') : say(503, 'not ready\n')),
  };
}

function unknownAccount(account: string, host: string | undefined): StorageError {
  const tried = `the first segment of the path, "${account}", is not an account of this server`;
  return fail(
    'InvalidUri',
    undefined,
    `The requested URI does not represent any resource on the server: ${tried} (host ${host ?? 'not given'}).`,
  );
}

/** What is not HTTP, or too long or too slow to be taken for it. */
function refuseBytes(error: NodeJS.ErrnoException, socket: Socket): void {
  const status =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? '431 Request Header Fields Too Large'
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? '408 Request Timeout'
        : '400 Bad Request';
  if (socket.writable) socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  else socket.destroy();
}
