/** The name of an open on the wire (MS-SMB2 2.2.14.1). */
import { type Of, record, u64 } from './struct.ts';

export const FileId = record({ persistent: u64, volatile: u64 });
export type FileId = Of<typeof FileId>;

const ALL_ONES = 0xffff_ffff_ffff_ffffn;

/** In a related compound: the open of the message before. */
export function isPreviousFileId({ persistent, volatile }: FileId): boolean {
  return persistent === ALL_ONES && volatile === ALL_ONES;
}
