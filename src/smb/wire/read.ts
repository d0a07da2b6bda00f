/** READ (MS-SMB2 2.2.19, 2.2.20). */
import { FileId } from './file-id.ts';
import { type Of, padding, struct, tailOf, u8, u32, u64 } from './struct.ts';

export const ReadRequest = struct(49, {
  padding: u8,
  flags: u8,
  length: u32,
  offset: u64,
  fileId: FileId,
  minimumCount: u32,
  channel: u32,
  remainingBytes: u32,
  readChannelInfo: tailOf({ offset: 2, length: 2, emptyOffset: 0 }),
});
export type ReadRequest = Of<typeof ReadRequest>;

export const ReadResponse = struct(17, {
  data: tailOf({ offset: 1, gap: 1, length: 4 }),
  dataRemaining: u32,
  reserved2: padding(4),
});
export type ReadResponse = Of<typeof ReadResponse>;
