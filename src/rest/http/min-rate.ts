/** Waiting for the other end of a connection: as long as something moves. */
import type { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';

/** Without a byte for so long, a client that is waited for loses its connection. */
export const IDLE_MILLISECONDS = 120_000;
/** Waiting for a client uses it up, bytes give it back: one byte now and then does not keep a connection for ever. */
export interface MinRate {
  addWait(milliseconds: number, bytes: number): void;
  isViolated(): boolean;
}

export function createMinRate(milliseconds: number, bytesPerSecondMin: number): MinRate {
  let millisecondsLeft = milliseconds;
  return {
    addWait: (spent, bytes) => {
      millisecondsLeft = Math.min(milliseconds, millisecondsLeft - spent + (bytes / bytesPerSecondMin) * 1_000);
    },
    isViolated: () => millisecondsLeft <= 0,
  };
}

export interface Wait {
  readonly done: Promise<void>;
  /** Waits no longer; `over` resolves. */
  end(): void;
}

/** How many waits on a connection watch over its silence: with pipelining one answer goes out while another body comes in. */
const idleTimerUsers = new WeakMap<Socket, number>();

/**
 * Over with the event, or when the connection is gone. Node ends a connection that its timer finds silent, and counts a part of
 * a write as a sign of life. It runs only now: while the client waits for the server, silence means nothing.
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
  // Node's own listener for the end of an answer starts the timer of keep-alive, which is not to be stopped: so this one comes first.
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

function resolvable(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
