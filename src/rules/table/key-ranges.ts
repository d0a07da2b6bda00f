/** Where the entities that a filter wants can lie, so that a query reads no more than that. */
import type { Comparison, Filter, Operator } from './filter-parser.ts';

/** Strings in UTF-16 order; without from or to it has no end there. */
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
 * Sorted and disjoint, and more than that: each key of a box lies before all keys of the next, so that they can be read
 * one after the other. [] is nowhere, one box without bounds anywhere.
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

/** Far more than comparisons can make of a filter as long as its limit holds. */
const RANGES_MAX = 256;

/**
 * From and including low, up to and without high: the string right behind 'a' is 'a\0', so that every interval can be
 * written so. Without high it has no end.
 */
interface Interval {
  readonly low: string;
  readonly high?: string | undefined;
}

/** Partitions, and which rows of theirs. */
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

/** Between two neighbouring ends of slices neither side changes; what grows with the filter is the number of ends only. */
function combine(left: Region, right: Region, join: Join): Region {
  const ends = new Set<string>();
  for (const { low, high } of [...left, ...right]) {
    ends.add(low);
    if (high !== undefined) ends.add(high);
  }
  const cuts = [...ends].sort();
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
    if (last && last.high === slice.low && isAlike(last.rows, slice.rows))
      merged[merged.length - 1] = { ...last, high: slice.high };
    else merged.push(slice);
  }
  return merged;
}

function isAlike(left: readonly Interval[], right: readonly Interval[]): boolean {
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

/** The rows of one partition lie in pieces one behind the other; those of several partitions do not. */
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
