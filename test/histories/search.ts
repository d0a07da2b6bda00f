/**
 * Wing and Gong's search with Lowe's memory, just in time: the events are walked in order, and only where an answer is due that
 * has no place yet, operations under way are given theirs. Each happens at one moment between its call and its answer.
 */
import { type Answer, grouped, type Operation, type Request } from './history.ts';
import { canLeadTo, isInPlace, isInPlaceRequest, longestContents } from './in-place-model.ts';
import { expired, forgetIds, movesIn, type Snapshots, type State, step } from './model.ts';

export interface SearchOptions {
  /** Past it the search throws Undecided: the history is neither right nor wrong. */
  nodesMax?: number;
  /** Whether the service kept what was deleted or replaced. */
  softDelete?: boolean | undefined;
  /** Codes that the service has in place of those of the model. */
  codes?: Readonly<Record<string, string>> | undefined;
}

export class Undecided extends Error {
  override readonly name = 'Undecided';
}

export function isLinearizable(operations: readonly Operation[], options: SearchOptions = {}): boolean {
  return search(operations, { ...options, statesMax: 1 }).length > 0;
}

/** Some possible states of the blob after these. */
export function endStates(operations: readonly Operation[], options: SearchOptions = {}): State[] {
  return search(operations, { ...options, statesMax: STATES_MAX });
}

const STATES_MAX = 4;
const NODES_MAX = 1_000_000;
/** Bits of a small integer. */
const SLOTS_MAX = 30;
/** Content of a put without an answer that no read has returned; and a lease that only its own request names. */
const UNSEEN = 'unseen';
/** How many ways to one place are compared with the next: the first are those that used least. */
const WAYS_COMPARED_MAX = 16;

interface Event {
  readonly at: number;
  readonly operation: Operation;
  readonly isReturn: boolean;
}

/** A place in the search. */
interface Node {
  /** The next event. */
  readonly at: number;
  readonly state: State;
  /** Operations that are placed and have not returned yet: one bit for each slot. */
  readonly placed: number;
  /** Of every kind of unanswered operation, how many have happened. */
  readonly used: readonly number[];
  /** Only unanswered operations are tried here: the others have been. */
  readonly isLast?: boolean;
}

function search(operations: readonly Operation[], options: SearchOptions & { statesMax: number }): State[] {
  const { nodesMax = NODES_MAX, statesMax, softDelete, codes = {} } = options;
  const etags = etagsOf(operations);
  const known = new Set([...etags.values(), ...operations.flatMap((operation) => orderedEtag(operation) ?? [])]);
  const longest = longestContents(contentsRead(operations));
  const events = eventsOf(operations);
  const moves = movesIn(operations);
  const lastSeen = lastCalls(events);
  const lastNamed = lastReturns(events, operations);
  const { slots, underWay } = slotsOf(events);
  const firstEtags = operations.some(({ request }) => isInPlaceRequest(request)) ? etagsAhead(events) : undefined;
  const unanswered = unansweredIn(operations, etags);

  const after = (at: number, state: State, operation: Operation) => {
    const { request, called, returned } = operation;
    const etag = ownEtag(operation) ?? (request.kind === 'put' ? etags.get(request.content) : undefined) ?? UNSEEN;
    const snapshot = returned && 'snapshot' in returned.answer ? returned.answer.snapshot : undefined;
    const next = step(state, request, { etag, called, snapshot, softDelete });
    if (next.state === state) return next;
    return { ...next, state: forgetIds(next.state, (id) => (lastNamed.get(id) ?? -1) >= at) };
  };
  /** The state that this operation leaves, if its answer is right there. */
  const place = (at: number, state: State, operation: Operation): { state: State } | undefined => {
    const next = after(at, state, operation);
    return agrees(translated(next.answer, codes), operation.returned!.answer, known) ? next : undefined;
  };
  /** Content is never restored: while a later read still returns it, it cannot be overwritten. */
  const mayFollow = ({ at, placed, state: next }: Node, former: State): boolean => {
    if (next && !canLeadTo(next.content, longest)) return false;
    if (!former || former.content === next?.content) return true;
    if ((lastSeen.get(former.etag) ?? -1) >= at) return false;
    return underWay[at]!.every((other) => {
      return (placed & (1 << slots.get(other)!)) !== 0 || !needsOf(other).includes(former.etag);
    });
  };

  /** Advances to the first answer that fits nowhere. An operation that changes nothing is placed as soon as possible. */
  function walk(node: Node): Node {
    const { state } = node;
    let { at, placed } = node;
    for (; at < events.length; at++) {
      const { operation, isReturn } = events[at]!;
      if (!isReturn) continue;
      for (const other of underWay[at]!) {
        const bit = 1 << slots.get(other)!;
        if ((placed & bit) === 0 && changesNothing(other) && place(at, state, other)) placed |= bit;
      }
      const own = 1 << slots.get(operation)!;
      if ((placed & own) === 0) break;
      placed &= ~own;
    }
    return { ...node, at, placed };
  }

  const isPlaced = (placed: number, other: Operation) => (placed & (1 << slots.get(other)!)) !== 0;

  /** Possible next operations, the likeliest last. */
  function successors(node: Node): Node[] {
    const { at, state, placed } = node;
    const nodes: Node[] = [{ ...node, isLast: true }];
    const unplaced = underWay[at]!.filter((other) => !isPlaced(placed, other));
    const first = firstEtags && firstOf([firstEtags[at], ...unplaced.map(orderedEtag)]);
    const ended = expired(state, events[at]!.at, moves);
    if (ended) nodes.push({ ...node, state: ended });
    for (const other of underWay[at]!) {
      const bit = 1 << slots.get(other)!;
      if (isPlaced(placed, other)) continue;
      if (first !== undefined && (orderedEtag(other) ?? first) !== first) continue;
      const left = place(at, state, other);
      const next = left && { ...node, state: left.state, placed: placed | bit };
      if (next && mayFollow(next, state)) nodes.push(next);
    }
    return nodes;
  }

  function unansweredSuccessors({ at, state, placed, used }: Node): Node[] {
    const now = events[at]!.at;
    return unanswered.flatMap((same, i) => {
      const operation = same[used[i]!];
      if (!operation || operation.called > now) return [];
      const left = after(at, state, operation);
      if ('refused' in left.answer || keyOf(left.state) === keyOf(state)) return [];
      const next = { at, state: left.state, placed, used: used.with(i, used[i]! + 1) };
      return mayFollow(next, state) ? [next] : [];
    });
  }

  /** By place and state, the least that was used to get there: with more left over, everything is possible that is with less. */
  const ways = new Map<string, (readonly number[])[]>();
  const visited = new Set<string>();
  function isNew({ at, state, placed, used }: Node): boolean {
    const key = `${at}/${placed}/${keyOf(state)}`;
    const before = ways.get(key) ?? [];
    if (before.some((less) => less === used || less.every((n, i) => n <= used[i]!))) return false;
    if (before.length === 0) ways.set(key, before);
    if (before.length < WAYS_COMPARED_MAX) before.push(used);
    const exact = `${key}/${used.join()}`;
    if (visited.has(exact)) return false;
    visited.add(exact);
    return true;
  }

  const states = new Map<string, State>();
  const stack: Node[] = [{ at: 0, state: undefined, placed: 0, used: unanswered.map(() => 0) }];
  for (let nodes = 0; stack.length > 0 && states.size < statesMax; nodes++) {
    if (nodes > nodesMax) throw new Undecided(`${operations.length} operations, undecided after ${nodes} steps`);
    const top = stack.pop()!;
    if (top.isLast) {
      stack.push(...unansweredSuccessors(top));
      continue;
    }
    const node = walk(top);
    if (node.at === events.length) states.set(keyOf(node.state), node.state);
    else if (isNew(node)) stack.push(...successors(node));
  }
  return [...states.values()];
}

/** Wherever it is placed. Others may change nothing here, and something later: a break of a broken lease. */
function changesNothing({ request, returned }: Operation): boolean {
  return request.kind === 'get' || 'refused' in returned!.answer;
}

function keyOf(state: State): string {
  if (!state) return '';
  const { lease, isDeleted, snapshots, deletedSnapshots } = state;
  // What changes in place may become what it was, with another ETag.
  const content = isInPlace(state.content) ? `${state.content} ${state.etag}` : state.content;
  const leased = lease ? `${lease.state}/${lease.id}/${'since' in lease ? lease.since : ''}` : '';
  return `${isDeleted ? 'deleted ' : ''}${content}/${leased}/${idsOf(snapshots)}/${idsOf(deletedSnapshots)}`;
}

function idsOf(snapshots: Snapshots): string {
  if (snapshots.size === 0) return '';
  return [...snapshots]
    .map(([id, { content }]) => `${id} ${content}`)
    .sort()
    .join();
}

function translated(answer: Answer, codes: Readonly<Record<string, string>>): Answer {
  return 'refused' in answer ? { refused: codes[answer.refused] ?? answer.refused } : answer;
}

/** An ETag that the search cannot place may belong to a put that no read has returned. */
function agrees(expected: Answer, told: Answer, known: ReadonlySet<string>): boolean {
  if ('refused' in expected || 'refused' in told) {
    return 'refused' in expected && 'refused' in told && expected.refused === told.refused;
  }
  if (expected.position !== told.position || expected.blocks !== told.blocks || expected.sequence !== told.sequence)
    return false;
  if (expected.etag === UNSEEN) {
    const isSame = told.content === undefined || (isInPlace(told.content) && told.content === expected.content);
    return isSame && !known.has(told.etag ?? '');
  }
  return expected.etag === told.etag && expected.content === told.content && expected.lease === told.lease;
}

/** The ETag that its write has given; a block blob's is found by its content, too. */
function ownEtag({ request, returned }: Operation): string | undefined {
  if (request.kind !== 'put' && !isInPlaceRequest(request)) return undefined;
  return returned && 'etag' in returned.answer ? returned.answer.etag : undefined;
}

/** By event: the first ETag of the writes that are called later. Writes happen in the order of their ETags. */
function etagsAhead(events: readonly Event[]): (string | undefined)[] {
  const ahead: (string | undefined)[] = [];
  for (let at = events.length - 1; at >= 0; at--) {
    const { operation, isReturn } = events[at]!;
    ahead[at] = isReturn ? ahead[at + 1] : firstOf([ahead[at + 1], orderedEtag(operation)]);
  }
  return ahead;
}

function firstOf(etags: readonly (string | undefined)[]): string | undefined {
  return etags.reduce((one, other) =>
    one === undefined || (other !== undefined && isEarlier(other, one)) ? other : one,
  );
}

/** They have one length, or are numbered. */
export const isEarlier = (one: string, other: string) =>
  one.length === other.length ? one < other : one.length < other.length;

/** A seal may find that the blob is sealed, and has the ETag of an earlier one. */
export const orderedEtag = (operation: Operation) =>
  operation.request.kind === 'seal' ? undefined : ownEtag(operation);

function contentsRead(operations: readonly Operation[]): string[] {
  return operations.flatMap(({ request, returned }) => {
    if (request.kind !== 'get' || !returned || 'refused' in returned.answer) return [];
    return returned.answer.content ?? [];
  });
}

/** By content: from the answer of the put, or else of a read. */
function etagsOf(operations: readonly Operation[]): Map<string, string> {
  const etags = new Map<string, string>();
  for (const pass of ['get', 'put']) {
    for (const { request, returned } of operations) {
      if (request.kind !== pass || !returned || 'refused' in returned.answer) continue;
      const content = request.kind === 'put' ? request.content : returned.answer.content;
      if (content === undefined || returned.answer.etag === undefined || isInPlace(content)) continue;
      etags.set(content, returned.answer.etag);
    }
  }
  return etags;
}

/** The ETags that must still be current for its answer: it returned them, or its condition named them. */
function needsOf({ request, returned }: Operation): readonly (string | undefined)[] {
  const { answer } = returned!;
  if ('refused' in answer) return [];
  // A snapshot has the ETag that its blob had.
  if (request.kind === 'get' && request.snapshot !== undefined) return [];
  const isWrite = request.kind === 'put' || isInPlaceRequest(request);
  return [isWrite ? undefined : answer.etag, 'ifMatch' in request ? request.ifMatch : undefined];
}

/** By ETag, the last call of an operation that needs it. */
function lastCalls(events: readonly Event[]): Map<string | undefined, number> {
  const last = new Map<string | undefined, number>();
  for (const [at, { operation, isReturn }] of events.entries()) {
    if (!isReturn) for (const etag of needsOf(operation)) last.set(etag, at);
  }
  return last;
}

/** By the id of a snapshot, the last return of an operation that names it; without an answer it may come at any time. */
function lastReturns(events: readonly Event[], operations: readonly Operation[]): Map<string, number> {
  const idOf = ({ request }: Operation) => ('snapshot' in request ? request.snapshot : undefined);
  const last = new Map<string, number>();
  for (const [at, { operation, isReturn }] of events.entries()) {
    const id = idOf(operation);
    if (isReturn && id !== undefined) last.set(id, at);
  }
  for (const operation of operations) {
    const id = idOf(operation);
    if (!operation.returned && operation.request.kind !== 'get' && id !== undefined) last.set(id, Infinity);
  }
  return last;
}

/** At the same time, calls come first: then the operations overlap. */
function eventsOf(operations: readonly Operation[]): Event[] {
  const events: Event[] = [];
  for (const operation of operations) {
    if (!operation.returned) continue;
    events.push({ at: operation.called, operation, isReturn: false });
    events.push({ at: operation.returned.at, operation, isReturn: true });
  }
  return events.sort((one, other) => one.at - other.at || Number(one.isReturn) - Number(other.isReturn));
}

/** A slot for each operation that no concurrent one has; and for each return, the pending operations. */
function slotsOf(events: readonly Event[]) {
  const slots = new Map<Operation, number>();
  const underWay: Operation[][] = [];
  const now = new Set<Operation>();
  const free = Array.from({ length: SLOTS_MAX }, (_, i) => SLOTS_MAX - 1 - i);
  for (const { operation, isReturn } of events) {
    // In the order of their returns, the next last, as the search wants them.
    underWay.push(isReturn ? [...now].sort((one, other) => other.returned!.at - one.returned!.at) : []);
    if (isReturn) {
      free.push(slots.get(operation)!);
      now.delete(operation);
      continue;
    }
    const slot = free.pop();
    if (slot === undefined) throw new Error(`More than ${SLOTS_MAX} operations overlap.`);
    slots.set(operation, slot);
    now.add(operation);
  }
  return { slots, underWay };
}

/**
 * Operations without an answer, those together that leave the same: of them the one that was called first has happened first, or
 * might as well have.
 */
function unansweredIn(operations: readonly Operation[], etags: ReadonlyMap<string, string>): Operation[][] {
  const open = operations.filter(({ request, returned }) => !returned && request.kind !== 'get');
  const named = new Map<string, number>();
  for (const { request } of operations) {
    for (const id of leaseIdsOf(request)) named.set(id, (named.get(id) ?? 0) + 1);
  }
  const blurred = open.map((operation) => ({ ...operation, request: blur(operation.request, etags, named) }));
  const kinds = grouped(blurred, ({ request }) => JSON.stringify(request));
  return [...kinds.values()].map((same) => same.sort((one, other) => one.called - other.called));
}

/** Without differences that no later operation can observe. */
function blur(request: Request, etags: ReadonlyMap<string, string>, named: ReadonlyMap<string, number>): Request {
  const isNamedOnce = (id: string) => named.get(id) === 1;
  if (request.kind === 'put' && !request.type && !etags.has(request.content)) return { ...request, content: UNSEEN };
  if (request.kind === 'acquire' && isNamedOnce(request.leaseId)) return { ...request, leaseId: UNSEEN };
  if (request.kind === 'change' && isNamedOnce(request.newId)) return { ...request, newId: UNSEEN };
  return request;
}

function leaseIdsOf(request: Request): string[] {
  const ids = 'leaseId' in request && request.leaseId !== undefined ? [request.leaseId] : [];
  return request.kind === 'change' ? [...ids, request.newId] : ids;
}
