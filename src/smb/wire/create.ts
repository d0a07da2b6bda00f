/** CREATE (MS-SMB2 2.2.13, 2.2.14). */
import { FileId } from './file-id.ts';
import { type Of, padding, struct, tail, tailOf, u8, u32, u64, utf16 } from './struct.ts';

export const CreateRequest = struct(57, {
  securityFlags: u8,
  requestedOplockLevel: u8,
  impersonationLevel: u32,
  smbCreateFlags: u64,
  reserved: padding(8),
  desiredAccess: u32,
  fileAttributes: u32,
  shareAccess: u32,
  createDisposition: u32,
  createOptions: u32,
  name: utf16(tail(2, 8)),
  createContexts: tailOf({ offset: 4, length: 4, align: 8, emptyOffset: 0 }),
});
export type CreateRequest = Of<typeof CreateRequest>;

export const CreateResponse = struct(89, {
  oplockLevel: u8,
  flags: u8,
  createAction: u32,
  creationTime: u64,
  lastAccessTime: u64,
  lastWriteTime: u64,
  changeTime: u64,
  allocationSize: u64,
  endOfFile: u64,
  fileAttributes: u32,
  reserved2: padding(4),
  fileId: FileId,
  createContexts: tailOf({ offset: 4, length: 4, align: 8, emptyOffset: 0 }),
});
export type CreateResponse = Of<typeof CreateResponse>;

export const CREATE_OPTIONS = {
  directoryFile: 0x1,
  writeThrough: 0x2,
  sequentialOnly: 0x4,
  noIntermediateBuffering: 0x8,
  synchronousIoAlert: 0x10,
  synchronousIoNonalert: 0x20,
  nonDirectoryFile: 0x40,
  createTreeConnection: 0x80,
  noEaKnowledge: 0x200,
  randomAccess: 0x800,
  deleteOnClose: 0x1000,
  openByFileId: 0x2000,
  noCompression: 0x8000,
  reserveOpfilter: 0x10_0000,
  openReparsePoint: 0x20_0000,
} as const;

export const OPLOCK_LEVEL_NONE = 0;
