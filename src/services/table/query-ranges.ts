/** Where among its rows a query looks: only where its filter can match, the caller may look, and no page has been. */
import { encodeKey, type Key, keyAfter, prefixEnd, type Range } from '../../partition/keys.ts';
import { type Filter, type KeyBounds, type KeyRange, keyRangesFrom } from '../../rules/table/filter.ts';
import { foldTableName, TABLE_NAME_MAX } from '../../rules/table/table-names.ts';
import { nameKeyPrefix, namesIn } from '../common/names.ts';
import type { AccountId, EntityBound, Granted } from '../common/storage.ts';
import { KEY_MAX } from './entity-limits.ts';
import { entitiesIn, entityKey, type TableId } from './entity-rows.ts';
import { nameKey } from './rows.ts';

export interface RangeLimits {
  readonly keyRanges: readonly KeyRange[];
  readonly granted: Granted['entities'];
  /** The first entity that was not looked at yet. */
  readonly from: EntityBound | undefined;
}

/** In order, and apart from each other, as the boxes are. */
export function keyRangesFor(account: AccountId, table: TableId, { keyRanges, granted, from }: RangeLimits): Range[] {
  const at = keyBounds(account, table);
  const least = maxKey(at.start(from), at.start(granted?.from));
  const most = at.end(granted?.to);
  return keyRanges
    .map((box) => ({ from: maxKey(at.boxStart(box), least), to: minKey(at.boxEnd(box), most) }))
    .filter((span) => span.from < span.to);
}

const maxKey = (one: Key, other: Key): Key => (one > other ? one : other);
const minKey = (one: Key, other: Key): Key => (one < other ? one : other);

function keyBounds(account: AccountId, table: TableId) {
  const all = entitiesIn(account, table);
  const partition = (key: string): Key => encodeKey([account, 'e', table, key]);
  const entity = (partitionKey: string, rowKey: string): Key => entityKey(account, table, partitionKey, rowKey);
  return {
    start: (bound: EntityBound | undefined): Key => boxStart(rangeFromBound(bound, 'from')),
    end: (bound: EntityBound | undefined): Key => boxEnd(rangeFromBound(bound, 'to')),
    boxStart,
    boxEnd,
  };

  function boxStart(box: KeyRange): Key {
    // The empty key is the first of all.
    const [{ from = '', fromExcluded }, row] = [truncateBounds(box.partition), truncateBounds(box.row)];
    if (fromExcluded) return prefixEnd(partition(from));
    if (row.from === undefined) return partition(from);
    return row.fromExcluded ? keyAfter(entity(from, row.from)) : entity(from, row.from);
  }

  function boxEnd(box: KeyRange): Key {
    const [{ to, toExcluded }, row] = [truncateBounds(box.partition), truncateBounds(box.row)];
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

/** No stored key is so long that it could lie between a longer bound and its beginning; and an engine takes no longer key. */
function truncateBounds({ from, fromExcluded, to, toExcluded }: KeyBounds): KeyBounds {
  const [isFromLong, isToLong] = [from, to].map((key) => key !== undefined && key.length > KEY_MAX);
  return {
    ...(from === undefined ? {} : { from: from.slice(0, KEY_MAX), fromExcluded: isFromLong || fromExcluded === true }),
    ...(to === undefined ? {} : { to: to.slice(0, KEY_MAX), toExcluded: !isToLong && toExcluded === true }),
  };
}

/** The same for the names of tables, whose order is that of their folded forms. */
export function nameRangesFor(account: AccountId, filter: Filter | undefined, from: string | undefined): Range[] {
  const all = namesIn(account, 'table');
  const least = from === undefined ? all.from : nameKey(account, from.slice(0, TABLE_NAME_MAX));
  const spans = keyRangesFrom(filter && asPartitions(filter))
    .map(({ partition }) => nameRange(account, partition))
    .map((span) => ({ from: maxKey(span.from, least), to: span.to }))
    .filter((span) => span.from < span.to)
    .sort((one, other) => (one.from < other.from ? -1 : 1));
  const apart: Range[] = [];
  for (const span of spans) {
    const last = apart.at(-1);
    if (last && span.from < last.to) apart[apart.length - 1] = { from: last.from, to: maxKey(last.to, span.to) };
    else apart.push(span);
  }
  return apart;
}

/** All that lies between two names begins as both do; so it does in any case. */
function nameRange(account: AccountId, { from = '', to = '' }: KeyBounds): Range {
  let shared = 0;
  while (shared < from.length && shared < TABLE_NAME_MAX && from[shared] === to[shared]) shared++;
  const prefix = foldTableName(from.slice(0, shared));
  if (from === to && from !== '') return { from: nameKey(account, prefix), to: keyAfter(nameKey(account, prefix)) };
  const start = nameKeyPrefix(account, 'table', prefix);
  return { from: start, to: prefixEnd(start) };
}

/** What it says of names, said of partitions: where those can lie is known. */
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
