/** Encrypted messages: AES in GCM or CCM, with the transform header as additional data (MS-SMB2 3.1.4.3). */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { PROTOCOL, SIGNATURE_BYTES, TRANSFORM_HEADER_BYTES, TransformHeader } from '../wire/header.ts';
import { WireError } from '../wire/reader.ts';
import type { CipherKeys } from './key-derivation.ts';

export type CipherName = 'aes-128-ccm' | 'aes-128-gcm' | 'aes-256-ccm' | 'aes-256-gcm';

/** Protocol and signature stand before the authenticated part of the header. */
const AUTHENTICATED_AT = 4 + SIGNATURE_BYTES;
const ENCRYPTED = 1;
/** A nonce never repeats under a key: a random beginning that makes it unlikely across processes, and a counter that excludes it within. */
const COUNTER_BYTES = 6;

export class MessageCipher {
  readonly #cipher: CipherName;
  readonly #keys: CipherKeys;
  readonly #nonce: Buffer;
  #sent = 0;

  constructor(cipher: CipherName, keys: CipherKeys) {
    this.#cipher = cipher;
    this.#keys = keys;
    this.#nonce = randomBytes(nonceBytes(cipher));
  }

  /** The transform header, and the encrypted message. */
  encrypt(message: Buffer, sessionId: bigint): readonly [header: Buffer, encrypted: Buffer] {
    const nonce = Buffer.alloc(16);
    this.#nonce.copy(nonce);
    this.#sent += 1;
    nonce.writeUIntLE(this.#sent, 0, COUNTER_BYTES);
    const header = TransformHeader.encode({
      protocolId: PROTOCOL.transform,
      signature: Buffer.alloc(SIGNATURE_BYTES),
      nonce,
      originalMessageSize: message.length,
      flags: ENCRYPTED,
      sessionId,
    });
    const cipher = this.#createCipher(nonce);
    cipher.setAAD(header.subarray(AUTHENTICATED_AT), { plaintextLength: message.length });
    const encrypted = cipher.update(message);
    cipher.final();
    cipher.getAuthTag().copy(header, 4);
    return [header, encrypted];
  }

  /** Throws a WireError if the bytes are not what the client encrypted. */
  decrypt(packet: Buffer): Buffer {
    const { signature, nonce, originalMessageSize, flags } = TransformHeader.decode(packet);
    const encrypted = packet.subarray(TRANSFORM_HEADER_BYTES);
    if (flags !== ENCRYPTED || originalMessageSize !== encrypted.length) throw new WireError('a bad transform header');
    const options = { authTagLength: SIGNATURE_BYTES };
    const iv = nonce.subarray(0, nonceBytes(this.#cipher));
    // The types of Node know each mode by its own name only.
    const decipher = createDecipheriv(this.#cipher as 'aes-128-ccm', this.#keys.decryption, iv, options);
    decipher.setAuthTag(signature);
    decipher.setAAD(packet.subarray(AUTHENTICATED_AT, TRANSFORM_HEADER_BYTES), { plaintextLength: encrypted.length });
    try {
      const message = decipher.update(encrypted);
      decipher.final();
      return message;
    } catch {
      throw new WireError('a message that was not encrypted by this session');
    }
  }

  #createCipher(nonce: Buffer) {
    const iv = nonce.subarray(0, nonceBytes(this.#cipher));
    return createCipheriv(this.#cipher as 'aes-128-ccm', this.#keys.encryption, iv, { authTagLength: SIGNATURE_BYTES });
  }
}

function nonceBytes(cipher: CipherName): number {
  return cipher.endsWith('ccm') ? 11 : 12;
}
