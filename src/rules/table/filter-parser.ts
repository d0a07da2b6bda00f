/** Recursive-descent parser of $filter. Precedence: or < and < not < comparison < parentheses. */
import { type EdmValue, PROPERTY_NAME_MAX } from './edm.ts';
import { FilterError, syntaxError, type Token, tokenize } from './filter-lexer.ts';

export type Operator = 'eq' | 'ne' | 'gt' | 'ge' | 'lt' | 'le';

export interface Comparison {
  readonly kind: 'comparison';
  readonly name: string;
  readonly operator: Operator;
  readonly literal: EdmValue;
}

/** A constant is never part of another filter: the parser folds it. */
export type Filter =
  | { readonly kind: 'constant'; readonly value: boolean }
  | Comparison
  | { readonly kind: 'not'; readonly part: Filter }
  | { readonly kind: 'and' | 'or'; readonly parts: readonly Filter[] };

const COMPARISONS_MAX = 15;
const DEPTH_MAX = 100;

/** Everything meets an empty filter, as with Azure. */
export function parseFilter(text: string): Filter {
  const cursor: Cursor = { tokens: tokenize(text), next: 0, comparisons: 0, depth: 0 };
  if (peek(cursor).kind === 'end') return ALWAYS;
  const filter = toCondition(cursor, parseOr(cursor));
  const rest = peek(cursor);
  if (rest.kind !== 'end') throw syntaxError(rest.at);
  return filter;
}

/** Parentheses may enclose a condition, or an operand of one. */
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

function parseOr(cursor: Cursor): Term {
  return parseChain(cursor, 'or', parseAnd);
}

function parseAnd(cursor: Cursor): Term {
  return parseChain(cursor, 'and', parseNot);
}

function parseChain(cursor: Cursor, kind: 'and' | 'or', part: (cursor: Cursor) => Term): Term {
  const first = part(cursor);
  if (!acceptWord(cursor, kind)) return first;
  const parts = [toCondition(cursor, first)];
  do parts.push(toCondition(cursor, part(cursor)));
  while (acceptWord(cursor, kind));
  return combine(kind, parts);
}

/** Flattens nested conjunctions and folds constants: the filter that is evaluated for each row has comparisons only. */
function combine(kind: 'and' | 'or', parts: readonly Filter[]): Filter {
  const [neutral, decisive] = kind === 'and' ? [ALWAYS, NEVER] : [NEVER, ALWAYS];
  const flat = parts.flatMap((part) => (part.kind === kind ? part.parts : [part])).filter((part) => part !== neutral);
  if (flat.includes(decisive)) return decisive;
  return flat.length > 1 ? { kind, parts: flat } : (flat[0] ?? neutral);
}

function parseNot(cursor: Cursor): Term {
  if (!acceptWord(cursor, 'not')) return parseComparison(cursor);
  const part = toCondition(cursor, parseNested(cursor, parseNot));
  if (part.kind === 'constant') return part.value ? NEVER : ALWAYS;
  return part.kind === 'not' ? part.part : { kind: 'not', part };
}

function parseComparison(cursor: Cursor): Term {
  const left = parseOperand(cursor);
  const word = peek(cursor);
  if (word.kind !== 'word' || !Object.hasOwn(MIRRORED, word.text)) return left;
  const operator = word.text as Operator;
  cursor.next++;
  const right = parseOperand(cursor);
  countComparison(cursor);
  if (left.kind === 'property' && right.kind === 'literal') return makeComparison(left.name, operator, right.value);
  if (left.kind === 'literal' && right.kind === 'property')
    return makeComparison(right.name, MIRRORED[operator], left.value);
  throw new FilterError(`The comparison at position ${word.at} is not one of a property and a constant.`);
}

/** No property has a longer name, and a missing property meets no comparison. */
function makeComparison(name: string, operator: Operator, literal: EdmValue): Filter {
  return name.length > PROPERTY_NAME_MAX ? NEVER : { kind: 'comparison', name, operator, literal };
}

function parseOperand(cursor: Cursor): Term {
  const token = peek(cursor);
  cursor.next++;
  if (token.kind === 'literal') return { kind: 'literal', value: token.value };
  if (token.kind === 'word' && peek(cursor).kind === '(') throw new FilterError('There are no functions.', true);
  if (token.kind === 'word' && token.text !== 'null') return { kind: 'property', name: token.text };
  if (token.kind !== '(') throw syntaxError(token.at);
  const term = parseNested(cursor, parseOr);
  const close = peek(cursor);
  if (close.kind !== ')') throw syntaxError(close.at);
  cursor.next++;
  return term;
}

/** A property alone is compared with true. */
function toCondition(cursor: Cursor, term: Term): Filter {
  if (term.kind === 'property') {
    countComparison(cursor);
    return makeComparison(term.name, 'eq', { type: 'Edm.Boolean', value: true });
  }
  if (term.kind !== 'literal') return term;
  if (term.value.type !== 'Edm.Boolean') throw new FilterError('A constant that is no Boolean is no condition.');
  return term.value.value ? ALWAYS : NEVER;
}

function parseNested(cursor: Cursor, parse: (cursor: Cursor) => Term): Term {
  cursor.depth++;
  if (cursor.depth > DEPTH_MAX) throw new FilterError(`A filter nests at most ${DEPTH_MAX} deep.`);
  const term = parse(cursor);
  cursor.depth--;
  return term;
}

function countComparison(cursor: Cursor): void {
  cursor.comparisons++;
  if (cursor.comparisons > COMPARISONS_MAX)
    throw new FilterError(`A filter holds at most ${COMPARISONS_MAX} comparisons.`);
}

function acceptWord(cursor: Cursor, text: string): boolean {
  const token = peek(cursor);
  const isTaken = token.kind === 'word' && token.text === text;
  if (isTaken) cursor.next++;
  return isTaken;
}

function peek(cursor: Cursor): Token {
  return cursor.tokens[Math.min(cursor.next, cursor.tokens.length - 1)] as Token;
}
