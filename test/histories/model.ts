/** Sequential model of one blob, after Azure's documentation; it shares no code with the server. */
import { type Answer, INFINITE, type Operation, type Request } from './history.ts';
import { changeContent, initialContent, isInPlaceRequest } from './in-place-model.ts';

export type Lease =
  /** `since` belongs to one that ends: when it can have begun at the earliest. */
  | { readonly state: 'leased'; readonly id: string; readonly since?: number }
  | { readonly state: 'broken' | 'expired'; readonly id: string };

export interface Content {
  readonly content: string;
  readonly etag: string;
}

/** By the id of a snapshot. */
export type Snapshots = ReadonlyMap<string, Content>;

export interface Blob extends Content {
  readonly lease: Lease | undefined;
  /** Undelete Blob can restore it, as a blob or a snapshot: the retention is longer than any history. */
  readonly isDeleted: boolean;
  readonly snapshots: Snapshots;
  readonly deletedSnapshots: Snapshots;
}

/** The id of any number of snapshots whose ids no request names, so that only their existence counts. */
const UNNAMED = '';
const NO_SNAPSHOTS: Snapshots = new Map();

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
  /** That Snapshot Blob has returned. */
  readonly snapshot?: string | undefined;
  /** Whether the service keeps what is deleted or replaced. */
  readonly softDelete?: boolean | undefined;
}

/** A lease with an end lasts this long; if `advance` does not end it, it may end by itself. */
export const LEASE_SECONDS = 60;
/** The server's clock and that of the history may differ by some of it. */
const EXPIRY_MILLISECONDS = (LEASE_SECONDS - 1) * 1000;

export function step(state: State, request: Request, circumstances: Circumstances): Step {
  const { etag, called, snapshot, softDelete = false } = circumstances;
  const refuse = (refused: string): Step => ({ state, answer: { refused } });
  const live = state?.isDeleted ? undefined : state;
  if (isInPlaceRequest(request)) {
    if (!live) return refuse('BlobNotFound');
    const next = changeContent(live.content, request);
    if ('refused' in next) return { state, answer: next };
    // A blob that is sealed can be sealed again, and stays as it is.
    if (request.kind === 'seal' && next.content === live.content) return { state, answer: { etag: live.etag } };
    return { state: { ...live, content: next.content, etag }, answer: { etag, ...next.answer } };
  }
  switch (request.kind) {
    case 'advance':
      return { state: withLeasesEnded(state), answer: {} };
    case 'put': {
      const refusal = refusalOfUse(live?.lease, request.leaseId, 'write') ?? refusalOfPut(live, request);
      if (refusal) return refuse(refusal);
      const lease = live?.lease?.state === 'leased' ? live.lease : undefined;
      const { snapshots = NO_SNAPSHOTS, deletedSnapshots: before = NO_SNAPSHOTS } = state ?? {};
      // The replaced state has an id that no answer tells.
      const deletedSnapshots = state && softDelete ? withSnapshot(before, UNNAMED, state) : before;
      const content = request.type ? initialContent(request.type, request.content) : request.content;
      const next = { content, etag, lease, isDeleted: false, snapshots, deletedSnapshots };
      return { state: next, answer: { etag } };
    }
    case 'get': {
      const found = request.snapshot === undefined ? live : state?.snapshots.get(request.snapshot);
      if (!found) return refuse('BlobNotFound');
      const { content, etag } = found;
      if (found !== live) return { state, answer: { content, etag } };
      const refusal = refusalOfUse(live.lease, request.leaseId, 'read');
      if (refusal) return refuse(refusal);
      return { state, answer: { content, etag, lease: live.lease?.state ?? 'available' } };
    }
    case 'delete': {
      if (!live) return refuse('BlobNotFound');
      const refusal = refusalOfUse(live.lease, request.leaseId, 'write') ?? refusalOfDelete(live, request);
      if (refusal) return refuse(refusal);
      const left = withoutSnapshots(live, [...live.snapshots.keys()], softDelete);
      if (request.snapshots === 'only') return { state: left, answer: {} };
      return { state: softDelete ? { ...left, lease: undefined, isDeleted: true } : undefined, answer: {} };
    }
    case 'delete snapshot': {
      if (!state?.snapshots.has(request.snapshot)) return refuse('BlobNotFound');
      return { state: withoutSnapshots(state, [request.snapshot], softDelete), answer: {} };
    }
    case 'snapshot': {
      if (!live) return refuse('BlobNotFound');
      const refusal = refusalOfUse(live.lease, request.leaseId, 'read') ?? refusalOfMatch(live, request);
      if (refusal) return refuse(refusal);
      const snapshots = withSnapshot(live.snapshots, snapshot ?? UNNAMED, live);
      return { state: { ...live, snapshots }, answer: { etag: live.etag, snapshot } };
    }
    case 'undelete': {
      if (!state) return refuse('BlobNotFound');
      const snapshots = new Map([...state.snapshots, ...state.deletedSnapshots]);
      return { state: { ...state, isDeleted: false, snapshots, deletedSnapshots: NO_SNAPSHOTS }, answer: {} };
    }
    default: {
      if (!live) return refuse('BlobNotFound');
      const next = nextLease(live.lease, request, called);
      if (typeof next === 'string') return refuse(next);
      return { state: next.lease === live.lease ? live : { ...live, ...next }, answer: { etag: live.etag } };
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
  const { content, etag, lease, isDeleted, snapshots, deletedSnapshots } = state;
  const words = [
    ...[`${isDeleted ? 'deleted ' : ''}${content}`, `etag ${etag}`, lease ? `${lease.state} ${lease.id}` : 'no lease'],
    ...[...snapshots].map(([id, taken]) => `snapshot ${id || 'without a name'} of ${taken.content}`),
    ...[...deletedSnapshots].flatMap(([id, taken]) => (id ? [`deleted snapshot ${id} of ${taken.content}`] : [])),
  ];
  return words.join(', ');
}

/** Without the ids that no request names any more; a long history has many of them. */
export function forgetIds(state: State, isNamed: (id: string) => boolean): State {
  if (!state) return state;
  const forget = (all: Snapshots): Snapshots => {
    if ([...all.keys()].every((id) => id === UNNAMED || isNamed(id))) return all;
    const kept = [...all].filter(([id]) => isNamed(id));
    return new Map([...kept, [UNNAMED, NOBODYS_CONTENT]]);
  };
  return { ...state, snapshots: forget(state.snapshots), deletedSnapshots: forget(state.deletedSnapshots) };
}

const NOBODYS_CONTENT: Content = { content: 'some content', etag: '' };

function withSnapshot(all: Snapshots, id: string, { content, etag }: Content): Snapshots {
  return new Map(all).set(id, id === UNNAMED ? NOBODYS_CONTENT : { content, etag });
}

function withoutSnapshots(state: Blob, ids: readonly string[], softDelete: boolean): Blob {
  const snapshots = new Map(state.snapshots);
  const deletedSnapshots = new Map(state.deletedSnapshots);
  for (const id of ids) {
    if (softDelete) deletedSnapshots.set(id, snapshots.get(id)!);
    snapshots.delete(id);
  }
  return { ...state, snapshots, deletedSnapshots };
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
  const refusal = refusalOfMatch(state, request);
  // A lease proves that the blob exists.
  return refusal ?? (request.ifNoneMatch && state && request.leaseId === undefined ? 'BlobAlreadyExists' : undefined);
}

function refusalOfMatch(state: State, { ifMatch }: { readonly ifMatch?: string | undefined }): string | undefined {
  return ifMatch !== undefined && ifMatch !== state?.etag ? 'ConditionNotMet' : undefined;
}

function refusalOfDelete(state: Blob, request: Extract<Request, { kind: 'delete' }>): string | undefined {
  const refusal = refusalOfMatch(state, request);
  if (refusal) return refusal;
  if (state.snapshots.size > 0) return request.snapshots === undefined ? 'SnapshotsPresent' : undefined;
  return request.snapshots === 'only' ? 'BlobNotFound' : undefined;
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
