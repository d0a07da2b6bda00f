/** Headers: of every SMB2 message (MS-SMB2 2.2.1), and of an encrypted one (2.2.41). */
import type { Reader } from './reader.ts';
import { WireError } from './reader.ts';
import { bytes, type Of, padding, record, u16, u32, u64 } from './struct.ts';
import type { Writer } from './writer.ts';

export const HEADER_BYTES = 64;
export const TRANSFORM_HEADER_BYTES = 52;

/** The first four bytes of a message, read as a little-endian number. */
export const PROTOCOL = { smb1: 0x424d53ff, smb2: 0x424d53fe, transform: 0x424d53fd, compression: 0x424d53fc } as const;

export const HEADER_FLAG = { response: 0x1, async: 0x2, related: 0x4, signed: 0x8, replay: 0x2000_0000 } as const;

const SIGNATURE_AT = 48;
export const SIGNATURE_BYTES = 16;

const fixedHeader = record({
  protocolId: u32,
  structureSize: u16,
  creditCharge: u16,
  /** Of a response; in a request of dialect 3.x, the ChannelSequence. */
  status: u32,
  command: u16,
  /** Asked for, or granted. */
  credits: u16,
  flags: u32,
  /** Offset of the next message of a compound; 0: there is none. */
  nextCommand: u32,
  messageId: u64,
  /** Reserved and TreeId, or the AsyncId. */
  asyncOrTreeId: u64,
  sessionId: u64,
  signature: bytes(SIGNATURE_BYTES),
});

export interface Header {
  readonly creditCharge: number;
  readonly status: number;
  readonly command: number;
  readonly credits: number;
  readonly flags: number;
  readonly nextCommand: number;
  readonly messageId: bigint;
  /** Of an asynchronous message; 0 otherwise. */
  readonly asyncId: bigint;
  /** 0 in an asynchronous message, which has no place for it. */
  readonly treeId: number;
  readonly sessionId: bigint;
  readonly signature: Buffer;
}

export const NO_SIGNATURE = Buffer.alloc(SIGNATURE_BYTES);

export function readHeader(reader: Reader): Header {
  const { protocolId, structureSize, asyncOrTreeId, ...fields } = fixedHeader.read(reader, 0);
  if (protocolId !== PROTOCOL.smb2) throw new WireError('not an SMB2 message');
  if (structureSize !== HEADER_BYTES) throw new WireError(`a header of ${structureSize} bytes`);
  const isAsync = (fields.flags & HEADER_FLAG.async) !== 0;
  return {
    ...fields,
    asyncId: isAsync ? asyncOrTreeId : 0n,
    treeId: isAsync ? 0 : Number(asyncOrTreeId >> 32n),
  };
}

export function writeHeader(writer: Writer, { asyncId, treeId, ...fields }: Header): void {
  const isAsync = (fields.flags & HEADER_FLAG.async) !== 0;
  fixedHeader.append(writer, {
    ...fields,
    protocolId: PROTOCOL.smb2,
    structureSize: HEADER_BYTES,
    asyncOrTreeId: isAsync ? asyncId : BigInt(treeId) << 32n,
  });
}

/** The signature of a message that starts here: it is computed while the field is zero. */
export function signatureOf(message: Buffer): Buffer {
  return message.subarray(SIGNATURE_AT, SIGNATURE_AT + SIGNATURE_BYTES);
}

/** MS-SMB2 2.2.41; the signature covers what follows the first 20 bytes. */
export const TransformHeader = record({
  protocolId: u32,
  signature: bytes(SIGNATURE_BYTES),
  /** 11 bytes are used with CCM, 12 with GCM. */
  nonce: bytes(16),
  originalMessageSize: u32,
  reserved: padding(2),
  /** 1: encrypted. Dialects before 3.1.1 name an algorithm here, with the same value. */
  flags: u16,
  sessionId: u64,
});
export type TransformHeader = Of<typeof TransformHeader>;
