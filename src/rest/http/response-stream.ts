/** Answers that stream: each piece is asked for once the client has taken the one before. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { turnsOf } from '../../base/per-tick-limit.ts';
import { lengthOf, piecesOf, type Reply } from '../reply.ts';
import type { Share } from './byte-budget.ts';
import { serverBusy } from './limits.ts';
import { IDLE_MILLISECONDS, waitFor } from './min-rate.ts';
import { type BodyOptions, Gone } from './request-body.ts';
import { isMade, slicesOf } from './streamed.ts';

export interface Download {
  /** Asks for the first piece, so that what is wrong with it can still be answered. HEAD has none: it lets go at once. */
  begin(): Promise<void>;
  /** Behind the head: sends all pieces. Fails with Gone, or with what is wrong; then the connection cannot be used again. */
  send(): Promise<void>;
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
const turn = turnsOf(4);

/** Of an answer that is there as a whole, so much is handed to the system at once. */
const SLICE_BYTES = 64 << 10;
/** More than the system takes at once: a client may leave it lying. */
const WHOLE_BYTES_MAX = 256 << 10;

/** A large answer goes out as a stream does, so that a client that does not take it is noticed. */
export function streamedIfLarge(reply: Reply): Reply {
  const { body, headers } = reply;
  if (body === undefined || isStream(body)) return reply;
  const length = lengthOf(body);
  if (length <= WHOLE_BYTES_MAX) return reply;
  const pieces = slicesOf(piecesOf(body), SLICE_BYTES);
  return { ...reply, headers: { ...headers, 'Content-Length': length }, body: pieces };
}

/** What has changed something is answered however full the memory is, and so is what was given room before it was made. */
export function mustFit({ method }: IncomingMessage, share: Share): boolean {
  return method === 'GET' && share.bytes === 0;
}

export function downloadOf(
  body: AsyncIterable<Uint8Array>,
  reply: Reply,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  { idleMilliseconds = IDLE_MILLISECONDS, memory }: BodyOptions,
  share: Share,
): Download {
  const { socket } = incoming;
  const pieces = body[Symbol.asyncIterator]();
  const { 'Content-Length': promised, 'Transfer-Encoding': coding } = reply.headers ?? {};
  const length = Number(promised ?? Number.NaN);
  const isMeasured = coding === undefined;
  let first: IteratorResult<Uint8Array> | undefined;
  let over = false;
  let sent = 0;
  /** Of the piece that the client is to take. */
  let held = 0;
  const made = isMade(body) ? body : undefined;
  const isToFit = mustFit(incoming, share);
  const reserved = share.bytes;
  const isTooMuch = isToFit && memory.isFull();
  made?.onMore?.(() => {
    if (!over) hold(held);
  });
  hold(0);

  /** What is made counts, whether the client takes it or not. */
  function hold(bytes: number): void {
    held = bytes;
    const known = bytes + (made?.waiting() ?? 0);
    share.set(made?.isGrowing?.() ? Math.max(reserved, known) : known);
  }

  /** A stream that ended or failed has let go by itself. */
  async function next(): Promise<IteratorResult<Uint8Array>> {
    try {
      if (held >= SLICE_BYTES) await turn();
      const piece = await pieces.next();
      over = piece.done === true;
      hold(piece.done ? 0 : piece.value.length);
      return piece;
    } catch (error) {
      over = true;
      throw error;
    }
  }

  async function release(): Promise<void> {
    held = 0;
    share.set(0);
    if (over) return;
    over = true;
    await pieces.return?.();
  }

  async function begin(): Promise<void> {
    try {
      if (isMeasured && Number.isNaN(length)) throw new Error('a streamed answer has no Content-Length');
      if (incoming.method === 'HEAD') return await release();
      // Behind others on its connection it holds no piece in memory until they are through.
      if (!outgoing.socket && !socket.destroyed) await waitFor(outgoing, 'socket', socket).over;
      if (socket.destroyed) throw new Gone('the connection broke before the answer');
      if (made ? isTooMuch : isToFit && memory.isFull()) throw serverBusy();
      first = await next();
      // The first ones of many can come together.
      if (held >= SLICE_BYTES) await turn();
    } catch (error) {
      await release();
      throw error;
    }
  }

  async function send(): Promise<void> {
    let piece = first;
    first = undefined;
    if (!piece) return;
    try {
      for (; !piece.done; piece = await next()) {
        sent += piece.value.length;
        if (isMeasured && sent > length)
          throw new Error(`the answer has more than the ${length} bytes that it promised`);
        if (!outgoing.write(piece.value)) await takes('drain');
        if (socket.destroyed) throw new Gone('the connection broke in the middle of the answer');
      }
      if (isMeasured && sent < length)
        throw new Error(`the answer has only ${sent} of the ${length} bytes that it promised`);
    } finally {
      await release();
    }
  }

  async function end(): Promise<void> {
    outgoing.end();
    if (!outgoing.writableFinished) await takes('finish');
    if (socket.destroyed && !outgoing.writableFinished) throw new Gone('the connection broke at the end of the answer');
  }

  async function takes(event: 'drain' | 'finish'): Promise<void> {
    if (!socket.destroyed) await waitFor(outgoing, event, socket, idleMilliseconds).over;
  }

  return { begin, send, end, release, bytesSent: () => sent };
}
