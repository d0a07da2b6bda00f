/** Sequential model of one blob, after Azure's documentation; it shares no code with the server. */
import { type Answer, INFINITE, type Operation, type Request } from './history.ts';

export type Lease =
  /** `since` belongs to one that ends: when it can have begun at the earliest. */
  | { readonly state: 'leased'; readonly id: string; readonly since?: number }
  | { readonly state: 'broken' | 'expired'; readonly id: string };

export interface Blob {
  readonly content: string;
  readonly etag: string;
  readonly lease: Lease | undefined;
}

/** None is absent. */
export type State = Blob | undefined;

export interface Step {
  readonly state: State;
  readonly answer: Answer;
}

/** Facts about an operation that only the history has. */
export interface Circumstances {
  /** That a put gives. */
  readonly etag: string;
  readonly called: number;
}

/** A lease with an end lasts this long; if `advance` does not end it, it may end by itself. */
export const LEASE_SECONDS = 60;
/** The server's clock and that of the history may differ by some of it. */
const EXPIRY_MILLISECONDS = (LEASE_SECONDS - 1) * 1000;

export function step(state: State, request: Request, { etag, called }: Circumstances): Step {
  const refuse = (refused: string): Step => ({ state, answer: { refused } });
  switch (request.kind) {
    case 'advance':
      return { state: withLeasesEnded(state), answer: {} };
    case 'put': {
      const refusal = refusalOfUse(state?.lease, request.leaseId, 'write') ?? refusalOfPut(state, request);
      if (refusal) return refuse(refusal);
      const lease = state?.lease?.state === 'leased' ? state.lease : undefined;
      return { state: { content: request.content, etag, lease }, answer: { etag } };
    }
    case 'get': {
      if (!state) return refuse('BlobNotFound');
      const refusal = refusalOfUse(state.lease, request.leaseId, 'read');
      if (refusal) return refuse(refusal);
      return { state, answer: { content: state.content, etag: state.etag, lease: state.lease?.state ?? 'available' } };
    }
    case 'delete': {
      if (!state) return refuse('BlobNotFound');
      const refusal = refusalOfUse(state.lease, request.leaseId, 'write');
      if (refusal) return refuse(refusal);
      if (request.ifMatch !== undefined && request.ifMatch !== state.etag) return refuse('ConditionNotMet');
      return { state: undefined, answer: {} };
    }
    default: {
      if (!state) return refuse('BlobNotFound');
      const next = nextLease(state.lease, request, called);
      if (typeof next === 'string') return refuse(next);
      return { state: next.lease === state.lease ? state : { ...state, ...next }, answer: { etag: state.etag } };
    }
  }
}

/**
 * The lease may have ended by itself: if so much time can have passed, or if time was moved after it was asked for. For its
 * seconds may count from any moment since then, as they do for a careful holder.
 */
export function expired(state: State, now: number, moves: readonly Operation[]): State {
  const since = state?.lease?.state === 'leased' ? state.lease.since : undefined;
  if (since === undefined) return undefined;
  const isMoved = moves.some(({ called, returned }) => called <= now && (returned?.at ?? Infinity) >= since);
  return isMoved || now - since >= EXPIRY_MILLISECONDS ? withLeasesEnded(state) : undefined;
}

/** The operations that move time. */
export function movesIn(operations: readonly Operation[]): Operation[] {
  return operations.filter(({ request }) => request.kind === 'advance');
}

export function describeState(state: State): string {
  if (!state) return 'absent';
  const { content, etag, lease } = state;
  return `${content}, etag ${etag}, ${lease ? `${lease.state} ${lease.id}` : 'no lease'}`;
}

function withLeasesEnded(state: State): State {
  if (state?.lease?.state !== 'leased' || state.lease.since === undefined) return state;
  return { ...state, lease: { state: 'expired', id: state.lease.id } };
}

function refusalOfUse(lease: Lease | undefined, leaseId: string | undefined, use: 'read' | 'write') {
  if (leaseId === undefined) return use === 'write' && lease?.state === 'leased' ? 'LeaseIdMissing' : undefined;
  if (!lease) return 'LeaseNotPresentWithBlobOperation';
  if (lease.state !== 'leased') return 'LeaseLost';
  return lease.id === leaseId ? undefined : 'LeaseIdMismatchWithBlobOperation';
}

function refusalOfPut(state: State, request: Extract<Request, { kind: 'put' }>): string | undefined {
  if (request.ifMatch !== undefined && request.ifMatch !== state?.etag) return 'ConditionNotMet';
  // A lease proves that the blob exists.
  return request.ifNoneMatch && state && request.leaseId === undefined ? 'BlobAlreadyExists' : undefined;
}

type LeaseRequest = Extract<Request, { kind: 'acquire' | 'renew' | 'release' | 'change' | 'break' }>;

function nextLease(lease: Lease | undefined, request: LeaseRequest, called: number) {
  const isLeased = lease?.state === 'leased';
  const begin = (id: string, ends: boolean) => ({
    lease: { state: 'leased' as const, id, ...(ends ? { since: called } : {}) },
  });
  switch (request.kind) {
    case 'acquire':
      if (isLeased && lease.id !== request.leaseId) return 'LeaseAlreadyPresent';
      return begin(request.leaseId, request.seconds !== INFINITE);
    case 'renew':
      if (lease?.id !== request.leaseId) return 'LeaseIdMismatchWithLeaseOperation';
      if (lease.state === 'broken') return 'LeaseIsBrokenAndCannotBeRenewed';
      return begin(lease.id, lease.state !== 'leased' || lease.since !== undefined);
    case 'release':
      return lease?.id === request.leaseId ? { lease: undefined } : 'LeaseIdMismatchWithLeaseOperation';
    case 'change':
      if (!isLeased) return 'LeaseNotPresentWithLeaseOperation';
      if (lease.id !== request.leaseId && lease.id !== request.newId) return 'LeaseIdMismatchWithLeaseOperation';
      return { lease: lease.id === request.newId ? lease : { ...lease, id: request.newId } };
    case 'break':
      if (!lease) return 'LeaseNotPresentWithLeaseOperation';
      // The load breaks without a wait: a period would need a state of its own.
      return { lease: lease.state === 'broken' ? lease : { state: 'broken' as const, id: lease.id } };
  }
}
