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
  said: boolean;
  /** Not read from until some of its requests are answered. */
  held: boolean;
  /** The parser has given up on it. */
  failed: boolean;
  /** One of its requests is. */
  readonly answered: () => void;
  /** What is left to do when all requests are answered. */
  part: (() => void) | undefined;
  /** Bytes that the client has not taken, and since when it is just so many. */
  stuck: { readonly bytes: number; readonly since: number };
}

export interface ConnectionOptions {
  readonly pipelinedMax: number;
  readonly bytesPerSecondMin: number;
  readonly idleMilliseconds: number;
}

export interface Connections {
  /** A request arrives. False: it comes behind the last one of its connection, and is neither run nor answered. */
  arrives(incoming: IncomingMessage, outgoing: ServerResponse): boolean;
  /** This request, which has just arrived, is the last of its connection. */
  endWith(incoming: IncomingMessage): void;
  isLast(incoming: IncomingMessage): boolean;
  /** All of the answer to this request is written, though it may not be ended yet. */
  says(incoming: IncomingMessage): void;
  /** What has come is not a request, or does not become one. */
  fail(socket: Socket, refuse: () => void): void;
  /** Stops to look after those that stand still. */
  close(): void;
}

const STUCK_LOOKS_MILLISECONDS = 5_000;
/** One read of the socket can hold many more requests than may be open; no more than an honest client would send in it. */
const AT_ONCE_FACTOR = 4;

export function connectionsOf(options: ConnectionOptions): Connections {
  const { pipelinedMax, bytesPerSecondMin, idleMilliseconds } = options;
  const known = new Map<Socket, Connection>();

  function connectionOf(socket: Socket): Connection {
    const found = known.get(socket);
    if (found) return found;
    const stuck = { bytes: 0, since: 0 };
    const made: Connection = {
      socket,
      unanswered: 0,
      newest: undefined,
      last: undefined,
      said: false,
      failed: false,
      held: false,
      answered: () => answered(made),
      part: undefined,
      stuck,
    };
    known.set(socket, made);
    socket.once('close', () => known.delete(socket));
    // Node goes on reading for reasons of its own: when a body is asked for, when its own answers have gone out.
    socket.on('resume', () => made.held && socket.pause());
    return made;
  }

  function arrives(incoming: IncomingMessage, outgoing: ServerResponse): boolean {
    const connection = connectionOf(incoming.socket);
    if (connection.last) return false;
    connection.unanswered++;
    connection.newest = { incoming, outgoing };
    connection.said = false;
    outgoing.once('close', connection.answered);
    if (connection.unanswered >= pipelinedMax * AT_ONCE_FACTOR) {
      connection.last = incoming;
      incoming.socket.destroy();
      return false;
    }
    if (connection.unanswered >= pipelinedMax && !connection.held) {
      connection.held = true;
      incoming.socket.pause();
    }
    return true;
  }

  function answered(connection: Connection): void {
    connection.unanswered--;
    if (connection.held && connection.unanswered <= pipelinedMax / 2) {
      connection.held = false;
      connection.socket.resume();
    }
    if (connection.unanswered === 0) connection.part?.();
  }

  function fail(socket: Socket, refuse: () => void): void {
    const connection = connectionOf(socket);
    const { newest, unanswered, said, last } = connection;
    if (connection.failed) return;
    connection.failed = true;
    if (unanswered === 0) refuse();
    else if (said) {
      // Its body will not end any more.
      newest!.outgoing.end();
      if (!last) connection.part = refuse;
    }
    // In the middle of an answer there is no place for another.
    else if (newest!.outgoing.headersSent) socket.destroy();
    // The answers of those before it come first: the client would take this one for the first of them.
    else if (newest!.incoming.complete) connection.part = refuse;
    else if (unanswered === 1) refuse();
    else socket.destroy();
  }

  function cutStuck(): void {
    const now = performance.now();
    for (const connection of known.values()) {
      const { socket, stuck } = connection;
      const bytes = socket.writableLength;
      if (bytes === 0 || bytes !== stuck.bytes) connection.stuck = { bytes, since: now };
      else if (now - stuck.since > idleMilliseconds + (bytes / bytesPerSecondMin) * 1_000) socket.destroy();
    }
  }
  const timer = setInterval(cutStuck, Math.min(STUCK_LOOKS_MILLISECONDS, Math.ceil(idleMilliseconds / 4))).unref();

  return {
    arrives,
    endWith: (incoming) => {
      connectionOf(incoming.socket).last = incoming;
    },
    says: (incoming) => {
      const connection = known.get(incoming.socket);
      if (connection?.newest?.incoming === incoming) connection.said = true;
    },
    isLast: (incoming) => known.get(incoming.socket)?.last === incoming,
    fail,
    close: () => clearInterval(timer),
  };
}
