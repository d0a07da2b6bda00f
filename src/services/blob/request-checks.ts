/** The checks that blob operations share: of the request itself, before any row is read; of conditions and leases, on a snapshot. */
import type { Snapshot, Timestamp } from '../../partition/partition.ts';
import { type Conditions, hasOneCondition, judgeWrite, type Validators } from '../../rules/conditions.ts';
import { type CopyState, isPending } from '../../rules/copy-state.ts';
import type { Lease } from '../../rules/lease.ts';
import { blobNameFault, containerNameFault, LOGS_CONTAINER } from '../../rules/names.ts';
import { type PageTier, parsePageTier } from '../../rules/page-tiers.ts';
import {
  isArchived,
  isPremiumTier,
  parseRehydratePriority,
  parseTier,
  type RehydratePriority,
  type StoredTier,
  type Tier,
} from '../../rules/tiers.ts';
import { checkLeaseUse, type DecisionSnapshot, type LeaseFault, parseLeaseId } from '../common/lease-actions.ts';
import type { Storage } from '../common/storage.ts';
import { type BlobErrorCode, blobErrors, fail } from './errors.ts';
import type { Blob, BlobRecord } from './rows.ts';

export { checkReadConditions } from '../common/copy-sources.ts';
export { parseMetadata, type SentMetadata } from '../common/names.ts';
export { type DecisionSnapshot, parseLeaseId };

export type LeasedResource = 'blob' | 'container';

export interface BlobInput {
  readonly container: string;
  readonly blob: string;
  readonly conditions: Conditions;
  readonly leaseId: string | undefined;
}

export interface SnapshotInput extends BlobInput {
  /** Undefined: the base blob. */
  readonly snapshot?: Timestamp | undefined;
}

/** Returns the lease id in its canonical form. */
export function checkReadInput({ container, blob, leaseId }: Omit<BlobInput, 'conditions'>): string | undefined {
  checkContainerName(container);
  checkBlobName(blob);
  return parseLeaseId(leaseId);
}

/** Returns the lease id in its canonical form. */
export function checkWriteInput(input: BlobInput): string | undefined {
  checkContainerName(input.container);
  checkBlobName(input.blob);
  checkSingleCondition(input.conditions);
  return parseLeaseId(input.leaseId);
}

export function checkContainerName(name: string): void {
  const fault = containerNameFault(name);
  if (fault) throw fail(fault);
}

/** Clients can read and delete the logs of Storage Analytics, and nothing else. */
export function checkWritable({ bySystem }: Pick<Storage, 'bySystem'>, container: string): void {
  if (container === LOGS_CONTAINER && !bySystem) throw fail('AuthorizationFailure');
}

export function checkBlobName(name: string): void {
  const fault = blobNameFault(name);
  if (fault) throw fail(fault);
}

export function checkSingleCondition(conditions: Conditions): void {
  if (!hasOneCondition(conditions)) throw fail('MultipleConditionHeadersNotSupported');
}

export function parseSentTier(text: string): Tier {
  const tier = parseTier(text);
  if (tier !== undefined) return tier;
  if (isPremiumTier(text)) throw fail('InvalidBlobTier');
  throw fail('InvalidHeaderValue', { HeaderName: 'x-ms-access-tier', HeaderValue: text });
}

export function parseOptionalTier(text: string | undefined): Tier | undefined {
  return text === undefined ? undefined : parseSentTier(text);
}

/** Of a page blob. */
export function parseSentPageTier(text: string): PageTier {
  const tier = parsePageTier(text);
  if (tier !== undefined) return tier;
  if (parseTier(text) !== undefined) throw fail('InvalidBlobTier');
  throw fail('InvalidHeaderValue', { HeaderName: 'x-ms-access-tier', HeaderValue: text });
}

export function parseSentPriority(text: string | undefined): RehydratePriority | undefined {
  if (text === undefined) return undefined;
  const priority = parseRehydratePriority(text);
  if (priority === undefined)
    throw fail('InvalidHeaderValue', { HeaderName: 'x-ms-rehydrate-priority', HeaderValue: text });
  return priority;
}

/** Fails if the blob is in the archive: its bytes and properties can be neither read nor changed. */
export function checkOnline({ now }: Snapshot, blob: { readonly tier?: StoredTier | undefined } | undefined): void {
  // Most blobs never had a tier set.
  if (blob?.tier && isArchived(blob.tier, now)) throw fail('BlobArchived');
}

/** Fails while a copy onto the blob is pending: until it ends, Abort Copy Blob is the only way to change the blob. */
export function checkNoPendingCopy(blob: { readonly copy?: CopyState | undefined } | undefined): void {
  if (isPending(blob?.copy)) throw fail('PendingCopyOperation');
}

/** Fails if the blob cannot be changed at all now: of an incremental copy only another one changes it. */
export function checkChangeable(blob: Pick<BlobRecord, 'copy' | 'page'> | undefined): void {
  checkNoPendingCopy(blob);
  if (blob?.page?.incremental) throw fail('OperationNotAllowedOnIncrementalCopyBlob');
}

/** Fails if the bytes cannot be read: those of an incremental copy are in its snapshots, the last one may be half done. */
export function checkReadable(blob: Pick<Blob, 'page' | 'snapshot'>): void {
  if (blob.page?.incremental && blob.snapshot === undefined) throw fail('OperationNotAllowedOnIncrementalCopyBlob');
}

/** Fails if the blob has no bytes that can be copied: a copy onto it that is pending has none yet. */
export function checkCopyable(blob: Pick<Blob, 'copy' | 'page' | 'snapshot'>): void {
  checkReadable(blob);
  checkNoPendingCopy(blob);
}

/** Fails if the lease does not permit this use. */
export function checkLease(
  at: DecisionSnapshot,
  lease: Lease | undefined,
  leaseId: string | undefined,
  use: 'read' | 'write',
  what: LeasedResource,
): void {
  checkLeaseUse(at, lease, leaseId, use, (fault) => leaseError(leaseErrorCode(fault, what), what));
}

export function checkWriteConditions(
  found: Validators | undefined,
  conditions: Conditions,
  leaseId?: string,
  creates = false,
): void {
  const verdict = judgeWrite(found, conditions, { creates, leaseHeld: leaseId !== undefined });
  if (verdict !== 'proceed') throw fail(verdict);
}

/** The messages of the table speak of the blob. */
export function leaseError(code: BlobErrorCode, what: LeasedResource) {
  const message: string = blobErrors[code][1];
  return fail(code, undefined, what === 'blob' ? message : message.replace('the blob', 'the container'));
}

function leaseErrorCode(verdict: LeaseFault, what: LeasedResource): BlobErrorCode {
  if (verdict === 'LeaseIdMismatch') {
    return what === 'blob' ? 'LeaseIdMismatchWithBlobOperation' : 'LeaseIdMismatchWithContainerOperation';
  }
  if (verdict === 'LeaseNotPresent') {
    return what === 'blob' ? 'LeaseNotPresentWithBlobOperation' : 'LeaseNotPresentWithContainerOperation';
  }
  return verdict;
}
