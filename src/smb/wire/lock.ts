/** LOCK (MS-SMB2 2.2.26, 2.2.27). */
import { FileId } from './file-id.ts';
import { type Of, padding, record, rest, struct, u16, u32, u64 } from './struct.ts';

export const LockElement = record({ offset: u64, length: u64, flags: u32, reserved: padding(4) });

/** The StructureSize counts the first lock. */
export const LockRequest = struct(48, {
  lockCount: u16,
  lockSequence: u32,
  fileId: FileId,
  first: LockElement,
  others: rest,
});
export type LockRequest = Of<typeof LockRequest>;

export { EmptyBody as LockResponse } from './empty.ts';
