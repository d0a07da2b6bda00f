/** The life of a request: admission control, context with its id, pipeline, reply or error, log and access record. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Log } from '../../base/log.ts';
import { firstSlice } from '../../base/time-slices.ts';
import { asStorageError, commonErrors, errorFactory, type StorageError } from '../../services/common/errors.ts';
import type { AccessLog } from '../logging/access-log.ts';
import { type Analytics, buildAccessRecord, sentBodyBytes } from '../logging/analytics-record.ts';
import { createRequestLog } from '../logging/request-log.ts';
import { DISCONNECTED, type RequestMetrics } from '../metrics/request-metrics.ts';
import type { Pipeline } from '../pipeline.ts';
import { bodyLength, isStream, type Reply, sendReply, streamIfLarge } from '../reply.ts';
import { createRequestContext, type RequestContext } from '../request.ts';
import type { ServiceDefinition } from '../service.ts';
import { ClientDisconnected } from './body-stream.ts';
import { BudgetShare } from './byte-budget.ts';
import { type Connections, hasLargeHead } from './connections.ts';

import { type BodyOptions, RequestBody } from './request-body.ts';
import { chargeUntilSent, ResponseStream, UNCHARGED_BYTES_MAX } from './response-stream.ts';

const fail = errorFactory(commonErrors);
const SLOW_MILLISECONDS = 1_000;

export interface LifecycleOptions {
  readonly definition: Pick<ServiceDefinition<never>, 'service' | 'serverName' | 'errorReply' | 'headers'>;
  readonly log: Log;
  readonly accessLog?: AccessLog | undefined;
  /** The store's time. */
  readonly now: () => bigint;
  readonly analytics?: Analytics;
  readonly metrics?: RequestMetrics | undefined;
}

export class RequestLifecycle {
  /** Once true, every response closes its connection. */
  isClosing = false;
  readonly #options: LifecycleOptions;
  readonly #runPipeline: Pipeline;
  readonly #connections: Connections;
  readonly #bodyOptions: BodyOptions;
  readonly #requests: ReturnType<typeof createRequestLog>;

  constructor(options: LifecycleOptions, runPipeline: Pipeline, connections: Connections, bodyOptions: BodyOptions) {
    this.#options = options;
    this.#runPipeline = runPipeline;
    this.#connections = connections;
    this.#bodyOptions = bodyOptions;
    this.#requests = createRequestLog(options.log, options.accessLog);
  }

  createContext(incoming: IncomingMessage, outgoing: ServerResponse, awaitsContinue: boolean): RequestContext {
    const body = new RequestBody(incoming, outgoing, awaitsContinue, this.#bodyOptions);
    return createRequestContext(incoming, outgoing, body, new BudgetShare(this.#bodyOptions.budget));
  }

  /** Runs a request to its end. Never rejects. */
  async serve(ctx: RequestContext): Promise<void> {
    try {
      if (hasLargeHead(ctx.incoming)) await firstSlice();
      await this.#respond(ctx);
    } catch (error) {
      // A request whose error reply fails, too, must end neither the process nor other connections.
      this.#requests.failed(ctx, error);
      ctx.outgoing.destroy();
    }
    this.#bodyOptions.running.end(ctx.incoming);
  }

  /** Replies with the error, without running the request. */
  reject(ctx: RequestContext, error: StorageError): void {
    const reply = this.#errorReply(error, ctx);
    this.#options.metrics?.observe(undefined, reply.status, 0);
    try {
      this.#sendResponse(ctx, reply, undefined);
      this.#requests.answered(ctx, reply, performance.now());
    } catch {
      ctx.outgoing.destroy();
    }
  }

  async #respond(ctx: RequestContext): Promise<void> {
    const { analytics, metrics } = this.#options;
    const started = performance.now();
    let reply: Reply;
    let stream: ResponseStream | undefined;
    try {
      reply = streamIfLarge(await this.#runPipeline(ctx));
      if (reply.status === 401 || reply.status === 403) this.#requests.refused(ctx, reply.headers?.['x-ms-error-code']);
      if (isStream(reply.body)) stream = await this.#startStream(ctx, reply, reply.body);
      else this.#chargeWhole(ctx, bodyLength(reply.body));
    } catch (error) {
      ctx.replyShare.set(0);
      if (error instanceof ClientDisconnected) {
        metrics?.observe(ctx.operation, DISCONNECTED, performance.now() - started - ctx.body.waitedMilliseconds);
        if (analytics?.isOn) this.#recordAccess(ctx, started, performance.now() - started, undefined, 0);
        return this.#clientDisconnected(ctx);
      }
      reply = this.#errorReply(error, ctx);
    }
    const serverMilliseconds = performance.now() - started - ctx.body.waitedMilliseconds;
    metrics?.observe(ctx.operation, reply.status, serverMilliseconds);
    const isSent = this.#sendResponse(ctx, reply, stream);
    if (stream && !isSent) await stream.release();
    else if (stream && !(await this.#sendStream(ctx, stream))) {
      if (analytics?.isOn) this.#recordAccess(ctx, started, serverMilliseconds, undefined, stream.bytesSent);
      return;
    }
    if (serverMilliseconds > SLOW_MILLISECONDS) this.#requests.slow(ctx, reply, started, stream?.bytesSent);
    else this.#requests.answered(ctx, reply, started, stream?.bytesSent);
    if (analytics?.isOn) {
      const bytes = stream?.bytesSent ?? sentBodyBytes(reply, ctx.incoming.method);
      this.#recordAccess(ctx, started, serverMilliseconds, reply, bytes);
    }
  }

  #chargeWhole(ctx: RequestContext, bytes: number): void {
    // Most replies are short, and nothing was reserved for them.
    if (bytes > UNCHARGED_BYTES_MAX || ctx.replyShare.bytes > 0) chargeUntilSent(ctx, bytes, this.#bodyOptions.budget);
  }

  /** Pulls the first piece of a streamed reply, or throws its error. */
  async #startStream(ctx: RequestContext, reply: Reply, body: AsyncIterable<Uint8Array>): Promise<ResponseStream> {
    this.#bodyOptions.running.beginStreaming(ctx.incoming);
    const stream = new ResponseStream(body, reply, ctx, this.#bodyOptions);
    await stream.start();
    return stream;
  }

  /** Sends the pieces of a streamed reply after its head. Whether all of them were sent. */
  async #sendStream(ctx: RequestContext, stream: ResponseStream): Promise<boolean> {
    try {
      await stream.sendPieces();
      this.#connections.markResponseWritten(ctx.incoming);
      if (ctx.body.isUnread) ctx.body.lingeringClose();
      else await stream.end();
      return true;
    } catch (error) {
      const bytes = stream.bytesSent;
      ctx.outgoing.destroy();
      if (error instanceof ClientDisconnected) this.#clientDisconnected(ctx, bytes);
      else this.#requests.failed(ctx, error, { bytes });
      return false;
    }
  }

  #clientDisconnected(ctx: RequestContext, bytes?: number): void {
    ctx.incoming.socket.destroy();
    ctx.body.discard();
    this.#requests.clientDisconnected(ctx, bytes);
  }

  /** An error that is no answer is a bug. */
  #errorReply(error: unknown, ctx: RequestContext): Reply {
    const { definition, now } = this.#options;
    const known = asStorageError(error) ?? fail('InternalError');
    this.#requests.raised(ctx, error, known);
    ctx.code = known.code;
    return definition.errorReply(known, ctx.id, now(), ctx.incoming);
  }

  /** Sends the whole response, or the head of a streamed one. False: it could not be sent, and an error was sent in its place. */
  #sendResponse(ctx: RequestContext, made: Reply, stream: ResponseStream | undefined): boolean {
    const { incoming, outgoing, id, body, extraHeaders } = ctx;
    const { definition, now } = this.#options;
    const reply =
      extraHeaders || definition.headers
        ? { ...made, headers: { ...definition.headers, ...made.headers, ...extraHeaders?.(made) } }
        : made;
    body.abandon();
    const { isUnread } = body;
    const close = this.isClosing || isUnread || body.awaitsContinue || this.#connections.isLast(incoming);
    const endsResponse = !isUnread && !stream;
    const sending = { id, now: now(), serverName: definition.serverName, close, endsResponse };
    if (!stream) this.#connections.markResponseWritten(incoming);
    try {
      sendReply(outgoing, incoming, reply, sending);
      if (isUnread && !stream) body.lingeringClose();
      return true;
    } catch (error) {
      // A header that HTTP cannot carry. Nothing has been sent yet.
      const errorReply = this.#errorReply(error, ctx);
      sendReply(outgoing, incoming, errorReply, { ...sending, close: true, endsResponse: !isUnread });
      if (isUnread) body.lingeringClose();
      return false;
    }
  }

  /** No reply: the client disconnected. */
  #recordAccess(
    ctx: RequestContext,
    started: number,
    serverMilliseconds: number,
    reply: Reply | undefined,
    bytes: number,
  ): void {
    const { analytics, definition, now } = this.#options;
    const timing = { now: now(), milliseconds: performance.now() - started, serverMilliseconds };
    const record = buildAccessRecord(ctx, definition.service, reply, bytes, timing);
    if (record) analytics!.record(record);
  }
}

export class RunningRequests {
  readonly #max: number;
  /** Requests from arrival to their end, without those that are receiving a whole body. */
  #count = 0;
  /** Requests from the start of their body stream or reply stream to their end: they hold resources of the services. */
  readonly #streaming = new Set<IncomingMessage>();
  #onStreamsEnded = () => {};

  constructor(max: number) {
    this.#max = max;
  }

  /** Requests that wait for their clients do not count. */
  isFull(): boolean {
    return this.#count - this.#streaming.size >= this.#max;
  }

  begin(): void {
    this.#count++;
  }

  /** While a whole body is received, its request does not run. */
  suspend(): void {
    this.#count--;
  }

  resume(): void {
    this.#count++;
  }

  beginStreaming(incoming: IncomingMessage): void {
    this.#streaming.add(incoming);
  }

  end(incoming: IncomingMessage): void {
    this.#count--;
    if (this.#streaming.delete(incoming) && this.#streaming.size === 0) this.#onStreamsEnded();
  }

  /** Resolves when no request streams any more, at the latest after this time. */
  async streamsEnded(timeoutMilliseconds: number): Promise<void> {
    if (this.#streaming.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#onStreamsEnded = resolve;
      setTimeout(resolve, timeoutMilliseconds).unref();
    });
  }
}
