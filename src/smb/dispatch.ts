/** Dispatch: verifies a packet's protection, and runs its messages one after the other through the rows of the command table. */
import type { Command, RequestContext } from './command.ts';
import { Reply } from './command.ts';
import { commandsByCode, formatCommand } from './commands.ts';
import { type Message, splitCompound } from './compound.ts';
import { type Connection, Disconnect } from './connection.ts';
import { answerSmb1Negotiate } from './handlers/smb1-negotiate.ts';
import type { Open } from './opens.ts';
import { type Answer, RunningRequest } from './running-request.ts';
import type { Session } from './session.ts';
import { asSmbError, SmbError, STATUS } from './statuses.ts';
import { ErrorResponse, errorResponse } from './wire/error-response.ts';
import { type FileId, isPreviousFileId } from './wire/file-id.ts';
import { HEADER_BYTES, HEADER_FLAG, type Header, PROTOCOL, TransformHeader } from './wire/header.ts';
import { WireError } from './wire/reader.ts';

/** What the messages of a related compound have from those before them. */
interface Chain {
  isFirst: boolean;
  /** It began with a message that nothing can be related to: what follows is invalid. */
  isInvalid: boolean;
  sessionId: bigint;
  treeId: number;
  fileId: FileId | undefined;
  /** The status of a CREATE that failed: that of all messages that need its open. */
  failure: SmbError | undefined;
}

const READ = 8;
const WRITE = 9;
const CANCEL = 12;
/** Bytes of payload that one credit pays for. */
const BYTES_PER_CREDIT = 65_536;

export async function runPacket(connection: Connection, packet: Buffer): Promise<void> {
  const protocol = packet.readUInt32LE(0);
  if (protocol === PROTOCOL.smb1) return answerSmb1Negotiate(connection, packet);
  if (protocol !== PROTOCOL.transform) return runMessages(connection, packet, undefined);
  const { sessionId } = TransformHeader.decode(packet);
  const session = connection.sessions.get(sessionId);
  if (!session?.cipher) throw new WireError('an encrypted message of no session');
  return runMessages(connection, session.cipher.decrypt(packet), session);
}

async function runMessages(connection: Connection, packet: Buffer, encryptedBy: Session | undefined): Promise<void> {
  const messages = splitCompound(packet, connection.server.limits.compoundMessages);
  const first = messages[0]!;
  if (encryptedBy && first.header.sessionId !== encryptedBy.id) throw new WireError('a message of another session');
  for (const { header } of messages) {
    if ((header.flags & HEADER_FLAG.response) !== 0) throw new WireError('an answer instead of a request');
    if (header.command !== CANCEL) connection.window.use(header.messageId, header.creditCharge);
  }
  const chain: Chain = {
    isFirst: true,
    isInvalid: false,
    sessionId: 0n,
    treeId: 0,
    fileId: undefined,
    failure: undefined,
  };
  const answers: Answer[] = [];
  for (const message of messages) {
    if (message.header.command === CANCEL) {
      cancel(connection, message);
      continue;
    }
    const isLast = message === messages.at(-1);
    const sendInterim = isLast
      ? (interim: Answer) => sendAnswers(connection, [...answers.splice(0), interim], encryptedBy)
      : undefined;
    const request = new RunningRequest(connection, message, encryptedBy, sendInterim);
    connection.running.set(message.header.messageId, request);
    try {
      answers.push(await runMessage(request, chain));
    } finally {
      connection.running.delete(message.header.messageId);
      if (request.asyncId !== 0n) {
        connection.runningAsync.delete(request.asyncId);
        connection.requestReturned();
      }
    }
    chain.isFirst = false;
  }
  sendAnswers(connection, answers, encryptedBy);
}

/** MS-SMB2 3.3.5.16: never answered. A wrong signature would only let a stranger cancel what he can disconnect anyway, but is ignored, too. */
function cancel(connection: Connection, { header, bytes }: Message): void {
  const isAsync = (header.flags & HEADER_FLAG.async) !== 0;
  const request = isAsync ? connection.runningAsync.get(header.asyncId) : connection.running.get(header.messageId);
  if ((header.flags & HEADER_FLAG.signed) !== 0) {
    const signer = connection.sessions.get(header.sessionId)?.signerFor(connection);
    if (!signer?.verify(bytes)) return;
  }
  request?.abort();
}

async function runMessage(request: RunningRequest, chain: Chain): Promise<Answer> {
  const { connection, header, message } = request;
  const { server } = connection;
  const row = commandsByCode.get(header.command);
  let status: number = STATUS.SUCCESS;
  let answer: Answer;
  let reserved = 0;
  try {
    const session = authorize(request, row, chain);
    if (!row) throw new SmbError('INVALID_PARAMETER');
    const input = row.request.decode(message, HEADER_BYTES);
    const payload = row.payloadBytes?.(input as never) ?? 0;
    checkCharge(connection, header, payload);
    reserved = payload;
    connection.reserve(reserved);
    const result = await runRow(row, input, { request, session, chain });
    const { status: resultStatus, body } = result instanceof Reply ? result : { status: STATUS.SUCCESS, body: result };
    status = resultStatus;
    rememberFileId(chain, body);
    answer = request.encodeAnswer(status, row.response, body, grantCredits(request));
  } catch (error) {
    if (error instanceof Disconnect) throw error;
    const refusal = toRefusal(request, error);
    status = refusal.status;
    if (formatCommand(header.command) === 'create') chain.failure = refusal;
    const hasContexts = connection.negotiated?.dialect === 0x311;
    answer = request.encodeAnswer(
      status,
      ErrorResponse,
      errorResponse(refusal.data, hasContexts),
      grantCredits(request),
    );
  } finally {
    connection.release(reserved);
  }
  server.observe(request, formatCommand(header.command), status);
  return answer;
}

/** The interim answer has granted the credits of an asynchronous one. */
function grantCredits({ connection, header, asyncId }: RunningRequest): number {
  return asyncId === 0n ? connection.window.grant(header.credits) : 0;
}

function toRefusal({ connection, header, isAborted }: RunningRequest, error: unknown): SmbError {
  const refusal = asSmbError(error);
  if (refusal) return refusal;
  if (isAborted) return new SmbError('CANCELLED');
  const fields = { err: error, client: connection.client, command: formatCommand(header.command) };
  connection.server.log.error(fields, 'an SMB command failed');
  return new SmbError('INTERNAL_ERROR');
}

/** Finds the session and verifies the signature; the answer is signed as the request was. */
function authorize(request: RunningRequest, row: Command | undefined, chain: Chain): Session | undefined {
  const { connection, header } = request;
  if (!connection.negotiated && formatCommand(header.command) !== 'negotiate') throw new Disconnect('no NEGOTIATE');
  const isRelated = (header.flags & HEADER_FLAG.related) !== 0;
  if (isRelated) chain.isInvalid ||= chain.isFirst;
  else {
    const { sessionId, treeId } = header;
    Object.assign(chain, { isInvalid: false, sessionId, treeId, fileId: undefined, failure: undefined });
  }
  if (chain.isInvalid) throw new SmbError('INVALID_PARAMETER');
  request.answer.sessionId = chain.sessionId;
  request.answer.treeId = chain.treeId;
  const session = connection.sessions.get(chain.sessionId);
  if (session) verifyProtection(request, session, row);
  if (!row || row.needs === 'connection') return session;
  if (!session) {
    connection.server.signForStranger(request, chain.sessionId);
    chain.isInvalid = true;
    throw new SmbError('USER_SESSION_DELETED');
  }
  if (!connection.server.isCurrent(session)) {
    connection.server.endSession(session, 'the account or its key is gone');
    throw new SmbError('USER_SESSION_DELETED');
  }
  return session;
}

/** MS-SMB2 3.3.5.2.4, 3.3.5.2.5, 3.3.5.2.9. SESSION_SETUP, which may bind a session to this connection, verifies its signature itself. */
function verifyProtection(request: RunningRequest, session: Session, row: Command | undefined): void {
  const { connection, header, message, isSigned, encryptedBy } = request;
  if (encryptedBy) {
    if (encryptedBy !== session) throw new Disconnect('a message of another session');
    return;
  }
  const name = formatCommand(header.command);
  if (name === 'negotiate' || name === 'sessionSetup') return;
  const signer = session.signerFor(connection);
  if (isSigned) {
    // A client that signs believes a refusal, too, only if it is signed.
    request.answer.signer = signer;
    if (!signer?.verify(message)) throw new SmbError('ACCESS_DENIED');
  } else if (session.isSigningRequired) throw new SmbError('ACCESS_DENIED');
  if (session.isEncryptionRequired && row?.needs !== 'connection') throw new SmbError('ACCESS_DENIED');
}

function checkCharge({ negotiated, server }: Connection, { command, creditCharge }: Header, payload: number): void {
  const { transferBytes, transactBytes } = server.limits;
  const isTransfer = command === READ || command === WRITE;
  if (payload > (isTransfer ? transferBytes : transactBytes)) throw new SmbError('INVALID_PARAMETER');
  if (negotiated && payload > BYTES_PER_CREDIT * Math.max(1, creditCharge)) throw new SmbError('INVALID_PARAMETER');
}

interface Found {
  readonly request: RunningRequest;
  readonly session: Session | undefined;
  readonly chain: Chain;
}

function runRow(row: Command, input: unknown, { request, session, chain }: Found): unknown {
  if (row.needs === 'connection') return row.run(input, request);
  const { server } = request.connection;
  if (row.needs === 'session') {
    return row.run(input, contextFor(request, { session: session!, storage: server.storageOf(session!) }));
  }
  request.isAnnounced = true;
  const tree = session!.tree(chain.treeId);
  if (tree.isEncryptionRequired && !request.isEncrypted) throw new SmbError('ACCESS_DENIED');
  const findOpen = (fileId: FileId): Open => {
    const open = session!.opens.get(resolveFileId(fileId, chain));
    if (open.tree !== tree) throw new SmbError('FILE_CLOSED');
    return open;
  };
  const found = { session: session!, storage: server.storageOf(session!, tree), tree, findOpen };
  const handler = tree.kind === 'disk' ? row.disk : row.pipe;
  const open = row.needs === 'open' ? findOpen((input as { readonly fileId: FileId }).fileId) : undefined;
  if (!handler) throw new SmbError('INVALID_DEVICE_REQUEST');
  return handler(input as never, contextFor(request, { ...found, open }) as never);
}

/** The request with what was found for it. */
function contextFor<Fields extends object>(request: RunningRequest, fields: Fields): RequestContext & Fields {
  const { connection, header, message, isEncrypted, isSigned, answer } = request;
  return {
    ...{ connection, header, message, isEncrypted, isSigned, answer, ...fields },
    get signal() {
      return request.signal;
    },
    goAsync: () => request.goAsync(),
  };
}

function resolveFileId(fileId: FileId, chain: Chain): FileId {
  if (!isPreviousFileId(fileId)) {
    chain.fileId = fileId;
    return fileId;
  }
  if (chain.fileId) return chain.fileId;
  throw chain.failure ?? new SmbError('FILE_CLOSED');
}

function rememberFileId(chain: Chain, body: unknown): void {
  const fileId = (body as { readonly fileId?: FileId } | undefined)?.fileId;
  if (fileId && !isPreviousFileId(fileId)) Object.assign(chain, { fileId, failure: undefined });
}

/** As one packet: in a compound each is padded to a multiple of 8, the last one, too, as Windows does; signed one by one, encrypted together. */
function sendAnswers(connection: Connection, answers: readonly Answer[], encryptedBy: Session | undefined): void {
  if (answers.length === 0) return;
  const parts = answers.map(({ bytes, settings }, index) => {
    const isLast = index === answers.length - 1;
    const part = answers.length === 1 ? bytes : padded(bytes);
    if (!isLast) part.writeUInt32LE(part.length, 20);
    if (!encryptedBy) settings.signer?.sign(part);
    settings.onSent?.(part);
    return part;
  });
  const packet = parts.length === 1 ? parts[0]! : Buffer.concat(parts);
  if (encryptedBy?.cipher) connection.send(...encryptedBy.cipher.encrypt(packet, encryptedBy.id));
  else connection.send(packet);
}

function padded(bytes: Buffer): Buffer {
  const part = Buffer.alloc(Math.ceil(bytes.length / 8) * 8);
  bytes.copy(part);
  return part;
}
