/** SET_INFO (MS-SMB2 2.2.39, 2.2.40). */
import { FileId } from './file-id.ts';
import { type Of, padding, struct, tailOf, u8, u32 } from './struct.ts';

export const SetInfoRequest = struct(33, {
  infoType: u8,
  fileInfoClass: u8,
  buffer: tailOf({ offset: 2, length: 4, lengthFirst: true }),
  reserved: padding(2),
  additionalInformation: u32,
  fileId: FileId,
});
export type SetInfoRequest = Of<typeof SetInfoRequest>;

export const SetInfoResponse = struct(2, {});
export type SetInfoResponse = Of<typeof SetInfoResponse>;
