/** One message on its way from its arrival to its answer: the context that its handler gets. */
import type { RequestContext } from './command.ts';
import type { Message } from './compound.ts';
import type { Connection } from './connection.ts';
import type { Signer } from './crypto/signing.ts';
import type { Session } from './session.ts';
import { SmbError, STATUS } from './statuses.ts';
import { ErrorResponse, errorResponse } from './wire/error-response.ts';
import { HEADER_FLAG, type Header, NO_SIGNATURE, writeHeader } from './wire/header.ts';
import type { Struct } from './wire/struct.ts';
import { Writer } from './wire/writer.ts';

/** What a handler may change of the answer's header and protection. */
export interface AnswerSettings {
  sessionId: bigint;
  treeId: number;
  /** Undefined: the answer is not signed. */
  signer: Signer | undefined;
  /** Called with the bytes of the answer, signature included, as they are sent. */
  onSent?: (message: Buffer) => void;
}

/** An answer that is not padded, signed or encrypted yet. */
export interface Answer {
  readonly bytes: Buffer;
  readonly settings: AnswerSettings;
}

export class RunningRequest implements RequestContext {
  readonly connection: Connection;
  readonly header: Header;
  readonly message: Buffer;
  readonly answer: AnswerSettings;
  readonly startedAt = performance.now();
  /** The session that encrypted the packet. */
  readonly encryptedBy: Session | undefined;
  /** Made when it is asked for: most requests end before. */
  #abort: AbortController | undefined;
  #isAborted = false;
  readonly #sendInterim: ((interim: Answer) => void) | undefined;
  asyncId = 0n;
  /** Whether an answer that takes long is announced: of commands that use a tree. */
  isAnnounced = false;

  /** @param sendInterim undefined: the message is followed by others, and cannot be answered later than they are */
  constructor(
    connection: Connection,
    { header, bytes }: Message,
    encryptedBy: Session | undefined,
    sendInterim: ((interim: Answer) => void) | undefined,
  ) {
    this.connection = connection;
    this.header = header;
    this.message = bytes;
    this.encryptedBy = encryptedBy;
    this.answer = { sessionId: header.sessionId, treeId: header.treeId, signer: undefined };
    this.#sendInterim = sendInterim;
  }

  get signal(): AbortSignal {
    if (!this.#abort) {
      this.#abort = new AbortController();
      if (this.#isAborted) this.#abort.abort();
    }
    return this.#abort.signal;
  }

  get isAborted(): boolean {
    return this.#isAborted;
  }

  get isSigned(): boolean {
    return (this.header.flags & HEADER_FLAG.signed) !== 0;
  }

  get isEncrypted(): boolean {
    return this.encryptedBy !== undefined;
  }

  abort(): void {
    this.#isAborted = true;
    this.#abort?.abort();
  }

  goAsync(): void {
    if (this.asyncId !== 0n || this.#isAborted) return;
    const { connection } = this;
    if (!this.#sendInterim || connection.runningAsync.size >= connection.server.limits.asyncRequests) {
      throw new SmbError('INSUFFICIENT_RESOURCES');
    }
    this.asyncId = connection.nextAsyncId();
    connection.runningAsync.set(this.asyncId, this);
    const credits = connection.window.grant(this.header.credits);
    this.#sendInterim(this.encodeAnswer(STATUS.PENDING, ErrorResponse, errorResponse(undefined, false), credits));
    connection.requestWentAsync();
  }

  /** Announces the answer if it takes long, and if the client can be told. */
  checkDuration(now: number): void {
    const { limits } = this.connection.server;
    if (!this.isAnnounced || now - this.startedAt < limits.interimMilliseconds) return;
    if (this.#sendInterim && this.connection.runningAsync.size < limits.asyncRequests) this.goAsync();
  }

  encodeAnswer<T>(status: number, struct: Struct<T>, body: T, credits: number): Answer {
    const writer = new Writer();
    const { creditCharge, command, messageId, flags } = this.header;
    writeHeader(writer, {
      ...{ creditCharge, command, messageId, status, credits },
      flags: HEADER_FLAG.response | (flags & HEADER_FLAG.related) | (this.asyncId === 0n ? 0 : HEADER_FLAG.async),
      nextCommand: 0,
      asyncId: this.asyncId,
      treeId: this.answer.treeId,
      sessionId: this.answer.sessionId,
      signature: NO_SIGNATURE,
    });
    struct.append(writer, body);
    return { bytes: writer.finish(), settings: this.answer };
  }
}
