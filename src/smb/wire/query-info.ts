/** QUERY_INFO (MS-SMB2 2.2.37, 2.2.38). */
import { FileId } from './file-id.ts';
import { type Of, struct, tailOf, u8, u32 } from './struct.ts';

export const QueryInfoRequest = struct(41, {
  infoType: u8,
  fileInfoClass: u8,
  outputBufferLength: u32,
  input: tailOf({ offset: 2, gap: 2, length: 4, emptyOffset: 0 }),
  additionalInformation: u32,
  flags: u32,
  fileId: FileId,
});
export type QueryInfoRequest = Of<typeof QueryInfoRequest>;

export const QueryInfoResponse = struct(9, { output: tailOf({ offset: 2, length: 4, align: 8 }) });
export type QueryInfoResponse = Of<typeof QueryInfoResponse>;

export const INFO_TYPE = { file: 1, fileSystem: 2, security: 3, quota: 4 } as const;
