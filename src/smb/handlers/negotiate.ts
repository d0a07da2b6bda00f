/** NEGOTIATE: dialect, cipher, signature and limits (MS-SMB2 3.3.5.4). */
import { randomBytes } from 'node:crypto';
import { serverOffer } from '../auth/spnego.ts';
import type { RequestContext } from '../command.ts';
import { type Connection, Disconnect, type Negotiated } from '../connection.ts';
import type { CipherName } from '../crypto/encryption.ts';
import { EMPTY_PREAUTH_HASH, extendPreauthHash } from '../crypto/key-derivation.ts';
import type { SigningAlgorithm } from '../crypto/signing.ts';
import { chooseDialect, DIALECT, DIALECT_WILDCARD, type Dialect } from '../dialects.ts';
import { SmbError } from '../statuses.ts';
import {
  CAPABILITY,
  CONTEXT_TYPE,
  type NegotiateContext,
  type NegotiateRequest,
  type NegotiateResponse,
  negotiateResponse,
  readAlgorithmIds,
  readContexts,
  readDialects,
  readHashIds,
  SECURITY_MODE,
  writeAlgorithmIds,
  writeHashIds,
} from '../wire/negotiate.ts';

const SHA512 = 1;
const SALT_BYTES = 32;

/** By the ids of MS-SMB2 2.2.3.1.2, in the server's order: AES-128-GCM is the fastest here. */
const ciphers: readonly (readonly [id: number, name: CipherName])[] = [
  [2, 'aes-128-gcm'],
  [4, 'aes-256-gcm'],
  [1, 'aes-128-ccm'],
  [3, 'aes-256-ccm'],
];

/** By the ids of MS-SMB2 2.2.3.1.7, in the server's order: GMAC is the fastest here. */
const signingAlgorithms: readonly (readonly [id: number, name: SigningAlgorithm])[] = [
  [2, 'aes-gmac'],
  [1, 'aes-cmac'],
  [0, 'hmac-sha256'],
];

/** What the contexts of 3.1.1 agree on. */
interface Agreement {
  readonly cipher: CipherName | undefined;
  readonly signing: SigningAlgorithm;
  readonly contexts: readonly NegotiateContext[];
}

export function negotiate(
  request: NegotiateRequest,
  { connection, message, answer }: RequestContext,
): NegotiateResponse {
  if (connection.negotiated) throw new Disconnect('a second NEGOTIATE');
  if (request.dialectCount === 0) throw new SmbError('INVALID_PARAMETER');
  const clientDialects = readDialects(request);
  const dialect = chooseDialect(clientDialects);
  if (dialect === undefined) throw new SmbError('NOT_SUPPORTED');
  const agreement =
    dialect === DIALECT.smb311 ? agree(readContexts(message, request)) : agreeBefore311(dialect, request);
  const capabilities = chooseCapabilities(dialect, agreement.cipher);
  const { clientGuid, securityMode, capabilities: clientCapabilities } = request;
  const negotiated: Negotiated = {
    dialect,
    cipher: agreement.cipher,
    signing: agreement.signing,
    clientGuid: Buffer.from(clientGuid),
    clientSecurityMode: securityMode,
    clientCapabilities,
    clientDialects,
    capabilities,
    securityMode: SECURITY_MODE.signingEnabled,
  };
  connection.negotiated = negotiated;
  const requestHash = extendPreauthHash(EMPTY_PREAUTH_HASH, message);
  answer.onSent = (sent) => {
    connection.preauthHash = extendPreauthHash(requestHash, sent);
  };
  return negotiateResponse({ ...answerFields(connection), dialect, capabilities }, agreement.contexts);
}

/** To a multi-protocol NEGOTIATE of SMB1: another one, of SMB2, is to follow. */
export function wildcardResponse(connection: Connection): NegotiateResponse {
  return negotiateResponse(
    { ...answerFields(connection), dialect: DIALECT_WILDCARD, capabilities: CAPABILITY.largeMtu },
    [],
  );
}

function answerFields({ server }: Connection) {
  const { transactBytes, transferBytes } = server.limits;
  return {
    securityMode: SECURITY_MODE.signingEnabled,
    serverGuid: server.guid,
    maxTransactSize: transactBytes,
    maxReadSize: transferBytes,
    maxWriteSize: transferBytes,
    systemTime: server.fileTime(),
    serverStartTime: 0n,
    securityBuffer: serverOffer(),
  };
}

function chooseCapabilities(dialect: Dialect, cipher: CipherName | undefined): number {
  if (dialect === DIALECT.smb210) return CAPABILITY.largeMtu;
  // In 3.1.1 a context says it, and clients of 3.0 go by the flag.
  const encryption = dialect === DIALECT.smb311 || cipher === undefined ? 0 : CAPABILITY.encryption;
  return CAPABILITY.largeMtu | CAPABILITY.multiChannel | encryption;
}

function agreeBefore311(dialect: Dialect, { capabilities }: NegotiateRequest): Agreement {
  if (dialect === DIALECT.smb210) return { cipher: undefined, signing: 'hmac-sha256', contexts: [] };
  const canEncrypt = (capabilities & CAPABILITY.encryption) !== 0;
  return { cipher: canEncrypt ? 'aes-128-ccm' : undefined, signing: 'aes-cmac', contexts: [] };
}

/** Contexts of other types are passed over: compression, RDMA, a network name. Twice the same type is invalid. */
function agree(contexts: readonly NegotiateContext[]): Agreement {
  const byType = new Map(contexts.map(({ type, data }) => [type, data]));
  const known = Object.values(CONTEXT_TYPE) as number[];
  if (known.some((type) => contexts.filter((context) => context.type === type).length > 1)) {
    throw new SmbError('INVALID_PARAMETER');
  }
  const preauth = byType.get(CONTEXT_TYPE.preauthIntegrity);
  if (!preauth) throw new SmbError('INVALID_PARAMETER');
  if (!readHashIds(preauth).includes(SHA512)) throw new SmbError('SMB_NO_PREAUTH_INTEGRITY_HASH_OVERLAP');
  const answered: NegotiateContext[] = [
    { type: CONTEXT_TYPE.preauthIntegrity, data: writeHashIds([SHA512], randomBytes(SALT_BYTES)) },
  ];
  const cipher = choose(ciphers, byType.get(CONTEXT_TYPE.encryption));
  if (byType.has(CONTEXT_TYPE.encryption)) {
    answered.push({ type: CONTEXT_TYPE.encryption, data: writeAlgorithmIds([cipher?.[0] ?? 0]) });
  }
  const signing = choose(signingAlgorithms, byType.get(CONTEXT_TYPE.signing));
  if (signing) answered.push({ type: CONTEXT_TYPE.signing, data: writeAlgorithmIds([signing[0]]) });
  return { cipher: cipher?.[1], signing: signing?.[1] ?? 'aes-cmac', contexts: answered };
}

/** A context without any algorithm is invalid. */
function choose<Name>(
  preferred: readonly (readonly [id: number, name: Name])[],
  context: Buffer | undefined,
): readonly [id: number, name: Name] | undefined {
  if (!context) return undefined;
  const offered = readAlgorithmIds(context);
  if (offered.length === 0) throw new SmbError('INVALID_PARAMETER');
  return preferred.find(([id]) => offered.includes(id));
}
