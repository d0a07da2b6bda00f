/** Create contexts (MS-SMB2 2.2.13.2, 2.2.14.2): a list of names with data, each of which asks for or answers one thing. */
import { readChain, writeChain } from './chain.ts';
import { Reader } from './reader.ts';
import { bytes, type Of, padding, record, u32, u64 } from './struct.ts';
import { Writer } from './writer.ts';

export interface CreateContext {
  /** Four letters, or a GUID in latin1. */
  readonly name: string;
  readonly data: Buffer;
}

const HEADER_BYTES = 16;
/** Clients send up to eight. */
const CONTEXTS_MAX = 32;

/** @throws WireError */
export function readCreateContexts(list: Buffer): CreateContext[] {
  return readChain(list, { minimum: HEADER_BYTES, max: CONTEXTS_MAX }).map((entry) => {
    const reader = new Reader(entry, 4);
    const [nameOffset, nameLength] = [reader.u16(), reader.u16()];
    reader.skip(2);
    const [dataOffset, dataLength] = [reader.u16(), reader.u32()];
    return {
      name: reader.view(nameOffset, nameLength).toString('latin1'),
      data: reader.view(dataOffset, dataLength),
    };
  });
}

export function writeCreateContexts(contexts: readonly CreateContext[]): Buffer {
  return writeChain(
    contexts.map(({ name, data }) => {
      const writer = new Writer();
      writer.u32(0);
      writer.u16(HEADER_BYTES);
      writer.u16(name.length);
      writer.zeros(2);
      const dataOffset = HEADER_BYTES + Math.ceil(name.length / 8) * 8;
      writer.u16(data.length === 0 ? 0 : dataOffset);
      writer.u32(data.length);
      writer.bytes(Buffer.from(name, 'latin1'));
      if (data.length > 0) {
        writer.align(8);
        writer.bytes(data);
      }
      return writer.finish();
    }),
  );
}

/** MS-SMB2 2.2.13.2.6 */
export const AllocationSizeContext = record({ allocationSize: u64 });

/** MS-SMB2 2.2.13.2.7: a FILETIME. */
export const TimewarpContext = record({ timestamp: u64 });

/** MS-SMB2 2.2.14.2.5 */
export const MaximalAccessResponse = record({ queryStatus: u32, maximalAccess: u32 });
export type MaximalAccessResponse = Of<typeof MaximalAccessResponse>;

/** MS-SMB2 2.2.14.2.9 */
export const QueryOnDiskIdResponse = record({ diskFileId: u64, volumeId: u64, reserved: padding(16) });

/** MS-SMB2 2.2.13.2.8 and 2.2.13.2.10: a lease request; version 2 has more fields after these. */
export const LeaseContext = record({ leaseKey: bytes(16), leaseState: u32, leaseFlags: u32, leaseDuration: u64 });

/** The query of Apple's clients: which capabilities the server has. */
export const AaplQuery = record({ command: u32, reserved: padding(4), requestBitmap: u64, clientCapabilities: u64 });
export const AaplResponse = record({
  command: u32,
  reserved: padding(4),
  replyBitmap: u64,
  serverCapabilities: u64,
  volumeCapabilities: u64,
});
