import { randomUUID } from 'node:crypto';
import type { Transaction } from '../../partition/partition.ts';
import type { Conditions } from '../../rules/conditions.ts';
import { formatEtag } from '../../rules/etag.ts';
import { type Lease, type LeaseAction, lockedUntil, nextLease } from '../../rules/lease.ts';
import type { Storage } from '../common/storage.ts';
import { encodeBlobRecord } from './blob-record.ts';
import { fail } from './errors.ts';
import {
  checkBlobName,
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
  type WithVersion,
} from './rows.ts';
import { readTarget } from './write-target.ts';

/** As the request's headers say it. */
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

export async function leaseContainer(storage: Storage, input: LeaseTarget & LeaseRequest): Promise<LeaseAnswer> {
  const { container, conditions } = input;
  checkContainerName(container);
  checkSingleCondition(conditions);
  const action = parseAction(input);
  const { account } = storage;
  const { value } = await storage.partition.transact(txQueueKey(account, container), async (tx) => {
    const found = await readContainer(tx, storage, container);
    return applyAction(tx, found, action, conditions, 'container', (lease) => {
      const { id, metadata, access, policies, stamp } = found;
      tx.put(propertiesKey(account, id), encodeProperties({ metadata, access, policies, lease, etag: stamp }));
    });
  });
  return value;
}

export async function leaseBlob(
  storage: Storage,
  input: LeaseTarget & LeaseRequest & { blob: string },
): Promise<LeaseAnswer> {
  const { container, blob, conditions } = input;
  checkContainerName(container);
  checkBlobName(blob);
  checkSingleCondition(conditions);
  const action = parseAction(input);
  const { account } = storage;
  const { value } = await storage.partition.transact(txQueueKey(account, container, blob), async (tx) => {
    const target = await readTarget(tx, storage, container, blob);
    const { container: id, blob: found, uncommitted } = target;
    if (found) {
      return applyAction(tx, found, action, conditions, 'blob', (lease) => {
        tx.put(blobKey(account, id, blob), encodeBlobRecord({ ...recordFrom(found), lease, etag: found.stamp }));
      });
    }
    if (!uncommitted) throw fail('BlobNotFound');
    // Nothing but uncommitted blocks: it is absent to all conditions.
    checkWriteConditions(undefined, conditions);
    const versioned = {
      ...uncommitted,
      stamp: uncommitted.created,
      etag: formatEtag(uncommitted.created),
      modified: uncommitted.created,
    };
    return applyAction(tx, versioned, action, {}, 'blob', (lease) => {
      tx.put(uncommittedKey(account, id, blob), encodeUncommitted({ ...uncommitted, lease }));
    });
  });
  return value;
}

/** A lease changes neither ETag nor Last-Modified. */
function applyAction(
  tx: Transaction,
  found: WithVersion<{ lease?: Lease | undefined }>,
  action: LeaseAction,
  conditions: Conditions,
  what: LeasedResource,
  write: (lease: Lease | undefined) => void,
): LeaseAnswer {
  checkWriteConditions(found, conditions);
  const next = nextLease(found.lease, action, tx.now);
  if ('refused' in next) throw leaseError(next.refused, what);
  const until = lockedUntil(found.lease, tx.now);
  if (until !== undefined) tx.commitBefore(until);
  write(next.lease);
  return {
    etag: found.etag,
    modified: found.modified,
    ...(next.breakSeconds === undefined ? {} : { breakSeconds: next.breakSeconds }),
    ...(action.action !== 'break' && next.lease ? { leaseId: next.lease.id } : {}),
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
