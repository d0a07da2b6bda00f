/** List Containers and List Blobs: a page is one committed state, read in slices that leave the event loop to others. */
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
import { decodeName } from '../common/names.ts';
import { createSliceBuffer } from '../common/slices.ts';
import type { AccountId, Storage } from '../common/storage.ts';
import { decodeBlobRecord } from './blob-record.ts';
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
/** Their text stays below 128 KiB: a longer one has memory of its own, and costs twice as much. */
const SLICE_ROWS = 125;
/** Properties are as long as their metadata, and of a page all are held. */
const CONTAINERS_AT_ONCE = 1_000;

export interface ListInput {
  readonly prefix: string | undefined;
  readonly marker: string | undefined;
  readonly resultsMax: number | undefined;
}

export interface ListedContainer {
  readonly name: string;
  readonly container: WithVersion<ContainerProperties>;
  readonly leaseState: LeaseState;
}

/** As listBlobs does it. `system`: with the container of the logs. */
export async function listContainers(
  storage: Storage,
  input: ListInput & { readonly system?: boolean },
  emit: (containers: readonly ListedContainer[]) => void,
): Promise<string> {
  const { account, partition } = storage;
  const logs = nameKey(account, LOGS_CONTAINER);
  return partition.read(async (at) => {
    const names: NameSource<Row & { properties: Row }, ListedContainer> = {
      under: (prefix) => nameKeyPrefix(account, prefix),
      at: (name) => nameKey(account, name),
      async page(range, { limit }) {
        const { rows: all, next } = await at.page(range, { limit: Math.min(limit, CONTAINERS_AT_ONCE) });
        const rows = input.system ? all : all.filter(({ key }) => key !== logs);
        const found = await at.getMany(rows.map((row) => propertiesKey(account, decodeName(row))));
        return { rows: rows.map((row, i) => ({ ...row, properties: found[i]! })), next };
      },
      item(row, name) {
        const container = decodeProperties(row.properties);
        return { name, container, leaseState: leaseState(container.lease, at.now) };
      },
      bytesOf: ({ properties }) => properties.value.length,
    };
    // Without a delimiter nothing is joined.
    return readPage(names, input, '', (items) => emit(items as readonly ListedContainer[]));
  });
}

export interface ListBlobsInput extends ListInput {
  readonly container: string;
  readonly delimiter: string | undefined;
  /** Blobs, too, that consist of uncommitted blocks. */
  readonly uncommitted: boolean;
}

export interface ListedBlob {
  readonly name: string;
  /** Undefined: there are only uncommitted blocks. */
  readonly blob: Blob | undefined;
  readonly lease: Lease | undefined;
  readonly leaseState: LeaseState;
}

/** In the order of their names: a blob, or what stands for all blobs whose names go on behind the delimiter. */
export type ListedItem = ListedBlob | { readonly prefix: string };

/**
 * `emit` is given the items of a page slice by slice, so that thousands of them need not be held until the last was read.
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
        const blob = row.stage ? undefined : decodeBlobRecord(row);
        const { lease } = row.stage ?? blob!;
        return { name, blob, lease, leaseState: leaseState(lease, at.now) };
      },
      bytesOf: ({ value }) => value.length,
    };
    return readPage(names, input, input.delimiter ?? '', emit);
  });
}

/** Rows by name: where all that begin with a prefix begin, the key of one, those in a range, and what is listed of each. */
interface NameSource<Found extends Row, Item> {
  under(prefix: string): Key;
  at(name: string): Key;
  page(range: Range, options: PageOptions): Promise<TypedPage<Found>>;
  item(row: Found, name: string): Item;
  /** As much of the row as its item is made of. */
  bytesOf(row: Found): number;
}

interface TypedPage<Found extends Row> extends Page {
  readonly rows: readonly Found[];
}

/** The row of a head; or that of a stage, under the key that its head would have. */
type RowWithUncommitted = Row & { readonly stage?: UncommittedBlocks };

/** Heads, and stages without a head, in the order of their names. Their keys differ only in their beginnings, which are equally long. */
async function mergedPage(
  at: PagedSnapshot,
  account: AccountId,
  id: ContainerId,
  { from, to }: Range,
  options: PageOptions,
): Promise<TypedPage<RowWithUncommitted>> {
  const [ofHeads, ofStages] = [blobKeyPrefix(account, id, ''), uncommittedKeyPrefix(account, id, '')];
  const toStage = (key: Key) => (ofStages + key.slice(ofHeads.length)) as Key;
  const toHead = (key: Key) => (ofHeads + key.slice(ofStages.length)) as Key;
  const [heads, stages] = await Promise.all([
    at.page({ from, to }, options),
    at.page({ from: toStage(from), to: toStage(to) }, options),
  ]);
  const committed = new Set(heads.rows.map(({ key }) => key));
  const staged: RowWithUncommitted[] = [];
  for (const first of stages.rows) {
    const found = await findUnexpired(at, first, options.grouping);
    if (found && !committed.has(toHead(found.key))) staged.push({ ...found, key: toHead(found.key) });
  }
  // Behind the end of the shorter one, the other may have rows that belong between.
  const next = minKey(heads.next, stages.next && toHead(stages.next));
  const rows = [...heads.rows, ...staged].filter(({ key }) => next === undefined || key < next);
  rows.sort((one, other) => (one.key < other.key ? -1 : 1));
  return { rows, next };
}

/** This stage, or another that is joined with it: blocks that have expired are as good as gone. */
async function findUnexpired(
  at: PagedSnapshot,
  first: Row,
  grouping: KeyGrouping | undefined,
): Promise<RowWithUncommitted | undefined> {
  const decodeUnexpired = (row: Row): RowWithUncommitted | undefined => {
    const stage = decodeUncommitted(row);
    return isExpired(stage, at.now) ? undefined : { ...row, stage };
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
 * Walks the names that begin with the prefix. Where the delimiter joins names into one item the store seeks past all of them,
 * so that the cost is that of the items, not of the names behind them.
 */
async function readPage<Found extends Row, Item>(
  names: NameSource<Found, Item>,
  { prefix = '', marker, resultsMax = PAGE_MAX }: ListInput,
  delimiter: string,
  emit: (items: readonly (Item | { prefix: string })[]) => void,
): Promise<string> {
  // No name is longer, and a longer key is none that an engine could take.
  if (prefix.length > BLOB_NAME_MAX) return '';
  const start = names.under('');
  const nameIn = (row: Row) => decodeKeySuffix(row.key, start);
  const range: Range = { from: names.under(prefix), to: prefixEnd(names.under(prefix)) };
  const grouping = delimiter === '' ? undefined : { from: range.from.length, delimiter: encodeKeyText(delimiter) };
  let left = Math.min(resultsMax, PAGE_MAX);
  let from: Key | undefined = marker ? seekMarker(names, marker, range) : range.from;
  let joined: string | undefined;
  /** Where the next page begins if anything follows. */
  let end = '';
  const slices = createSliceBuffer(emit, SLICE_ROWS);
  while (from !== undefined) {
    const { rows, next }: TypedPage<Found> = await names.page({ from, to: range.to }, { limit: left + 1, grouping });
    for (const row of rows) {
      const name = nameIn(row);
      // Of heads and stages, each may have a row that stands for these names.
      if (joined !== undefined && name.startsWith(joined)) continue;
      if (left === 0) {
        slices.flush();
        return end;
      }
      if (slices.isFull()) {
        slices.flush();
        await nextSlice();
      }
      left--;
      joined = delimiter === '' ? undefined : commonPrefix(name, prefix, delimiter);
      if (joined === undefined) slices.add(names.item(row, name), name.length + names.bytesOf(row));
      else slices.add({ prefix: joined }, joined.length);
      if (left === 0) end = joined === undefined ? encodeMarker('after', name) : encodeMarker('past', joined);
    }
    slices.flush();
    from = next;
    if (from !== undefined) await nextSlice();
  }
  return '';
}

/** What stands for this name and all others that share its beginning up to the delimiter. */
function commonPrefix(name: string, prefix: string, delimiter: string): string | undefined {
  const end = name.indexOf(delimiter, prefix.length);
  return end < 0 ? undefined : name.slice(0, end + delimiter.length);
}

/** Opaque to clients: where the next page begins. */
function encodeMarker(how: 'after' | 'past', name: string): string {
  return `1-${how}-${Buffer.from(name, 'utf16le').toString('base64url')}`;
}

function seekMarker(names: Pick<NameSource<Row, unknown>, 'under' | 'at'>, marker: string, range: Range): Key {
  const [, how, text = ''] = /^1-(after|past)-([\w-]+)$/.exec(marker) ?? [];
  const name = Buffer.from(text, 'base64url').toString('utf16le');
  if (how === undefined || name.length > BLOB_NAME_MAX) {
    throw fail('InvalidQueryParameterValue', { QueryParameterName: 'marker', QueryParameterValue: marker });
  }
  const from = how === 'past' ? prefixEnd(names.under(name)) : keyAfter(names.at(name));
  if (from < range.from) return range.from;
  return from;
}
