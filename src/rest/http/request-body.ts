/** Bodies of requests: read whole and bounded, handed on as they come, or let go. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { detachBuffers } from '../../base/detach-buffers.ts';
import { commonErrors, errorFactory } from '../../services/common/errors.ts';
import type { BodyReader, Request } from '../operation.ts';
import type { ByteBudget } from './byte-budget.ts';
import { LIMITS } from './limits.ts';
import { createMinRate, IDLE_MILLISECONDS, type Wait, waitForEvent } from './min-rate.ts';

const fail = errorFactory(commonErrors);

/** What remains of a refused body up to this size is read and dropped; behind a larger one the connection ends. */
const DRAIN_BYTES_MAX = 256 * 1024;
/** How long what still comes is read and dropped, before a connection is closed. */
export const LINGER_MILLISECONDS = 2_000;

/** The caller went away: there is nobody to answer. */
export class ClientDisconnected extends Error {
  override readonly name = 'Gone';
}

/** Refuses by what the headers say, before a byte of the body is read. Returns the length. */
export function checkContentLength(incoming: IncomingMessage, reader: BodyReader<unknown>, request: Request): number {
  const declared = incoming.headers['content-length'];
  if (declared === undefined) throw fail('MissingContentLengthHeader');
  const length = Number(declared);
  if (length > reader.bytesMax) throw reader.tooLarge(request);
  return length;
}

/** A small body has come with its headers. */
export function readArrivedBody(incoming: IncomingMessage): Buffer | undefined {
  if (!incoming.complete || incoming.destroyed) return undefined;
  return (incoming.read() as Buffer | null) ?? Buffer.alloc(0);
}

/** A body on its way. To be read once; it fails with Gone when the connection does. */
export interface BodyStream extends AsyncIterableIterator<Uint8Array> {
  /** Bytes that nobody has asked for yet. */
  remaining(): number;
  /** Spent waiting for the sender. */
  waitedMilliseconds(): number;
  /** It is to be answered: what is left is dropped as it comes, and whoever still waits for it gets Gone. */
  discard(): void;
  /** Pieces that nobody needs any more: a long body would leave V8's collector much to do. */
  recycle(pieces: readonly Uint8Array[]): void;
}

/** So much may have come that nobody has asked for; then the sender is not read from until half of it is taken. */
const READ_AHEAD_BYTES_MAX = 512 * 1024;

export interface BodyOptions {
  readonly idleMilliseconds?: number;
  readonly bytesPerSecondMin?: number;
  /** How much slowness adds up to before the connection is cut. */
  readonly rateGraceMilliseconds?: number | undefined;
  readonly memory: ByteBudget;
  /** All of it stays in memory until it is answered: its length has been reserved. */
  readonly isReserved?: boolean;
}

/** The parser holds the sender to its Content-Length. */
export function streamBody(incoming: IncomingMessage, length: number, options: BodyOptions): BodyStream {
  const { idleMilliseconds = IDLE_MILLISECONDS, memory, isReserved = false } = options;
  const { rateGraceMilliseconds = IDLE_MILLISECONDS, bytesPerSecondMin = LIMITS.bytesPerSecondMin } = options;
  const minRate = createMinRate(rateGraceMilliseconds, bytesPerSecondMin);
  /** As the socket gave them: Node's own buffer would join them into one. */
  const received: Buffer[] = [];
  let readAhead = 0;
  /** In memory, until they are given back or the request is answered. */
  let chargedBytes = isReserved ? length : 0;
  let remaining = length;
  let waited = 0;
  let stopped = false;
  let wait: Wait | undefined;
  let isWakeScheduled = false;
  const reader = readWithBudget(incoming, memory, onChunk);

  /** Once for all pieces that the socket has at the moment. */
  function wake(): void {
    isWakeScheduled = false;
    wait?.end();
  }

  /** Whether more is wanted. */
  function onChunk(chunk: Buffer): boolean {
    if (stopped) return true;
    received.push(chunk);
    readAhead += chunk.length;
    if (!isReserved) {
      chargedBytes += chunk.length;
      memory.add(chunk.length, true);
    }
    if (wait && !isWakeScheduled) {
      isWakeScheduled = true;
      setImmediate(wake);
    }
    return readAhead < READ_AHEAD_BYTES_MAX;
  }

  function release(bytes: number): void {
    const released = Math.min(bytes, chargedBytes);
    chargedBytes -= released;
    memory.add(-released, !isReserved);
  }

  function stop(): void {
    stopped = true;
    received.length = 0;
    readAhead = 0;
    release(chargedBytes);
    wait?.end();
  }

  async function next(): Promise<IteratorResult<Uint8Array>> {
    while (remaining > 0) {
      if (readAhead < READ_AHEAD_BYTES_MAX / 2) reader.goOn();
      const chunk = stopped ? undefined : received.shift();
      if (chunk) {
        remaining -= chunk.length;
        readAhead -= chunk.length;
        return { done: false, value: chunk };
      }
      if (stopped || incoming.socket.destroyed)
        throw new ClientDisconnected('the connection broke before the end of the body');
      const began = performance.now();
      wait = waitForEvent(incoming, 'end', incoming.socket, idleMilliseconds);
      await wait.done;
      wait = undefined;
      const milliseconds = performance.now() - began;
      waited += milliseconds;
      minRate.addWait(milliseconds, readAhead);
      if (minRate.isViolated()) incoming.socket.destroy();
    }
    return { done: true, value: undefined };
  }

  return {
    next,
    return: async () => {
      stop();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
    remaining: () => remaining,
    waitedMilliseconds: () => waited,
    discard() {
      stop();
      reader.goOn();
    },
    recycle(pieces) {
      release(pieces.reduce((sum, piece) => sum + piece.length, 0));
      detachBuffers(pieces);
    },
  };
}

/**
 * Reads when it is its turn, and stops where `take` wants no more. Nothing is read before the first `goOn`, but for what Node has
 * already: it reads one piece further than it was told to.
 */
function readWithBudget(incoming: IncomingMessage, memory: ByteBudget, onChunk: (chunk: Buffer) => boolean) {
  let isReading = false;
  let isQueued = false;

  function begin(): void {
    isQueued = false;
    isReading = true;
    incoming.resume();
  }

  function goOn(): void {
    if (isReading || isQueued) return;
    isQueued = true;
    memory.whenReadable(begin);
  }

  incoming.pause();
  incoming.on('data', (chunk: Buffer) => {
    const isWanted = onChunk(chunk);
    const mayContinue = memory.chargeRead(chunk.length);
    if (isWanted && mayContinue) return;
    isReading = false;
    incoming.pause();
    if (isWanted) goOn();
  });
  return { goOn };
}

/** What is left of the body of an answered request is dropped as it comes, but not for ever. */
export function drainWithin(incoming: IncomingMessage, milliseconds: number): void {
  const timer = setTimeout(() => incoming.complete || incoming.socket.destroy(), milliseconds).unref();
  incoming.once('close', () => clearTimeout(timer));
}

/** Never more in memory than what was reserved: each piece is gone once it has been copied. */
export async function concatBody(body: BodyStream, length: number): Promise<Buffer> {
  const whole = Buffer.allocUnsafe(length);
  let at = 0;
  for await (const chunk of body) {
    whole.set(chunk, at);
    at += chunk.length;
    detachBuffers([chunk]);
  }
  return whole;
}

/** Whether so much of the body is still to come that the connection should not be used again. */
export function hasUnreadBody(incoming: IncomingMessage, body: BodyStream | undefined): boolean {
  if (incoming.complete || incoming.readableEnded) return false;
  if (body) return body.remaining() > DRAIN_BYTES_MAX;
  const declared = incoming.headers['content-length'];
  return declared === undefined
    ? incoming.headers['transfer-encoding'] !== undefined
    : Number(declared) > DRAIN_BYTES_MAX;
}

/**
 * Ends a connection whose sender is still busy with its body. Closing at once would reset it, and the answer, though sent,
 * would be lost; so the rest is read and dropped for a moment.
 */
export function lingeringClose(incoming: IncomingMessage, outgoing: ServerResponse, memory: ByteBudget): void {
  const end = () => {
    clearTimeout(timer);
    outgoing.end();
  };
  const timer = setTimeout(end, LINGER_MILLISECONDS);
  incoming.once('end', end);
  incoming.once('close', end);
  readWithBudget(incoming, memory, () => true).goOn();
}
