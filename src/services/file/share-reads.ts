/** What operations on a share have in common: its name is checked, its rows are read, and its lease is judged. */
import type { Instant, Row, Snapshot, Timestamp } from '../../partition/partition.ts';
import type { Lease } from '../../rules/lease.ts';
import { shareNameFault } from '../../rules/names.ts';
import type { WithVersion } from '../common/etagged-rows.ts';
import { checkLeaseUse, type DecisionSnapshot, type LeaseFault } from '../common/lease-actions.ts';
import type { AccountScope } from '../common/storage.ts';
import { type FileErrorCode, fail, fileErrors } from './errors.ts';
import { decodeShareProperties, propertiesKey, readShare, type Share, type ShareProperties } from './rows.ts';
import { readSnapshot, type ShareSnapshot, type ShareSnapshotInput } from './snapshot-rows.ts';

export interface ShareInput {
  readonly share: string;
}

/** Of a read that a snapshot answers, too. */
export interface ReadShareInput extends LeasedShareInput, ShareSnapshotInput {}

export interface LeasedShareInput extends ShareInput {
  readonly leaseId: string | undefined;
}

/** A share with its properties, and with the time of its tier: that of the creation, if none was set later. */
export type FoundShare = Share & WithVersion<ShareProperties> & { readonly tierChanged: Timestamp };

export async function readShareProperties(at: Snapshot, scope: AccountScope, name: string): Promise<FoundShare> {
  const share = await readShare(at, scope, name);
  return foundShare(share, (await at.get(propertiesKey(share.account, share.id)))!);
}

/** @param second of the snapshot that is read; undefined: the share as it is */
export async function readShareAt(
  at: Snapshot,
  scope: AccountScope,
  name: string,
  second: Instant | undefined,
): Promise<FoundShare> {
  if (second === undefined) return readShareProperties(at, scope, name);
  const share = await readShare(at, scope, name);
  return foundSnapshot(share, await readSnapshot(at, share, second));
}

/** A snapshot has no access policies: those of the share decide. */
export function foundSnapshot(share: Share, snapshot: ShareSnapshot): FoundShare {
  return { ...share, ...snapshot, policies: [] };
}

export function foundShare(share: Share, row: Row): FoundShare {
  const properties = decodeShareProperties(row);
  return { ...share, ...properties, tierChanged: properties.tierChanged ?? share.id };
}

export function checkShareName(name: string): void {
  const fault = shareNameFault(name);
  if (fault) throw fail(fault);
}

/** As recorded: the codes are those of containers. */
const LEASE_CODES: Readonly<Partial<Record<LeaseFault, FileErrorCode>>> = {
  LeaseIdMismatch: 'LeaseIdMismatchWithContainerOperation',
  LeaseNotPresent: 'LeaseNotPresentWithContainerOperation',
};

/** Deleting the share is the write; everything else done to it is a read. */
export function checkShareLease(
  at: DecisionSnapshot,
  lease: Lease | undefined,
  leaseId: string | undefined,
  use: 'read' | 'write',
): void {
  checkLeaseUse(at, lease, leaseId, use, (fault) => shareLeaseError(LEASE_CODES[fault] ?? (fault as FileErrorCode)));
}

/** The messages of the table speak of the file. */
export function shareLeaseError(code: FileErrorCode) {
  const message: string = fileErrors[code][1];
  return fail(code, undefined, message.replace(/the file(?! share)/, 'the file share'));
}
