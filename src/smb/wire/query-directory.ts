/** QUERY_DIRECTORY (MS-SMB2 2.2.33, 2.2.34). */
import { FileId } from './file-id.ts';
import { type Of, struct, tail, tailOf, u8, u32, utf16 } from './struct.ts';

export const QueryDirectoryRequest = struct(33, {
  fileInformationClass: u8,
  flags: u8,
  fileIndex: u32,
  fileId: FileId,
  fileName: utf16(tail(2)),
  outputBufferLength: u32,
});
export type QueryDirectoryRequest = Of<typeof QueryDirectoryRequest>;

export const QueryDirectoryResponse = struct(9, { output: tailOf({ offset: 2, length: 4, align: 8 }) });
export type QueryDirectoryResponse = Of<typeof QueryDirectoryResponse>;

export const QUERY_DIRECTORY_FLAGS = {
  restartScans: 0x1,
  returnSingleEntry: 0x2,
  indexSpecified: 0x4,
  reopen: 0x10,
} as const;
