/** NTLMv2 of a server (MS-NLMP 3.2, 3.3.2): challenge, proof of the password, and the session key that both sides then have. */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { WireError } from '../wire/reader.ts';
import { md4 } from './md4.ts';
import {
  AV_FLAG_MIC,
  AV_ID,
  checkMessageType,
  MESSAGE_TYPE,
  MIC_AT,
  MIC_BYTES,
  NTLM_FLAG,
  NTLM_SIGNATURE,
  NtlmAuthenticate,
  NtlmChallenge,
  NtlmNegotiate,
  readAvPairs,
  writeAvPairs,
} from './ntlm-messages.ts';
import { rc4 } from './rc4.ts';

const PROOF_BYTES = 16;
/** Of the client's part of an NTLMv2 response: the pairs follow. */
const CLIENT_PART_BYTES = 28;
const SESSION_KEY_BYTES = 16;

const SUPPORTED =
  NTLM_FLAG.unicode |
  NTLM_FLAG.requestTarget |
  NTLM_FLAG.sign |
  NTLM_FLAG.seal |
  NTLM_FLAG.ntlm |
  NTLM_FLAG.alwaysSign |
  NTLM_FLAG.extendedSessionSecurity |
  NTLM_FLAG.version |
  NTLM_FLAG.key128 |
  NTLM_FLAG.keyExchange |
  NTLM_FLAG.key56;

/** As Windows 10 writes its own. */
const VERSION = Buffer.from([10, 0, 0, 0, 0, 0, 0, 15]);

/** NTOWFv1: what is derived of the password alone. */
export function hashPassword(password: string): Buffer {
  return md4(Buffer.from(password, 'utf16le'));
}

/** NTOWFv2 */
export function responseKey(passwordHash: Buffer, user: string, domain: string): Buffer {
  return hmacMd5(passwordHash, Buffer.from(user.toUpperCase() + domain, 'utf16le'));
}

export interface NtlmExchange {
  readonly negotiate: Buffer;
  readonly challenge: Buffer;
  readonly serverChallenge: Buffer;
}

export interface NtlmTarget {
  /** The server's name for clients, in capitals. */
  readonly name: string;
  /** As FILETIME: a client that sees it sends a MIC. */
  readonly time: bigint;
}

export function challengeClient(negotiate: Buffer, serverChallenge: Buffer, { name, time }: NtlmTarget): NtlmExchange {
  checkMessageType(negotiate, MESSAGE_TYPE.negotiate);
  const { flags } = NtlmNegotiate.decode(negotiate);
  const unicodeName = Buffer.from(name, 'utf16le');
  const timestamp = Buffer.alloc(8);
  timestamp.writeBigUInt64LE(time);
  const challenge = NtlmChallenge.encode({
    signature: NTLM_SIGNATURE,
    messageType: MESSAGE_TYPE.challenge,
    targetName: name,
    flags: ((flags & SUPPORTED) | NTLM_FLAG.unicode | NTLM_FLAG.targetInfo | NTLM_FLAG.targetTypeServer) >>> 0,
    serverChallenge,
    targetInfo: writeAvPairs([
      [AV_ID.netbiosDomainName, unicodeName],
      [AV_ID.netbiosComputerName, unicodeName],
      [AV_ID.dnsDomainName, Buffer.alloc(0)],
      [AV_ID.dnsComputerName, Buffer.from(name.toLowerCase(), 'utf16le')],
      [AV_ID.timestamp, timestamp],
    ]),
    version: VERSION,
  });
  return { negotiate, challenge, serverChallenge };
}

/** The client's last message, parsed. */
export interface NtlmProof {
  readonly message: Buffer;
  readonly fields: NtlmAuthenticate;
  readonly isAnonymous: boolean;
}

export function readProof(message: Buffer): NtlmProof {
  checkMessageType(message, MESSAGE_TYPE.authenticate);
  const fields = NtlmAuthenticate.decode(message);
  // Before anything is verified: a client that cannot write the list gets to know it.
  if (fields.ntResponse.length >= PROOF_BYTES + CLIENT_PART_BYTES) {
    readAvPairs(fields.ntResponse.subarray(PROOF_BYTES + CLIENT_PART_BYTES));
  }
  const isAnonymous =
    (fields.flags & NTLM_FLAG.anonymous) !== 0 || (fields.user === '' && fields.ntResponse.length === 0);
  return { message, fields, isAnonymous };
}

/** The session key if the client knows the password; undefined otherwise. NTLMv1 and LM responses prove nothing here. */
export function verifyProof(
  { message, fields }: NtlmProof,
  exchange: NtlmExchange,
  passwordHash: Buffer,
): Buffer | undefined {
  const { ntResponse, user, domain, flags, encryptedSessionKey } = fields;
  if (ntResponse.length < PROOF_BYTES + CLIENT_PART_BYTES) return undefined;
  const [proof, clientPart] = [ntResponse.subarray(0, PROOF_BYTES), ntResponse.subarray(PROOF_BYTES)];
  const key = responseKey(passwordHash, user, domain);
  const expected = hmacMd5(key, exchange.serverChallenge, clientPart);
  if (!timingSafeEqual(proof, expected)) return undefined;
  const baseKey = hmacMd5(key, proof);
  const exchangesKey = (flags & NTLM_FLAG.keyExchange) !== 0;
  if (exchangesKey && encryptedSessionKey.length !== SESSION_KEY_BYTES) throw new WireError('a bad session key');
  const sessionKey = exchangesKey ? rc4(baseKey, encryptedSessionKey) : baseKey;
  return hasValidMic(message, clientPart, exchange, sessionKey) ? sessionKey : undefined;
}

/** The MIC covers the three messages, so that nobody in between can have removed flags. */
function hasValidMic(message: Buffer, clientPart: Buffer, exchange: NtlmExchange, sessionKey: Buffer): boolean {
  const avFlags = readAvPairs(clientPart.subarray(CLIENT_PART_BYTES)).get(AV_ID.flags);
  if (avFlags?.length !== 4 || (avFlags.readUInt32LE(0) & AV_FLAG_MIC) === 0) return true;
  if (message.length < MIC_AT + MIC_BYTES) return false;
  const withoutMic = Buffer.from(message);
  withoutMic.fill(0, MIC_AT, MIC_AT + MIC_BYTES);
  const expected = hmacMd5(sessionKey, exchange.negotiate, exchange.challenge, withoutMic);
  return timingSafeEqual(message.subarray(MIC_AT, MIC_AT + MIC_BYTES), expected);
}

/** MS-NLMP 3.4.4.2 and 3.4.5: the first signature that a side makes with the keys of the session. */
export function signFirst(sessionKey: Buffer, flags: number, from: 'client' | 'server', message: Buffer): Buffer {
  const direction = from === 'client' ? 'client-to-server' : 'server-to-client';
  const derive = (use: string, key: Buffer) =>
    createHash('md5').update(key).update(`session key to ${direction} ${use} key magic constant\0`, 'latin1').digest();
  const sequence = Buffer.alloc(4);
  const checksum = hmacMd5(derive('signing', sessionKey), sequence, message).subarray(0, 8);
  const sealed =
    (flags & NTLM_FLAG.keyExchange) === 0
      ? checksum
      : rc4(derive('sealing', sealingKeyBase(sessionKey, flags)), checksum);
  const version = Buffer.from([1, 0, 0, 0]);
  return Buffer.concat([version, sealed, sequence]);
}

function sealingKeyBase(sessionKey: Buffer, flags: number): Buffer {
  if ((flags & NTLM_FLAG.key128) !== 0) return sessionKey;
  return sessionKey.subarray(0, (flags & NTLM_FLAG.key56) === 0 ? 5 : 7);
}

function hmacMd5(key: Buffer, ...parts: readonly Buffer[]): Buffer {
  const hmac = createHmac('md5', key);
  for (const part of parts) hmac.update(part);
  return hmac.digest();
}
