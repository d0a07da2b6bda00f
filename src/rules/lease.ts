/** Leases of blobs and containers: the state machine, and the rules for requests to a leased resource. */
import { TICKS_PER_SECOND } from '../base/time.ts';

/** As stored; undefined means available. Ids are normalised, instants are ticks. */
export type Lease =
  | { readonly id: string; readonly state: 'leased'; readonly seconds: number; readonly until?: bigint }
  | { readonly id: string; readonly state: 'breaking'; readonly until: bigint }
  | { readonly id: string; readonly state: 'broken' };

export type LeaseState = 'available' | 'leased' | 'breaking' | 'broken' | 'expired';

export type LeaseAction =
  | {
      readonly action: 'acquire';
      readonly seconds: number;
      readonly proposedId?: string | undefined;
      /** Used when none is proposed. */
      readonly newId: string;
    }
  | { readonly action: 'renew'; readonly id: string }
  | { readonly action: 'change'; readonly id: string; readonly proposedId: string }
  | { readonly action: 'release'; readonly id: string }
  | { readonly action: 'break'; readonly periodSeconds?: number | undefined };

type ActionOf<Name extends LeaseAction['action']> = Extract<LeaseAction, { action: Name }>;

export interface LeaseRefusal {
  readonly refused:
    | 'LeaseAlreadyPresent'
    | 'LeaseIdMismatchWithLeaseOperation'
    | 'LeaseIsBreakingAndCannotBeAcquired'
    | 'LeaseIsBreakingAndCannotBeChanged'
    | 'LeaseIsBrokenAndCannotBeRenewed'
    | 'LeaseNotPresentWithLeaseOperation';
}

export interface LeaseStep {
  readonly lease: Lease | undefined;
  /** Whole seconds until a broken lease is free. */
  readonly breakSeconds?: number;
}

export type LeaseUseVerdict = 'proceed' | 'LeaseIdMissing' | 'LeaseIdMismatch' | 'LeaseNotPresent' | 'LeaseLost';

export const INFINITE_SECONDS = -1;

/** Time alone makes a lease expired or broken; the stored row does not change. */
export function leaseState(lease: Lease | undefined, now: bigint): LeaseState {
  if (lease === undefined) return 'available';
  if (lease.state === 'broken' || lease.until === undefined || now < lease.until) return lease.state;
  return lease.state === 'leased' ? 'expired' : 'broken';
}

export function isLocked(lease: Lease | undefined, now: bigint): lease is Lease {
  const state = leaseState(lease, now);
  return state === 'leased' || state === 'breaking';
}

export function nextLease(lease: Lease | undefined, action: LeaseAction, now: bigint): LeaseStep | LeaseRefusal {
  switch (action.action) {
    case 'acquire':
      return acquire(lease, action, now);
    case 'renew':
      return renew(lease, action, now);
    case 'change':
      return change(lease, action, now);
    case 'release':
      return lease?.id === action.id ? { lease: undefined } : refuse('LeaseIdMismatchWithLeaseOperation');
    case 'break':
      return breakLease(lease, action, now);
  }
}

/** For a container, deleting it is the write; everything else done to it is a read. */
export function judgeUse(
  lease: Lease | undefined,
  leaseId: string | undefined,
  use: 'read' | 'write',
  now: bigint,
): LeaseUseVerdict {
  const locked = isLocked(lease, now);
  if (leaseId === undefined) return locked && use === 'write' ? 'LeaseIdMissing' : 'proceed';
  if (lease === undefined) return 'LeaseNotPresent';
  // Azure answers this for a wrong id too: the lease is not held any more.
  if (!locked) return 'LeaseLost';
  return lease.id === leaseId ? 'proceed' : 'LeaseIdMismatch';
}

/** A write to a blob removes a lease that is not active any more, so it cannot be renewed; containers keep theirs. */
export function leaseAfterWrite(lease: Lease | undefined, now: bigint): Lease | undefined {
  return isLocked(lease, now) ? lease : undefined;
}

/** The instant from which a lease that is locked now no longer is. */
export function lockedUntil(lease: Lease | undefined, now: bigint): bigint | undefined {
  return isLocked(lease, now) && lease.state !== 'broken' ? lease.until : undefined;
}

function acquire(lease: Lease | undefined, action: ActionOf<'acquire'>, now: bigint): LeaseStep | LeaseRefusal {
  if (isLocked(lease, now)) {
    if (lease.id !== action.proposedId) return refuse('LeaseAlreadyPresent');
    if (lease.state === 'breaking') return refuse('LeaseIsBreakingAndCannotBeAcquired');
  }
  return { lease: makeLease(action.proposedId ?? action.newId, action.seconds, now) };
}

/** An expired lease can be renewed for as long as it is still stored. */
function renew(lease: Lease | undefined, action: ActionOf<'renew'>, now: bigint): LeaseStep | LeaseRefusal {
  if (lease?.id !== action.id) return refuse('LeaseIdMismatchWithLeaseOperation');
  if (lease.state !== 'leased') return refuse('LeaseIsBrokenAndCannotBeRenewed');
  return { lease: makeLease(lease.id, lease.seconds, now) };
}

/** A change to the id that the lease already has succeeds, so a client can repeat a change whose answer was lost. */
function change(lease: Lease | undefined, action: ActionOf<'change'>, now: bigint): LeaseStep | LeaseRefusal {
  if (!isLocked(lease, now)) return refuse('LeaseNotPresentWithLeaseOperation');
  if (lease.state === 'breaking' && lease.id === action.id) return refuse('LeaseIsBreakingAndCannotBeChanged');
  const repeated = lease.state === 'leased' && lease.id === action.proposedId;
  if (lease.id !== action.id && !repeated) return refuse('LeaseIdMismatchWithLeaseOperation');
  return { lease: { ...lease, id: action.proposedId } };
}

function breakLease(lease: Lease | undefined, action: ActionOf<'break'>, now: bigint): LeaseStep | LeaseRefusal {
  if (lease === undefined) return refuse('LeaseNotPresentWithLeaseOperation');
  const until = breakEnd(lease, action.periodSeconds, now);
  if (until <= now) return { lease: { id: lease.id, state: 'broken' }, breakSeconds: 0 };
  const breakSeconds = Number((until - now + TICKS_PER_SECOND - 1n) / TICKS_PER_SECOND);
  return { lease: { id: lease.id, state: 'breaking', until }, breakSeconds };
}

/** The earlier of the lease's own end and the requested end. An infinite lease without a requested period ends at once. */
function breakEnd(lease: Lease, periodSeconds: number | undefined, now: bigint): bigint {
  const own = lease.state === 'broken' ? now : lease.until;
  if (periodSeconds === undefined) return own ?? now;
  const requested = now + BigInt(periodSeconds) * TICKS_PER_SECOND;
  return own !== undefined && own < requested ? own : requested;
}

function makeLease(id: string, seconds: number, now: bigint): Lease {
  if (seconds === INFINITE_SECONDS) return { id, state: 'leased', seconds };
  return { id, state: 'leased', seconds, until: now + BigInt(seconds) * TICKS_PER_SECOND };
}

function refuse(refused: LeaseRefusal['refused']): LeaseRefusal {
  return { refused };
}

const DASHED = /^([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{12})$/;
const PLAIN = /^([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})$/;
const HEXADECIMAL =
  /^\{0x([0-9a-f]{1,8}),0x([0-9a-f]{1,4}),0x([0-9a-f]{1,4}),\{0x[0-9a-f]{1,2}(?:,0x[0-9a-f]{1,2}){7}\}\}$/;

/** The five forms that .NET reads as a Guid become one: lower case, with dashes. Undefined if it is none of them. */
export function normaliseLeaseId(text: string): string | undefined {
  const id = text.trim().toLowerCase();
  const inner = /^\{[^{]*\}$|^\(.*\)$/.test(id) ? id.slice(1, -1) : id;
  const parts = DASHED.exec(inner) ?? (inner === id ? PLAIN.exec(id) : null);
  if (parts !== null) return parts.slice(1).join('-');
  return parseHexadecimalGuid(id.replaceAll(/\s/g, ''));
}

/** {0xdddddddd,0xdddd,0xdddd,{0xdd,0xdd,0xdd,0xdd,0xdd,0xdd,0xdd,0xdd}}, where leading zeros may be left out. */
function parseHexadecimalGuid(id: string): string | undefined {
  if (!HEXADECIMAL.test(id)) return undefined;
  const widths = [8, 4, 4, 2, 2, 2, 2, 2, 2, 2, 2];
  const digits = [...id.matchAll(/0x([0-9a-f]+)/g)].map((match, at) => match[1]!.padStart(widths[at]!, '0')).join('');
  return PLAIN.exec(digits)!.slice(1).join('-');
}
