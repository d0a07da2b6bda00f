/** Lexer of $filter. */
import { FILTER_TOKENS_MAX } from '../../base/input-limits.ts';
import { parseDateTime } from './date-times.ts';
import { type EdmValue, parseGuid } from './edm.ts';

/** A fault of the filter's text. The message is sent to the client. */
export class FilterError extends Error {
  override readonly name = 'FilterError';
  /** It is valid OData, but not part of what the service supports. */
  readonly isUnsupported: boolean;

  constructor(message: string, isUnsupported = false) {
    super(message);
    this.isUnsupported = isUnsupported;
  }
}

/** A comma is part of function calls only, which the parser rejects. */
export type Token = { readonly at: number } & (
  | { readonly kind: '(' | ')' | ',' | 'end' }
  | { readonly kind: 'word'; readonly text: string }
  | { readonly kind: 'literal'; readonly value: EdmValue }
);

const FILTER_LENGTH_MAX = 65_536;

const SPACE = /\s+/y;
const NUMBER = /(-?\d+)(\.\d+)?([eE][+-]?\d+)?([A-Za-z]*)/y;
const MINUS_INFINITY = /-INF(?![\w.])/y;
/** An identifier of C#, as names of properties are. */
const WORD = /[\p{L}\p{Nl}_][\p{L}\p{Nl}\p{Nd}\p{Mn}\p{Mc}\p{Pc}\p{Cf}]*/uy;

export function tokenize(text: string): Token[] {
  if (text.length > FILTER_LENGTH_MAX) throw new FilterError(`A filter has at most ${FILTER_LENGTH_MAX} characters.`);
  const tokens: Token[] = [];
  let at = matchAt(SPACE, text, 0)?.[0].length ?? 0;
  while (at < text.length) {
    const { token, end } = tokenAt(text, at);
    tokens.push(token);
    if (tokens.length > FILTER_TOKENS_MAX) throw new FilterError(`A filter has at most ${FILTER_TOKENS_MAX} words.`);
    at = end + (matchAt(SPACE, text, end)?.[0].length ?? 0);
  }
  tokens.push({ kind: 'end', at });
  return tokens;
}

export function syntaxError(at: number): FilterError {
  return new FilterError(`Syntax error at position ${at}.`);
}

interface Lexeme {
  readonly token: Token;
  readonly end: number;
}

function tokenAt(text: string, at: number): Lexeme {
  const first = text.charAt(at);
  if (first === '(' || first === ')' || first === ',') return { token: { kind: first, at }, end: at + 1 };
  if (first === "'") return stringAt(text, at);
  if (matchAt(MINUS_INFINITY, text, at)) return literal(at, at + 4, double(Number.NEGATIVE_INFINITY));
  const number = matchAt(NUMBER, text, at);
  if (number) return literal(at, at + number[0].length, parseNumber(number));
  const word = matchAt(WORD, text, at)?.[0];
  if (word === undefined) throw syntaxError(at);
  const end = at + word.length;
  const parse = text.charAt(end) === "'" ? PREFIXES.get(word.toLowerCase()) : undefined;
  if (parse) return prefixedAt(text, { at, quote: end, parse });
  const value = CONSTANTS.get(word) ?? BOOLEANS.get(word.toLowerCase());
  return value ? literal(at, end, value) : { token: { kind: 'word', text: word, at }, end };
}

const CONSTANTS = new Map<string, EdmValue>([
  ['NaN', double(Number.NaN)],
  ['INF', double(Number.POSITIVE_INFINITY)],
]);

/** Azure accepts them in upper and lower case, unlike operators. */
const BOOLEANS = new Map<string, EdmValue>([
  ['true', { type: 'Edm.Boolean', value: true }],
  ['false', { type: 'Edm.Boolean', value: false }],
]);

const PREFIXES = new Map<string, (text: string) => EdmValue | undefined>([
  ['datetime', parseInstant],
  ['guid', parseGuidLiteral],
  ['x', parseBinary],
  ['binary', parseBinary],
]);

function stringAt(text: string, at: number): Lexeme {
  let end = text.indexOf("'", at + 1);
  while (end !== -1 && text.charAt(end + 1) === "'") end = text.indexOf("'", end + 2);
  if (end === -1) throw new FilterError(`Unterminated string literal at position ${at}.`);
  return literal(at, end + 1, { type: 'Edm.String', value: text.slice(at + 1, end).replaceAll("''", "'") });
}

interface Prefixed {
  readonly at: number;
  readonly quote: number;
  readonly parse: (text: string) => EdmValue | undefined;
}

function prefixedAt(text: string, { at, quote, parse }: Prefixed): Lexeme {
  const end = text.indexOf("'", quote + 1);
  const value = end === -1 ? undefined : parse(text.slice(quote + 1, end));
  if (!value) throw new FilterError(`Unrecognized literal at position ${at}.`);
  return literal(at, end + 1, value);
}

function parseNumber([text, whole = '', fraction, exponent, suffix = '']: RegExpExecArray): EdmValue {
  const isWhole = fraction === undefined && exponent === undefined;
  if (isWhole && suffix === '') {
    const value = Number(whole);
    if (value === (value | 0)) return { type: 'Edm.Int32', value: value | 0 };
    throw unrecognized('Edm.Int32', text);
  }
  if (isWhole && (suffix === 'L' || suffix === 'l')) {
    const value = whole.length > INT64_DIGITS_MAX ? undefined : BigInt(whole);
    if (value !== undefined && BigInt.asIntN(64, value) === value) return { type: 'Edm.Int64', value };
    throw unrecognized('Edm.Int64', text);
  }
  const value =
    suffix === '' || suffix === 'D' || suffix === 'd' ? Number(text.slice(0, text.length - suffix.length)) : Number.NaN;
  if (Number.isFinite(value)) return double(value);
  throw unrecognized('Edm.Double', text);
}

/** Allows leading zeros, but not so many digits that parsing would be slow. */
const INT64_DIGITS_MAX = 64;

function unrecognized(type: string, text: string): FilterError {
  return new FilterError(`Unrecognized '${type}' literal '${text.length > 64 ? `${text.slice(0, 64)}...` : text}'.`);
}

/** Longer than any date or GUID. */
const DATE_OR_GUID_MAX = 64;

function parseInstant(text: string): EdmValue | undefined {
  const value = text.length > DATE_OR_GUID_MAX ? undefined : parseDateTime(text);
  return value === undefined ? undefined : { type: 'Edm.DateTime', value };
}

function parseGuidLiteral(text: string): EdmValue | undefined {
  const value = text.length > DATE_OR_GUID_MAX ? undefined : parseGuid(text);
  return value === undefined ? undefined : { type: 'Edm.Guid', value };
}

function parseBinary(text: string): EdmValue | undefined {
  const isHex = text.length % 2 === 0 && /^[\da-f]*$/i.test(text);
  return isHex ? { type: 'Edm.Binary', value: Buffer.from(text, 'hex') } : undefined;
}

function double(value: number): EdmValue {
  return { type: 'Edm.Double', value };
}

function literal(at: number, end: number, value: EdmValue): Lexeme {
  return { token: { kind: 'literal', value, at }, end };
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}
