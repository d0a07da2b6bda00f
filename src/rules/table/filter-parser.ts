/** The text of $filter: or < and < not < comparison, and parentheses. */
import { type EdmValue, PROPERTY_NAME_MAX } from './edm.ts';
import { FilterError, syntaxError, type Token, tokensOf } from './filter-lexer.ts';

export type Operator = 'eq' | 'ne' | 'gt' | 'ge' | 'lt' | 'le';

export interface Comparison {
  readonly kind: 'comparison';
  readonly name: string;
  readonly operator: Operator;
  readonly literal: EdmValue;
}

/** Constants stand alone only: within others they are worked out by the parser. */
export type Filter =
  | { readonly kind: 'constant'; readonly value: boolean }
  | Comparison
  | { readonly kind: 'not'; readonly part: Filter }
  | { readonly kind: 'and' | 'or'; readonly parts: readonly Filter[] };

export const COMPARISONS_MAX = 15;
const DEPTH_MAX = 100;

/** An empty one is met by everything, as with Azure. */
export function parseFilter(text: string): Filter {
  const cursor: Cursor = { tokens: tokensOf(text), next: 0, comparisons: 0, depth: 0 };
  if (peek(cursor).kind === 'end') return ALWAYS;
  const filter = conditionOf(cursor, anyOf(cursor));
  const rest = peek(cursor);
  if (rest.kind !== 'end') throw syntaxError(rest.at);
  return filter;
}

/** What parentheses may hold: a condition, or the operand of one. */
type Term =
  | Filter
  | { readonly kind: 'property'; readonly name: string }
  | { readonly kind: 'literal'; readonly value: EdmValue };

interface Cursor {
  readonly tokens: readonly Token[];
  next: number;
  comparisons: number;
  depth: number;
}

const ALWAYS: Filter = { kind: 'constant', value: true };
const NEVER: Filter = { kind: 'constant', value: false };

const MIRRORED = { eq: 'eq', ne: 'ne', gt: 'lt', ge: 'le', lt: 'gt', le: 'ge' } as const satisfies Record<
  Operator,
  Operator
>;

function anyOf(cursor: Cursor): Term {
  return joined(cursor, 'or', allOf);
}

function allOf(cursor: Cursor): Term {
  return joined(cursor, 'and', negation);
}

function joined(cursor: Cursor, kind: 'and' | 'or', part: (cursor: Cursor) => Term): Term {
  const first = part(cursor);
  if (!takeWord(cursor, kind)) return first;
  const parts = [conditionOf(cursor, first)];
  do parts.push(conditionOf(cursor, part(cursor)));
  while (takeWord(cursor, kind));
  return join(kind, parts);
}

/** Flat and without constants, so that what is evaluated row by row is no larger than its comparisons. */
function join(kind: 'and' | 'or', parts: readonly Filter[]): Filter {
  const [neutral, decisive] = kind === 'and' ? [ALWAYS, NEVER] : [NEVER, ALWAYS];
  const flat = parts.flatMap((part) => (part.kind === kind ? part.parts : [part])).filter((part) => part !== neutral);
  if (flat.includes(decisive)) return decisive;
  return flat.length > 1 ? { kind, parts: flat } : (flat[0] ?? neutral);
}

function negation(cursor: Cursor): Term {
  if (!takeWord(cursor, 'not')) return comparison(cursor);
  const part = conditionOf(cursor, deeper(cursor, negation));
  if (part.kind === 'constant') return part.value ? NEVER : ALWAYS;
  return part.kind === 'not' ? part.part : { kind: 'not', part };
}

function comparison(cursor: Cursor): Term {
  const left = operand(cursor);
  const word = peek(cursor);
  if (word.kind !== 'word' || !Object.hasOwn(MIRRORED, word.text)) return left;
  const operator = word.text as Operator;
  cursor.next++;
  const right = operand(cursor);
  count(cursor);
  if (left.kind === 'property' && right.kind === 'literal') return compared(left.name, operator, right.value);
  if (left.kind === 'literal' && right.kind === 'property') return compared(right.name, MIRRORED[operator], left.value);
  throw new FilterError(`The comparison at position ${word.at} is not one of a property and a constant.`);
}

/** No property has a longer name, and a missing property meets no comparison. */
function compared(name: string, operator: Operator, literal: EdmValue): Filter {
  return name.length > PROPERTY_NAME_MAX ? NEVER : { kind: 'comparison', name, operator, literal };
}

function operand(cursor: Cursor): Term {
  const token = peek(cursor);
  cursor.next++;
  if (token.kind === 'literal') return { kind: 'literal', value: token.value };
  if (token.kind === 'word' && peek(cursor).kind === '(') throw new FilterError('There are no functions.', true);
  if (token.kind === 'word' && token.text !== 'null') return { kind: 'property', name: token.text };
  if (token.kind !== '(') throw syntaxError(token.at);
  const term = deeper(cursor, anyOf);
  const close = peek(cursor);
  if (close.kind !== ')') throw syntaxError(close.at);
  cursor.next++;
  return term;
}

/** A property alone asks whether it is true. */
function conditionOf(cursor: Cursor, term: Term): Filter {
  if (term.kind === 'property') {
    count(cursor);
    return compared(term.name, 'eq', { type: 'Edm.Boolean', value: true });
  }
  if (term.kind !== 'literal') return term;
  if (term.value.type !== 'Edm.Boolean') throw new FilterError('A constant that is no Boolean is no condition.');
  return term.value.value ? ALWAYS : NEVER;
}

function deeper(cursor: Cursor, parse: (cursor: Cursor) => Term): Term {
  cursor.depth++;
  if (cursor.depth > DEPTH_MAX) throw new FilterError(`A filter nests at most ${DEPTH_MAX} deep.`);
  const term = parse(cursor);
  cursor.depth--;
  return term;
}

function count(cursor: Cursor): void {
  cursor.comparisons++;
  if (cursor.comparisons > COMPARISONS_MAX)
    throw new FilterError(`A filter holds at most ${COMPARISONS_MAX} comparisons.`);
}

function takeWord(cursor: Cursor, text: string): boolean {
  const token = peek(cursor);
  const isTaken = token.kind === 'word' && token.text === text;
  if (isTaken) cursor.next++;
  return isTaken;
}

function peek(cursor: Cursor): Token {
  return cursor.tokens[Math.min(cursor.next, cursor.tokens.length - 1)] as Token;
}
