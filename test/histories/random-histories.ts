/** Generator of valid histories: sequential operations, recorded as if they had overlapped. */
import fc from 'fast-check';
import { INFINITE, type Operation, type Request } from './history.ts';
import { inPlaceRequest } from './in-place-choices.ts';
import { type InPlaceType, isInPlaceRequest, lengthOfAppend } from './in-place-model.ts';
import { randomOf } from './load.ts';
import { expired, LEASE_SECONDS, movesIn, type State, step } from './model.ts';
import { isEarlier, orderedEtag } from './search.ts';

export interface Shape {
  readonly lengthMax: number;
  /** How far calls and answers may lie from the moment of the operation; moments are 1 apart. */
  readonly spread: number;
  /** Of ten operations, how many have no answer. */
  readonly unanswered: number;
}

export interface BlobShape extends Shape {
  readonly softDelete: boolean;
  /** Of a blob that changes in place. */
  readonly type?: InPlaceType | undefined;
}

/** A random request whose ETag and lease come from the state. */
interface Choice {
  readonly kind: (typeof kindsInPlace)[number];
  /** 0 none, 1 that of the blob as it is, 2 another. */
  readonly condition: number;
  readonly lease: number;
  readonly before: number;
  readonly after: number;
  readonly isLost: number;
  readonly isDone: boolean;
  /** 0 the blob, 1 a snapshot of any age. */
  readonly snapshot: number;
}

const kinds = [
  ...(['put', 'put', 'put', 'get', 'get', 'get', 'delete', 'acquire', 'acquire', 'renew', 'release'] as const),
  ...(['snapshot', 'snapshot', 'delete snapshot', 'undelete', 'undelete', 'change', 'break', 'advance'] as const),
];
const kindsInPlace = [...kinds, ...Array.from({ length: 8 }, () => 'change in place' as const)];

const choiceOf = (chosen: readonly Choice['kind'][]): fc.Arbitrary<Choice> =>
  fc.record({
    kind: fc.constantFrom(...chosen),
    condition: fc.constantFrom(0, 0, 1, 2, 3),
    lease: fc.constantFrom(0, 0, 1, 1, 2),
    before: fc.double({ min: 0, max: 1, noNaN: true }),
    after: fc.double({ min: 0, max: 1, noNaN: true }),
    isLost: fc.integer({ min: 1, max: 10 }),
    isDone: fc.boolean(),
    snapshot: fc.constantFrom(0, 0, 1),
  });

export function history({ lengthMax, spread, unanswered, softDelete, type }: BlobShape): fc.Arbitrary<Operation[]> {
  const choice = choiceOf(type ? kindsInPlace : kinds);
  return fc.array(choice, { minLength: lengthMax >> 1, maxLength: lengthMax, size: 'max' }).map((choices) => {
    const operations: Operation[] = [];
    const told = new Set<string | undefined>();
    const snapshots: string[] = [];
    let state: State;
    for (const [i, made] of choices.entries()) {
      const request = type
        ? inPlaceOf(made, i, state, type, snapshots)
        : requestOf(made, i, state, { told, snapshots });
      const called = i - made.before * spread;
      const isLost = made.isLost <= unanswered;
      const snapshot = isLost ? undefined : `s${i}`;
      const { state: next, answer } = step(state, request, { etag: `e${i}`, called, snapshot, softDelete });
      if (!isLost || made.isDone) state = next;
      const returned = { at: i + made.after * spread, answer };
      if (!isLost && (request.kind === 'put' || request.kind === 'get') && 'etag' in answer) told.add(answer.etag);
      if ('snapshot' in answer && answer.snapshot) snapshots.push(answer.snapshot);
      operations.push({ blob: 'blob', client: i, request, called, ...(isLost ? {} : { returned }) });
    }
    return operations;
  });
}

function requestOf(
  { kind, condition, lease, isDone, snapshot: chosen, before }: Choice,
  i: number,
  state: State,
  { told, snapshots }: { told: ReadonlySet<string | undefined>; snapshots: readonly string[] },
): Request {
  const etag = condition === 1 ? state?.etag : condition === 2 ? `e${i >> 1}` : undefined;
  const ifMatch = told.has(etag) ? etag : undefined;
  const held = state?.lease?.id ?? 'nobody';
  const leaseId = lease === 1 ? state?.lease?.id : lease === 2 ? `L${i >> 1}` : undefined;
  const snapshot = snapshots[Math.floor(before * (snapshots.length - 1))];
  switch (kind) {
    case 'put':
    case 'change in place':
      return { kind: 'put', content: `w${i}`, ifMatch, ifNoneMatch: condition === 3 ? '*' : undefined, leaseId };
    case 'delete':
      return { kind, ifMatch, leaseId, snapshots: ([undefined, 'include', 'include', 'only'] as const)[condition] };
    case 'get':
      return chosen && snapshot !== undefined ? { kind, snapshot } : { kind, leaseId };
    case 'delete snapshot':
      return snapshot === undefined ? { kind: 'undelete' } : { kind, snapshot };
    case 'snapshot':
      return { kind, ifMatch, leaseId };
    case 'acquire':
      return { kind, leaseId: lease === 2 ? held : `L${i}`, seconds: isDone ? INFINITE : LEASE_SECONDS };
    case 'change':
      return { kind, leaseId: leaseId ?? held, newId: `L${i}` };
    case 'renew':
    case 'release':
      return { kind, leaseId: leaseId ?? held };
    default:
      return { kind };
  }
}

/** Without leases and ETags: positions and sequence numbers are the conditions. */
function inPlaceOf(
  { kind, condition, snapshot: chosen, before, after }: Choice,
  i: number,
  state: State,
  type: InPlaceType,
  snapshots: readonly string[],
): Request {
  const snapshot = snapshots[Math.floor(before * (snapshots.length - 1))];
  const ifNoneMatch = condition === 3 ? ('*' as const) : undefined;
  switch (state && !state.isDeleted ? kind : 'put') {
    case 'put':
      return kind === 'undelete' && state ? { kind } : { kind: 'put', type, content: `w${i}`, ifNoneMatch };
    case 'get':
      return chosen && snapshot !== undefined ? { kind: 'get', snapshot } : { kind: 'get' };
    case 'delete':
      return { kind: 'delete', snapshots: ([undefined, 'include', 'include', 'only'] as const)[condition] };
    case 'delete snapshot':
      return snapshot === undefined ? { kind: 'get' } : { kind: 'delete snapshot', snapshot };
    case 'snapshot':
    case 'undelete':
      return { kind: kind as 'snapshot' | 'undelete' };
    default: {
      const random = randomOf(1_000_003 * i + Math.floor((before + after) * 2 ** 20));
      const sequence = Number(/#(\d+)$/.exec(state!.content)?.[1] ?? 0);
      const position = lengthOfAppend(state!.content);
      return inPlaceRequest(type, random, { name: `w${i}`, sequence, position });
    }
  }
}

/** Tries every order of every choice of the unanswered: right by its simplicity, for a handful of operations. */
export function hasOrder(operations: readonly Operation[], softDelete: boolean): boolean {
  const inEtagOrder = operations.some(({ request }) => isInPlaceRequest(request));
  return placeRest(operations, undefined, { moves: movesIn(operations), softDelete, inEtagOrder });
}

interface Facts {
  readonly moves: readonly Operation[];
  readonly softDelete: boolean;
  /** Writes of what changes in place happen in the order of their ETags. */
  readonly inEtagOrder: boolean;
}

function placeRest(rest: readonly Operation[], state: State, facts: Facts): boolean {
  if (rest.every(({ returned }) => !returned)) return true;
  const due = Math.min(...rest.map(({ returned }) => returned?.at ?? Infinity));
  const ended = expired(state, due, facts.moves);
  if (ended && placeRest(rest, ended, facts)) return true;
  return rest.some((operation, i) => {
    // An operation that was called after the return of another one comes after it.
    if (operation.called > due) return false;
    const { request, called, returned } = operation;
    const own = facts.inEtagOrder ? orderedEtag(operation) : undefined;
    if (own !== undefined && rest.some((other) => isEarlier(orderedEtag(other) ?? own, own))) return false;
    const told = returned?.answer ?? {};
    const etag = ('etag' in told ? told.etag : undefined) ?? `e${operation.client}`;
    const snapshot = 'snapshot' in told ? told.snapshot : undefined;
    const next = step(state, request, { etag, called, snapshot, softDelete: facts.softDelete });
    if (returned && JSON.stringify(next.answer) !== JSON.stringify(returned.answer)) return false;
    return placeRest(rest.toSpliced(i, 1), next.state, facts);
  });
}
