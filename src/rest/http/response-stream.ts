/** Response streams with back-pressure: each piece is pulled once the client has received the one before. Replies charge the byte budget. */
import type { IncomingMessage } from 'node:http';
import { limitPerTick } from '../../base/time-slices.ts';
import type { Reply } from '../reply.ts';
import type { RequestContext } from '../request.ts';
import { ClientDisconnected, type StreamOptions } from './body-stream.ts';
import type { BudgetShare, ByteBudget } from './byte-budget.ts';
import { serverBusy } from './limits.ts';
import { waitForEvent } from './min-rate.ts';
import { type BufferedStream, isBufferedStream, SLICE_BYTES } from './streamed.ts';

type Exchange = Pick<RequestContext, 'incoming' | 'outgoing' | 'replyShare'>;

/**
 * Large pieces after which the next is pulled in the same turn of the event loop, of all streams together. Node accepts one connection per
 * turn: a thousand downloads must not make a turn so long that no other client can connect.
 */
const nextTurn = limitPerTick(4);

/** Most replies have at most this many bytes, and are sent with one write. */
export const UNCHARGED_BYTES_MAX = 16 << 10;

/** Waits until the byte budget admits a reply of this many bytes, before it is produced. */
export async function reserveReply({ incoming, replyShare }: Exchange, bytes: number): Promise<void> {
  if (!(await replyShare.reserve(bytes))) throw serverBusy();
  if (incoming.socket.destroyed)
    throw new ClientDisconnected('the connection broke while its request waited for the byte budget');
}

/** Charges a reply that is sent as a whole until the client has received it. */
export function chargeUntilSent({ incoming, outgoing, replyShare }: Exchange, bytes: number, budget: ByteBudget): void {
  const { socket } = incoming;
  const isCharged = bytes > UNCHARGED_BYTES_MAX && !socket.destroyed;
  if (isCharged && isBudgetChecked(incoming, replyShare) && budget.isFull()) throw serverBusy();
  replyShare.set(isCharged ? bytes : 0);
  if (isCharged) void waitForEvent(outgoing, 'close', socket).done.then(() => replyShare.set(0));
}

/** A request that changed something gets its reply however full the budget is, and so does one whose reply was reserved. */
function isBudgetChecked({ method }: IncomingMessage, share: BudgetShare): boolean {
  return method === 'GET' && share.bytes === 0;
}

export class ResponseStream {
  readonly #exchange: Exchange;
  readonly #options: StreamOptions;
  readonly #pieces: AsyncIterator<Uint8Array>;
  /** The body, if some of its pieces are in memory before they are pulled. */
  readonly #buffered: BufferedStream | undefined;
  /** Undefined: chunked. NaN: the row has forgotten it. */
  readonly #length: number | undefined;
  readonly #isBudgetChecked: boolean;
  readonly #wasBudgetFull: boolean;
  readonly #reservedBytes: number;
  #firstPiece: IteratorResult<Uint8Array> | undefined;
  /** True once the iterator has ended, failed or been returned: `return` is called at most once. */
  #isEnded = false;
  #bytesSent = 0;
  /** The bytes of the piece that the client is receiving. */
  #pieceBytes = 0;

  constructor(body: AsyncIterable<Uint8Array>, reply: Reply, exchange: Exchange, options: StreamOptions) {
    const { incoming, replyShare } = exchange;
    const { 'Content-Length': length = Number.NaN, 'Transfer-Encoding': coding } = reply.headers ?? {};
    this.#exchange = exchange;
    this.#options = options;
    this.#pieces = body[Symbol.asyncIterator]();
    this.#buffered = isBufferedStream(body) ? body : undefined;
    this.#length = coding === undefined ? Number(length) : undefined;
    this.#isBudgetChecked = isBudgetChecked(incoming, replyShare);
    this.#wasBudgetFull = options.budget.isFull();
    this.#reservedBytes = replyShare.bytes;
    this.#buffered?.onProduced?.(() => {
      if (!this.#isEnded) this.#charge(this.#pieceBytes);
    });
    this.#charge(0);
  }

  get bytesSent(): number {
    return this.#bytesSent;
  }

  /** Pulls the first piece, so that a failure can still be answered with an error. HEAD has no pieces: the stream is released at once. */
  async start(): Promise<void> {
    const { incoming, outgoing } = this.#exchange;
    const { socket } = incoming;
    try {
      if (Number.isNaN(this.#length)) throw new Error('a streamed answer has no Content-Length');
      if (incoming.method === 'HEAD') return await this.release();
      // A pipelined response holds no piece in memory until the responses before it are sent.
      if (!outgoing.socket && !socket.destroyed) await waitForEvent(outgoing, 'socket', socket).done;
      if (socket.destroyed) throw new ClientDisconnected('the connection broke before the answer');
      const isOverBudget = this.#buffered ? this.#wasBudgetFull : this.#options.budget.isFull();
      if (this.#isBudgetChecked && isOverBudget) throw serverBusy();
      this.#firstPiece = await this.#next();
      // The first pieces of many streams can come together.
      if (this.#pieceBytes >= SLICE_BYTES) await nextTurn();
    } catch (error) {
      await this.release();
      throw error;
    }
  }

  /** After the head: sends all pieces. Fails with ClientDisconnected or with the error of the stream; the connection is unusable then. */
  async sendPieces(): Promise<void> {
    const { incoming, outgoing } = this.#exchange;
    const length = this.#length;
    let piece = this.#firstPiece;
    this.#firstPiece = undefined;
    if (!piece) return;
    try {
      for (; !piece.done; piece = await this.#next()) {
        this.#bytesSent += piece.value.length;
        if (length !== undefined && this.#bytesSent > length)
          throw new Error(`the answer has more than the ${length} bytes that it promised`);
        if (!outgoing.write(piece.value)) await this.#waitForClient('drain');
        if (incoming.socket.destroyed) throw new ClientDisconnected('the connection broke in the middle of the answer');
      }
      if (length !== undefined && this.#bytesSent < length)
        throw new Error(`the answer has only ${this.#bytesSent} of the ${length} bytes that it promised`);
    } finally {
      await this.release();
    }
  }

  /** Ends the response. Resolves once the client, or the system on its behalf, has received all of it. */
  async end(): Promise<void> {
    const { incoming, outgoing } = this.#exchange;
    outgoing.end();
    if (!outgoing.writableFinished) await this.#waitForClient('finish');
    if (incoming.socket.destroyed && !outgoing.writableFinished)
      throw new ClientDisconnected('the connection broke at the end of the answer');
  }

  /** Pieces that were not sent yet will not be. */
  async release(): Promise<void> {
    this.#pieceBytes = 0;
    this.#exchange.replyShare.set(0);
    if (this.#isEnded) return;
    this.#isEnded = true;
    await this.#pieces.return?.();
  }

  /** A stream that ended or failed has released its resources itself. */
  async #next(): Promise<IteratorResult<Uint8Array>> {
    try {
      if (this.#pieceBytes >= SLICE_BYTES) await nextTurn();
      const piece = await this.#pieces.next();
      this.#isEnded = piece.done === true;
      this.#charge(piece.done ? 0 : piece.value.length);
      return piece;
    } catch (error) {
      this.#isEnded = true;
      throw error;
    }
  }

  /** Produced bytes are charged, whether the client has received them or not. */
  #charge(pieceBytes: number): void {
    this.#pieceBytes = pieceBytes;
    const buffered = this.#buffered;
    const inMemory = pieceBytes + (buffered?.bufferedBytes() ?? 0);
    this.#exchange.replyShare.set(buffered?.isProducing?.() ? Math.max(this.#reservedBytes, inMemory) : inMemory);
  }

  async #waitForClient(event: 'drain' | 'finish'): Promise<void> {
    const { incoming, outgoing } = this.#exchange;
    const { socket } = incoming;
    if (!socket.destroyed) await waitForEvent(outgoing, event, socket, this.#options.idleMilliseconds).done;
  }
}
