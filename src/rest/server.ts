/** The life of one request, top to bottom. */
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Log } from '../base/log.ts';
import { asStorageError, commonErrors, raising, type StorageError } from '../services/errors.ts';
import { type Account, sharedKeyOf } from './auth/shared-key.ts';
import { arrivedBody, type BodyStream, checkLength, Gone, isBurdened, joined, linger, streamBody } from './body.ts';
import { type Download, downloadOf, isStream } from './download.ts';
import type { Operation } from './operation.ts';
import { IDLE_MILLISECONDS } from './patience.ts';
import { errorReply, type Reply, sendReply } from './reply.ts';
import { requestOf } from './request.ts';
import { routerOf } from './router.ts';

const fail = raising(commonErrors);
const SLOW_MILLISECONDS = 1_000;
/** More would hold the event loop too long. */
const TOGETHER_MAX = 64;
/** How long what was cut may take to put its things in order. */
const SETTLE_MILLISECONDS = 2_000;

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
  /** How long a client may be silent in the middle of a body, its own or the one that it is sent. */
  readonly idleMilliseconds?: number;
}

export interface RestServer {
  /** Returns the port, which differs from the one asked for if that was 0. */
  listen(port: number, host: string): Promise<number>;
  /** Takes no more requests, finishes the running ones, and after this time cuts what is left, streams too. */
  close(graceMilliseconds?: number): Promise<void>;
}

export function createRestServer<Context>(options: RestServerOptions<Context>): RestServer {
  const { log, now, context, idleMilliseconds = IDLE_MILLISECONDS } = options;
  const { serverName = 'Windows-Azure-Blob/1.0 Microsoft-HTTPAPI/2.0' } = options;
  const router = routerOf(options.table);
  const authenticate = new Map(options.accounts.map((account) => [account.name, sharedKeyOf(account)]));
  const own = new Map(Object.entries({ ...health(options.isReady), ...options.own }));
  let closing = false;
  /** Requests whose body or answer streams: they hold things of the services. */
  const streaming = new Set<Exchange>();
  let settled = () => {};

  async function handle(exchange: Exchange): Promise<void> {
    const started = performance.now();
    let reply: Reply;
    let download: Download | undefined;
    try {
      reply = await answer(exchange);
      if (isStream(reply.body)) download = await begin(exchange, reply, reply.body);
    } catch (error) {
      if (error instanceof Gone) return wentAway(exchange);
      reply = refuse(error, exchange);
    }
    const waited = exchange.body?.waitedMilliseconds() ?? 0;
    const slow = performance.now() - started - waited > SLOW_MILLISECONDS;
    const asMeant = send(exchange, reply, download);
    if (download && !asMeant) await download.release();
    else if (download && !(await stream(exchange, download))) return;
    if (!slow && !log.isLevelEnabled('debug')) return;
    const line = lineOf(exchange, reply, performance.now() - started, download?.bytesSent());
    if (slow) log.warn(line, 'slow request');
    else log.debug(line, 'request');
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
      const length = checkLength(incoming, row.body, request);
      if (exchange.awaitsContinue) {
        await row.look?.(storage, input);
        outgoing.writeContinue();
        exchange.awaitsContinue = false;
      }
      const whole = length <= (row.body.wholeBytesMax ?? row.body.bytesMax);
      row.readBody(input, (whole && arrivedBody(incoming)) || (await comingBody(exchange, length, whole)), request);
    }
    return row.reply(await row.run(storage, input), request);
  }

  async function comingBody(exchange: Exchange, length: number, whole: boolean): Promise<Buffer | BodyStream> {
    exchange.body = streamBody(exchange.incoming, length, idleMilliseconds);
    if (whole) return joined(exchange.body);
    streaming.add(exchange);
    return exchange.body;
  }

  /** The first piece of a streamed answer, or what is wrong with it. */
  async function begin(exchange: Exchange, reply: Reply, body: AsyncIterable<Uint8Array>): Promise<Download> {
    const { incoming, outgoing } = exchange;
    streaming.add(exchange);
    const download = downloadOf(body, reply, incoming, outgoing, idleMilliseconds);
    await download.begin();
    return download;
  }

  /** The rest of a streamed answer. Whether all of it was sent. */
  async function stream(exchange: Exchange, download: Download): Promise<boolean> {
    const { incoming, outgoing, id, operation } = exchange;
    try {
      await download.send();
      if (exchange.burdened) linger(incoming, outgoing);
      else await download.end();
      return true;
    } catch (error) {
      const bytes = download.bytesSent();
      outgoing.destroy();
      const { method, url } = incoming;
      if (error instanceof Gone) wentAway(exchange, bytes);
      else log.error({ err: error, requestId: id, operation, method, url, bytes }, `answer cut: ${faultOf(error)}`);
      return false;
    }
  }

  function wentAway({ incoming, id }: Exchange, bytes?: number): void {
    incoming.socket.destroy();
    log.debug({ requestId: id, method: incoming.method, url: incoming.url, bytes }, 'client went away');
  }

  /** A StorageError is an answer, anything else is a bug, or damage. */
  function refuse(error: unknown, { incoming, id, operation }: Exchange): Reply {
    let known = asStorageError(error);
    if (!known) {
      known = fail('InternalError');
      log.error({ err: error, requestId: id, operation, method: incoming.method, url: incoming.url }, faultOf(error));
    }
    return errorReply(known, id, now(), incoming.method!);
  }

  /** Of a streamed answer the head. Whether it could be sent as it was meant. */
  function send(exchange: Exchange, reply: Reply, download: Download | undefined): boolean {
    const { incoming, outgoing, id, awaitsContinue, body } = exchange;
    const burdened = isBurdened(incoming, body);
    body?.letGo();
    exchange.burdened = burdened;
    const close = closing || burdened || awaitsContinue;
    const sending = { id, now: now(), serverName, close, last: !burdened && !download };
    try {
      sendReply(outgoing, incoming, reply, sending);
      if (burdened && !download) linger(incoming, outgoing);
      return true;
    } catch (error) {
      // A header that HTTP cannot carry. Nothing has been sent yet.
      sendReply(outgoing, incoming, refuse(error, exchange), { ...sending, close: true, last: !burdened });
      if (burdened) linger(incoming, outgoing);
      return false;
    }
  }

  const server = createServer({
    // The longest legal blob name, percent-encoded, and 8 KiB of metadata are more than Node's 16 KiB.
    maxHeaderSize: 64 * 1024,
    headersTimeout: 20_000,
    // Of the whole request: an honest upload may take hours. Silence in the middle of a body is watched in patience.ts.
    requestTimeout: 0,
    keepAliveTimeout: (options.keepAliveSeconds ?? 5) * 1_000,
  });
  // Headers past a count would be dropped without a word; the size bounds them anyway.
  server.maxHeadersCount = 0;
  async function take(incoming: IncomingMessage, outgoing: ServerResponse, awaitsContinue: boolean): Promise<void> {
    const exchange = exchangeOf(incoming, outgoing, awaitsContinue);
    try {
      await handle(exchange);
    } catch (error) {
      // What fails even to be refused must end neither the process nor the connections of others.
      log.error({ err: error, method: incoming.method, url: incoming.url }, 'no answer could be sent');
      outgoing.destroy();
    }
    if (streaming.delete(exchange) && streaming.size === 0) settled();
  }
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
  server.on('clientError', (error, socket: Socket) => {
    // In the middle of an answer there is no place for another.
    const within = [...streaming].some((one) => one.incoming.socket === socket && one.outgoing.headersSent);
    if (within) socket.destroy();
    else refuseBytes(error, socket);
  });
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
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
        server.listen(port, host, () => {
          server.off('error', reject);
          resolve((server.address() as AddressInfo).port);
        });
      }),
    close: async (graceMilliseconds = 10_000) => {
      closing = true;
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

/** A request on its way, with what its log line needs. */
interface Exchange {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly id: string;
  /** The caller holds its body back until it is asked for it. */
  awaitsContinue: boolean;
  operation: string | undefined;
  /** A body that had not come when the request was taken up. */
  body: BodyStream | undefined;
  /** Too much of the body was still to come when it was answered. */
  burdened: boolean;
}

function exchangeOf(incoming: IncomingMessage, outgoing: ServerResponse, awaitsContinue: boolean): Exchange {
  const id = randomUUID();
  return { incoming, outgoing, id, awaitsContinue, operation: undefined, body: undefined, burdened: false };
}

function lineOf({ incoming, id, operation }: Exchange, reply: Reply, milliseconds: number, bytes?: number) {
  const { method, url } = incoming;
  const code = reply.headers?.['x-ms-error-code'];
  const ms = Math.round(milliseconds * 10) / 10;
  return { requestId: id, method, url, operation, status: reply.status, code, ms, bytes };
}

/** Told by its name: the layer that finds damage is out of sight from here. */
function faultOf(error: unknown): string {
  return error instanceof Error && error.name === 'Damaged' ? 'damaged bytes' : 'bug';
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
