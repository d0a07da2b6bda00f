/** Signatures of messages: HMAC-SHA256 for 2.1, AES-CMAC for 3.x, AES-GMAC where 3.1.1 negotiates it (MS-SMB2 3.1.4.1). */
import { createCipheriv, createHmac, timingSafeEqual } from 'node:crypto';
import { HEADER_FLAG, NO_SIGNATURE, SIGNATURE_BYTES, signatureOf } from '../wire/header.ts';
import { Cmac } from './cmac.ts';

export type SigningAlgorithm = 'hmac-sha256' | 'aes-cmac' | 'aes-gmac';

const COMMAND_AT = 12;
const FLAGS_AT = 16;
const MESSAGE_ID_AT = 24;
const CANCEL = 12;

export class Signer {
  readonly #mac: (message: Buffer) => Buffer;

  constructor(algorithm: SigningAlgorithm, key: Buffer) {
    this.#mac = macFunction(algorithm, key);
  }

  /** Sets the flag and the signature of a message that is not signed yet. */
  sign(message: Buffer): void {
    message.writeUInt32LE((message.readUInt32LE(FLAGS_AT) | HEADER_FLAG.signed) >>> 0, FLAGS_AT);
    const field = signatureOf(message);
    field.fill(0);
    this.#mac(message).copy(field, 0, 0, SIGNATURE_BYTES);
  }

  /** Leaves the message as it was. */
  verify(message: Buffer): boolean {
    const field = signatureOf(message);
    const received = Buffer.from(field);
    NO_SIGNATURE.copy(field);
    const expected = this.#mac(message).subarray(0, SIGNATURE_BYTES);
    received.copy(field);
    return timingSafeEqual(received, expected);
  }
}

function macFunction(algorithm: SigningAlgorithm, key: Buffer): (message: Buffer) => Buffer {
  if (algorithm === 'hmac-sha256') return (message) => createHmac('sha256', key).update(message).digest();
  if (algorithm === 'aes-gmac') return (message) => gmac(key, message);
  const cmac = new Cmac(key);
  return (message) => cmac.compute(message);
}

/** GCM of nothing with the message as additional data. The nonce: MessageId, and whether it is a response or a CANCEL. */
function gmac(key: Buffer, message: Buffer): Buffer {
  const nonce = Buffer.alloc(12);
  message.copy(nonce, 0, MESSAGE_ID_AT, MESSAGE_ID_AT + 8);
  const isResponse = (message.readUInt32LE(FLAGS_AT) & HEADER_FLAG.response) !== 0;
  const isCancel = message.readUInt16LE(COMMAND_AT) === CANCEL;
  nonce.writeUInt32LE((isResponse ? 1 : 0) | (isCancel ? 2 : 0), 8);
  const cipher = createCipheriv('aes-128-gcm', key, nonce);
  cipher.setAAD(message);
  cipher.final();
  return cipher.getAuthTag();
}
