/** List Containers and List Blobs: a page is one snapshot, read in slices so that no event-loop turn is long. */
import { nextSlice } from '../../base/time-slices.ts';
import {
  decodeKeySuffix,
  encodeKeyText,
  groupPrefix,
  type Key,
  type KeyGrouping,
  keyAfter,
  prefixEnd,
  type Range,
} from '../../partition/keys.ts';
import type { Page, PagedSnapshot, PageOptions, Row } from '../../partition/partition.ts';
import { type Lease, type LeaseState, leaseState } from '../../rules/lease.ts';
import { BLOB_NAME_MAX, LOGS_CONTAINER } from '../../rules/names.ts';
import { type TierState, tierState } from '../../rules/tiers.ts';
import { decodeName } from '../common/names.ts';
import { createSliceBuffer } from '../common/slices.ts';
import type { AccountId, Storage } from '../common/storage.ts';
import { decodeBlobRecord } from './blob-record.ts';
import {
  type DeletedContainer,
  decodeDeletedContainer,
  deletedKeyPrefix,
  remainingDays,
} from './deleted-containers.ts';
import { fail } from './errors.ts';
import { checkContainerName } from './request-checks.ts';
import {
  type Blob,
  blobKey,
  blobKeyPrefix,
  type ContainerId,
  type ContainerProperties,
  decodeProperties,
  decodeUncommitted,
  isExpired,
  nameKey,
  nameKeyPrefix,
  propertiesKey,
  readContainerId,
  type UncommittedBlocks,
  uncommittedKeyPrefix,
  type WithVersion,
} from './rows.ts';

const PAGE_MAX = 5_000;
/** The XML of a slice stays below 128 KiB: a longer string is allocated separately, and costs twice as much. */
const SLICE_ROWS = 125;
/** The properties of all rows of a page are in memory at once, each as long as its metadata. */
const CONTAINERS_PER_READ = 1_000;

export interface ListInput {
  readonly prefix: string | undefined;
  readonly marker: string | undefined;
  readonly resultsMax: number | undefined;
}

export interface ListedContainer {
  readonly name: string;
  readonly container: WithVersion<ContainerProperties>;
  readonly leaseState: LeaseState;
  /** Undefined: it is not deleted. */
  readonly deleted?: (DeletedContainer & { readonly remainingDays: number }) | undefined;
}

/** Emits and returns as `listBlobs` does. `system`: with the container of the logs; `deleted`: with those that can be restored. */
export async function listContainers(
  storage: Storage,
  input: ListInput & { readonly system?: boolean; readonly deleted?: boolean },
  emit: (containers: readonly ListedContainer[]) => void,
): Promise<string> {
  const { account, partition } = storage;
  const logs = nameKey(account, LOGS_CONTAINER);
  return partition.read(async (at) => {
    const names: NameSource<ContainerRow & { properties: Row }, ListedContainer> = {
      under: (prefix) => nameKeyPrefix(account, prefix),
      at: (name) => nameKey(account, name),
      async page(range, { limit }) {
        const read = input.deleted ? pageWithDeleted : pageOfNames;
        const { rows: all, next } = await read(at, account, range, { limit: Math.min(limit, CONTAINERS_PER_READ) });
        const rows = input.system ? all : all.filter(({ key }) => key !== logs);
        const found = await at.getMany(rows.map((row) => propertiesKey(account, row.deleted?.id ?? decodeName(row))));
        return { rows: rows.map((row, i) => ({ ...row, properties: found[i]! })), next };
      },
      item(row, name) {
        const container = decodeProperties(row.properties);
        const deleted = row.deleted && { ...row.deleted, remainingDays: remainingDays(row.deleted, at.now) };
        // As recorded: the lease of a deleted container has ended.
        return { name, container, leaseState: deleted ? 'expired' : leaseState(container.lease, at.now), deleted };
      },
      nameOf: ({ deleted }) => deleted?.name,
      bytesOf: ({ properties }) => properties.value.length,
    };
    // Without a delimiter there are no common prefixes.
    return readPage(names, input, '', (items) => emit(items as readonly ListedContainer[]));
  });
}

/** A name row; or a deleted container, under the key of its name and the timestamp of the deletion. */
type ContainerRow = Row & { readonly deleted?: DeletedContainer };

async function pageOfNames(
  at: PagedSnapshot,
  _: AccountId,
  range: Range,
  options: PageOptions,
): Promise<TypedPage<ContainerRow>> {
  return at.page(range, options);
}

/** After a name, its deleted containers. The keys of the two differ only in their prefixes, which are equally long. */
async function pageWithDeleted(
  at: PagedSnapshot,
  account: AccountId,
  { from, to }: Range,
  options: PageOptions,
): Promise<TypedPage<ContainerRow>> {
  const [namePrefix, deletedPrefix] = [nameKeyPrefix(account, ''), deletedKeyPrefix(account)];
  const toDeletedKey = (key: Key) => (deletedPrefix + key.slice(namePrefix.length)) as Key;
  const toNameKey = (key: Key) => (namePrefix + key.slice(deletedPrefix.length)) as Key;
  const [names, gone] = await Promise.all([
    at.page({ from, to }, options),
    at.page({ from: toDeletedKey(from), to: toDeletedKey(to) }, options),
  ]);
  const restorable = gone.rows.flatMap((row) => {
    const deleted = decodeDeletedContainer(row);
    return deleted.until > at.now ? [{ ...row, key: toNameKey(row.key), deleted }] : [];
  });
  return mergePages(
    { rows: names.rows, next: names.next },
    { rows: restorable, next: gone.next && toNameKey(gone.next) },
  );
}

/** In the order of the keys. After the end of the shorter page, the other one may have rows that belong in between. */
function mergePages<Found extends Row>(one: TypedPage<Found>, other: TypedPage<Found>): TypedPage<Found> {
  const next = minKey(one.next, other.next);
  const rows = [...one.rows, ...other.rows].filter(({ key }) => next === undefined || key < next);
  rows.sort((first, second) => (first.key < second.key ? -1 : 1));
  return { rows, next };
}

export interface ListBlobsInput extends ListInput {
  readonly container: string;
  readonly delimiter: string | undefined;
  /** The first name that may be listed, whether it exists or not. */
  readonly startFrom?: string | undefined;
  /** With blobs that consist of uncommitted blocks only. */
  readonly uncommitted: boolean;
}

export interface ListedBlob {
  readonly name: string;
  /** Undefined: the blob consists of uncommitted blocks only. */
  readonly blob: Blob | undefined;
  readonly lease: Lease | undefined;
  readonly leaseState: LeaseState;
  readonly tier: TierState;
}

/** In the order of their names: a blob, or a common prefix of names up to the delimiter. */
export type ListedItem = ListedBlob | { readonly prefix: string };

/**
 * `emit` gets the items of a page in slices, so that memory holds one slice, not thousands of items.
 * Resolves with the marker of the next page.
 */
export async function listBlobs(
  storage: Storage,
  input: ListBlobsInput,
  emit: (items: readonly ListedItem[]) => void,
): Promise<string> {
  checkContainerName(input.container);
  const { account, partition } = storage;
  return partition.read(async (at) => {
    const id = await readContainerId(at, storage, input.container);
    const names: NameSource<RowWithUncommitted, ListedBlob> = {
      under: (prefix) => blobKeyPrefix(account, id, prefix),
      at: (name) => blobKey(account, id, name),
      page: (range, options) =>
        input.uncommitted ? mergedPage(at, account, id, range, options) : at.page(range, options),
      item(row, name) {
        const blob = row.uncommitted ? undefined : decodeBlobRecord(row);
        const { lease } = row.uncommitted ?? blob!;
        return { name, blob, lease, leaseState: leaseState(lease, at.now), tier: tierState(blob?.tier, at.now) };
      },
      bytesOf: ({ value }) => value.length,
    };
    return readPage(names, input, input.delimiter ?? '', emit);
  });
}

/** Rows by name. */
interface NameSource<Found extends Row, Item> {
  /** The prefix of the keys of all names with this prefix. */
  under(prefix: string): Key;
  at(name: string): Key;
  page(range: Range, options: PageOptions): Promise<TypedPage<Found>>;
  item(row: Found, name: string): Item;
  /** Of a row whose key does not end with the name. */
  nameOf?(row: Found): string | undefined;
  /** The stored bytes that the item is made of. */
  bytesOf(row: Found): number;
}

interface TypedPage<Found extends Row> extends Page {
  readonly rows: readonly Found[];
}

/** A blob record; or uncommitted blocks, under the key that the blob record would have. */
type RowWithUncommitted = Row & { readonly uncommitted?: UncommittedBlocks };

/**
 * Merges blob records, and uncommitted blocks without a record, in the order of their names. The keys of the two differ only in
 * their prefixes, which are equally long.
 */
async function mergedPage(
  at: PagedSnapshot,
  account: AccountId,
  id: ContainerId,
  { from, to }: Range,
  options: PageOptions,
): Promise<TypedPage<RowWithUncommitted>> {
  const [recordPrefix, uncommittedPrefix] = [blobKeyPrefix(account, id, ''), uncommittedKeyPrefix(account, id, '')];
  const toUncommittedKey = (key: Key) => (uncommittedPrefix + key.slice(recordPrefix.length)) as Key;
  const toRecordKey = (key: Key) => (recordPrefix + key.slice(uncommittedPrefix.length)) as Key;
  const [records, uncommitted] = await Promise.all([
    at.page({ from, to }, options),
    at.page({ from: toUncommittedKey(from), to: toUncommittedKey(to) }, options),
  ]);
  const recordKeys = new Set(records.rows.map(({ key }) => key));
  const withoutRecord: RowWithUncommitted[] = [];
  for (const first of uncommitted.rows) {
    const found = await findUnexpired(at, first, options.grouping);
    const key = found && toRecordKey(found.key);
    if (key !== undefined && !recordKeys.has(key)) withoutRecord.push({ ...found!, key });
  }
  return mergePages<RowWithUncommitted>(records, {
    rows: withoutRecord,
    next: uncommitted.next && toRecordKey(uncommitted.next),
  });
}

/** These uncommitted blocks, or if they have expired, the next unexpired ones under the same common prefix. */
async function findUnexpired(
  at: PagedSnapshot,
  first: Row,
  grouping: KeyGrouping | undefined,
): Promise<RowWithUncommitted | undefined> {
  const decodeUnexpired = (row: Row): RowWithUncommitted | undefined => {
    const uncommitted = decodeUncommitted(row);
    return isExpired(uncommitted, at.now) ? undefined : { ...row, uncommitted };
  };
  const found = decodeUnexpired(first);
  const group = grouping && groupPrefix(first.key, grouping);
  if (found || group === undefined) return found;
  let from: Key | undefined = keyAfter(first.key);
  while (from !== undefined) {
    const { rows, next }: Page = await at.page({ from, to: prefixEnd(group) }, { limit: SLICE_ROWS });
    for (const row of rows) {
      const other = decodeUnexpired(row);
      if (other) return other;
    }
    from = next;
    await nextSlice();
  }
  return undefined;
}

function minKey(one: Key | undefined, other: Key | undefined): Key | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return one < other ? one : other;
}

/**
 * Reads the names with the prefix. The store skips the names after the first of a common prefix (skip scan), so the cost is that
 * of the items, not of the names that they stand for.
 */
async function readPage<Found extends Row, Item>(
  names: NameSource<Found, Item>,
  { prefix = '', marker, startFrom = '', resultsMax = PAGE_MAX }: ListInput & Pick<ListBlobsInput, 'startFrom'>,
  delimiter: string,
  emit: (items: readonly (Item | { prefix: string })[]) => void,
): Promise<string> {
  // No name is longer, and an engine could not store a longer key.
  if (prefix.length > BLOB_NAME_MAX) return '';
  const start = names.under('');
  const range: Range = { from: names.under(prefix), to: prefixEnd(names.under(prefix)) };
  const grouping = delimiter === '' ? undefined : { from: range.from.length, delimiter: encodeKeyText(delimiter) };
  let left = Math.min(resultsMax, PAGE_MAX);
  const firstKeys = [range.from, seekName(names, startFrom), ...(marker ? [seekMarker(names, marker)] : [])];
  let from: Key | undefined = firstKeys.sort().at(-1)!;
  if (from >= range.to) return '';
  let common: string | undefined;
  /** The marker of the next page, if another item follows. */
  let nextMarker = '';
  const slices = createSliceBuffer(emit, SLICE_ROWS);
  while (from !== undefined) {
    const { rows, next }: TypedPage<Found> = await names.page({ from, to: range.to }, { limit: left + 1, grouping });
    for (const row of rows) {
      const ownName = names.nameOf?.(row);
      const name = ownName ?? decodeKeySuffix(row.key, start);
      // Records and uncommitted blocks may both have a row under this common prefix.
      if (common !== undefined && name.startsWith(common)) continue;
      if (left === 0) {
        slices.flush();
        return nextMarker;
      }
      if (slices.isFull()) {
        slices.flush();
        await nextSlice();
      }
      left--;
      common = delimiter === '' ? undefined : commonPrefix(name, prefix, delimiter);
      if (common === undefined) slices.add(names.item(row, name), name.length + names.bytesOf(row));
      else slices.add({ prefix: common }, common.length);
      if (left > 0) continue;
      if (ownName !== undefined) nextMarker = encodeMarker('row', row.key.slice(start.length));
      else nextMarker = common === undefined ? encodeMarker('after', name) : encodeMarker('past', common);
    }
    slices.flush();
    from = next;
    if (from !== undefined) await nextSlice();
  }
  return '';
}

/** The prefix that this name shares with others, up to and including the delimiter. */
function commonPrefix(name: string, prefix: string, delimiter: string): string | undefined {
  const end = name.indexOf(delimiter, prefix.length);
  return end < 0 ? undefined : name.slice(0, end + delimiter.length);
}

/** Opaque to clients: the position of the next page. After a row whose key does not end with the name: the rest of the key. */
function encodeMarker(how: 'after' | 'past' | 'row', name: string): string {
  return `1-${how}-${Buffer.from(name, 'utf16le').toString('base64url')}`;
}

/** The key of the first name that is not before this one. */
function seekName(names: Pick<NameSource<Row, unknown>, 'at'>, name: string): Key {
  if (name.length <= BLOB_NAME_MAX) return names.at(name);
  // An engine could not store a longer key; the longest name that this one starts with is before it.
  return keyAfter(names.at(name.slice(0, BLOB_NAME_MAX)));
}

function seekMarker(names: Pick<NameSource<Row, unknown>, 'under' | 'at'>, marker: string): Key {
  const [, how, text = ''] = /^1-(after|past|row)-([\w-]+)$/.exec(marker) ?? [];
  const name = Buffer.from(text, 'base64url').toString('utf16le');
  if (how === undefined || name.length > BLOB_NAME_MAX) {
    throw fail('InvalidQueryParameterValue', { QueryParameterName: 'marker', QueryParameterValue: marker });
  }
  if (how === 'row') return keyAfter(`${names.under('')}${name}` as Key);
  return how === 'past' ? prefixEnd(names.under(name)) : keyAfter(names.at(name));
}
