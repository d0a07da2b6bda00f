/** CHANGE_NOTIFY (MS-SMB2 2.2.35, 2.2.36). */
import { FileId } from './file-id.ts';
import { type Of, padding, struct, tailOf, u16, u32 } from './struct.ts';

export const ChangeNotifyRequest = struct(32, {
  flags: u16,
  outputBufferLength: u32,
  fileId: FileId,
  completionFilter: u32,
  reserved: padding(4),
});
export type ChangeNotifyRequest = Of<typeof ChangeNotifyRequest>;

export const ChangeNotifyResponse = struct(9, { output: tailOf({ offset: 2, length: 4 }) });
export type ChangeNotifyResponse = Of<typeof ChangeNotifyResponse>;
