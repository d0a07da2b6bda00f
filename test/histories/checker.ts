/** Whether a history is linearizable: blob by blob, which is enough. */
import { grouped, type Operation } from './history.ts';
import { initialContent } from './in-place-model.ts';
import type { State } from './model.ts';
import { endStates, isLinearizable, type SearchOptions, Undecided } from './search.ts';

export interface Violation {
  readonly blob: string;
  readonly reason: string;
  /** The shortest beginning of the history that has no order, by the time of the calls. */
  readonly prefix: readonly Operation[];
  /** Its last answer. */
  readonly failing: Operation;
  /** Some of the possible states of the blob without it. */
  readonly states: readonly State[];
}

/** The violations, at most one of a blob. */
export function checkHistory(operations: readonly Operation[], options: SearchOptions = {}): Violation[] {
  const blobs = grouped(operations, ({ blob }) => blob);
  return [...blobs].flatMap(([blob, own]) => {
    const repeated = repeatedEtag(blob, own);
    if (repeated) return repeated;
    return seemsRight(own, options) ? [] : shortest(blob, own, options);
  });
}

/** The search in the whole history may come to no end, and in a part of it soon. */
function seemsRight(operations: readonly Operation[], options: SearchOptions): boolean {
  try {
    return isLinearizable(operations, options);
  } catch (error) {
    if (error instanceof Undecided) return false;
    throw error;
  }
}

/** A history without an order has none with more appended, so the end can be found by bisection. Throws Undecided. */
function shortest(blob: string, operations: readonly Operation[], options: SearchOptions): Violation {
  const answered = operations
    .filter(({ returned }) => returned)
    .sort((one, other) => one.returned!.at - other.returned!.at);
  let right = -1;
  let wrong = answered.length - 1;
  while (wrong - right > 1) {
    const middle = (right + wrong) >> 1;
    if (seemsRight(until(operations, answered[middle]!), options)) right = middle;
    else wrong = middle;
  }
  const failing = answered[wrong]!;
  isLinearizable(until(operations, failing), options);
  const others = until(operations, failing).filter((each) => each !== failing);
  return {
    ...{ blob, reason: 'no order of the operations explains this answer', failing },
    prefix: begunUntil(operations, failing.returned!.at),
    states: endStates(others, options),
  };
}

/** The history as of this answer: operations that have none by then may never get one. */
function until(operations: readonly Operation[], { returned: end }: Operation): Operation[] {
  return begunUntil(operations, end!.at).map((operation) => {
    if (!operation.returned || operation.returned.at <= end!.at) return operation;
    const { returned: _, ...open } = operation;
    return open;
  });
}

function begunUntil(operations: readonly Operation[], end: number): Operation[] {
  return operations.filter(({ called }) => called <= end).sort((one, other) => one.called - other.called);
}

function repeatedEtag(blob: string, operations: readonly Operation[]): Violation | undefined {
  const contents = new Map<string, string>();
  for (const failing of operations) {
    const { request, returned } = failing;
    if ((request.kind !== 'put' && request.kind !== 'get') || !returned || 'refused' in returned.answer) continue;
    const { etag = '' } = returned.answer;
    const content = request.kind === 'put' ? contentOfPut(request) : (returned.answer.content ?? '');
    const former = contents.get(etag) ?? content;
    contents.set(etag, content);
    if (former === content) continue;
    const prefix = begunUntil(operations, returned.at);
    return { blob, reason: `${former} and ${content} have the same ETag`, prefix, failing, states: [] };
  }
  return undefined;
}

const contentOfPut = ({ type, content }: Extract<Operation['request'], { kind: 'put' }>) =>
  type ? initialContent(type, content) : content;
