/** SESSION_SETUP: signs in, signs in again, or binds another connection to a session (MS-SMB2 3.3.5.5). */
import type { Authentication } from '../auth/authentication.ts';
import { type HandlerResult, type RequestContext, withStatus } from '../command.ts';
import type { Connection, Negotiated } from '../connection.ts';
import { MessageCipher } from '../crypto/encryption.ts';
import { deriveCipherKeys, deriveSigningKey, EMPTY_PREAUTH_HASH, extendPreauthHash } from '../crypto/key-derivation.ts';
import { Signer } from '../crypto/signing.ts';
import { DIALECT } from '../dialects.ts';
import { Session, type SignIn } from '../session.ts';
import { SmbError } from '../statuses.ts';
import { SECURITY_MODE } from '../wire/negotiate.ts';
import {
  SESSION_FLAG_ENCRYPT_DATA,
  SETUP_FLAG_BINDING,
  type SessionSetupRequest,
  type SessionSetupResponse,
} from '../wire/session-setup.ts';

/** A sign-in that has begun, and what it is for. */
export interface PendingSignIn {
  readonly authentication: Authentication;
  /** The session that it renews or binds; undefined: it makes one. */
  readonly session: Session | undefined;
  readonly isBinding: boolean;
  /** Of NEGOTIATE and the messages of this sign-in (3.1.1). */
  preauthHash: Buffer;
}

export async function sessionSetup(
  request: SessionSetupRequest,
  context: RequestContext,
): Promise<HandlerResult<SessionSetupResponse>> {
  const { connection, answer, message } = context;
  const negotiated = connection.negotiated!;
  const { id, pending } = findOrBegin(request, context, negotiated);
  answer.sessionId = id;
  pending.preauthHash = extendPreauthHash(pending.preauthHash, message);
  if (pending.authentication.isChallenged) await connection.server.waitForTurn(connection);
  const step = attempt(pending.authentication, request.securityBuffer, () => connection.signIns.delete(id));
  if (step.state === 'continue') {
    answer.onSent = (sent) => {
      pending.preauthHash = extendPreauthHash(pending.preauthHash, sent);
    };
    return withStatus('MORE_PROCESSING_REQUIRED', { sessionFlags: 0, securityBuffer: step.answer });
  }
  connection.signIns.delete(id);
  if (step.state === 'refused') {
    // A session whose renewal fails ends; one that was not bound to this connection goes on where it is.
    if (pending.session && !pending.isBinding) await connection.server.endSession(pending.session, 'a refused renewal');
    await connection.server.signInRefused(connection, step);
    throw new SmbError('LOGON_FAILURE');
  }
  connection.server.passwordAttempts.succeeded(connection.address);
  const session = await complete(request, context, { id, pending, signIn: step.signIn });
  answer.signer = session.signerFor(connection);
  const sessionFlags = session.isEncryptionRequired ? SESSION_FLAG_ENCRYPT_DATA : 0;
  return { sessionFlags, securityBuffer: step.answer };
}

/** A sign-in that cannot be parsed ends, too. */
function attempt(authentication: Authentication, token: Buffer, onFailure: () => void) {
  try {
    return authentication.step(token);
  } catch (error) {
    onFailure();
    throw error;
  }
}

function findOrBegin(
  request: SessionSetupRequest,
  context: RequestContext,
  negotiated: Negotiated,
): { readonly id: bigint; readonly pending: PendingSignIn } {
  const { connection, header } = context;
  const isBinding = (request.flags & SETUP_FLAG_BINDING) !== 0;
  const id = header.sessionId === 0n ? connection.server.nextSessionId() : header.sessionId;
  if (isBinding) checkBinding(context, negotiated);
  const known = connection.signIns.get(id);
  if (known) return { id, pending: known };
  const session = isBinding ? connection.server.findSession(id) : connection.sessions.get(id);
  if (header.sessionId !== 0n && !session) {
    connection.server.signForStranger(context, id);
    throw new SmbError('USER_SESSION_DELETED');
  }
  if (session && !isBinding) checkRenewal(session, context);
  const { sessionsPerConnection } = connection.server.limits;
  if (connection.signIns.size + connection.sessions.size >= sessionsPerConnection) {
    throw new SmbError('INSUFFICIENT_RESOURCES');
  }
  const pending: PendingSignIn = {
    authentication: connection.server.beginSignIn(),
    session,
    isBinding,
    preauthHash: connection.preauthHash ?? EMPTY_PREAUTH_HASH,
  };
  connection.signIns.set(id, pending);
  return { id, pending };
}

/** MS-SMB2 3.3.5.5: signed by the key of the session, and on a connection that negotiated the same. */
function checkBinding({ connection, header, message, isSigned, answer }: RequestContext, negotiated: Negotiated): void {
  const session = connection.server.findSession(header.sessionId);
  if (!session) throw new SmbError('USER_SESSION_DELETED');
  if (!isSigned) throw new SmbError('INVALID_PARAMETER');
  // Where the session is bound already, its key is that of the channel.
  const signer = session.signerFor(connection) ?? session.signer;
  answer.signer = signer;
  if (!signer.verify(message)) throw new SmbError('ACCESS_DENIED');
  const { dialect, cipher, signing } = session.negotiated;
  // As Windows refuses them: other signatures before other dialects.
  if (negotiated.signing === 'aes-gmac' && signing !== 'aes-gmac') throw new SmbError('NOT_SUPPORTED');
  if (negotiated.signing !== 'aes-gmac' && signing === 'aes-gmac') throw new SmbError('REQUEST_OUT_OF_SEQUENCE');
  if (negotiated.dialect === DIALECT.smb210) throw new SmbError('REQUEST_NOT_ACCEPTED');
  if (negotiated.dialect !== dialect || negotiated.cipher !== cipher) throw new SmbError('INVALID_PARAMETER');
  if (connection.sessions.has(session.id)) throw new SmbError('REQUEST_NOT_ACCEPTED');
}

function checkRenewal(session: Session, { connection, message, isSigned, isEncrypted, answer }: RequestContext): void {
  if (isEncrypted) return;
  if (session.isEncryptionRequired) throw new SmbError('ACCESS_DENIED');
  if (!isSigned) {
    if (session.isSigningRequired) throw new SmbError('ACCESS_DENIED');
    return;
  }
  const signer = session.signerFor(connection);
  answer.signer = signer;
  if (!signer?.verify(message)) throw new SmbError('ACCESS_DENIED');
}

interface Completed {
  readonly id: bigint;
  readonly pending: PendingSignIn;
  readonly signIn: SignIn;
}

async function complete(
  request: SessionSetupRequest,
  { connection }: RequestContext,
  { id, pending, signIn }: Completed,
): Promise<Session> {
  const { server } = connection;
  const { session: existing, isBinding, preauthHash } = pending;
  const negotiated = connection.negotiated!;
  if (!existing) {
    const session = createSession(request, connection, { id, pending, signIn });
    await server.endPreviousSession(request.previousSessionId, session);
    server.addSession(session, connection);
    return session;
  }
  // The session may have ended while the client computed its answer.
  if (server.findSession(id) !== existing) throw new SmbError('USER_SESSION_DELETED');
  const isSameUser = existing.signIn.account.id === signIn.account.id;
  if (!isSameUser) throw new SmbError('ACCESS_DENIED');
  if (!isBinding) {
    // The keys of a session stay those of its first sign-in.
    existing.renew(signIn);
    return existing;
  }
  const key = deriveSigningKey(negotiated.dialect, signIn.sessionKey, preauthHash);
  existing.addChannel(connection, new Signer(negotiated.signing, key));
  connection.sessions.set(id, existing);
  connection.hasSignedIn = true;
  return existing;
}

function createSession(
  request: SessionSetupRequest,
  connection: Connection,
  { id, pending, signIn }: Completed,
): Session {
  const { server } = connection;
  const negotiated = connection.negotiated!;
  const { dialect, cipher, signing } = negotiated;
  if (server.isEncryptionRequired && !cipher) throw new SmbError('ACCESS_DENIED');
  const { sessionKey } = signIn;
  const clientModes = request.securityMode | negotiated.clientSecurityMode;
  const session = new Session(
    {
      id,
      signIn,
      negotiated,
      signer: new Signer(signing, deriveSigningKey(dialect, sessionKey, pending.preauthHash)),
      isSigningRequired: (clientModes & SECURITY_MODE.signingRequired) !== 0,
      isEncryptionRequired: server.isEncryptionRequired,
      cipher: cipher && new MessageCipher(cipher, deriveCipherKeys(dialect, cipher, sessionKey, pending.preauthHash)),
    },
    server.limits,
  );
  session.addChannel(connection, session.signer);
  return session;
}
