/** List Containers and List Blobs: a page is one snapshot, read in slices so that no event-loop turn is long. */
import { nextSlice } from '../../base/time-slices.ts';
import { encodeKeyText, type Key, prefixEnd, type Range } from '../../partition/keys.ts';
import type { Row, Timestamp } from '../../partition/partition.ts';
import { type Lease, type LeaseState, leaseState } from '../../rules/lease.ts';
import { BLOB_NAME_MAX, LOGS_CONTAINER } from '../../rules/names.ts';
import { type TierState, tierState } from '../../rules/tiers.ts';
import { decodeName } from '../common/names.ts';
import { createSliceBuffer } from '../common/slices.ts';
import type { Storage } from '../common/storage.ts';
import { decodeBlobRecord } from './blob-record.ts';
import { fail } from './errors.ts';
import {
  type ListRow,
  mergeStreams,
  pageStream,
  type RowStream,
  recordStream,
  type StreamRange,
  snapshotStream,
  uncommittedStream,
} from './list-streams.ts';
import { checkContainerName } from './request-checks.ts';
import {
  type Blob,
  blobKey,
  blobKeyPrefix,
  type ContainerProperties,
  decodeProperties,
  nameFromKey,
  nameKey,
  nameKeyPrefix,
  propertiesKey,
  readContainerId,
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
}

interface FoundContainer extends Named {
  readonly properties: Row;
}

/** Emits and returns as `listBlobs` does. `system`: with the container of the logs. */
export async function listContainers(
  storage: Storage,
  input: ListInput & { readonly system?: boolean },
  emit: (containers: readonly ListedContainer[]) => void,
): Promise<string> {
  const { account, partition } = storage;
  const logs = nameKey(account, LOGS_CONTAINER);
  return partition.read(async (at) => {
    const names: NameSource<FoundContainer, ListedContainer> = {
      under: (prefix) => nameKeyPrefix(account, prefix),
      at: (name) => nameKey(account, name),
      open: ({ from, to }) =>
        pageStream(async (first, limit) => {
          const { rows: all, next } = await at.page(
            { from: first, to },
            { limit: Math.min(limit, CONTAINERS_PER_READ) },
          );
          const rows = input.system ? all : all.filter(({ key }) => key !== logs);
          const found = await at.getMany(rows.map((row) => propertiesKey(account, decodeName(row))));
          return { rows: rows.map((row, i) => ({ name: nameFromKey(row.key), properties: found[i]! })), next };
        }, from),
      item({ name, properties }) {
        const container = decodeProperties(properties);
        return { name, container, leaseState: leaseState(container.lease, at.now) };
      },
      bytesOf: ({ properties }) => properties.value.length,
    };
    // Without a delimiter there are no common prefixes.
    return readPage(names, input, '', (items) => emit(items as readonly ListedContainer[]));
  });
}

export interface ListBlobsInput extends ListInput {
  readonly container: string;
  readonly delimiter: string | undefined;
  /** The first name that may be listed, whether it exists or not. */
  readonly startFrom?: string | undefined;
  /** With blobs that consist of uncommitted blocks only. */
  readonly uncommitted: boolean;
  readonly snapshots?: boolean;
}

export interface ListedBlob {
  readonly name: string;
  /** Undefined: the base blob. */
  readonly snapshot: Timestamp | undefined;
  /** Undefined: the blob consists of uncommitted blocks only. */
  readonly blob: Blob | undefined;
  readonly lease: Lease | undefined;
  readonly leaseState: LeaseState;
  readonly tier: TierState;
}

/** In the order of their names: a blob after its snapshots, or a common prefix of names up to the delimiter. */
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
    const source = { at, account, id };
    const streams = [
      recordStream,
      ...(input.uncommitted ? [uncommittedStream] : []),
      ...(input.snapshots ? [snapshotStream] : []),
    ];
    const names: NameSource<ListRow, ListedBlob> = {
      under: (prefix) => blobKeyPrefix(account, id, prefix),
      at: (name) => blobKey(account, id, name),
      open: (range) =>
        streams.length === 1 ? recordStream(source, range) : mergeStreams(streams.map((open) => open(source, range))),
      item({ name, row, uncommitted, snapshot }) {
        const blob = uncommitted ? undefined : decodeBlobRecord(row);
        const { lease } = uncommitted ?? blob!;
        const tier = tierState(blob?.tier, at.now);
        return { name, snapshot, blob, lease, leaseState: leaseState(lease, at.now), tier };
      },
      bytesOf: ({ row }) => row.value.length,
    };
    return readPage(names, input, input.delimiter ?? '', emit);
  });
}

/** What has names, and perhaps snapshots. */
interface NameSource<Found, Item> {
  /** The prefix of the keys of all names with this prefix. */
  under(prefix: string): Key;
  at(name: string): Key;
  open(range: StreamRange): RowStream<Found>;
  item(found: Found): Item;
  /** The stored bytes that the item is made of. */
  bytesOf(found: Found): number;
}

interface Named {
  readonly name: string;
  readonly snapshot?: Timestamp;
}

/**
 * Reads the names with the prefix. The store skips the names after the first of a common prefix (skip scan), so the cost is that
 * of the items, not of the names that they stand for.
 */
async function readPage<Found extends Named, Item>(
  names: NameSource<Found, Item>,
  { prefix = '', marker, startFrom = '', resultsMax = PAGE_MAX }: ListInput & Pick<ListBlobsInput, 'startFrom'>,
  delimiter: string,
  emit: (items: readonly (Item | { prefix: string })[]) => void,
): Promise<string> {
  // No name is longer, and an engine could not store a longer key.
  if (prefix.length > BLOB_NAME_MAX) return '';
  const range: Range = { from: names.under(prefix), to: prefixEnd(names.under(prefix)) };
  const grouping = delimiter === '' ? undefined : { from: range.from.length, delimiter: encodeKeyText(delimiter) };
  let left = Math.min(resultsMax, PAGE_MAX);
  const start = parseMarker(marker);
  const firstKeys = [range.from, seekName(names, startFrom), ...(start ? [seekMarker(names, start)] : [])];
  const from = firstKeys.sort().at(-1)!;
  if (from >= range.to) return '';
  const isInSnapshots = start?.snapshot !== undefined && from === names.at(start.name);
  const after = isInSnapshots ? { name: start.name, snapshot: start.snapshot! } : undefined;
  const stream = names.open({ from, to: range.to, after, grouping });
  let common: string | undefined;
  /** The marker of the next page, if another item follows. */
  let nextMarker = '';
  const slices = createSliceBuffer(emit, SLICE_ROWS);
  for (;;) {
    const rows = await stream.next(left + 1);
    for (const found of rows ?? []) {
      const { name, snapshot } = found;
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
      if (common === undefined) slices.add(names.item(found), name.length + names.bytesOf(found));
      else slices.add({ prefix: common }, common.length);
      if (left === 0)
        nextMarker = encodeMarker(
          common === undefined ? { how: 'after', name, snapshot } : { how: 'past', name: common },
        );
    }
    slices.flush();
    if (!rows || stream.hasEnded()) return '';
    await nextSlice();
  }
}

/** The prefix that this name shares with others, up to and including the delimiter. */
function commonPrefix(name: string, prefix: string, delimiter: string): string | undefined {
  const end = name.indexOf(delimiter, prefix.length);
  return end < 0 ? undefined : name.slice(0, end + delimiter.length);
}

/** The position of the next page. */
interface Marker {
  /** After this name, or after this snapshot of it; or past all names with this prefix. */
  readonly how: 'after' | 'past';
  readonly name: string;
  readonly snapshot?: Timestamp | undefined;
}

/** Opaque to clients. */
function encodeMarker({ how, name, snapshot }: Marker): string {
  const stamp = snapshot === undefined ? '' : `.${snapshot}`;
  return `1-${how}-${Buffer.from(name, 'utf16le').toString('base64url')}${stamp}`;
}

function parseMarker(text: string | undefined): Marker | undefined {
  if (!text) return undefined;
  const [, how, encoded = '', stamp] = /^1-(after|past)-([\w-]+)(?:\.(\d{1,18}))?$/.exec(text) ?? [];
  const name = Buffer.from(encoded, 'base64url').toString('utf16le');
  if (how === undefined || name.length > BLOB_NAME_MAX) {
    throw fail('InvalidQueryParameterValue', { QueryParameterName: 'marker', QueryParameterValue: text });
  }
  return { how: how as Marker['how'], name, snapshot: stamp === undefined ? undefined : BigInt(stamp) };
}

/** The key of the first name that is not before this one. */
function seekName(names: Pick<NameSource<never, unknown>, 'at'>, name: string): Key {
  if (name.length <= BLOB_NAME_MAX) return names.at(name);
  // An engine could not store a longer key; the longest name that this one starts with is before it.
  return prefixEnd(names.at(name.slice(0, BLOB_NAME_MAX)));
}

function seekMarker(names: Pick<NameSource<never, unknown>, 'under' | 'at'>, { how, name, snapshot }: Marker): Key {
  if (how === 'past') return prefixEnd(names.under(name));
  return snapshot === undefined ? prefixEnd(names.at(name)) : names.at(name);
}
