/** A request body as a stream with back-pressure, a byte budget and a minimum rate. */
import type { IncomingMessage } from 'node:http';
import { detachBuffers } from '../../base/detach-buffers.ts';
import type { ByteBudget } from './byte-budget.ts';
import { MinRate, type Wait, waitForEvent } from './min-rate.ts';

/** The client closed the connection, so there is no reply. */
export class ClientDisconnected extends Error {
  override readonly name = 'ClientDisconnected';
}

/** With this many bytes not pulled yet, the socket is not read until half of them are pulled. */
const READ_AHEAD_BYTES_MAX = 512 * 1024;

export interface StreamOptions {
  readonly idleMilliseconds: number;
  readonly bytesPerSecondMin: number;
  /** The waiting time that a client slower than the minimum rate may use up. */
  readonly rateGraceMilliseconds: number;
  readonly budget: ByteBudget;
}

/** Read once. It fails with ClientDisconnected when the connection does. Node's parser enforces the Content-Length. */
export class BodyStream implements AsyncIterableIterator<Uint8Array> {
  readonly #incoming: IncomingMessage;
  readonly #budget: ByteBudget;
  readonly #idleMilliseconds: number;
  readonly #minRate: MinRate;
  readonly #reader: { resume(): void };
  /** The length was reserved before: all of the body stays in memory until the reply. */
  readonly #isReserved: boolean;
  /** As the socket delivered them: Node's own buffer would join them. */
  readonly #received: Buffer[] = [];
  /** The bytes in #received. */
  #readAhead = 0;
  /** The bytes that this body has charged to the budget. Each is released once: by recycle, or the rest of them by #stop. */
  #chargedBytes: number;
  /** Bytes that were not pulled yet. */
  #remaining: number;
  #waitedMilliseconds = 0;
  #isStopped = false;
  #wait: Wait | undefined;
  #isWakeScheduled = false;

  constructor(incoming: IncomingMessage, length: number, options: StreamOptions, isReserved = false) {
    this.#incoming = incoming;
    this.#budget = options.budget;
    this.#idleMilliseconds = options.idleMilliseconds;
    this.#minRate = new MinRate(options.rateGraceMilliseconds, options.bytesPerSecondMin);
    this.#isReserved = isReserved;
    this.#chargedBytes = isReserved ? length : 0;
    this.#remaining = length;
    this.#reader = readWithBudget(incoming, options.budget, (chunk) => this.#onChunk(chunk));
  }

  get remaining(): number {
    return this.#remaining;
  }

  /** The time spent waiting for the client. */
  get waitedMilliseconds(): number {
    return this.#waitedMilliseconds;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Uint8Array>> {
    while (this.#remaining > 0) {
      if (this.#readAhead < READ_AHEAD_BYTES_MAX / 2) this.#reader.resume();
      const chunk = this.#isStopped ? undefined : this.#received.shift();
      if (chunk) {
        this.#remaining -= chunk.length;
        this.#readAhead -= chunk.length;
        return { done: false, value: chunk };
      }
      if (this.#isStopped || this.#incoming.socket.destroyed)
        throw new ClientDisconnected('the connection broke before the end of the body');
      await this.#waitForChunk();
    }
    return { done: true, value: undefined };
  }

  async return(): Promise<IteratorResult<Uint8Array>> {
    this.#stop();
    return { done: true, value: undefined };
  }

  /** Before the reply: the rest is dropped as it arrives, and a pending `next` fails with ClientDisconnected. */
  discard(): void {
    this.#stop();
    this.#reader.resume();
  }

  /** Releases pieces that are not used any more: those of a long body would cost V8's collector much time. */
  recycle(pieces: readonly Uint8Array[]): void {
    this.#release(pieces.reduce((sum, piece) => sum + piece.length, 0));
    detachBuffers(pieces);
  }

  async #waitForChunk(): Promise<void> {
    const began = performance.now();
    this.#wait = waitForEvent(this.#incoming, 'end', this.#incoming.socket, this.#idleMilliseconds);
    await this.#wait.done;
    this.#wait = undefined;
    const milliseconds = performance.now() - began;
    this.#waitedMilliseconds += milliseconds;
    this.#minRate.addWait(milliseconds, this.#readAhead);
    if (this.#minRate.isViolated()) this.#incoming.socket.destroy();
  }

  /** Whether more is wanted. */
  #onChunk(chunk: Buffer): boolean {
    if (this.#isStopped) return true;
    this.#received.push(chunk);
    this.#readAhead += chunk.length;
    if (!this.#isReserved) {
      this.#chargedBytes += chunk.length;
      this.#budget.add(chunk.length, true);
    }
    if (this.#wait && !this.#isWakeScheduled) {
      this.#isWakeScheduled = true;
      // Wakes once for all chunks that the socket has at the moment.
      setImmediate(() => {
        this.#isWakeScheduled = false;
        this.#wait?.end();
      });
    }
    return this.#readAhead < READ_AHEAD_BYTES_MAX;
  }

  #stop(): void {
    this.#isStopped = true;
    this.#received.length = 0;
    this.#readAhead = 0;
    this.#release(this.#chargedBytes);
    this.#wait?.end();
  }

  #release(bytes: number): void {
    const released = Math.min(bytes, this.#chargedBytes);
    this.#chargedBytes -= released;
    this.#budget.add(-released, !this.#isReserved);
  }
}

/**
 * Reads while the budget permits, and stops where `onChunk` wants no more. Nothing is read before the first `resume`, except the chunk that
 * Node has read already: it reads one further than it was told to.
 */
export function readWithBudget(incoming: IncomingMessage, budget: ByteBudget, onChunk: (chunk: Buffer) => boolean) {
  let isReading = false;
  let isQueued = false;

  function begin(): void {
    isQueued = false;
    isReading = true;
    incoming.resume();
  }

  function resume(): void {
    if (isReading || isQueued) return;
    isQueued = true;
    budget.whenReadable(begin);
  }

  incoming.pause();
  incoming.on('data', (chunk: Buffer) => {
    const isWanted = onChunk(chunk);
    const mayContinue = budget.chargeRead(chunk.length);
    if (isWanted && mayContinue) return;
    isReading = false;
    incoming.pause();
    if (isWanted) resume();
  });
  return { resume };
}
