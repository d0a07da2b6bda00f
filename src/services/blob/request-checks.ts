/** What a request must be like in itself, before anything stored is looked at; and what decisions on a lease have in common. */
import type { Instant, Snapshot } from '../../partition/partition.ts';
import { type Conditions, type Found, judgeRead, judgeWrite, oneCondition } from '../../rules/conditions.ts';
import { decidesUntil, judgeUse, type Lease, normaliseLeaseId } from '../../rules/lease.ts';
import { blobNameFault, containerNameFault, LOGS_CONTAINER } from '../../rules/names.ts';
import type { Storage } from '../common/storage.ts';
import { type BlobErrorCode, blobErrors, fail } from './errors.ts';

export { metadataOf, type SentMetadata } from '../common/metadata.ts';

export type Leased = 'blob' | 'container';

/** A read, or a transaction, whose commit must come before the instant at which the judgement no longer holds. */
export type Judged = Snapshot & { before?(instant: Instant): void };

export function checkContainerName(name: string): void {
  const fault = containerNameFault(name);
  if (fault) throw fail(fault);
}

/** The logs of the service can be read and deleted, and nothing else. */
export function checkWritable({ bySystem }: Pick<Storage, 'bySystem'>, container: string): void {
  if (container === LOGS_CONTAINER && !bySystem) throw fail('AuthorizationFailure');
}

export function checkBlobName(name: string): void {
  const fault = blobNameFault(name);
  if (fault) throw fail(fault);
}

export function checkWriteConditions(conditions: Conditions): void {
  if (!oneCondition(conditions)) throw fail('MultipleConditionHeadersNotSupported');
}

export function leaseIdOf(text: string | undefined, header = 'x-ms-lease-id'): string | undefined {
  if (text === undefined) return undefined;
  const id = normaliseLeaseId(text);
  if (id === undefined) throw fail('InvalidHeaderValue', { HeaderName: header, HeaderValue: text });
  return id;
}

/** Refuses who may not use what is leased. A decision that rests on a running lease is void once it has run out. */
export function useLease(
  at: Judged,
  lease: Lease | undefined,
  leaseId: string | undefined,
  use: 'read' | 'write',
  what: Leased,
): void {
  const verdict = judgeUse(lease, leaseId, use, at.now);
  if (verdict !== 'proceed') throw leaseError(codeOf(verdict, what), what);
  const until = decidesUntil(lease, at.now);
  if (until !== undefined) at.before?.(until);
}

export function mayRead(found: Found, conditions: Conditions): void {
  const verdict = judgeRead(found, conditions);
  if (verdict !== 'proceed') throw fail(verdict);
}

export function mayWrite(found: Found | undefined, conditions: Conditions, leaseId?: string, creates = false): void {
  const verdict = judgeWrite(found, conditions, { creates, leaseHeld: leaseId !== undefined });
  if (verdict !== 'proceed') throw fail(verdict);
}

/** The messages speak of the blob; of a container they say so. */
export function leaseError(code: BlobErrorCode, what: Leased) {
  const message: string = blobErrors[code][1];
  return fail(code, undefined, what === 'blob' ? message : message.replace('the blob', 'the container'));
}

function codeOf(verdict: Exclude<ReturnType<typeof judgeUse>, 'proceed'>, what: Leased): BlobErrorCode {
  if (verdict === 'LeaseIdMismatch') {
    return what === 'blob' ? 'LeaseIdMismatchWithBlobOperation' : 'LeaseIdMismatchWithContainerOperation';
  }
  if (verdict === 'LeaseNotPresent') {
    return what === 'blob' ? 'LeaseNotPresentWithBlobOperation' : 'LeaseNotPresentWithContainerOperation';
  }
  return verdict;
}
