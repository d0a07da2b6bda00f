/** Predicate push-down: the key ranges in which a filter can be met, so that a query scans no others. */
import type { Comparison, Filter, Operator } from './filter-parser.ts';

/** In the order of UTF-16 code units. Without `from` or `to` it is unbounded there. */
export interface KeyBounds {
  readonly from?: string;
  readonly fromExcluded?: boolean;
  readonly to?: string;
  readonly toExcluded?: boolean;
}

export interface KeyRange {
  readonly partition: KeyBounds;
  readonly row: KeyBounds;
}

/**
 * Each key of a range lies before all keys of the next one, so that the ranges can be scanned one after the other. []: the filter
 * is never met; one range without bounds: it can be met everywhere.
 */
export function keyRangesFrom(filter: Filter | undefined): readonly KeyRange[] {
  const slices = mergeAdjacent(
    (filter ? regionFrom(filter, false) : EVERYWHERE).map(makeContiguous).filter((slice) => slice.rows.length > 0),
  );
  const ranges = slices.flatMap((slice) =>
    slice.rows.map((row) => ({ partition: toBounds(slice), row: toBounds(row) })),
  );
  if (ranges.length <= RANGES_MAX) return ranges;
  return slices.map((slice) => ({ partition: toBounds(slice), row: toBounds(hull(slice.rows)) }));
}

/** Far more than a filter with the allowed number of comparisons can have. */
const RANGES_MAX = 256;

/**
 * Half-open: includes low, excludes high. The successor of 'a' is 'a\0', so every interval can be written so. Without high it is
 * unbounded.
 */
interface Interval {
  readonly low: string;
  readonly high?: string | undefined;
}

/** An interval of partitions, and the rows in each of them. */
interface Slice extends Interval {
  readonly rows: readonly Interval[];
}

/** Sorted and disjoint, like the rows of each slice. */
type Region = readonly Slice[];

const ALL: readonly Interval[] = [{ low: '' }];
const EVERYWHERE: Region = [{ low: '', rows: ALL }];
const NOWHERE: Region = [];

const NEGATED = { eq: 'ne', ne: 'eq', gt: 'le', ge: 'lt', lt: 'ge', le: 'gt' } as const satisfies Record<
  Operator,
  Operator
>;

function regionFrom(filter: Filter, negated: boolean): Region {
  switch (filter.kind) {
    case 'constant':
      return filter.value === negated ? NOWHERE : EVERYWHERE;
    case 'comparison':
      return regionFromComparison(filter, negated);
    case 'not':
      return regionFrom(filter.part, !negated);
    default: {
      const join = (filter.kind === 'and') === negated ? union : intersection;
      return filter.parts.map((part) => regionFrom(part, negated)).reduce((left, right) => combine(left, right, join));
    }
  }
}

function regionFromComparison({ name, operator, literal }: Comparison, negated: boolean): Region {
  if (name !== 'PartitionKey' && name !== 'RowKey') return EVERYWHERE;
  if (literal.type !== 'Edm.String') return (operator === 'ne') === negated ? NOWHERE : EVERYWHERE;
  const intervals = intervalsFor(negated ? NEGATED[operator] : operator, literal.value);
  if (name === 'PartitionKey') return intervals.map((interval) => ({ ...interval, rows: ALL }));
  return intervals.length > 0 ? [{ low: '', rows: intervals }] : NOWHERE;
}

function intervalsFor(operator: Operator, value: string): readonly Interval[] {
  const successor = `${value}\0`;
  const below = value === '' ? [] : [{ low: '', high: value }];
  switch (operator) {
    case 'eq':
      return [{ low: value, high: successor }];
    case 'ne':
      return [...below, { low: successor }];
    case 'lt':
      return below;
    case 'le':
      return [{ low: '', high: successor }];
    case 'gt':
      return [{ low: successor }];
    case 'ge':
      return [{ low: value }];
  }
}

type Join = (left: readonly Interval[], right: readonly Interval[]) => readonly Interval[];

/** Between two neighbouring bounds neither region changes, so the result has at most as many slices as there are bounds. */
function combine(left: Region, right: Region, join: Join): Region {
  const bounds = new Set<string>();
  for (const { low, high } of [...left, ...right]) {
    bounds.add(low);
    if (high !== undefined) bounds.add(high);
  }
  const cuts = [...bounds].sort();
  const slices = cuts.map((low, index) => ({
    low,
    high: cuts[index + 1],
    rows: join(rowsAt(left, low), rowsAt(right, low)),
  }));
  return mergeAdjacent(slices.filter((slice) => slice.rows.length > 0));
}

function rowsAt(region: Region, partition: string): readonly Interval[] {
  return region.find((slice) => contains(slice, partition))?.rows ?? [];
}

function contains({ low, high }: Interval, value: string): boolean {
  return low <= value && (high === undefined || value < high);
}

function mergeAdjacent(slices: Region): Region {
  const merged: Slice[] = [];
  for (const slice of slices) {
    const last = merged.at(-1);
    if (last && last.high === slice.low && areEqual(last.rows, slice.rows))
      merged[merged.length - 1] = { ...last, high: slice.high };
    else merged.push(slice);
  }
  return merged;
}

function areEqual(left: readonly Interval[], right: readonly Interval[]): boolean {
  return (
    left.length === right.length &&
    left.every(({ low, high }, index) => low === right[index]?.low && high === right[index]?.high)
  );
}

function intersection(left: readonly Interval[], right: readonly Interval[]): readonly Interval[] {
  return left.flatMap((one) =>
    right.flatMap((other) => {
      const { low } = startsBefore(one, other) ? other : one;
      const { high } = endsBefore(one, other) ? one : other;
      return high === undefined || low < high ? [{ low, high }] : [];
    }),
  );
}

function union(left: readonly Interval[], right: readonly Interval[]): readonly Interval[] {
  const joined: Interval[] = [];
  for (const interval of [...left, ...right].sort((one, other) => (startsBefore(one, other) ? -1 : 1))) {
    const last = joined.at(-1);
    if (!last || (last.high !== undefined && last.high < interval.low)) joined.push(interval);
    else if (endsBefore(last, interval)) joined[joined.length - 1] = { low: last.low, high: interval.high };
  }
  return joined;
}

function startsBefore(one: Interval, other: Interval): boolean {
  return one.low < other.low;
}

function endsBefore(one: Interval, other: Interval): boolean {
  return one.high !== undefined && (other.high === undefined || one.high < other.high);
}

/** Row intervals of one partition are consecutive key ranges. Those of several partitions interleave, so their hull is taken. */
function makeContiguous(slice: Slice): Slice {
  const isOnePartition = slice.high === `${slice.low}\0`;
  return isOnePartition || slice.rows.length < 2 ? slice : { ...slice, rows: [hull(slice.rows)] };
}

function hull(rows: readonly Interval[]): Interval {
  return { low: rows[0]?.low ?? '', high: rows.at(-1)?.high };
}

function toBounds({ low, high }: Interval): KeyBounds {
  const from = low.endsWith('\0') ? { from: low.slice(0, -1), fromExcluded: true } : { from: low };
  const to = high?.endsWith('\0') ? { to: high.slice(0, -1) } : { to: high, toExcluded: true };
  return { ...(low === '' ? {} : from), ...(high === undefined ? {} : to) } as KeyBounds;
}
