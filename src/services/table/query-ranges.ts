/** Key ranges of a query: predicate push-down of $filter, the bounds of a signature and the continuation onto the order of the rows. */
import { encodeKey, type Key, keyAfter, prefixEnd, type Range } from '../../partition/keys.ts';
import { foldTableName, TABLE_NAME_MAX } from '../../rules/names.ts';
import { type Filter, type KeyBounds, type KeyRange, keyRangesFrom } from '../../rules/table/filter.ts';
import { nameKeyPrefix, namesIn } from '../common/names.ts';
import type { AccountId, EntityBound, Granted } from '../common/storage.ts';
import { entitiesIn, entityKey, type TableId } from './entity-rows.ts';
import { KEY_MAX } from './request-checks.ts';
import { nameKey } from './rows.ts';

export interface RangeLimits {
  readonly keyRanges: readonly KeyRange[];
  readonly granted: Granted['entities'];
  /** The continuation: the first entity of the page. */
  readonly from: EntityBound | undefined;
}

/** Sorted and disjoint, since `keyRanges` are. */
export function keyRangesFor(account: AccountId, table: TableId, { keyRanges, granted, from }: RangeLimits): Range[] {
  const at = keyBounds(account, table);
  const least = maxKey(at.start(from), at.start(granted?.from));
  const most = at.end(granted?.to);
  return keyRanges
    .map((range) => ({ from: maxKey(at.rangeStart(range), least), to: minKey(at.rangeEnd(range), most) }))
    .filter(({ from: start, to }) => start < to);
}

const maxKey = (one: Key, other: Key): Key => (one > other ? one : other);
const minKey = (one: Key, other: Key): Key => (one < other ? one : other);

function keyBounds(account: AccountId, table: TableId) {
  const all = entitiesIn(account, table);
  const partition = (key: string): Key => encodeKey([account, 'e', table, key]);
  const entity = (partitionKey: string, rowKey: string): Key => entityKey(account, table, partitionKey, rowKey);
  return {
    start: (bound: EntityBound | undefined): Key => rangeStart(rangeFromBound(bound, 'from')),
    end: (bound: EntityBound | undefined): Key => rangeEnd(rangeFromBound(bound, 'to')),
    rangeStart,
    rangeEnd,
  };

  function rangeStart(range: KeyRange): Key {
    // The empty key is the first of all.
    const [{ from = '', fromExcluded }, row] = [truncateBounds(range.partition), truncateBounds(range.row)];
    if (fromExcluded) return prefixEnd(partition(from));
    if (row.from === undefined) return partition(from);
    return row.fromExcluded ? keyAfter(entity(from, row.from)) : entity(from, row.from);
  }

  function rangeEnd(range: KeyRange): Key {
    const [{ to, toExcluded }, row] = [truncateBounds(range.partition), truncateBounds(range.row)];
    if (to === undefined) return all.to;
    if (toExcluded) return partition(to);
    if (row.to === undefined) return prefixEnd(partition(to));
    return row.toExcluded ? entity(to, row.to) : keyAfter(entity(to, row.to));
  }
}

function rangeFromBound(bound: EntityBound | undefined, end: 'from' | 'to'): KeyRange {
  const bounds = (key: string | undefined): KeyBounds => (key === undefined ? {} : { [end]: key });
  return { partition: bounds(bound?.partitionKey), row: bounds(bound?.rowKey) };
}

/** Bounds of at most KEY_MAX, since engines accept no longer key: no stored key lies between a longer bound and its prefix. */
function truncateBounds({ from, fromExcluded, to, toExcluded }: KeyBounds): KeyBounds {
  const [isFromLong, isToLong] = [from, to].map((key) => key !== undefined && key.length > KEY_MAX);
  return {
    ...(from === undefined ? {} : { from: from.slice(0, KEY_MAX), fromExcluded: isFromLong || fromExcluded === true }),
    ...(to === undefined ? {} : { to: to.slice(0, KEY_MAX), toExcluded: !isToLong && toExcluded === true }),
  };
}

/** Key ranges of Query Tables. Rows of tables are ordered by folded name, so ranges of names can overlap there. */
export function nameRangesFor(account: AccountId, filter: Filter | undefined, from: string | undefined): Range[] {
  const all = namesIn(account, 'table');
  const least = from === undefined ? all.from : nameKey(account, from.slice(0, TABLE_NAME_MAX));
  const ranges = keyRangesFrom(filter && asPartitions(filter))
    .map(({ partition }) => nameRange(account, partition))
    .map((range) => ({ from: maxKey(range.from, least), to: range.to }))
    .filter((range) => range.from < range.to)
    .sort((one, other) => (one.from < other.from ? -1 : 1));
  const disjoint: Range[] = [];
  for (const range of ranges) {
    const last = disjoint.at(-1);
    if (last && range.from < last.to)
      disjoint[disjoint.length - 1] = { from: last.from, to: maxKey(last.to, range.to) };
    else disjoint.push(range);
  }
  return disjoint;
}

/** All names between two names share the common prefix of both, also when folded. */
function nameRange(account: AccountId, { from = '', to = '' }: KeyBounds): Range {
  let shared = 0;
  while (shared < from.length && shared < TABLE_NAME_MAX && from[shared] === to[shared]) shared++;
  const prefix = foldTableName(from.slice(0, shared));
  if (from === to && from !== '') return { from: nameKey(account, prefix), to: keyAfter(nameKey(account, prefix)) };
  const start = nameKeyPrefix(account, 'table', prefix);
  return { from: start, to: prefixEnd(start) };
}

/** The same filter with PartitionKey for TableName, since `keyRangesFrom` knows the ranges of partitions. */
function asPartitions(filter: Filter): Filter {
  switch (filter.kind) {
    case 'constant':
      return filter;
    case 'comparison':
      return { ...filter, name: filter.name === 'TableName' ? 'PartitionKey' : '' };
    case 'not':
      return { kind: 'not', part: asPartitions(filter.part) };
    default:
      return { kind: filter.kind, parts: filter.parts.map(asPartitions) };
  }
}
