/** The search of search.ts, for one message: its operations are few, and its receipts mostly determine their order. */
import { grouped } from './history.ts';
import { after, type Deed, isRefusal, type State } from './queue-model.ts';

/** A deed and when it was under way. */
export interface Done {
  readonly deed: Deed;
  readonly called: number;
  /** Missing: no answer arrived. */
  readonly returned?: number | undefined;
  /** The step that time had come to then, at most. */
  readonly step?: number | undefined;
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
  /** Operations that are placed and have not returned yet. */
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

/** Some possible states of the message after all these; none: no order of them is valid. */
export function statesAfter(history: readonly Done[], statesMax = STATES_MAX): State[] {
  const events = eventsOf(history);
  const underWay = underWayAt(events);
  const ends = events.filter(({ done, isReturn }) => isReturn && done.deed.kind === 'settled').map(({ at }) => at);
  const unanswered = unansweredIn(history, ends);

  /** Advances to the first answer that fits nowhere. An operation that changes nothing is placed as soon as possible. */
  function walk({ at, state, placed, used }: Node): Node {
    const now = new Set(placed);
    for (; at < events.length; at++) {
      const { done, isReturn } = events[at]!;
      if (!isReturn) continue;
      for (const other of underWay[at]!) {
        if (!now.has(other) && mayBePlacedAnywhere(other.deed, state) && after(state, other.deed) === state)
          now.add(other);
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
    const { at: now, done: due } = events[at]!;
    return unanswered.flatMap((same, i) => {
      const done = same[used[i]!];
      if (!done || done.called > now || now > endOf(done, ends)) return [];
      const next = after(state, until(done.deed, due.step!));
      if (next === 'wrong' || next === state || isTooOften(next, at, placed)) return [];
      return [{ at, state: next, placed, used: used.with(i, used[i]! + 1) }];
    });
  }

  /** A later answer still has a lower dequeue count. */
  const counts = events.flatMap(({ done, isReturn }, at) => {
    const { deed } = done;
    if (!isReturn || (deed.kind !== 'take' && deed.kind !== 'see')) return [];
    return [{ at, done, countMax: deed.told!.dequeueCount - (deed.kind === 'take' ? 1 : 0) }];
  });
  function isTooOften(state: State, at: number, placed: readonly Done[]): boolean {
    if (state === undefined || state === 'gone') return false;
    return counts.some(
      ({ at: due, done, countMax }) => due >= at && state.dequeueCount > countMax && !placed.includes(done),
    );
  }

  const numbers = new Map(history.map((done, i) => [done, i]));
  /** By place and state, the least that was used to get there: with more left over, everything is possible that is with less. */
  const ways = new Map<string, (readonly number[])[]>();
  function isNew({ at, state, placed, used }: Node): boolean {
    const there = placed.map((done) => numbers.get(done)!).sort((one, other) => one - other);
    const key = JSON.stringify([at, state, there]);
    const before = ways.get(key) ?? [];
    if (before.some((less) => less.every((n, i) => n <= used[i]!))) return false;
    ways.set(key, [...before, used]);
    return true;
  }

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
    if (node.at === events.length) states.set(JSON.stringify(node.state ?? 'none'), node.state);
    else if (isNew(node)) stack.push(...successors(node));
  }
  return [...states.values()];
}

/** Without an answer it may have happened in any step until now. */
function until(deed: Deed, to: number): Deed {
  return 'at' in deed && deed.at.to > to ? { ...deed, at: { ...deed.at, to } } : deed;
}

/** Placing it later would have no other effect. */
function mayBePlacedAnywhere(deed: Deed, state: State): boolean {
  return (
    isRefusal(deed) || deed.kind === 'see' || deed.kind === 'exceed' || (deed.kind === 'clear' && state === 'gone')
  );
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

/** For each return, the pending operations, in descending order of their returns, as the search wants them. */
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

/** When it has happened, or never will. */
const endOf = ({ called }: Done, ends: readonly number[]): number => ends.find((end) => end > called) ?? Infinity;

const CHANGING: ReadonlySet<string> = new Set(['put', 'take', 'update', 'delete', 'clear']);

/** Those together that leave the same, but for the step: of them the one that was called first has happened first, or might as well have. */
function unansweredIn(history: readonly Done[], ends: readonly number[]): Done[][] {
  const open = history.filter(({ deed, returned }) => returned === undefined && CHANGING.has(deed.kind));
  const kinds = grouped(open, (done) => JSON.stringify([{ ...done.deed, at: undefined }, endOf(done, ends)]));
  return [...kinds.values()].map((same) => same.sort((one, other) => one.called - other.called));
}
