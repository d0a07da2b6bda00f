/** Lease requests of whatever service: the headers become an action, which the state machine of rules/lease.ts decides in a transaction. */
import { randomUUID } from 'node:crypto';
import type { Instant, Snapshot, Transaction } from '../../partition/partition.ts';
import type { Validators } from '../../rules/conditions.ts';
import {
  INFINITE_SECONDS,
  judgeUse,
  type Lease,
  type LeaseAction,
  type LeaseRefusal,
  type LeaseStep,
  lockedUntil,
  nextLease,
  normaliseLeaseId,
} from '../../rules/lease.ts';
import { commonErrors, errorFactory } from './errors.ts';

const fail = errorFactory(commonErrors);

/** The headers of the request, unchecked. */
export interface LeaseRequest {
  readonly action: string;
  readonly leaseId: string | undefined;
  readonly proposedId: string | undefined;
  readonly seconds: number | undefined;
  readonly periodSeconds: number | undefined;
}

export interface LeaseAnswer {
  readonly etag: string;
  readonly modified: bigint;
  readonly leaseId?: string;
  readonly breakSeconds?: number;
}

/** @param kind infinite leases cannot be renewed, and have no break period */
export function parseLeaseAction(request: LeaseRequest, kind: 'timed' | 'infinite'): LeaseAction {
  const { action, seconds, periodSeconds } = request;
  const name = action.toLowerCase();
  if (name === 'renew' && kind === 'timed') return { action: name, id: requireLeaseId(request) };
  switch (name) {
    case 'acquire':
      if (seconds === undefined) throw fail('MissingRequiredHeader', { HeaderName: 'x-ms-lease-duration' });
      if (!isDuration(seconds, kind)) throw outOfRange('x-ms-lease-duration', seconds);
      return { action: name, seconds, proposedId: parseProposedId(request), newId: randomUUID() };
    case 'change': {
      const proposedId = parseProposedId(request);
      if (proposedId === undefined) throw fail('MissingRequiredHeader', { HeaderName: 'x-ms-proposed-lease-id' });
      return { action: name, id: requireLeaseId(request), proposedId };
    }
    case 'release':
      return { action: name, id: requireLeaseId(request) };
    case 'break':
      if (kind === 'infinite' && periodSeconds !== undefined)
        throw outOfRange('x-ms-lease-break-period', periodSeconds);
      return { action: name, periodSeconds };
    default:
      throw fail('InvalidHeaderValue', { HeaderName: 'x-ms-lease-action', HeaderValue: action });
  }
}

const isDuration = (seconds: number, kind: 'timed' | 'infinite'): boolean =>
  seconds === INFINITE_SECONDS || (kind === 'timed' && seconds >= 15 && seconds <= 60);

/** @returns the lease id in its canonical form */
export function parseLeaseId(text: string | undefined, header = 'x-ms-lease-id'): string | undefined {
  if (text === undefined) return undefined;
  const id = normaliseLeaseId(text);
  if (id === undefined) throw fail('InvalidHeaderValue', { HeaderName: header, HeaderValue: text });
  return id;
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

/**
 * The decision rests on the lease as it is now: it is void once an active lease has expired, hence the deadline.
 * @param refusal the error of the resource
 */
export function changeLease(
  tx: Transaction,
  lease: Lease | undefined,
  action: LeaseAction,
  refusal: (code: LeaseRefusal['refused']) => Error,
): LeaseStep {
  const changed = nextLease(lease, action, tx.now);
  if ('refused' in changed) throw refusal(changed.refused);
  const until = lockedUntil(lease, tx.now);
  if (until !== undefined) tx.commitBefore(until);
  return changed;
}

export function leaseAnswer({ etag, modified }: Validators, { action }: LeaseAction, changed: LeaseStep): LeaseAnswer {
  const { lease, breakSeconds } = changed;
  return {
    etag,
    modified,
    ...(breakSeconds === undefined ? {} : { breakSeconds }),
    ...(action !== 'break' && lease ? { leaseId: lease.id } : {}),
  };
}

/** A read, or a transaction whose commit must come before the instant at which its decision is no longer valid. */
export type DecisionSnapshot = Snapshot & { commitBefore?(instant: Instant): void };

/** Why a lease does not permit the use of what it is on. */
export type LeaseFault = Exclude<ReturnType<typeof judgeUse>, 'proceed'>;

/** Fails if the lease does not permit this use. A decision on an active lease is void once the lease has expired: hence the deadline. */
export function checkLeaseUse(
  at: DecisionSnapshot,
  lease: Lease | undefined,
  leaseId: string | undefined,
  use: 'read' | 'write',
  refusal: (fault: LeaseFault) => Error,
): void {
  const verdict = judgeUse(lease, leaseId, use, at.now);
  if (verdict !== 'proceed') throw refusal(verdict);
  const until = lockedUntil(lease, at.now);
  if (until !== undefined) at.commitBefore?.(until);
}
