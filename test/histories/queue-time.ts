/** How far the servers' time had moved when something happened, in steps. */
import { hiddenSeconds, messagesOf, type Operation, STEP_SECONDS } from './queue-history.ts';

export interface Steps {
  readonly from: number;
  readonly to: number;
}

export interface Time {
  /** Of an instant that some answer has. */
  stepOf(instant: number): number;
  /** While the operation was pending, as far as the history shows. */
  during(operation: Operation): Steps;
  /** By then, at least. */
  atLeast(at: number): number;
  atMost(at: number): number;
  /** From then on it has come to this step for certain. */
  reachedAt(step: number): number;
  /** Answers with an impossible time. */
  readonly faults: readonly { readonly operation: Operation; readonly reason: string }[];
}

/** How long a step of a history can last, so that the next instant is one of the next step. */
const STEP_LASTS_SECONDS_MAX = STEP_SECONDS / 2 - 20;

/** The server's time of the operation, if its answer has it. */
export function doneAt(operation: Operation): number | undefined {
  const { request, returned } = operation;
  if (request.kind === 'put') return messagesOf(operation)[0]?.inserted;
  if (request.kind === 'get') return before(messagesOf(operation)[0]?.nextVisible, request.hidden);
  if (request.kind !== 'update' || !returned || !('receipt' in returned.answer)) return undefined;
  return before(returned.answer.nextVisible, request.hidden);
}

const before = (instant: number | undefined, hidden: number) =>
  instant === undefined ? undefined : instant - hiddenSeconds(hidden);

export function timeIn(operations: readonly Operation[]): Time {
  const { steps, misfit } = stepsOf(operations);
  const stepOf = (instant: number): number => steps.get(instant)!;
  const advances = operations.filter(({ request }) => request.kind === 'advance');
  const answered = advances.flatMap(({ returned }) => (returned ? [returned.at] : [])).sort(byNumber);
  const begun = advances.map(({ called }) => called).sort(byNumber);
  const moved = (at: number) => behind(answered, at);
  const moving = (at: number) => behind(begun, at);
  const known = operations.flatMap((operation) => {
    const instant = operation.returned && doneAt(operation);
    return instant === undefined ? [] : [{ operation, step: stepOf(instant) }];
  });
  const isReached = highest(known.map(({ operation, step }) => ({ at: operation.returned!.at, step })));
  // Looked at from the end, time goes down.
  const isNotPassed = highest(known.map(({ operation, step }) => ({ at: -operation.called, step: -step })));
  const atLeast = (at: number) => Math.max(moved(at), isReached(at) ?? 0);
  const atMost = (at: number) => Math.min(moving(at), -(isNotPassed(-at) ?? -Infinity));
  /** By step, when an answer first had it or a later one. */
  const firstTold: number[] = [];
  for (const { operation, step } of known) {
    firstTold[step] = Math.min(firstTold[step] ?? Infinity, operation.returned!.at);
  }
  for (let step = firstTold.length - 1; step-- > 0; ) {
    firstTold[step] = Math.min(firstTold[step] ?? Infinity, firstTold[step + 1]!);
  }
  const faults = known.flatMap(({ operation, step }) => {
    const { called, returned } = operation;
    if (operation === misfit) return [{ operation, reason: 'it tells of a time that never was' }];
    const reason = (words: string) => [{ operation, reason: `it was done in step ${step}, ${words}` }];
    if (step < moved(called)) return reason(`though time had moved to ${moved(called)}`);
    if (step > moving(returned!.at)) return reason(`though time had moved to no more than ${moving(returned!.at)}`);
    return step < atLeast(called) ? reason(`though somebody was told ${atLeast(called)} before`) : [];
  });
  return {
    stepOf,
    faults,
    atLeast,
    atMost,
    reachedAt: (step) => Math.min(firstTold[step] ?? Infinity, answered[step - 1] ?? Infinity),
    during(operation) {
      const instant = operation.returned && doneAt(operation);
      if (instant !== undefined) return { from: stepOf(instant), to: stepOf(instant) };
      const { called, returned } = operation;
      return { from: atLeast(called), to: returned ? atMost(returned.at) : Infinity };
    },
  };
}

/** Instants of one step lie near each other, and those of the next about a step later. The first recorded one is of the first step. */
function stepsOf(operations: readonly Operation[]) {
  const instants = operations.flatMap((operation) => {
    const all = [...messagesOf(operation).map(({ inserted }) => inserted), doneAt(operation)];
    return all.flatMap((instant) => (instant === undefined ? [] : [{ instant, operation }]));
  });
  const steps = new Map<number, number>();
  let misfit: Operation | undefined;
  let [last, step] = [Infinity, 0];
  for (const { instant, operation } of instants.sort((one, other) => one.instant - other.instant)) {
    const gap = Math.max(0, instant - last);
    // Rounded seconds, and servers that restart a moment ahead or late.
    const passed = Math.floor((gap + 20) / STEP_SECONDS);
    if (gap - passed * STEP_SECONDS > STEP_LASTS_SECONDS_MAX) misfit ??= operation;
    step += passed;
    last = instant;
    steps.set(instant, step);
  }
  return { steps, misfit };
}

function highest(marks: { at: number; step: number }[]): (at: number) => number | undefined {
  marks.sort((one, other) => one.at - other.at);
  let most = -Infinity;
  const steps = marks.map(({ step }) => {
    most = Math.max(most, step);
    return most;
  });
  const times = marks.map(({ at }) => at);
  return (at) => steps[behind(times, at) - 1];
}

const byNumber = (one: number, other: number): number => one - other;

/** How many of the sorted ones are no later. */
function behind(times: readonly number[], at: number): number {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle]! <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}
