/** Lease Container and Lease Blob: each action runs the lease state machine (rules/lease.ts) in one transaction. */
import { randomUUID } from 'node:crypto';
import type { Transaction } from '../../partition/partition.ts';
import { type Conditions, formatEtag, type Validators } from '../../rules/conditions.ts';
import { type Lease, type LeaseAction, type LeaseStep, lockedUntil, nextLease } from '../../rules/lease.ts';
import type { LeasedName } from '../common/held-leases.ts';
import type { Storage } from '../common/storage.ts';
import { encodeBlobRecord } from './blob-record.ts';
import { fail } from './errors.ts';
import {
  checkBlobName,
  checkChangeable,
  checkContainerName,
  checkSingleCondition,
  checkWriteConditions,
  type LeasedResource,
  leaseError,
  parseLeaseId,
} from './request-checks.ts';
import {
  blobKey,
  encodeProperties,
  encodeUncommitted,
  propertiesKey,
  readContainer,
  recordFrom,
  txQueueKey,
  uncommittedKey,
} from './rows.ts';
import { currentLease, readTarget } from './write-target.ts';

/** The headers of the request, unchecked. */
export interface LeaseRequest {
  readonly action: string;
  readonly leaseId: string | undefined;
  readonly proposedId: string | undefined;
  readonly seconds: number | undefined;
  readonly periodSeconds: number | undefined;
}

interface LeaseTarget {
  readonly container: string;
  readonly conditions: Conditions;
}

export interface LeaseAnswer {
  readonly etag: string;
  readonly modified: bigint;
  readonly leaseId?: string;
  readonly breakSeconds?: number;
}

/** A lease changes neither ETag nor Last-Modified. */
export async function leaseContainer(storage: Storage, input: LeaseTarget & LeaseRequest): Promise<LeaseAnswer> {
  const { container, conditions } = input;
  const { account } = storage;
  checkContainerName(container);
  checkSingleCondition(conditions);
  const action = parseAction(input);
  const { value } = await storage.partition.transact(txQueueKey(account, container), async (tx) => {
    const found = await readContainer(tx, storage, container);
    checkWriteConditions(found, conditions);
    const changed = changeLease(tx, found.lease, action, 'container');
    const { id, metadata, access, policies, version: etag } = found;
    tx.put(propertiesKey(account, id), encodeProperties({ metadata, access, policies, lease: changed.lease, etag }));
    return { answer: leaseAnswer(found, action, changed), lease: changed.lease };
  });
  recordLease(storage, { container }, value.lease);
  return value.answer;
}

export async function leaseBlob(
  storage: Storage,
  input: LeaseTarget & LeaseRequest & { blob: string },
): Promise<LeaseAnswer> {
  const { container, blob, conditions } = input;
  const { account } = storage;
  checkContainerName(container);
  checkBlobName(blob);
  checkSingleCondition(conditions);
  const action = parseAction(input);
  const { value } = await storage.partition.transact(txQueueKey(account, container, blob), async (tx) => {
    const target = await readTarget(tx, storage, input);
    const { containerId, blob: found, uncommitted } = target;
    if (!found && !uncommitted) throw fail('BlobNotFound');
    // For conditions, a blob that consists of uncommitted blocks only does not exist.
    checkWriteConditions(found, conditions);
    checkChangeable(found);
    const changed = changeLease(tx, currentLease(target), action, 'blob');
    const { lease } = changed;
    if (found) {
      const record = { ...recordFrom(found), lease, etag: found.version };
      tx.put(blobKey(account, containerId, blob), encodeBlobRecord(record));
      return { answer: leaseAnswer(found, action, changed), lease };
    }
    const { created } = uncommitted!;
    tx.put(uncommittedKey(account, containerId, blob), encodeUncommitted({ ...uncommitted!, lease }));
    return { answer: leaseAnswer({ etag: formatEtag(created), modified: created }, action, changed), lease };
  });
  recordLease(storage, { container, blob }, value.lease);
  return value.answer;
}

function recordLease({ account, heldLeases }: Storage, name: LeasedName, lease: Lease | undefined): void {
  if (!lease || lease.state === 'broken') heldLeases?.end(account, name);
  else heldLeases?.set(account, name, lease.until);
}

/** The decision rests on the lease as it is now: it is void once an active lease has expired, hence the deadline. */
function changeLease(tx: Transaction, lease: Lease | undefined, action: LeaseAction, what: LeasedResource): LeaseStep {
  const changed = nextLease(lease, action, tx.now);
  if ('refused' in changed) throw leaseError(changed.refused, what);
  const until = lockedUntil(lease, tx.now);
  if (until !== undefined) tx.commitBefore(until);
  return changed;
}

function leaseAnswer({ etag, modified }: Validators, { action }: LeaseAction, changed: LeaseStep): LeaseAnswer {
  const { lease, breakSeconds } = changed;
  return {
    etag,
    modified,
    ...(breakSeconds === undefined ? {} : { breakSeconds }),
    ...(action !== 'break' && lease ? { leaseId: lease.id } : {}),
  };
}

function parseAction(request: LeaseRequest): LeaseAction {
  const { action, seconds, periodSeconds } = request;
  switch (action.toLowerCase()) {
    case 'acquire':
      if (seconds === undefined) throw fail('MissingRequiredHeader', { HeaderName: 'x-ms-lease-duration' });
      if (seconds !== -1 && (seconds < 15 || seconds > 60)) throw outOfRange('x-ms-lease-duration', seconds);
      return { action: 'acquire', seconds, proposedId: parseProposedId(request), newId: randomUUID() };
    case 'renew':
      return { action: 'renew', id: requireLeaseId(request) };
    case 'change': {
      const proposedId = parseProposedId(request);
      if (proposedId === undefined) throw fail('MissingRequiredHeader', { HeaderName: 'x-ms-proposed-lease-id' });
      return { action: 'change', id: requireLeaseId(request), proposedId };
    }
    case 'release':
      return { action: 'release', id: requireLeaseId(request) };
    case 'break':
      return { action: 'break', periodSeconds };
    default:
      throw fail('InvalidHeaderValue', { HeaderName: 'x-ms-lease-action', HeaderValue: action });
  }
}

function requireLeaseId({ leaseId }: LeaseRequest): string {
  const id = parseLeaseId(leaseId);
  if (id === undefined) throw fail('MissingRequiredHeader', { HeaderName: 'x-ms-lease-id' });
  return id;
}

function parseProposedId({ proposedId }: LeaseRequest): string | undefined {
  return parseLeaseId(proposedId, 'x-ms-proposed-lease-id');
}

function outOfRange(header: string, value: number) {
  return fail('InvalidHeaderValue', { HeaderName: header, HeaderValue: String(value) });
}
