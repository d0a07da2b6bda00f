/** Minimum-rate enforcement (a token bucket of time) and idle timeouts on a connection. */
import type { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';

/** A client that is waited for loses its connection after this time without a byte. */
export const IDLE_MILLISECONDS = 120_000;

/** Waiting for the client spends the budget of time, received bytes refill it: one byte now and then does not keep a connection for ever. */
export class MinRate {
  readonly #budgetMilliseconds: number;
  readonly #bytesPerSecondMin: number;
  #millisecondsLeft: number;

  constructor(budgetMilliseconds: number, bytesPerSecondMin: number) {
    this.#budgetMilliseconds = budgetMilliseconds;
    this.#bytesPerSecondMin = bytesPerSecondMin;
    this.#millisecondsLeft = budgetMilliseconds;
  }

  addWait(milliseconds: number, bytes: number): void {
    const earned = (bytes / this.#bytesPerSecondMin) * 1_000;
    this.#millisecondsLeft = Math.min(this.#budgetMilliseconds, this.#millisecondsLeft - milliseconds + earned);
  }

  isViolated(): boolean {
    return this.#millisecondsLeft <= 0;
  }
}

export interface Wait {
  readonly done: Promise<void>;
  /** Stops waiting; `done` resolves. */
  end(): void;
}

/**
 * The number of waits that use the idle timer of a socket, which is set exactly while the number is above 0. With pipelining one reply is
 * sent while another body is received.
 */
const idleTimerUsers = new WeakMap<Socket, number>();

/**
 * Resolves with the event, or when the connection is closed. Node closes a connection whose idle timer fires, and counts a partial write
 * as activity. The timer runs during this wait only: while the client waits for the server, silence is no fault.
 */
export function waitForEvent(message: EventEmitter, event: string, socket: Socket, idleMilliseconds?: number): Wait {
  const { promise, resolve } = resolvable();
  let ended = false;
  const end = () => {
    if (ended) return;
    ended = true;
    message.off(event, end);
    socket.off('close', end);
    if (idleMilliseconds !== undefined) stopIdleTimer(socket);
    resolve();
  };
  // Node's own listener for the end of a response starts the keep-alive timer, which must not be stopped: this listener runs before it.
  message.prependOnceListener(event, end);
  socket.once('close', end);
  if (idleMilliseconds !== undefined) startIdleTimer(socket, idleMilliseconds);
  return { done: promise, end };
}

function startIdleTimer(socket: Socket, idleMilliseconds: number): void {
  const count = idleTimerUsers.get(socket) ?? 0;
  idleTimerUsers.set(socket, count + 1);
  if (count === 0) socket.setTimeout(idleMilliseconds);
}

function stopIdleTimer(socket: Socket): void {
  const count = idleTimerUsers.get(socket)! - 1;
  idleTimerUsers.set(socket, count);
  if (count === 0) socket.setTimeout(0);
}

/** Promise.withResolvers, which Node 20 does not have. */
function resolvable(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
