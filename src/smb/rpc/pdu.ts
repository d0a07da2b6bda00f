/** The packets of DCE/RPC (C706 chapter 12, MS-RPCE 2.2.2) that a server on a named pipe needs. */
import { Reader, WireError } from '../wire/reader.ts';
import { bytes, type Of, padding, record, rest, u8, u16, u32 } from '../wire/struct.ts';
import { Writer } from '../wire/writer.ts';

export const PDU_TYPE = {
  request: 0,
  response: 2,
  fault: 3,
  bind: 11,
  bindAck: 12,
  alterContext: 14,
  alterAck: 15,
} as const;
export const PDU_FLAG = { first: 1, last: 2, object: 0x80 } as const;

const RPC_VERSION = 5;
/** Numbers are little-endian, characters are ASCII. */
const LITTLE_ENDIAN = 0x10;
export const PDU_HEAD_BYTES = 16;

export const PduHead = record({
  version: u8,
  minorVersion: u8,
  type: u8,
  flags: u8,
  dataRepresentation: u32,
  fragmentLength: u16,
  authLength: u16,
  callId: u32,
});
export type PduHead = Of<typeof PduHead>;

export interface Pdu extends PduHead {
  readonly body: Buffer;
}

/** The length of the packet that begins here; undefined: its head has not arrived. */
export function pduLength(arrived: Buffer): number | undefined {
  if (arrived.length < PDU_HEAD_BYTES) return undefined;
  const { fragmentLength } = PduHead.decode(arrived);
  if (fragmentLength < PDU_HEAD_BYTES) throw new WireError(`a packet of RPC with ${fragmentLength} bytes`);
  return fragmentLength;
}

/** Packets with credentials of their own are refused: the session has signed in. */
export function readPdu(packet: Buffer): Pdu {
  const head = PduHead.decode(packet);
  if (head.version !== RPC_VERSION || (head.dataRepresentation & 0xff) !== LITTLE_ENDIAN || head.authLength !== 0) {
    throw new WireError('a packet of RPC that is not understood');
  }
  return { ...head, body: packet.subarray(PDU_HEAD_BYTES) };
}

export function writePdu({ type, flags, callId }: Pick<PduHead, 'type' | 'flags' | 'callId'>, body: Buffer): Buffer {
  const head = PduHead.encode({
    ...{ version: RPC_VERSION, minorVersion: 0, type, flags, dataRepresentation: LITTLE_ENDIAN, authLength: 0, callId },
    fragmentLength: PDU_HEAD_BYTES + body.length,
  });
  return Buffer.concat([head, body]);
}

/** A UUID and a version. */
export const SYNTAX_BYTES = 20;

export interface OfferedContext {
  readonly id: number;
  readonly abstractSyntax: Buffer;
  readonly transferSyntaxes: readonly Buffer[];
}

export interface BindBody {
  readonly maxReceive: number;
  readonly associationGroup: number;
  readonly contexts: readonly OfferedContext[];
}

export function readBind(body: Buffer): BindBody {
  const reader = new Reader(body);
  reader.skip(2);
  const maxReceive = reader.u16();
  const associationGroup = reader.u32();
  const count = reader.u8();
  reader.skip(3);
  const contexts = Array.from({ length: count }, () => {
    const id = reader.u16();
    const transferCount = reader.u8();
    reader.skip(1);
    const abstractSyntax = reader.bytes(SYNTAX_BYTES);
    return {
      id,
      abstractSyntax,
      transferSyntaxes: Array.from({ length: transferCount }, () => reader.bytes(SYNTAX_BYTES)),
    };
  });
  return { maxReceive, associationGroup, contexts };
}

/** Undefined: the context is refused. */
export type AcceptedSyntax = Buffer | undefined;

const PROVIDER_REJECTION = 2;
const TRANSFER_SYNTAXES_NOT_SUPPORTED = 2;

export function writeBindAck(
  fragmentBytes: number,
  associationGroup: number,
  secondaryAddress: string,
  results: readonly AcceptedSyntax[],
): Buffer {
  const writer = new Writer();
  writer.u16(fragmentBytes);
  writer.u16(fragmentBytes);
  writer.u32(associationGroup);
  const address = Buffer.from(`${secondaryAddress}\0`, 'latin1');
  writer.u16(address.length);
  writer.bytes(address);
  // The packet's head has 16 bytes, so that this is a multiple of 4 in the packet, too.
  writer.align(4);
  writer.u8(results.length);
  writer.zeros(3);
  for (const accepted of results) {
    writer.u16(accepted ? 0 : PROVIDER_REJECTION);
    writer.u16(accepted ? 0 : TRANSFER_SYNTAXES_NOT_SUPPORTED);
    writer.bytes(accepted ?? Buffer.alloc(SYNTAX_BYTES));
  }
  return writer.finish();
}

export const RequestHead = record({ allocationHint: u32, contextId: u16, operation: u16, stub: rest });

export const OBJECT_BYTES = 16;

export const ResponseBody = record({
  allocationHint: u32,
  contextId: u16,
  cancelCount: u8,
  reserved: padding(1),
  stub: rest,
});

export const FaultBody = record({
  allocationHint: u32,
  contextId: u16,
  cancelCount: u8,
  reserved: padding(1),
  status: u32,
  reserved2: bytes(4),
});
