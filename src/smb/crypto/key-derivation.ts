/** Keys of a session: SP 800-108 in counter mode with HMAC-SHA256 (MS-SMB2 3.1.4.2), and the labels of each dialect. */
import { createHash, createHmac } from 'node:crypto';
import { DIALECT, type Dialect } from '../dialects.ts';
import type { CipherName } from './encryption.ts';

/** @param bits 128 or 256 */
export function deriveKey(key: Buffer, label: Buffer, context: Buffer, bits: number): Buffer {
  const counter = Buffer.from([0, 0, 0, 1]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bits);
  return createHmac('sha256', key)
    .update(counter)
    .update(label)
    .update(Buffer.alloc(1))
    .update(context)
    .update(length)
    .digest()
    .subarray(0, bits / 8);
}

/** The hash of all NEGOTIATE and SESSION_SETUP messages so far, which binds the keys of 3.1.1 to them. */
export function extendPreauthHash(hash: Buffer, message: Buffer): Buffer {
  return createHash('sha512').update(hash).update(message).digest();
}

export const EMPTY_PREAUTH_HASH = Buffer.alloc(64);

export function deriveSigningKey(dialect: Dialect, sessionKey: Buffer, preauthHash: Buffer): Buffer {
  if (dialect === DIALECT.smb210) return sessionKey;
  return dialect === DIALECT.smb311
    ? deriveKey(sessionKey, text('SMBSigningKey'), preauthHash, 128)
    : deriveKey(sessionKey, text('SMB2AESCMAC'), text('SmbSign'), 128);
}

export interface CipherKeys {
  /** Of messages that clients send. */
  readonly decryption: Buffer;
  /** Of messages that the server sends. */
  readonly encryption: Buffer;
}

export function deriveCipherKeys(
  dialect: Dialect,
  cipher: CipherName,
  sessionKey: Buffer,
  preauthHash: Buffer,
): CipherKeys {
  const bits = cipher.startsWith('aes-256') ? 256 : 128;
  if (dialect === DIALECT.smb311) {
    return {
      decryption: deriveKey(sessionKey, text('SMBC2SCipherKey'), preauthHash, bits),
      encryption: deriveKey(sessionKey, text('SMBS2CCipherKey'), preauthHash, bits),
    };
  }
  return {
    decryption: deriveKey(sessionKey, text('SMB2AESCCM'), text('ServerIn '), bits),
    encryption: deriveKey(sessionKey, text('SMB2AESCCM'), text('ServerOut'), bits),
  };
}

/** Labels and contexts end with a zero byte. */
function text(label: string): Buffer {
  return Buffer.from(`${label}\0`, 'latin1');
}
