/** Connections: how many requests one may have open, which of them is its last, and what is cut for standing still. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

interface Connection {
  readonly socket: Socket;
  unanswered: number;
  newest: { readonly incoming: IncomingMessage; readonly outgoing: ServerResponse } | undefined;
  /** Behind this request nothing is taken: what follows it may be anything. */
  last: IncomingMessage | undefined;
  /** All of the answer to the newest request is written. */
  responseWritten: boolean;
  /** Not read from until some of its requests are answered. */
  paused: boolean;
  /** The parser has given up on it. */
  parserFailed: boolean;
  /** One of its requests is. */
  readonly onAnswered: () => void;
  /** What is left to do when all requests are answered. */
  onAllAnswered: (() => void) | undefined;
  /** Bytes that the client has not taken, and since when it is just so many. */
  stalled: { readonly bytes: number; readonly since: number };
}

export interface ConnectionOptions {
  readonly pipelinedMax: number;
  readonly bytesPerSecondMin: number;
  readonly idleMilliseconds: number;
}

export interface Connections {
  /** A request arrives. False: it comes behind the last one of its connection, and is neither run nor answered. */
  requestArrived(incoming: IncomingMessage, outgoing: ServerResponse): boolean;
  /** This request, which has just arrived, is the last of its connection. */
  markLast(incoming: IncomingMessage): void;
  isLast(incoming: IncomingMessage): boolean;
  /** All of the answer to this request is written, though it may not be ended yet. */
  markResponseWritten(incoming: IncomingMessage): void;
  /** What has come is not a request, or does not become one. */
  parserError(socket: Socket, refuse: () => void): void;
  /** Stops to look after those that stand still. */
  close(): void;
}

const STALL_CHECK_MILLISECONDS = 5_000;
/** One read of the socket can hold many more requests than may be open; no more than an honest client would send in it. */
const PIPELINE_OVERRUN_FACTOR = 4;

export function trackConnections(options: ConnectionOptions): Connections {
  const { pipelinedMax, bytesPerSecondMin, idleMilliseconds } = options;
  const connections = new Map<Socket, Connection>();

  function connectionFor(socket: Socket): Connection {
    const found = connections.get(socket);
    if (found) return found;
    const stalled = { bytes: 0, since: 0 };
    const made: Connection = {
      socket,
      unanswered: 0,
      newest: undefined,
      last: undefined,
      responseWritten: false,
      parserFailed: false,
      paused: false,
      onAnswered: () => requestAnswered(made),
      onAllAnswered: undefined,
      stalled,
    };
    connections.set(socket, made);
    socket.once('close', () => connections.delete(socket));
    // Node goes on reading for reasons of its own: when a body is asked for, when its own answers have gone out.
    socket.on('resume', () => made.paused && socket.pause());
    return made;
  }

  function requestArrived(incoming: IncomingMessage, outgoing: ServerResponse): boolean {
    const connection = connectionFor(incoming.socket);
    if (connection.last) return false;
    connection.unanswered++;
    connection.newest = { incoming, outgoing };
    connection.responseWritten = false;
    outgoing.once('close', connection.onAnswered);
    if (connection.unanswered >= pipelinedMax * PIPELINE_OVERRUN_FACTOR) {
      connection.last = incoming;
      incoming.socket.destroy();
      return false;
    }
    if (connection.unanswered >= pipelinedMax && !connection.paused) {
      connection.paused = true;
      incoming.socket.pause();
    }
    return true;
  }

  function requestAnswered(connection: Connection): void {
    connection.unanswered--;
    if (connection.paused && connection.unanswered <= pipelinedMax / 2) {
      connection.paused = false;
      connection.socket.resume();
    }
    if (connection.unanswered === 0) connection.onAllAnswered?.();
  }

  function parserError(socket: Socket, refuse: () => void): void {
    const connection = connectionFor(socket);
    const { newest, unanswered, responseWritten, last } = connection;
    if (connection.parserFailed) return;
    connection.parserFailed = true;
    if (unanswered === 0) refuse();
    else if (responseWritten) {
      // Its body will not end any more.
      newest!.outgoing.end();
      if (!last) connection.onAllAnswered = refuse;
    }
    // In the middle of an answer there is no place for another.
    else if (newest!.outgoing.headersSent) socket.destroy();
    // The answers of those before it come first: the client would take this one for the first of them.
    else if (newest!.incoming.complete) connection.onAllAnswered = refuse;
    else if (unanswered === 1) refuse();
    else socket.destroy();
  }

  function closeStalled(): void {
    const now = performance.now();
    for (const connection of connections.values()) {
      const { socket, stalled } = connection;
      const bytes = socket.writableLength;
      if (bytes === 0 || bytes !== stalled.bytes) connection.stalled = { bytes, since: now };
      else if (now - stalled.since > idleMilliseconds + (bytes / bytesPerSecondMin) * 1_000) socket.destroy();
    }
  }
  const timer = setInterval(closeStalled, Math.min(STALL_CHECK_MILLISECONDS, Math.ceil(idleMilliseconds / 4))).unref();

  return {
    requestArrived,
    markLast: (incoming) => {
      connectionFor(incoming.socket).last = incoming;
    },
    markResponseWritten: (incoming) => {
      const connection = connections.get(incoming.socket);
      if (connection?.newest?.incoming === incoming) connection.responseWritten = true;
    },
    isLast: (incoming) => connections.get(incoming.socket)?.last === incoming,
    parserError,
    close: () => clearInterval(timer),
  };
}
