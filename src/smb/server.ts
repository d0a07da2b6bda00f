/** The SMB server: listens, and holds what its connections share, above all the table of sessions. */

import { randomBytes } from 'node:crypto';
import { createServer, type Server, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { Log } from '../base/log.ts';
import type { AccountDirectory, KnownAccount } from '../services/accounts/accounts.ts';
import type { Granted, Storage } from '../services/common/storage.ts';
import { Authentication } from './auth/authentication.ts';
import { PasswordAttempts } from './auth/password-attempts.ts';
import type { RequestContext } from './command.ts';
import type { CommandMetrics } from './command-metrics.ts';
import { Connection } from './connection.ts';
import { formatDialect } from './dialects.ts';
import { type SmbLimits, smbLimits } from './limits.ts';
import type { Session } from './session.ts';
import { formatStatus } from './statuses.ts';
import type { Tree } from './trees.ts';
import type { Header } from './wire/header.ts';

export interface SmbServerOptions {
  readonly accounts: Pick<AccountDirectory, 'find'>;
  storageFor(account: KnownAccount, granted?: Granted): Storage;
  readonly log: Log;
  readonly metrics: CommandMetrics;
  /** The server's time, which tests move, in ticks. */
  now(): bigint;
  readonly isEncryptionRequired: boolean;
  readonly limits?: Partial<SmbLimits>;
}

const TICK_MILLISECONDS = 1_000;
/** FILETIME counts from 1601, the server's ticks from the year 1. */
const FILETIME_EPOCH = 504911232000000000n;
const USER_CHARACTERS_MAX = 64;

/** What a line of the log has of a request. */
type ObservedRequest = { readonly connection: Connection; readonly header?: Header; readonly startedAt?: number };

export class SmbServer {
  readonly guid = randomBytes(16);
  /** In NTLM's challenge, and in lists of shares. */
  readonly name = 'HOLDFAST';
  readonly limits: SmbLimits;
  readonly log: Log;
  readonly isEncryptionRequired: boolean;
  readonly passwordAttempts: PasswordAttempts;
  readonly #options: SmbServerOptions;
  readonly #server: Server;
  readonly #connections = new Set<Connection>();
  readonly #sessions = new Map<bigint, Session>();
  /** Ends of sessions that are running. */
  readonly #ending = new Set<Promise<void>>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: SmbServerOptions) {
    this.#options = options;
    this.limits = { ...smbLimits, ...options.limits };
    const { wrongPasswordsAtOnce: attemptsAtOnce, wrongPasswordMilliseconds: millisecondsEach } = this.limits;
    this.passwordAttempts = new PasswordAttempts({ attemptsAtOnce, millisecondsEach });
    this.log = options.log;
    this.isEncryptionRequired = options.isEncryptionRequired;
    this.#server = createServer({ noDelay: true }, (socket) => this.#accept(socket));
  }

  /** Returns the port. */
  listen(port: number, host: string): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, host, () => {
        this.#server.off('error', reject);
        this.#server.on('error', (error) => this.log.error({ err: error }, 'the SMB server failed'));
        this.#timer = setInterval(() => this.#tick(), TICK_MILLISECONDS).unref();
        resolve((this.#server.address() as { port: number }).port);
      });
    });
  }

  /** Ends all connections; resolves once their opens are closed. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    const closed = new Promise<void>((resolve) => {
      if (this.#server.listening) this.#server.close(() => resolve());
      else resolve();
    });
    for (const connection of [...this.#connections]) connection.close('the server stops');
    for (const session of [...this.#sessions.values()]) void this.endSession(session, 'the server stops');
    await Promise.all([...this.#ending]);
    await closed;
  }

  /** The server's time as FILETIME. */
  fileTime(): bigint {
    return this.#options.now() - FILETIME_EPOCH;
  }

  /** Of 32 bits, as some clients expect. What guards a session is its keys: no other connection can use it without them. */
  nextSessionId(): bigint {
    for (;;) {
      const id = BigInt(randomBytes(4).readUInt32LE());
      if (id !== 0n && !this.#sessions.has(id)) return id;
    }
  }

  findSession(id: bigint): Session | undefined {
    return this.#sessions.get(id);
  }

  /** A client that uses its session on a connection that it has not bound, or after its end, believes the refusal only if it is signed. */
  signForStranger({ connection, message, isSigned, answer }: RequestContext, sessionId: bigint): void {
    const signer = connection.endedSigners.get(sessionId) ?? this.findSession(sessionId)?.signer;
    if (isSigned && signer?.verify(message)) answer.signer = signer;
  }

  beginSignIn(): Authentication {
    return new Authentication({
      serverChallenge: randomBytes(8),
      target: { name: this.name, time: this.fileTime() },
      findAccount: (name) => this.#options.accounts.find(name),
    });
  }

  /** Before a password is verified. */
  async waitForTurn({ address }: Connection): Promise<void> {
    const milliseconds = this.passwordAttempts.begin(address, performance.now());
    if (milliseconds > 0) await pause(milliseconds, undefined, { ref: false });
  }

  /** A wrong password is logged, and answered late, so that guessing takes long. */
  async signInRefused(connection: Connection, { user, reason }: { user: string; reason: string }): Promise<void> {
    this.log.warn(
      { client: connection.client, user: user.slice(0, USER_CHARACTERS_MAX), reason },
      'SMB sign-in refused',
    );
    await pause(this.limits.wrongPasswordMilliseconds, undefined, { ref: false });
  }

  addSession(session: Session, connection: Connection): void {
    this.#sessions.set(session.id, session);
    connection.sessions.set(session.id, session);
    connection.hasSignedIn = true;
    this.log.info(this.#describe(connection, session), 'SMB session began');
  }

  /** A client that reconnects names the session that it lost. */
  async endPreviousSession(id: bigint, successor: Session): Promise<void> {
    const previous = this.#sessions.get(id);
    if (!previous || previous === successor) return;
    if (previous.signIn.account.id === successor.signIn.account.id) {
      await this.endSession(previous, 'the client signed in again');
    }
  }

  /** Ends the session on all its connections. Resolves once its opens are closed; a failure is logged. */
  endSession(session: Session, reason: string): Promise<void> {
    if (!this.#sessions.delete(session.id)) return Promise.resolve();
    for (const connection of session.connections) connection.sessionEnded(session);
    this.log.info({ account: session.signIn.account.name, reason }, 'SMB session ended');
    const ending = session
      .end()
      .catch((error) => this.log.error({ err: error }, 'opens of an SMB session were not closed'))
      .finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
    return ending;
  }

  /**
   * The rows of all opens are gone. Their connections end: a client then opens its files again, and learns what others did meanwhile, where a
   * refusal of each open would only look like a broken server.
   */
  dropOpens(reason: string): void {
    for (const { opens, connections } of [...this.#sessions.values()]) {
      if (opens.holdsRows) for (const connection of connections) connection.close(reason);
    }
  }

  /** Whether the account is served, and has the key by which the session signed in. */
  isCurrent({ signIn }: Session): boolean {
    const account = this.#options.accounts.find(signIn.account.name);
    if (account === signIn.account) return true;
    return account !== undefined && account.id === signIn.account.id && account.keys.includes(signIn.accountKey);
  }

  /** In a tree, another share of the same name is not found. */
  storageOf({ signIn }: Session, tree?: Tree): Storage {
    const container = tree?.kind === 'disk' ? tree.shareId : undefined;
    return this.#options.storageFor(signIn.account, container === undefined ? undefined : { container });
  }

  treeConnected(connection: Connection, session: Session, { name }: Tree): void {
    this.log.info({ ...this.#describe(connection, session), share: name }, 'SMB tree connected');
  }

  /** Of each answered message. */
  observe({ connection, header, startedAt }: ObservedRequest, command: string, status: number): void {
    const milliseconds = startedAt === undefined ? 0 : performance.now() - startedAt;
    this.#options.metrics.observe(command, status, milliseconds);
    if (!this.log.isLevelEnabled('debug')) return;
    const fields = {
      client: connection.client,
      command,
      status: formatStatus(status),
      message: header?.messageId.toString(),
    };
    this.log.debug({ ...fields, milliseconds: Math.round(milliseconds) }, 'SMB command');
  }

  connectionClosed(connection: Connection): void {
    this.#connections.delete(connection);
    for (const session of connection.sessions.values()) {
      if (session.removeChannel(connection)) void this.endSession(session, 'the client disconnected');
    }
    connection.sessions.clear();
  }

  #accept(socket: Socket): void {
    const { connections, connectionsPerAddressBeforeSignIn } = this.limits;
    const strangers = [...this.#connections].filter(
      (other) => !other.isSignedIn && other.address === socket.remoteAddress,
    ).length;
    if (this.#connections.size >= connections || strangers >= connectionsPerAddressBeforeSignIn) {
      socket.destroy();
      return;
    }
    this.#connections.add(new Connection(this, socket));
  }

  #tick(): void {
    const now = performance.now();
    for (const connection of [...this.#connections]) connection.checkTimeouts(now);
    for (const session of [...this.#sessions.values()]) {
      if (!this.isCurrent(session)) void this.endSession(session, 'the account or its key is gone');
    }
  }

  #describe({ client, negotiated }: Connection, { signIn, isEncryptionRequired }: Session) {
    const dialect = negotiated && formatDialect(negotiated.dialect);
    return { client, account: signIn.account.name, dialect, ...(isEncryptionRequired && { encrypted: true }) };
  }
}
