/** Answers that stream: each piece is asked for once the client has taken the one before. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { limitPerTick } from '../../base/per-tick-limit.ts';
import { bodyLength, bodyPieces, type Reply } from '../reply.ts';
import type { BudgetShare } from './byte-budget.ts';
import { serverBusy } from './limits.ts';
import { IDLE_MILLISECONDS, waitForEvent } from './min-rate.ts';
import { type BodyOptions, ClientDisconnected } from './request-body.ts';
import { isBufferedStream, streamSlices } from './streamed.ts';

export interface ResponseStream {
  /** Asks for the first piece, so that what is wrong with it can still be answered. HEAD has none: it lets go at once. */
  start(): Promise<void>;
  /** Behind the head: sends all pieces. Fails with Gone, or with what is wrong; then the connection cannot be used again. */
  sendPieces(): Promise<void>;
  /** Nothing follows. Resolves once the client, or the system on its behalf, has taken all. */
  end(): Promise<void>;
  /** What is not sent will not be. */
  release(): Promise<void>;
  bytesSent(): number;
}

export function isStream(body: Reply['body']): body is AsyncIterable<Uint8Array> {
  return typeof body === 'object' && !(body instanceof Uint8Array) && Symbol.asyncIterator in body;
}

/**
 * Pieces behind large ones that go out in one turn of the event loop, of all answers together. Node takes one new connection a turn: a thousand
 * downloads must not make a turn so long that nobody else gets in.
 */
const nextTurn = limitPerTick(4);

/** Of an answer that is there as a whole, so much is handed to the system at once. */
const SLICE_BYTES = 64 << 10;
/** More than the system takes at once: a client may leave it lying. */
const UNSTREAMED_BYTES_MAX = 256 << 10;

/** A large answer goes out as a stream does, so that a client that does not take it is noticed. */
export function streamIfLarge(reply: Reply): Reply {
  const { body, headers } = reply;
  if (body === undefined || isStream(body)) return reply;
  const length = bodyLength(body);
  if (length <= UNSTREAMED_BYTES_MAX) return reply;
  const pieces = streamSlices(bodyPieces(body), SLICE_BYTES);
  return { ...reply, headers: { ...headers, 'Content-Length': length }, body: pieces };
}

/** What has changed something is answered however full the memory is, and so is what was given room before it was made. */
export function isBudgetChecked({ method }: IncomingMessage, share: BudgetShare): boolean {
  return method === 'GET' && share.bytes === 0;
}

export function createResponseStream(
  body: AsyncIterable<Uint8Array>,
  reply: Reply,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  { idleMilliseconds = IDLE_MILLISECONDS, memory }: BodyOptions,
  share: BudgetShare,
): ResponseStream {
  const { socket } = incoming;
  const pieces = body[Symbol.asyncIterator]();
  const { 'Content-Length': declaredLength, 'Transfer-Encoding': coding } = reply.headers ?? {};
  const length = Number(declaredLength ?? Number.NaN);
  const needsContentLength = coding === undefined;
  let firstPiece: IteratorResult<Uint8Array> | undefined;
  let isEnded = false;
  let sent = 0;
  /** Of the piece that the client is to take. */
  let pieceBytes = 0;
  const buffered = isBufferedStream(body) ? body : undefined;
  const isChecked = isBudgetChecked(incoming, share);
  const reserved = share.bytes;
  const isOverBudget = isChecked && memory.isFull();
  buffered?.onMore?.(() => {
    if (!isEnded) charge(pieceBytes);
  });
  charge(0);

  /** What is made counts, whether the client takes it or not. */
  function charge(bytes: number): void {
    pieceBytes = bytes;
    const inMemory = bytes + (buffered?.waiting() ?? 0);
    share.set(buffered?.isGrowing?.() ? Math.max(reserved, inMemory) : inMemory);
  }

  /** A stream that ended or failed has let go by itself. */
  async function next(): Promise<IteratorResult<Uint8Array>> {
    try {
      if (pieceBytes >= SLICE_BYTES) await nextTurn();
      const piece = await pieces.next();
      isEnded = piece.done === true;
      charge(piece.done ? 0 : piece.value.length);
      return piece;
    } catch (error) {
      isEnded = true;
      throw error;
    }
  }

  async function release(): Promise<void> {
    pieceBytes = 0;
    share.set(0);
    if (isEnded) return;
    isEnded = true;
    await pieces.return?.();
  }

  async function start(): Promise<void> {
    try {
      if (needsContentLength && Number.isNaN(length)) throw new Error('a streamed answer has no Content-Length');
      if (incoming.method === 'HEAD') return await release();
      // Behind others on its connection it holds no piece in memory until they are through.
      if (!outgoing.socket && !socket.destroyed) await waitForEvent(outgoing, 'socket', socket).done;
      if (socket.destroyed) throw new ClientDisconnected('the connection broke before the answer');
      if (buffered ? isOverBudget : isChecked && memory.isFull()) throw serverBusy();
      firstPiece = await next();
      // The first ones of many can come together.
      if (pieceBytes >= SLICE_BYTES) await nextTurn();
    } catch (error) {
      await release();
      throw error;
    }
  }

  async function sendPieces(): Promise<void> {
    let piece = firstPiece;
    firstPiece = undefined;
    if (!piece) return;
    try {
      for (; !piece.done; piece = await next()) {
        sent += piece.value.length;
        if (needsContentLength && sent > length)
          throw new Error(`the answer has more than the ${length} bytes that it promised`);
        if (!outgoing.write(piece.value)) await waitForClient('drain');
        if (socket.destroyed) throw new ClientDisconnected('the connection broke in the middle of the answer');
      }
      if (needsContentLength && sent < length)
        throw new Error(`the answer has only ${sent} of the ${length} bytes that it promised`);
    } finally {
      await release();
    }
  }

  async function end(): Promise<void> {
    outgoing.end();
    if (!outgoing.writableFinished) await waitForClient('finish');
    if (socket.destroyed && !outgoing.writableFinished)
      throw new ClientDisconnected('the connection broke at the end of the answer');
  }

  async function waitForClient(event: 'drain' | 'finish'): Promise<void> {
    if (!socket.destroyed) await waitForEvent(outgoing, event, socket, idleMilliseconds).done;
  }

  return { start, sendPieces, end, release, bytesSent: () => sent };
}
