/** The body of a request, which the pipeline pulls when it needs it: whole or as a stream. Lingering close for bodies that stay unread. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { detachBuffers } from '../../base/detach-buffers.ts';
import { commonErrors, errorFactory } from '../../services/common/errors.ts';
import { BodyStream, readWithBudget, type StreamOptions } from './body-stream.ts';
import { serverBusy } from './limits.ts';
import type { RunningRequests } from './request-lifecycle.ts';

const fail = errorFactory(commonErrors);

/** An unread rest of at most this many bytes is read and dropped; after a longer one the connection is closed. */
const DRAIN_BYTES_MAX = 256 * 1024;
/** How long bytes that still arrive are read and dropped before a connection is closed. */
export const LINGER_MILLISECONDS = 2_000;

export interface BodyOptions extends StreamOptions {
  readonly running: RunningRequests;
}

export class RequestBody {
  readonly #incoming: IncomingMessage;
  readonly #outgoing: ServerResponse;
  readonly #options: BodyOptions;
  #awaitsContinue: boolean;
  /** Set if the body had not arrived completely when it was read. */
  #stream: BodyStream | undefined;
  /** Set by `abandon`. */
  #isUnread = false;

  constructor(incoming: IncomingMessage, outgoing: ServerResponse, awaitsContinue: boolean, options: BodyOptions) {
    this.#incoming = incoming;
    this.#outgoing = outgoing;
    this.#awaitsContinue = awaitsContinue;
    this.#options = options;
  }

  /** The client sent `Expect: 100-continue` and withholds the body until `sendContinue`. */
  get awaitsContinue(): boolean {
    return this.#awaitsContinue;
  }

  sendContinue(): void {
    if (this.#awaitsContinue) this.#outgoing.writeContinue();
    this.#awaitsContinue = false;
  }

  /** The Content-Length. Throws if there is none. */
  declaredLength(): number {
    const declared = this.#incoming.headers['content-length'];
    if (declared === undefined) throw fail('MissingContentLengthHeader');
    return Number(declared);
  }

  /** All of the body, if it has arrived, as a small body does together with the headers. */
  readIfArrived(): Buffer | undefined {
    if (this.#awaitsContinue || !this.#incoming.complete || this.#incoming.destroyed) return undefined;
    return (this.#incoming.read() as Buffer | null) ?? Buffer.alloc(0);
  }

  /** Waits until the byte budget admits the length, then for the client. */
  async readWhole(length: number): Promise<Buffer> {
    const arrived = this.readIfArrived();
    if (arrived) return arrived;
    const { budget, running } = this.#options;
    running.suspend();
    try {
      if (!(await budget.reserve(length))) throw serverBusy();
      this.#stream = new BodyStream(this.#incoming, length, this.#options, true);
      return await concatBody(this.#stream, length);
    } finally {
      running.resume();
    }
  }

  stream(length: number): BodyStream {
    const { budget, running } = this.#options;
    if (budget.isFull()) throw serverBusy();
    this.#stream = new BodyStream(this.#incoming, length, this.#options);
    running.beginStreaming(this.#incoming);
    return this.#stream;
  }

  /** The time spent waiting for the client. */
  get waitedMilliseconds(): number {
    return this.#stream?.waitedMilliseconds ?? 0;
  }

  /** The client has disconnected: releases what was received. */
  discard(): void {
    this.#stream?.discard();
  }

  /** Before the reply: no more of the body is used. A short rest is read and dropped, but not for ever. */
  abandon(): void {
    this.#isUnread = this.#hasLongRest();
    this.#stream?.discard();
    if (!this.#isUnread && !this.#incoming.complete) drainWithin(this.#incoming, this.#options.idleMilliseconds);
  }

  /** After `abandon`: so much is still to come that the connection is closed after the reply, by `lingeringClose`. */
  get isUnread(): boolean {
    return this.#isUnread;
  }

  /**
   * Ends the response and the connection while the client is still sending its body. Closing at once would reset the connection, and the
   * client would lose the response; so the rest is read and dropped for a moment.
   */
  lingeringClose(): void {
    const end = () => {
      clearTimeout(timer);
      this.#outgoing.end();
    };
    const timer = setTimeout(end, LINGER_MILLISECONDS);
    this.#incoming.once('end', end);
    this.#incoming.once('close', end);
    readWithBudget(this.#incoming, this.#options.budget, () => true).resume();
  }

  #hasLongRest(): boolean {
    const { complete, readableEnded, headers } = this.#incoming;
    if (complete || readableEnded) return false;
    if (this.#stream) return this.#stream.remaining > DRAIN_BYTES_MAX;
    const declared = headers['content-length'];
    return declared === undefined ? headers['transfer-encoding'] !== undefined : Number(declared) > DRAIN_BYTES_MAX;
  }
}

function drainWithin(incoming: IncomingMessage, milliseconds: number): void {
  const timer = setTimeout(() => incoming.complete || incoming.socket.destroy(), milliseconds).unref();
  incoming.once('close', () => clearTimeout(timer));
}

/** Never uses more memory than was reserved: each piece is released once it has been copied. */
async function concatBody(body: BodyStream, length: number): Promise<Buffer> {
  const whole = Buffer.allocUnsafe(length);
  let at = 0;
  for await (const chunk of body) {
    whole.set(chunk, at);
    at += chunk.length;
    detachBuffers([chunk]);
  }
  return whole;
}
