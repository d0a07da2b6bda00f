/** The client's side of NTLMv2 (MS-NLMP 3.1.5.1): its two messages, and the key that both sides have afterwards. */
import { createHmac, randomBytes } from 'node:crypto';
import { hashPassword, responseKey } from '../../src/smb/auth/ntlm.ts';
import {
  NTLM_FLAG,
  NTLM_SIGNATURE,
  NtlmAuthenticate,
  NtlmChallenge,
  NtlmNegotiate,
} from '../../src/smb/auth/ntlm-messages.ts';

const FLAGS = NTLM_FLAG.unicode | NTLM_FLAG.ntlm | NTLM_FLAG.extendedSessionSecurity | NTLM_FLAG.targetInfo;
const HEAD = { signature: NTLM_SIGNATURE, flags: FLAGS };

export interface Credentials {
  readonly user: string;
  readonly password: string;
}

export function ntlmNegotiate(): Buffer {
  return NtlmNegotiate.encode({ ...HEAD, messageType: 1 });
}

/** @param changePart of the response: what the proof covers, before it is made */
export function ntlmAuthenticate(
  challenge: Buffer,
  { user, password }: Credentials,
  changePart = (part: Buffer) => part,
): { readonly message: Buffer; readonly sessionKey: Buffer } {
  const { serverChallenge, targetInfo } = NtlmChallenge.decode(challenge);
  const head = Buffer.from([1, 1, 0, 0, 0, 0, 0, 0]);
  const time = Buffer.alloc(8);
  const clientPart = changePart(
    Buffer.concat([head, time, randomBytes(8), Buffer.alloc(4), targetInfo, Buffer.alloc(4)]),
  );
  const key = responseKey(hashPassword(password), user, '');
  const proof = hmacMd5(key, Buffer.concat([serverChallenge, clientPart]));
  const message = NtlmAuthenticate.encode({
    ...HEAD,
    messageType: 3,
    lmResponse: Buffer.alloc(24),
    ntResponse: Buffer.concat([proof, clientPart]),
    domain: '',
    user,
    workstation: '',
    encryptedSessionKey: Buffer.alloc(0),
  });
  return { message, sessionKey: hmacMd5(key, proof) };
}

function hmacMd5(key: Buffer, bytes: Buffer): Buffer {
  return createHmac('md5', key).update(bytes).digest();
}
