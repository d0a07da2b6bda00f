/** The checks that operations on files share: of leases and of the read-only attribute. */
import type { Snapshot } from '../../partition/partition.ts';
import { isPending } from '../../rules/copy-state.ts';
import { judgeUse } from '../../rules/lease.ts';
import { type FileErrorCode, fail } from './errors.ts';
import type { File, SmbProperties } from './node-rows.ts';

export { parseLeaseId } from '../common/lease-actions.ts';

const LEASE_CODES: Readonly<Record<Exclude<ReturnType<typeof judgeUse>, 'proceed'>, FileErrorCode>> = {
  LeaseIdMissing: 'LeaseIdMissing',
  LeaseIdMismatch: 'LeaseIdMismatchWithFileOperation',
  LeaseNotPresent: 'LeaseNotPresentWithFileOperation',
  LeaseLost: 'LeaseNotPresentWithFileOperation',
};

/** Leases of files are infinite: no decision on one expires. */
export function checkFileLease(
  at: Snapshot,
  file: Pick<File, 'lease'> | undefined,
  leaseId: string | undefined,
  use: 'read' | 'write',
): void {
  const verdict = judgeUse(file?.lease, leaseId, use, at.now);
  if (verdict !== 'proceed') throw fail(LEASE_CODES[verdict]);
}

const READ_ONLY = 0x1;

export function checkNotReadOnly({ attributes }: Pick<SmbProperties, 'attributes'>): void {
  if (attributes & READ_ONLY) throw fail('ReadOnlyAttribute');
}

/** Fails while a copy onto the file is pending: until it ends, Abort Copy File is the only way to change the file. */
export function checkNoPendingCopy(file: Pick<File, 'copy'> | undefined): void {
  if (isPending(file?.copy)) throw fail('PendingCopyOperation');
}
