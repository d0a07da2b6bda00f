/** A connection of a client: packets in, answers out, and the state that NEGOTIATE and the sign-ins leave behind. */
import type { Socket } from 'node:net';
import type { CipherName } from './crypto/encryption.ts';
import type { Signer, SigningAlgorithm } from './crypto/signing.ts';
import type { Dialect } from './dialects.ts';
import { runPacket } from './dispatch.ts';
import { FrameReader, frame } from './framing.ts';
import type { PendingSignIn } from './handlers/session-setup.ts';
import { MessageWindow } from './message-window.ts';
import type { RunningRequest } from './running-request.ts';
import type { SmbServer } from './server.ts';
import type { Session } from './session.ts';
import { WireError } from './wire/reader.ts';

/** What NEGOTIATE agreed on. */
export interface Negotiated {
  readonly dialect: Dialect;
  /** Undefined: neither side can encrypt. */
  readonly cipher: CipherName | undefined;
  readonly signing: SigningAlgorithm;
  readonly clientGuid: Buffer;
  readonly clientSecurityMode: number;
  readonly clientCapabilities: number;
  readonly clientDialects: readonly number[];
  readonly capabilities: number;
  readonly securityMode: number;
}

/** A client or a request that ends the connection, without an answer. */
export class Disconnect extends Error {
  override readonly name = 'Disconnect';
}

/** A header and a few fields around the payload. */
const FRAME_OVERHEAD_BYTES = 64 * 1024;

export class Connection {
  readonly server: SmbServer;
  readonly window: MessageWindow;
  /** For the lines of the log. */
  readonly client: string;
  readonly address: string;
  /** The server's end. */
  readonly localAddress: string;
  readonly sessions = new Map<bigint, Session>();
  /** By session: of those that have ended while the connection goes on, as many as it may have. */
  readonly endedSigners = new Map<bigint, Signer>();
  /** Sign-ins that have begun, by the id of their session. */
  readonly signIns = new Map<bigint, PendingSignIn>();
  /** By MessageId, for CANCEL; those with an AsyncId in both maps. */
  readonly running = new Map<bigint, RunningRequest>();
  readonly runningAsync = new Map<bigint, RunningRequest>();
  negotiated: Negotiated | undefined;
  /** Since the first sign-in: a client that never succeeds has a limited time, whatever it sends. */
  hasSignedIn = false;
  /** A multi-protocol NEGOTIATE was answered by "send another one". */
  expectsSecondNegotiate = false;
  /** Of NEGOTIATE: where the hash of each sign-in begins. */
  preauthHash: Buffer | undefined;
  readonly #socket: Socket;
  readonly #frames = new FrameReader();
  /** Packets that have arrived while too many requests ran. */
  readonly #waiting: Buffer[] = [];
  readonly #openedAt = performance.now();
  #progressAt = this.#openedAt;
  #runningPackets = 0;
  #outstandingBytes = 0;
  #lastAsyncId = 0n;
  #isClosed = false;

  constructor(server: SmbServer, socket: Socket) {
    this.server = server;
    this.#socket = socket;
    this.window = new MessageWindow(server.limits.credits);
    this.address = socket.remoteAddress ?? '';
    this.localAddress = socket.localAddress ?? '127.0.0.1';
    this.client = `${this.address}:${socket.remotePort ?? 0}`;
    socket.setNoDelay(true);
    socket.setKeepAlive(true, server.limits.idleMilliseconds);
    socket.on('data', (bytes) => this.#receive(bytes));
    socket.on('drain', () => this.#resume());
    socket.on('error', () => this.close('the connection broke'));
    socket.on('close', () => this.close('the client disconnected'));
  }

  get isSignedIn(): boolean {
    return this.sessions.size > 0;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  nextAsyncId(): bigint {
    this.#lastAsyncId += 1n;
    return this.#lastAsyncId;
  }

  /** Ends the connection, and the sessions that no other connection uses. */
  close(reason: string): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.server.log.debug({ client: this.client, reason }, 'SMB connection ended');
    this.#socket.destroy();
    this.#waiting.length = 0;
    for (const request of this.running.values()) request.abort();
    this.signIns.clear();
    this.server.connectionClosed(this);
  }

  /** Requests of the session that wait are cancelled. */
  sessionEnded(session: Session): void {
    this.sessions.delete(session.id);
    const signer = session.signerFor(this);
    if (signer) this.endedSigners.set(session.id, signer);
    const [oldest] = this.endedSigners.keys();
    if (this.endedSigners.size > this.server.limits.sessionsPerConnection) this.endedSigners.delete(oldest!);
    for (const request of this.runningAsync.values()) if (request.header.sessionId === session.id) request.abort();
  }

  /** @param parts of one packet, at least one */
  send(...parts: readonly Buffer[]): void {
    if (this.#isClosed) return;
    this.#progressAt = Math.max(this.#progressAt, this.#socket.writableLength === 0 ? performance.now() : 0);
    const buffers = frame(parts);
    this.#socket.cork();
    for (const buffer of buffers.slice(0, -1)) this.#socket.write(buffer);
    this.#socket.write(buffers.at(-1)!, () => {
      this.#progressAt = performance.now();
    });
    this.#socket.uncork();
  }

  /** Bytes that a running request will answer, or holds; given back when it ends. */
  reserve(bytes: number): void {
    this.#outstandingBytes += bytes;
  }

  release(bytes: number): void {
    this.#outstandingBytes -= bytes;
  }

  /** A request that waits for an event leaves room for others, such as its CANCEL. */
  requestWentAsync(): void {
    this.#runningPackets -= 1;
    this.#resume();
  }

  requestReturned(): void {
    this.#runningPackets += 1;
  }

  /** Called about once a second: announces answers that take long, and ends a connection that is stalled, or that never signed in. */
  checkTimeouts(now: number): void {
    for (const request of this.running.values()) request.checkDuration(now);
    const { signInMilliseconds, stalledMilliseconds, idleMilliseconds } = this.server.limits;
    const isStalled = this.#frames.isWithinPacket || this.#socket.writableLength > 0;
    if (isStalled && now - this.#progressAt > stalledMilliseconds) this.close('the client stalled');
    else if (this.isSignedIn) return;
    else if (!this.hasSignedIn && now - this.#openedAt > signInMilliseconds) this.close('no sign-in');
    else if (now - this.#progressAt > idleMilliseconds) this.close('no session');
  }

  get #isCongested(): boolean {
    const { runningRequests, outstandingBytes } = this.server.limits;
    return (
      this.#runningPackets >= runningRequests || this.#outstandingBytes + this.#socket.writableLength > outstandingBytes
    );
  }

  #receive(bytes: Buffer): void {
    this.#progressAt = performance.now();
    try {
      const { frameBytesBeforeSignIn, transactBytes } = this.server.limits;
      this.#frames.push(
        bytes,
        () => (this.isSignedIn ? transactBytes + FRAME_OVERHEAD_BYTES : frameBytesBeforeSignIn),
        (packet) => this.#waiting.push(packet),
      );
    } catch (error) {
      this.#fail(error);
    }
    this.#resume();
  }

  #resume(): void {
    while (this.#waiting.length > 0 && !this.#isCongested) void this.#run(this.#waiting.shift()!);
    if (this.#waiting.length > 0) this.#socket.pause();
    else if (!this.#isClosed && this.#socket.isPaused()) this.#socket.resume();
  }

  async #run(packet: Buffer): Promise<void> {
    this.#runningPackets += 1;
    this.#outstandingBytes += packet.length;
    try {
      await runPacket(this, packet);
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#runningPackets -= 1;
      this.#outstandingBytes -= packet.length;
      this.#resume();
    }
  }

  #fail(error: unknown): void {
    if (this.#isClosed) return;
    if (error instanceof WireError || error instanceof Disconnect) {
      this.server.log.debug({ client: this.client, reason: error.message }, 'SMB connection refused');
    } else {
      this.server.log.error({ err: error, client: this.client }, 'an SMB connection failed');
    }
    this.close('a bad packet');
  }
}
