/** OPLOCK_BREAK: acknowledgments of an oplock's break and of a lease's, told apart by their StructureSize (MS-SMB2 2.2.24, 2.2.25). */
import { FileId } from './file-id.ts';
import { bytes, type Of, padding, record, rest, struct, u8, u16, u32 } from './struct.ts';

export const OplockBreakRequest = record({ structureSize: u16, fields: rest });
export type OplockBreakRequest = Of<typeof OplockBreakRequest>;

export const OplockBreakAcknowledgment = struct(24, {
  oplockLevel: u8,
  reserved: padding(1),
  reserved2: padding(4),
  fileId: FileId,
});
export type OplockBreakAcknowledgment = Of<typeof OplockBreakAcknowledgment>;

export const LeaseBreakAcknowledgment = struct(36, {
  reserved: padding(2),
  flags: u32,
  leaseKey: bytes(16),
  leaseState: u32,
  leaseDuration: padding(8),
});
export type LeaseBreakAcknowledgment = Of<typeof LeaseBreakAcknowledgment>;
