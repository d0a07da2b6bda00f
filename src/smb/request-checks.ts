/** What handlers check of a request before a service sees it. */
import type { FileOpen } from './file-open.ts';
import { SmbError } from './statuses.ts';

const INT64_MAX = 0x7fff_ffff_ffff_ffffn;

export function checkIsFile(open: FileOpen): void {
  if (open.nodeKind !== 'file') throw new SmbError('INVALID_DEVICE_REQUEST');
}

/** The longest file of NTFS: what ends beyond it is no place in a file, what ends before may lack space. */
const FILE_END_MAX = 0xfff_ffff_0000n;

export function checkWriteOffset(offset: bigint, length: number): number {
  if (length > 0 && offset + BigInt(length) > FILE_END_MAX) throw new SmbError('INVALID_PARAMETER');
  return checkOffset(offset, length);
}

/** Offsets are signed numbers of 64 bits. One that no file reaches becomes the greatest number that is exact. */
export function checkOffset(offset: bigint, length = 0): number {
  if (offset + BigInt(length) > INT64_MAX) throw new SmbError('INVALID_PARAMETER');
  return Math.min(Number(offset), Number.MAX_SAFE_INTEGER - length);
}
