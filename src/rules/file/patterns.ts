/**
 * Search patterns of SMB, MS-FSA 2.1.4.4: a nondeterministic automaton whose states are places in the pattern. A name takes at most its
 * length times that of the pattern in steps, whatever the pattern; nothing is tried again.
 */
import { foldName } from './folding.ts';

const STAR = '*';
const QUESTION = '?';
/** As `*`, but never the last dot of the name. */
const DOS_STAR = '<';
/** As `?`, or nothing before a dot or at the end of the name. */
const DOS_QUESTION = '>';
/** A dot, or nothing at the end of the name. */
const DOS_DOT = '"';

const WILDCARD = /[*?<>"]/;

export interface Pattern {
  /** Every name that matches begins with it, folded. */
  readonly prefix: string;
  /** Undefined: the prefix is the whole name. */
  readonly rest: string | undefined;
}

export function parsePattern(text: string): Pattern {
  const folded = foldName(text).replace(/\*+/g, STAR);
  const first = folded.search(WILDCARD);
  return first < 0
    ? { prefix: folded, rest: undefined }
    : { prefix: folded.slice(0, first), rest: folded.slice(first) };
}

export function matchesPattern({ prefix, rest }: Pattern, folded: string): boolean {
  if (!folded.startsWith(prefix)) return false;
  if (rest === undefined) return folded.length === prefix.length;
  return rest === STAR || matches(rest, folded.slice(prefix.length));
}

/** Steps that one name can take, for callers that share the event loop. */
export function patternCost({ rest }: Pattern): number {
  return rest === undefined || rest === STAR ? 1 : rest.length;
}

function matches(pattern: string, name: string): boolean {
  const lastDot = name.lastIndexOf('.');
  // Flags by state, not sets: a pattern of wildcards alone is in all of its states at once.
  let states = new Uint8Array(pattern.length + 1);
  let next = new Uint8Array(pattern.length + 1);
  states[0] = 1;
  for (let at = 0; at < name.length; at++) {
    const unit = name[at]!;
    next.fill(0);
    // A state that is added while this runs is a later one, and visited, too: a wildcard reaches it by matching nothing.
    for (let state = 0; state < pattern.length; state++) {
      if (states[state] === 0) continue;
      const expected = pattern[state];
      if (expected === STAR || (expected === DOS_STAR && at !== lastDot)) next[state] = 1;
      else if (expected === QUESTION || expected === unit) next[state + 1] = 1;
      else if (expected === DOS_QUESTION && unit !== '.') next[state + 1] = 1;
      else if (expected === DOS_DOT && unit === '.') next[state + 1] = 1;
      if (expected === STAR || expected === DOS_STAR || (expected === DOS_QUESTION && unit === '.'))
        states[state + 1] = 1;
    }
    [states, next] = [next, states];
  }
  return states.includes(1, endOfNeeded(pattern));
}

/** From this place on, all that is left of the pattern can match the end of the name. */
function endOfNeeded(pattern: string): number {
  let end = pattern.length;
  while (end > 0 && pattern[end - 1] !== QUESTION && WILDCARD.test(pattern[end - 1]!)) end--;
  return end;
}
