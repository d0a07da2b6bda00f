/** The search of search.ts, for one message: its deeds are few, and what happened before is mostly told by its receipts. */
import { after, type Deed, isRefusal, type State } from './queue-model.ts';

/** A deed and when it was under way. */
export interface Done {
  readonly deed: Deed;
  readonly called: number;
  /** Missing: nobody was told. */
  readonly returned?: number | undefined;
}

export class Undecided extends Error {
  override readonly name = 'Undecided';
}

const NODES_MAX = 300_000;
const STATES_MAX = 4;

interface Node {
  /** The next event. */
  readonly at: number;
  readonly state: State;
  /** Deeds that have their place and whose answer is still to come. */
  readonly placed: readonly Done[];
  /** Of every kind of unanswered deed, how many have happened. */
  readonly used: readonly number[];
  /** Only unanswered deeds are tried here: the others have been. */
  readonly isLast?: boolean;
}

interface Event {
  readonly at: number;
  readonly done: Done;
  readonly isReturn: boolean;
}

/** Some of what the message can be after all these; none: no order of them is right. */
export function statesAfter(history: readonly Done[], statesMax = STATES_MAX): State[] {
  const events = eventsOf(history);
  const underWay = underWayAt(events);
  const unanswered = unansweredIn(history);
  const settled = events.flatMap(({ done }, i) => (done.deed.kind === 'settled' ? [i] : []));

  /** Walks on to the first answer that has no place. What changes nothing is placed as soon as it can be. */
  function walk({ at, state, placed, used }: Node): Node {
    const now = new Set(placed);
    for (; at < events.length; at++) {
      const { done, isReturn } = events[at]!;
      if (!isReturn) continue;
      for (const other of underWay[at]!) {
        if (!now.has(other) && mayBePlacedAnywhere(other.deed, state) && after(state, other.deed) === state) now.add(other);
      }
      if (!now.has(done)) break;
      now.delete(done);
    }
    return { at, state, placed: [...now], used };
  }

  function successors(node: Node): Node[] {
    const { at, state, placed } = node;
    const nodes: Node[] = [{ ...node, isLast: true }];
    for (const other of underWay[at]!) {
      const next = placed.includes(other) ? 'wrong' : after(state, other.deed);
      if (next !== 'wrong') nodes.push({ ...node, state: next, placed: [...placed, other] });
    }
    return nodes;
  }

  function unansweredSuccessors({ at, state, placed, used }: Node): Node[] {
    const now = events[at]!.at;
    return unanswered.flatMap((same, i) => {
      const done = same[used[i]!];
      if (!done || done.called > now || settled.some((end) => end < at && events[end]!.at >= done.called)) return [];
      const next = after(state, done.deed);
      return next === 'wrong' || next === state ? [] : [{ at, state: next, placed, used: used.with(i, used[i]! + 1) }];
    });
  }

  const numbers = new Map(history.map((done, i) => [done, i]));
  const keyOf = ({ at, state, placed, used }: Node): string => {
    const there = placed.map((done) => numbers.get(done)!).sort((one, other) => one - other);
    return JSON.stringify([at, state, there, used]);
  };
  const visited = new Set<string>();
  const states = new Map<string, State>();
  const stack: Node[] = [{ at: 0, state: undefined, placed: [], used: unanswered.map(() => 0) }];
  for (let nodes = 0; stack.length > 0 && states.size < statesMax; nodes++) {
    if (nodes > NODES_MAX) throw new Undecided(`${history.length} deeds, undecided after ${nodes} steps`);
    const top = stack.pop()!;
    if (top.isLast) {
      stack.push(...unansweredSuccessors(top));
      continue;
    }
    const node = walk(top);
    const key = keyOf(node);
    if (node.at === events.length) states.set(JSON.stringify(node.state ?? 'none'), node.state);
    else if (!visited.has(key)) stack.push(...successors(node));
    visited.add(key);
  }
  return [...states.values()];
}

/** Of what it does, nothing is left to do later. */
function mayBePlacedAnywhere(deed: Deed, state: State): boolean {
  return isRefusal(deed) || deed.kind === 'see' || deed.kind === 'exceed' || (deed.kind === 'clear' && state === 'gone');
}

/** At the same time, calls come first: then the operations overlap. */
function eventsOf(history: readonly Done[]): Event[] {
  const events = history.flatMap((done): Event[] => {
    if (done.returned === undefined) return [];
    return [
      { at: done.called, done, isReturn: false },
      { at: done.returned, done, isReturn: true },
    ];
  });
  return events.sort((one, other) => one.at - other.at || Number(one.isReturn) - Number(other.isReturn));
}

/** For each return, who was under way: in the order of their returns, the next last, as the search wants them. */
function underWayAt(events: readonly Event[]): Done[][] {
  const now = new Set<Done>();
  return events.map(({ done, isReturn }) => {
    if (!isReturn) {
      now.add(done);
      return [];
    }
    const all = [...now].sort((one, other) => other.returned! - one.returned!);
    now.delete(done);
    return all;
  });
}

/** Those together that leave the same, but for the step: of them the one that was called first has happened first, or might as well have. */
function unansweredIn(history: readonly Done[]): Done[][] {
  const kinds = new Map<string, Done[]>();
  for (const done of history) {
    if (done.returned !== undefined) continue;
    const { at: _, ...deed } = { at: undefined, ...done.deed };
    const kind = JSON.stringify(deed);
    kinds.set(kind, [...(kinds.get(kind) ?? []), done]);
  }
  return [...kinds.values()].map((same) => same.sort((one, other) => one.called - other.called));
}
