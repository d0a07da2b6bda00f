/** Connections: HTTP pipelining limits, the last request of a connection, and detection of stalled connections. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

interface Connection {
  readonly socket: Socket;
  unanswered: number;
  newest: { readonly incoming: IncomingMessage; readonly outgoing: ServerResponse } | undefined;
  /** Once set, no further request of the connection may run: the bytes after it may be anything. */
  last: IncomingMessage | undefined;
  /** All of the response to the newest request is written. */
  responseWritten: boolean;
  /** While true, every 'resume' of the socket is undone: the connection is not read until some of its requests have their responses. */
  paused: boolean;
  parserFailed: boolean;
  readonly onAnswered: () => void;
  onAllAnswered: (() => void) | undefined;
  /** The bytes that the client has not received, and since when this number has not changed. */
  stalled: { readonly bytes: number; readonly since: number };
}

interface ConnectionOptions {
  readonly pipelinedMax: number;
  readonly bytesPerSecondMin: number;
  readonly idleMilliseconds: number;
}

const STALL_CHECK_MILLISECONDS = 5_000;
/** One read of the socket can contain many more requests than the limit, but at most this factor more from a well-behaved client. */
const PIPELINE_OVERRUN_FACTOR = 4;

export class Connections {
  readonly #options: ConnectionOptions;
  readonly #connections = new Map<Socket, Connection>();
  readonly #stallTimer: NodeJS.Timeout;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    const interval = Math.min(STALL_CHECK_MILLISECONDS, Math.ceil(options.idleMilliseconds / 4));
    this.#stallTimer = setInterval(() => this.#closeStalled(), interval).unref();
  }

  /** False: the request comes after the last one of its connection, and is neither run nor answered. */
  requestArrived(incoming: IncomingMessage, outgoing: ServerResponse): boolean {
    const { pipelinedMax } = this.#options;
    const connection = this.#connectionFor(incoming.socket);
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

  /** This request, which has just arrived, is the last of its connection. */
  markLast(incoming: IncomingMessage): void {
    this.#connectionFor(incoming.socket).last = incoming;
  }

  isLast(incoming: IncomingMessage): boolean {
    return this.#connections.get(incoming.socket)?.last === incoming;
  }

  /** All of the response to this request is written, though it may not be ended yet. */
  markResponseWritten(incoming: IncomingMessage): void {
    const connection = this.#connections.get(incoming.socket);
    if (connection?.newest?.incoming === incoming) connection.responseWritten = true;
  }

  /** The bytes that have come are not a request, or the request is not completed in time. `refuse` writes the error response. */
  parserError(socket: Socket, refuse: () => void): void {
    const connection = this.#connectionFor(socket);
    const { newest, unanswered, responseWritten, last } = connection;
    if (connection.parserFailed) return;
    connection.parserFailed = true;
    if (unanswered === 0) refuse();
    else if (responseWritten) {
      // The body of the newest request will not end any more.
      newest!.outgoing.end();
      if (!last) connection.onAllAnswered = refuse;
    }
    // In the middle of a response there is no place for another.
    else if (newest!.outgoing.headersSent) socket.destroy();
    // The responses to earlier requests come first: the client would take this one for the first of them.
    else if (newest!.incoming.complete) connection.onAllAnswered = refuse;
    else if (unanswered === 1) refuse();
    else socket.destroy();
  }

  /** Ends the detection of stalled connections. */
  close(): void {
    clearInterval(this.#stallTimer);
  }

  #connectionFor(socket: Socket): Connection {
    const known = this.#connections.get(socket);
    if (known) return known;
    const connection: Connection = {
      socket,
      unanswered: 0,
      newest: undefined,
      last: undefined,
      responseWritten: false,
      paused: false,
      parserFailed: false,
      onAnswered: () => this.#requestAnswered(connection),
      onAllAnswered: undefined,
      stalled: { bytes: 0, since: 0 },
    };
    this.#connections.set(socket, connection);
    socket.once('close', () => this.#connections.delete(socket));
    // Node resumes reading for reasons of its own: when a body is read, when its own responses are sent.
    socket.on('resume', () => connection.paused && socket.pause());
    return connection;
  }

  #requestAnswered(connection: Connection): void {
    connection.unanswered--;
    if (connection.paused && connection.unanswered <= this.#options.pipelinedMax / 2) {
      connection.paused = false;
      connection.socket.resume();
    }
    if (connection.unanswered === 0) connection.onAllAnswered?.();
  }

  #closeStalled(): void {
    const { idleMilliseconds, bytesPerSecondMin } = this.#options;
    const now = performance.now();
    for (const connection of this.#connections.values()) {
      const { socket, stalled } = connection;
      const bytes = socket.writableLength;
      if (bytes === 0 || bytes !== stalled.bytes) connection.stalled = { bytes, since: now };
      else if (now - stalled.since > idleMilliseconds + (bytes / bytesPerSecondMin) * 1_000) socket.destroy();
    }
  }
}
