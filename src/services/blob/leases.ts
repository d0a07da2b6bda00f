import { randomUUID } from 'node:crypto';
import type { Transaction } from '../../partition/partition.ts';
import type { Conditions } from '../../rules/conditions.ts';
import { etagOf } from '../../rules/etag.ts';
import { decidesUntil, type Lease, type LeaseAction, nextLease } from '../../rules/lease.ts';
import type { Storage } from '../common/storage.ts';
import { encodeHead } from './blob-record.ts';
import { fail } from './errors.ts';
import {
  checkBlobName,
  checkContainerName,
  checkWriteConditions,
  type Leased,
  leaseError,
  leaseIdOf,
  mayWrite,
} from './request-checks.ts';
import {
  anchorOf,
  containerAt,
  encodeProperties,
  encodeStage,
  headKey,
  headOf,
  type Located,
  propertiesKey,
  stageKey,
} from './rows.ts';
import { targetAt } from './write-target.ts';

/** As the request's headers say it. */
export interface LeaseRequest {
  readonly action: string;
  readonly leaseId: string | undefined;
  readonly proposedId: string | undefined;
  readonly seconds: number | undefined;
  readonly periodSeconds: number | undefined;
}

interface Target {
  readonly container: string;
  readonly conditions: Conditions;
}

export interface LeaseAnswer {
  readonly etag: string;
  readonly modified: bigint;
  readonly leaseId?: string;
  readonly breakSeconds?: number;
}

export async function leaseContainer(storage: Storage, input: Target & LeaseRequest): Promise<LeaseAnswer> {
  const { container, conditions } = input;
  checkContainerName(container);
  checkWriteConditions(conditions);
  const action = actionOf(input);
  const { account } = storage;
  const { value } = await storage.partition.transact(anchorOf(account, container), async (tx) => {
    const found = await containerAt(tx, storage, container);
    return step(tx, found, action, conditions, 'container', (lease) => {
      const { id, metadata, access, policies, stamp } = found;
      tx.put(propertiesKey(account, id), encodeProperties({ metadata, access, policies, lease, etag: stamp }));
    });
  });
  return value;
}

export async function leaseBlob(
  storage: Storage,
  input: Target & LeaseRequest & { blob: string },
): Promise<LeaseAnswer> {
  const { container, blob, conditions } = input;
  checkContainerName(container);
  checkBlobName(blob);
  checkWriteConditions(conditions);
  const action = actionOf(input);
  const { account } = storage;
  const { value } = await storage.partition.transact(anchorOf(account, container, blob), async (tx) => {
    const target = await targetAt(tx, storage, container, blob);
    const { container: id, blob: found, stage } = target;
    if (found) {
      return step(tx, found, action, conditions, 'blob', (lease) => {
        tx.put(headKey(account, id, blob), encodeHead({ ...headOf(found), lease, etag: found.stamp }));
      });
    }
    if (!stage) throw fail('BlobNotFound');
    // Nothing but uncommitted blocks: it is absent to all conditions.
    mayWrite(undefined, conditions);
    const uncommitted = { ...stage, stamp: stage.created, etag: etagOf(stage.created), modified: stage.created };
    return step(tx, uncommitted, action, {}, 'blob', (lease) => {
      tx.put(stageKey(account, id, blob), encodeStage({ ...stage, lease }));
    });
  });
  return value;
}

/** A lease changes neither ETag nor Last-Modified. */
function step(
  tx: Transaction,
  found: Located<{ lease?: Lease | undefined }>,
  action: LeaseAction,
  conditions: Conditions,
  what: Leased,
  write: (lease: Lease | undefined) => void,
): LeaseAnswer {
  mayWrite(found, conditions);
  const next = nextLease(found.lease, action, tx.now);
  if ('refused' in next) throw leaseError(next.refused, what);
  const until = decidesUntil(found.lease, tx.now);
  if (until !== undefined) tx.before(until);
  write(next.lease);
  return {
    etag: found.etag,
    modified: found.modified,
    ...(next.breakSeconds === undefined ? {} : { breakSeconds: next.breakSeconds }),
    ...(action.action !== 'break' && next.lease ? { leaseId: next.lease.id } : {}),
  };
}

function actionOf(request: LeaseRequest): LeaseAction {
  const { action, seconds, periodSeconds } = request;
  switch (action.toLowerCase()) {
    case 'acquire':
      if (seconds === undefined) throw fail('MissingRequiredHeader', { HeaderName: 'x-ms-lease-duration' });
      if (seconds !== -1 && (seconds < 15 || seconds > 60)) throw outOfRange('x-ms-lease-duration', seconds);
      return { action: 'acquire', seconds, proposedId: proposed(request), newId: randomUUID() };
    case 'renew':
      return { action: 'renew', id: required(request) };
    case 'change': {
      const proposedId = proposed(request);
      if (proposedId === undefined) throw fail('MissingRequiredHeader', { HeaderName: 'x-ms-proposed-lease-id' });
      return { action: 'change', id: required(request), proposedId };
    }
    case 'release':
      return { action: 'release', id: required(request) };
    case 'break':
      return { action: 'break', periodSeconds };
    default:
      throw fail('InvalidHeaderValue', { HeaderName: 'x-ms-lease-action', HeaderValue: action });
  }
}

function required({ leaseId }: LeaseRequest): string {
  const id = leaseIdOf(leaseId);
  if (id === undefined) throw fail('MissingRequiredHeader', { HeaderName: 'x-ms-lease-id' });
  return id;
}

function proposed({ proposedId }: LeaseRequest): string | undefined {
  return leaseIdOf(proposedId, 'x-ms-proposed-lease-id');
}

function outOfRange(header: string, value: number) {
  return fail('InvalidHeaderValue', { HeaderName: header, HeaderValue: String(value) });
}
