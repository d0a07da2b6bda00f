/** OPLOCK_BREAK: acknowledges a break that was never sent, since oplocks and leases are granted nothing (MS-SMB2 3.3.5.22). */
import type { TreeContext } from '../command.ts';
import { SmbError } from '../statuses.ts';
import { HEADER_BYTES } from '../wire/header.ts';
import { LeaseBreakAcknowledgment, OplockBreakAcknowledgment, type OplockBreakRequest } from '../wire/oplock-break.ts';

export function oplockBreak({ structureSize }: OplockBreakRequest, { message, findOpen }: TreeContext): never {
  if (structureSize === LeaseBreakAcknowledgment.structureSize) {
    LeaseBreakAcknowledgment.decode(message, HEADER_BYTES);
    throw new SmbError('OBJECT_NAME_NOT_FOUND');
  }
  findOpen(OplockBreakAcknowledgment.decode(message, HEADER_BYTES).fileId);
  throw new SmbError('INVALID_DEVICE_STATE');
}
