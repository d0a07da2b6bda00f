/** WRITE (MS-SMB2 2.2.21, 2.2.22). */
import { FileId } from './file-id.ts';
import { type Of, padding, struct, tailOf, u32, u64 } from './struct.ts';

export const WriteRequest = struct(49, {
  data: tailOf({ offset: 2, length: 4 }),
  offset: u64,
  fileId: FileId,
  channel: u32,
  remainingBytes: u32,
  writeChannelInfo: tailOf({ offset: 2, length: 2, emptyOffset: 0 }),
  flags: u32,
});
export type WriteRequest = Of<typeof WriteRequest>;

export const WriteResponse = struct(17, {
  reserved: padding(2),
  count: u32,
  remaining: u32,
  writeChannelInfo: padding(4),
});
export type WriteResponse = Of<typeof WriteResponse>;
