/** $filter of Query Entities and Query Tables: filters compiled to predicates. */
import type { EdmValue } from './edm.ts';
import type { Comparison, Filter, Operator } from './filter-parser.ts';

export { FilterError } from './filter-lexer.ts';
export { type Filter, parseFilter } from './filter-parser.ts';
export { type KeyBounds, type KeyRange, keyRangesFrom } from './key-ranges.ts';

/**
 * Undefined: the entity lacks the property. Strings and binary may be cut after `lengthMax` units: one unit more than the constant
 * has shows that they differ, so a row costs no more than the length of the constants.
 */
export type PropertyReader = (name: string, lengthMax: number) => EdmValue | undefined;
export type Predicate = (read: PropertyReader) => boolean;

export function countComparisons(filter: Filter): number {
  switch (filter.kind) {
    case 'constant':
      return 0;
    case 'comparison':
      return 1;
    case 'not':
      return countComparisons(filter.part);
    default:
      return filter.parts.reduce((sum, part) => sum + countComparisons(part), 0);
  }
}

/** Closures: faster than a walk over the filter for each row. */
export function compileFilter(filter: Filter): Predicate {
  switch (filter.kind) {
    case 'constant':
      return () => filter.value;
    case 'comparison':
      return compileComparison(filter);
    case 'not': {
      const part = compileFilter(filter.part);
      return (read) => !part(read);
    }
    case 'and':
      return filter.parts.map(compileFilter).reduce((left, right) => (read) => left(read) && right(read));
    case 'or':
      return filter.parts.map(compileFilter).reduce((left, right) => (read) => left(read) || right(read));
  }
}

/**
 * A missing property meets no comparison, not even ne; a negated comparison is met. A value of another type than the constant's
 * meets ne and nothing else (but see comparatorFor).
 */
function compileComparison({ name, operator, literal }: Comparison): Predicate {
  const order = comparatorFor(literal);
  const isMet = SATISFIES[operator];
  const lengthMax = literal.type === 'Edm.String' || literal.type === 'Edm.Binary' ? literal.value.length + 1 : 0;
  return (read) => {
    const value = read(name, lengthMax);
    return value !== undefined && isMet(order(value));
  };
}

const SATISFIES: Record<Operator, (order: number) => boolean> = {
  eq: (order) => order === 0,
  ne: (order) => order !== 0,
  gt: (order) => order > 0,
  ge: (order) => order >= 0,
  lt: (order) => order < 0,
  le: (order) => order <= 0,
};

const UNORDERED = Number.NaN;

/**
 * The order of a value and a constant: below it (negative), above it (positive), equal (0) or neither (NaN).
 * Two rules are observed behaviour of Azure that no page documents. Values of other types lie below every string: clients use
 * "x lt ''" and "x ne ''" to ask whether x exists. And an Int64 constant meets Int64 values only, while a number without an L
 * meets numbers of any type.
 */
function comparatorFor(literal: EdmValue): (value: EdmValue) => number {
  switch (literal.type) {
    case 'Edm.String':
      return (value) => (value.type === 'Edm.String' ? compare(value.value, literal.value) : -1);
    case 'Edm.Int32':
    case 'Edm.Double': {
      const isNumber = !Number.isNaN(literal.value);
      return (value) => (isNumber && isNumeric(value) ? compareNumbers(value.value, literal.value) : UNORDERED);
    }
    case 'Edm.Binary':
      return (value) => (value.type === 'Edm.Binary' ? Buffer.compare(value.value, literal.value) : UNORDERED);
    default:
      return (value) =>
        value.type === literal.type ? compare(value.value as never, literal.value as never) : UNORDERED;
  }
}

function compare<Value extends string | bigint | boolean>(left: Value, right: Value): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

/** JavaScript orders numbers and big integers exactly; only === would distinguish them by type. */
function compareNumbers(left: number | bigint, right: number): number {
  if (left < right) return -1;
  if (left > right) return 1;
  return Number.isNaN(left) ? UNORDERED : 0;
}

type Numeric = Extract<EdmValue, { readonly type: 'Edm.Int32' | 'Edm.Int64' | 'Edm.Double' }>;

function isNumeric(value: EdmValue): value is Numeric {
  return value.type === 'Edm.Int32' || value.type === 'Edm.Double' || value.type === 'Edm.Int64';
}
