/**
 * The effect of each lease action in each state, for blobs and containers alike. Plain data: the rules and the service over
 * HTTP are both tested against it. 'A', 'B' and 'C' stand for lease ids, 'new' for one that the service makes.
 */
export type Id = 'A' | 'B' | 'C';
export type Resource = 'blob' | 'container';
export type State = 'available' | 'leased' | 'breaking' | 'broken' | 'expired';

export type LeaseRequest =
  | { action: 'acquire'; seconds: number; proposedId?: Id }
  | { action: 'renew'; id: Id }
  | { action: 'change'; id: Id; proposedId: Id }
  | { action: 'release'; id: Id }
  | { action: 'break'; periodSeconds?: number };

/** A step on the way into a situation; every one of them succeeds. 'write' stands for Set Metadata of the resource. */
export type Step =
  | LeaseRequest
  | { action: 'wait'; seconds: number }
  | { action: 'write'; id?: Id }
  | { action: 'read' };

export interface After {
  state: State;
  id?: Id | 'new';
  /** Seconds until a lock that is not infinite ends. */
  secondsLeft?: number;
}

export interface Outcome {
  status: number;
  /** The error code, which is also the rule's refusal; nothing has changed then. */
  code?: string;
  after: After;
  /** x-ms-lease-time */
  breakSeconds?: number;
}

export interface LeaseActionCell extends Outcome {
  title: string;
  /** Absent: both. */
  resource?: Resource;
  /** Steps that lead from a resource never leased into the situation. */
  steps: readonly Step[];
  request: LeaseRequest;
}

interface Situation {
  steps: readonly Step[];
  after: After;
}

export const situations = {
  available: { steps: [], after: { state: 'available' } },
  leased: {
    steps: [
      { action: 'acquire', seconds: 60, proposedId: 'A' },
      { action: 'wait', seconds: 20 },
    ],
    after: { state: 'leased', id: 'A', secondsLeft: 40 },
  },
  leasedForever: {
    steps: [{ action: 'acquire', seconds: -1, proposedId: 'A' }],
    after: { state: 'leased', id: 'A' },
  },
  breaking: {
    steps: [
      { action: 'acquire', seconds: 60, proposedId: 'A' },
      { action: 'wait', seconds: 20 },
      { action: 'break', periodSeconds: 30 },
      { action: 'wait', seconds: 5 },
    ],
    after: { state: 'breaking', id: 'A', secondsLeft: 25 },
  },
  broken: {
    steps: [
      { action: 'acquire', seconds: 60, proposedId: 'A' },
      { action: 'break', periodSeconds: 0 },
    ],
    after: { state: 'broken', id: 'A' },
  },
  expired: {
    steps: [
      { action: 'acquire', seconds: 15, proposedId: 'A' },
      { action: 'wait', seconds: 15 },
    ],
    after: { state: 'expired', id: 'A' },
  },
} as const satisfies Record<string, Situation>;

export type SituationName = keyof typeof situations;

const states = ['available', 'leased', 'breaking', 'broken', 'expired'] as const;

const ALREADY = 'LeaseAlreadyPresent';
const MISMATCH = 'LeaseIdMismatchWithLeaseOperation';
const NOT_PRESENT = 'LeaseNotPresentWithLeaseOperation';
const NO_ACQUIRE = 'LeaseIsBreakingAndCannotBeAcquired';
const NO_CHANGE = 'LeaseIsBreakingAndCannotBeChanged';
const NO_RENEW = 'LeaseIsBrokenAndCannotBeRenewed';

const acquired = (id: Id | 'new') => ok(201, { state: 'leased', id, secondsLeft: 30 });
const changed = (id: Id) => ok(200, { state: 'leased', id, secondsLeft: 40 });
const renewed = (secondsLeft: number) => ok(200, { state: 'leased', id: 'A', secondsLeft });
const released = ok(200, { state: 'available' });
const broken = { ...ok(202, { state: 'broken', id: 'A' }), breakSeconds: 0 };
const breaking = (secondsLeft: number): Outcome => ({
  ...ok(202, { state: 'breaking', id: 'A', secondsLeft }),
  breakSeconds: secondsLeft,
});

/** A request, and its outcome in each of the five states; a bare code is a refusal with 409. */
type Row = [request: LeaseRequest, ...outcomes: [Cell, Cell, Cell, Cell, Cell]];
type Cell = Outcome | string;

// biome-ignore format: a table
const actionRows: Row[] = [
  // request                                          available       leased(A)      breaking(A)  broken(A)       expired(A)
  [{ action: 'acquire', seconds: 30 },                acquired('new'), ALREADY,       ALREADY,     acquired('new'), acquired('new')],
  [{ action: 'acquire', seconds: 30, proposedId: 'A' }, acquired('A'), acquired('A'), NO_ACQUIRE,  acquired('A'),  acquired('A')],
  [{ action: 'acquire', seconds: 30, proposedId: 'B' }, acquired('B'), ALREADY,       ALREADY,     acquired('B'),  acquired('B')],
  [{ action: 'break', periodSeconds: 0 },             NOT_PRESENT,    broken,         broken,      broken,         broken],
  [{ action: 'break', periodSeconds: 10 },            NOT_PRESENT,    breaking(10),   breaking(10), broken,        broken],
  [{ action: 'break' },                               NOT_PRESENT,    breaking(40),   breaking(25), broken,        broken],
  [{ action: 'change', id: 'A', proposedId: 'B' },    NOT_PRESENT,    changed('B'),   NO_CHANGE,   NOT_PRESENT,    NOT_PRESENT],
  [{ action: 'change', id: 'B', proposedId: 'A' },    NOT_PRESENT,    changed('A'),   MISMATCH,    NOT_PRESENT,    NOT_PRESENT],
  [{ action: 'change', id: 'B', proposedId: 'C' },    NOT_PRESENT,    MISMATCH,       MISMATCH,    NOT_PRESENT,    NOT_PRESENT],
  [{ action: 'renew', id: 'A' },                      MISMATCH,       renewed(60),    NO_RENEW,    NO_RENEW,       renewed(15)],
  [{ action: 'renew', id: 'B' },                      MISMATCH,       MISMATCH,       MISMATCH,    MISMATCH,       MISMATCH],
  [{ action: 'release', id: 'A' },                    MISMATCH,       released,       released,    released,       released],
  [{ action: 'release', id: 'B' },                    MISMATCH,       MISMATCH,       MISMATCH,    MISMATCH,       MISMATCH],
];

/** Action by state. */
export const leaseActionCells: LeaseActionCell[] = actionRows.flatMap(([request, ...outcomes]) =>
  states.map((name, at) => cell(name, request, outcomes[at]!)),
);

/** How long a lease goes on after Break, by what is left of it and the period asked for. */
// biome-ignore format: a table
const breakRows: [name: SituationName, absent: Cell, zero: Cell, shorter: Cell, longer: Cell][] = [
  //                 no period     0            10            50
  ['leased',         breaking(40), broken,      breaking(10), breaking(40)],
  ['leasedForever',  broken,       broken,      breaking(10), breaking(50)],
  ['breaking',       breaking(25), broken,      breaking(10), breaking(25)],
  ['broken',         broken,       broken,      broken,       broken],
  ['expired',        broken,       broken,      broken,       broken],
  ['available',      NOT_PRESENT,  NOT_PRESENT, NOT_PRESENT,  NOT_PRESENT],
];

export const leaseBreakCells: LeaseActionCell[] = breakRows.flatMap(([name, ...outcomes]) =>
  [undefined, 0, 10, 50].map((periodSeconds, at) =>
    cell(name, { action: 'break', ...(periodSeconds === undefined ? {} : { periodSeconds }) }, outcomes[at]!),
  ),
);

/** The next state when only time passes. */
export const leaseElapseCells: { title: string; steps: readonly Step[]; after: After }[] = [
  elapse('available', 3600, { state: 'available' }),
  elapse('leased', 39, { state: 'leased', id: 'A', secondsLeft: 1 }),
  elapse('leased', 40, { state: 'expired', id: 'A' }),
  elapse('leasedForever', 1_000_000, { state: 'leased', id: 'A' }),
  elapse('breaking', 24, { state: 'breaking', id: 'A', secondsLeft: 1 }),
  elapse('breaking', 25, { state: 'broken', id: 'A' }),
  elapse('broken', 3600, { state: 'broken', id: 'A' }),
  elapse('expired', 3600, { state: 'expired', id: 'A' }),
];

const written = (name: SituationName): Step[] => [...situations[name].steps, { action: 'write' }];
const writtenWithId = (name: SituationName): Step[] => [...situations[name].steps, { action: 'write', id: 'A' }];
const read = (name: SituationName): Step[] => [...situations[name].steps, { action: 'read' }];
const givenBack: Step[] = [...situations.leased.steps, { action: 'release', id: 'A' }];
const none: After = { state: 'available' };
const brokenA: After = { state: 'broken', id: 'A' };
const renewA: LeaseRequest = { action: 'renew', id: 'A' };
const releaseA: LeaseRequest = { action: 'release', id: 'A' };
const breakNow: LeaseRequest = { action: 'break' };

/** Where the way into the state matters: a write to a blob forgets a lease that no longer holds, a container keeps it. */
export const leaseHistoryCells: LeaseActionCell[] = [
  history('expired, then written', 'blob', written('expired'), renewA, refused(MISMATCH, none)),
  history('expired, then written', 'blob', written('expired'), releaseA, refused(MISMATCH, none)),
  history('expired, then written', 'blob', written('expired'), breakNow, refused(NOT_PRESENT, none)),
  history('broken, then written', 'blob', written('broken'), renewA, refused(MISMATCH, none)),
  history('broken, then written', 'blob', written('broken'), releaseA, refused(MISMATCH, none)),
  history('broken, then written', 'blob', written('broken'), breakNow, refused(NOT_PRESENT, none)),
  history('expired, then written', 'container', written('expired'), renewA, renewed(15)),
  history('expired, then written', 'container', written('expired'), releaseA, released),
  history('expired, then written', 'container', written('expired'), breakNow, broken),
  history('broken, then written', 'container', written('broken'), renewA, refused(NO_RENEW, brokenA)),
  history('broken, then written', 'container', written('broken'), releaseA, released),
  history('broken, then written', 'container', written('broken'), breakNow, broken),
  history('expired, then read', undefined, read('expired'), renewA, renewed(15)),
  history('leased, then written by the holder', undefined, writtenWithId('leased'), breakNow, breaking(40)),
  history('breaking, then written by the holder', undefined, writtenWithId('breaking'), breakNow, breaking(25)),
  history('released', undefined, givenBack, renewA, refused(MISMATCH, none)),
  history('released', undefined, givenBack, releaseA, refused(MISMATCH, none)),
  history('released', undefined, givenBack, breakNow, refused(NOT_PRESENT, none)),
  history('released', undefined, givenBack, change('A', 'B'), refused(NOT_PRESENT, none)),
  history('released', undefined, givenBack, change('B', 'A'), refused(NOT_PRESENT, none)),
  history('released', undefined, givenBack, { action: 'acquire', seconds: 30, proposedId: 'B' }, acquired('B')),
];

export function titleOf(request: LeaseRequest): string {
  const { action, ...rest } = request;
  return [action, ...Object.entries(rest).map(([name, value]) => `${name} ${value}`)].join(' ');
}

function ok(status: number, after: After): Outcome {
  return { status, after };
}

function refused(code: string, after: After): Outcome {
  return { status: 409, code, after };
}

function cell(name: SituationName, request: LeaseRequest, outcome: Cell): LeaseActionCell {
  const { steps, after } = situations[name];
  const full = typeof outcome === 'string' ? refused(outcome, after) : outcome;
  return { title: `${titleOf(request)} when ${name}`, steps, request, ...full };
}

function elapse(name: SituationName, seconds: number, after: After) {
  const steps: Step[] = [...situations[name].steps, { action: 'wait', seconds }];
  return { title: `${name}, ${seconds} seconds later`, steps, after };
}

function history(
  name: string,
  resource: Resource | undefined,
  steps: readonly Step[],
  request: LeaseRequest,
  outcome: Outcome,
): LeaseActionCell {
  const title = `${titleOf(request)} when ${name}`;
  return resource === undefined
    ? { title, steps, request, ...outcome }
    : { title, resource, steps, request, ...outcome };
}

function change(id: Id, proposedId: Id): LeaseRequest {
  return { action: 'change', id, proposedId };
}
