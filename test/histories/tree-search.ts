/**
 * Whether a history of a share is linearizable: the search of search.ts for one object that every request may change. The events are walked in
 * order, and where an answer is due that has no place yet, operations under way are given theirs.
 */
import { grouped } from './history.ts';
import {
  changesNothing,
  describeTree,
  EMPTY,
  stepOfTree,
  type Tree,
  type TreeOperation,
  type TreeRequest,
} from './tree-model.ts';

const NODES_MAX = 500_000;

interface Node {
  /** The next event. */
  readonly at: number;
  readonly state: Tree;
  /** Operations that have happened and have not returned yet. */
  readonly placed: ReadonlySet<TreeOperation>;
}

/** The last answer that no order explains, as text; undefined: all are explained. */
export function findViolation(recorded: readonly TreeOperation[]): string | undefined {
  const operations = recorded.filter(
    ({ request, returned }) => !snapshotIn(request) && (returned || !changesNothing(request)),
  );
  const readOf = grouped(recorded, ({ request }) => snapshotIn(request) ?? '');
  const returns = operations
    .filter(({ returned }) => returned)
    .sort((one, other) => one.returned!.at - other.returned!.at);
  /** What is lost has its place before any request that was sent later, the answer of which may be the next. */
  const endOf = ({ returned, lostAt = 0 }: TreeOperation): number =>
    returned?.at ?? returns.find(({ called }) => called > lostAt)?.returned?.at ?? Infinity;
  const underWay = returns.map(({ returned }) =>
    operations.filter((each) => each.called <= returned!.at && endOf(each) >= returned!.at),
  );
  const isTooLate = ({ returned, lostAt = 0 }: TreeOperation, placed: ReadonlySet<TreeOperation>): boolean =>
    !returned && [...placed].some(({ called }) => called > lostAt);
  /** By content, the last call of a read that finds it: it is never restored. */
  const lastReads = new Map<string, number>();
  for (const { called, returned } of operations)
    if (typeof returned?.answer === 'object' && 'content' in returned.answer)
      lastReads.set(returned.answer.content, Math.max(called, lastReads.get(returned.answer.content) ?? 0));
  const losesNothing = (now: number, before: Tree, next: Tree): boolean => {
    const left = new Set(next.files.values());
    return [...before.files.values()].every((content) => left.has(content) || (lastReads.get(content) ?? 0) <= now);
  };
  const after = (state: Tree, { request }: TreeOperation) => stepOfTree(state, request);
  const isAnswered = (state: Tree, operation: TreeOperation) =>
    JSON.stringify(after(state, operation).answer) === JSON.stringify(operation.returned!.answer);
  /** A snapshot has its place where all that was ever read of it fits. */
  const agrees = (state: Tree, operation: TreeOperation): boolean => {
    const answer = operation.returned?.answer;
    if (!answer) return true;
    if (typeof answer === 'string' || !('snapshot' in answer)) return isAnswered(state, operation);
    return (readOf.get(answer.snapshot) ?? []).every((read) => isAnswered(state, read));
  };

  /** To the first answer that has no place. What changes nothing takes its place as soon as it can, unless something lost may come before it. */
  function walk({ at: first, state, placed: before }: Node): Node {
    const placed = new Set(before);
    let at = first;
    for (; at < returns.length; at++) {
      const lost = underWay[at]!.filter((each) => !each.returned && !placed.has(each));
      for (const other of underWay[at]!) {
        const mustWait = lost.some(({ lostAt = 0 }) => lostAt < other.called);
        if (changesNothing(other.request) && !mustWait && agrees(state, other)) placed.add(other);
      }
      if (!placed.delete(returns[at]!)) break;
    }
    return { at, state, placed };
  }

  /** The likeliest last: the operation whose answer is due. */
  function successors({ at, state, placed }: Node): Node[] {
    const due = returns[at]!;
    const possible = underWay[at]!.filter(
      (each) => !placed.has(each) && agrees(state, each) && !isTooLate(each, placed),
    );
    const rank = (each: TreeOperation) => (each === due ? 2 : each.returned ? 1 : 0);
    return possible
      .sort((one, other) => rank(one) - rank(other))
      .map((each) => ({ at, state: after(state, each).state, placed: new Set(placed).add(each) }))
      .filter((next) => losesNothing(due.returned!.at, state, next.state));
  }

  const number = new Map(operations.map((each, i) => [each, i]));
  const visited = new Set<string>();
  const stack: Node[] = [{ at: 0, state: EMPTY, placed: new Set() }];
  let farthest: Node = stack[0]!;
  while (stack.length > 0) {
    const node = walk(stack.pop()!);
    if (node.at >= returns.length) return undefined;
    if (node.at >= farthest.at) farthest = node;
    const happened = [...node.placed].map((each) => number.get(each)!).sort((one, other) => one - other);
    const key = `${node.at}/${happened.join()}/${describeTree(node.state)}`;
    if (visited.has(key)) continue;
    visited.add(key);
    if (visited.size > NODES_MAX) return `undecided after ${NODES_MAX} places: ${describe(returns[farthest.at]!)}`;
    stack.push(...successors(node));
  }
  const lines = underWay[farthest.at]!.map(describe);
  return [describe(returns[farthest.at]!), `the share was ${describeTree(farthest.state)}`, ...lines].join('\n  ');
}

const snapshotIn = (request: TreeRequest): string | undefined => ('snapshot' in request ? request.snapshot : undefined);

function describe({ client, request, called, returned }: TreeOperation): string {
  const end = returned ? `${returned.at.toFixed(2)} -> ${JSON.stringify(returned.answer)}` : 'no answer';
  return `${called.toFixed(2)} .. ${end}  client ${client}: ${JSON.stringify(request)}`;
}
