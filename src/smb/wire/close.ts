/** CLOSE (MS-SMB2 2.2.15, 2.2.16). */
import { FileId } from './file-id.ts';
import { type Of, padding, struct, u16, u32, u64 } from './struct.ts';

export const CloseRequest = struct(24, { flags: u16, reserved: padding(4), fileId: FileId });
export type CloseRequest = Of<typeof CloseRequest>;

export const CloseResponse = struct(60, {
  flags: u16,
  reserved: padding(4),
  creationTime: u64,
  lastAccessTime: u64,
  lastWriteTime: u64,
  changeTime: u64,
  allocationSize: u64,
  endOfFile: u64,
  fileAttributes: u32,
});
export type CloseResponse = Of<typeof CloseResponse>;

/** The response has the attributes of the file. */
export const CLOSE_POSTQUERY_ATTRIB = 0x1;
