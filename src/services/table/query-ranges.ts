/** Where among its rows a query looks: only where its filter can match, the caller may look, and no page has been. */
import { after, encodeKey, type Key, past, type Range } from '../../partition/keys.ts';
import { type Bounds, type Filter, type KeyBox, keyBoxesOf } from '../../rules/table/filter.ts';
import { foldTableName, TABLE_NAME_MAX } from '../../rules/table/table-names.ts';
import { namesFrom, namesIn } from '../common/names.ts';
import type { AccountId, EntityBound, Granted } from '../common/storage.ts';
import { KEY_MAX } from './entity-limits.ts';
import { entitiesIn, entityKey, type TableId } from './entity-rows.ts';
import { nameKey } from './rows.ts';

export interface Limits {
  readonly boxes: readonly KeyBox[];
  readonly granted: Granted['entities'];
  /** The first entity that was not looked at yet. */
  readonly from: EntityBound | undefined;
}

/** In order, and apart from each other, as the boxes are. */
export function spansOf(account: AccountId, table: TableId, { boxes, granted, from }: Limits): Range[] {
  const at = keysIn(account, table);
  const least = later(at.start(from), at.start(granted?.from));
  const most = at.end(granted?.to);
  return boxes
    .map((box) => ({ from: later(at.boxStart(box), least), to: earlier(at.boxEnd(box), most) }))
    .filter((span) => span.from < span.to);
}

const later = (one: Key, other: Key): Key => (one > other ? one : other);
const earlier = (one: Key, other: Key): Key => (one < other ? one : other);

function keysIn(account: AccountId, table: TableId) {
  const all = entitiesIn(account, table);
  const partition = (key: string): Key => encodeKey([account, 'e', table, key]);
  const entity = (partitionKey: string, rowKey: string): Key => entityKey(account, table, partitionKey, rowKey);
  return {
    start: (bound: EntityBound | undefined): Key => boxStart(boxOf(bound, 'from')),
    end: (bound: EntityBound | undefined): Key => boxEnd(boxOf(bound, 'to')),
    boxStart,
    boxEnd,
  };

  function boxStart(box: KeyBox): Key {
    // The empty key is the first of all.
    const [{ from = '', fromExcluded }, row] = [storable(box.partition), storable(box.row)];
    if (fromExcluded) return past(partition(from));
    if (row.from === undefined) return partition(from);
    return row.fromExcluded ? after(entity(from, row.from)) : entity(from, row.from);
  }

  function boxEnd(box: KeyBox): Key {
    const [{ to, toExcluded }, row] = [storable(box.partition), storable(box.row)];
    if (to === undefined) return all.to;
    if (toExcluded) return partition(to);
    if (row.to === undefined) return past(partition(to));
    return row.toExcluded ? entity(to, row.to) : after(entity(to, row.to));
  }
}

function boxOf(bound: EntityBound | undefined, end: 'from' | 'to'): KeyBox {
  const bounds = (key: string | undefined): Bounds => (key === undefined ? {} : { [end]: key });
  return { partition: bounds(bound?.partitionKey), row: bounds(bound?.rowKey) };
}

/** No stored key is so long that it could lie between a longer bound and its beginning; and an engine takes no longer key. */
function storable({ from, fromExcluded, to, toExcluded }: Bounds): Bounds {
  const [isFromLong, isToLong] = [from, to].map((key) => key !== undefined && key.length > KEY_MAX);
  return {
    ...(from === undefined ? {} : { from: from.slice(0, KEY_MAX), fromExcluded: isFromLong || fromExcluded === true }),
    ...(to === undefined ? {} : { to: to.slice(0, KEY_MAX), toExcluded: !isToLong && toExcluded === true }),
  };
}

/** The same for the names of tables, whose order is that of their folded forms. */
export function nameSpansOf(account: AccountId, filter: Filter | undefined, from: string | undefined): Range[] {
  const all = namesIn(account, 'table');
  const least = from === undefined ? all.from : nameKey(account, from.slice(0, TABLE_NAME_MAX));
  const spans = keyBoxesOf(filter && asPartitions(filter))
    .map(({ partition }) => nameSpan(account, partition))
    .map((span) => ({ from: later(span.from, least), to: span.to }))
    .filter((span) => span.from < span.to)
    .sort((one, other) => (one.from < other.from ? -1 : 1));
  const apart: Range[] = [];
  for (const span of spans) {
    const last = apart.at(-1);
    if (last && span.from < last.to) apart[apart.length - 1] = { from: last.from, to: later(last.to, span.to) };
    else apart.push(span);
  }
  return apart;
}

/** All that lies between two names begins as both do; so it does in any case. */
function nameSpan(account: AccountId, { from = '', to = '' }: Bounds): Range {
  let shared = 0;
  while (shared < from.length && shared < TABLE_NAME_MAX && from[shared] === to[shared]) shared++;
  const prefix = foldTableName(from.slice(0, shared));
  if (from === to && from !== '') return { from: nameKey(account, prefix), to: after(nameKey(account, prefix)) };
  const start = namesFrom(account, 'table', prefix);
  return { from: start, to: past(start) };
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
