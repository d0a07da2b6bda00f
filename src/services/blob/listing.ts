/** List Containers and List Blobs: a page is one committed state, read in slices that leave the event loop to others. */
import { after, endingOf, type Key, past, type Range } from '../../partition/keys.ts';
import type { Row, Snapshot } from '../../partition/partition.ts';
import { type Lease, type LeaseState, leaseState } from '../../rules/lease.ts';
import { BLOB_NAME_MAX } from '../../rules/names.ts';
import { decodeName } from '../names.ts';
import { type AccountId, othersFirst, type Storage } from '../storage.ts';
import { fail } from './errors.ts';
import { decodeHead } from './heads.ts';
import { checkContainerName } from './requests.ts';
import {
  type Blob,
  type ContainerId,
  type ContainerProperties,
  containerIdAt,
  decodeProperties,
  decodeStage,
  headKey,
  headsIn,
  isExpired,
  type Located,
  nameKey,
  namesIn,
  propertiesKey,
  type Stage,
  stagesIn,
} from './rows.ts';

const PAGE_MAX = 5_000;
const SLICE_ROWS = 250;
/** A seek costs about as much as reading this many rows. */
const SEEK_ROWS = 4;

export interface ListInput {
  readonly prefix: string | undefined;
  readonly marker: string | undefined;
  readonly resultsMax: number | undefined;
}

export interface ListedContainer {
  readonly name: string;
  readonly container: Located<ContainerProperties>;
  readonly leaseState: LeaseState;
}

export async function listContainers(storage: Storage, input: ListInput) {
  const { account, partition } = storage;
  return partition.read(async (at) => {
    const names: Names<Row> = {
      under: (prefix) => namesIn(account, prefix),
      at: (name) => nameKey(account, name),
      scan: (range, limit) => scanOne(at, range, limit),
    };
    const containers: ListedContainer[] = [];
    const load = async (rows: Row[], nameIn: (row: Row) => string) => {
      const found = await at.getMany(rows.map((row) => propertiesKey(account, decodeName(row))));
      return rows.map((row, i): ListedContainer => {
        const properties = decodeProperties(found[i]!);
        return { name: nameIn(row), container: properties, leaseState: leaseState(properties.lease, at.now) };
      });
    };
    // Without a delimiter nothing is joined.
    const nextMarker = await readPage(names, input, '', load, (items) => {
      containers.push(...(items as ListedContainer[]));
    });
    return { containers, nextMarker };
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
export type Listed = ListedBlob | { readonly prefix: string };

/**
 * `emit` is given the items of a page slice by slice, so that thousands of them need not be held until the last was read.
 * Resolves with the marker of the next page.
 */
export async function listBlobs(
  storage: Storage,
  input: ListBlobsInput,
  emit: (items: readonly Listed[]) => void,
): Promise<string> {
  checkContainerName(input.container);
  const { account, partition } = storage;
  return partition.read(async (at) => {
    const id = await containerIdAt(at, storage, input.container);
    const names: Names<Staged> = {
      under: (prefix) => headsIn(account, id, prefix),
      at: (name) => headKey(account, id, name),
      scan: (range, limit) => (input.uncommitted ? scanBoth(at, account, id, range, limit) : scanOne(at, range, limit)),
    };
    const load = async (rows: Staged[], nameIn: (row: Row) => string) =>
      rows.map((row): ListedBlob => {
        const blob = row.stage ? undefined : decodeHead(row);
        const { lease } = row.stage ?? blob!;
        return { name: nameIn(row), blob, lease, leaseState: leaseState(lease, at.now) };
      });
    return readPage(names, input, input.delimiter ?? '', load, emit);
  });
}

/** Rows by name: where all that begin with a prefix begin, the key of one, and those in a range. */
interface Names<Found extends Row> {
  under(prefix: string): Key;
  at(name: string): Key;
  scan(range: Range, limit: number): Promise<Slice<Found>>;
}

interface Slice<Found extends Row> {
  readonly rows: readonly Found[];
  /** Where to go on; undefined: nothing follows. */
  readonly next: Key | undefined;
  /** Rows that were looked at for it. */
  readonly work: number;
}

async function scanOne(at: Snapshot, range: Range, limit: number): Promise<Slice<Row>> {
  const rows = await at.scan(range, { limit });
  return { rows, next: rows.length < limit ? undefined : after(rows.at(-1)!.key), work: rows.length };
}

/** The row of a head; or that of a stage, under the key that its head would have. */
type Staged = Row & { readonly stage?: Stage };

/** Heads, and stages without a head, in the order of their names. Their keys differ only in their beginnings. */
async function scanBoth(
  at: Snapshot,
  account: AccountId,
  id: ContainerId,
  { from, to }: Range,
  limit: number,
): Promise<Slice<Staged>> {
  const [ofHeads, ofStages] = [headsIn(account, id, ''), stagesIn(account, id, '')];
  const toStage = (key: Key) => (ofStages + key.slice(ofHeads.length)) as Key;
  const toHead = (key: Key) => (ofHeads + key.slice(ofStages.length)) as Key;
  const heads = await at.scan({ from, to }, { limit });
  const stages = await at.scan({ from: toStage(from), to: toStage(to) }, { limit });
  const staged = stages.map((row): Staged => ({ ...row, key: toHead(row.key), stage: decodeStage(row) }));
  // Behind the end of the shorter one, the other may have rows that belong between.
  const ends = [heads, staged].filter((rows) => rows.length === limit).map((rows) => rows.at(-1)!.key);
  const end = ends.reduce<Key | undefined>(
    (least, key) => (least === undefined || key < least ? key : least),
    undefined,
  );
  const committed = new Set(heads.map(({ key }) => key));
  const rows = [
    ...heads,
    ...staged.filter(({ key, stage }) => !committed.has(key) && !isExpired(stage!, at.now)),
  ].filter(({ key }) => end === undefined || key <= end);
  rows.sort((one, other) => (one.key < other.key ? -1 : 1));
  return { rows, next: end && after(end), work: heads.length + stages.length };
}

/**
 * Walks the names that begin with the prefix. Where the delimiter joins names into one item it seeks past all of them,
 * so that the cost is that of the items, not of the names behind them.
 */
async function readPage<Found extends Row, Item>(
  names: Names<Found>,
  { prefix = '', marker, resultsMax = PAGE_MAX }: ListInput,
  delimiter: string,
  load: (rows: Found[], nameIn: (row: Row) => string) => Promise<Item[]>,
  emit: (items: readonly (Item | { prefix: string })[]) => void,
): Promise<string> {
  // No name is longer, and a longer key is none that an engine could take.
  if (prefix.length > BLOB_NAME_MAX) return '';
  const start = names.under('');
  const nameIn = (row: Row) => endingOf(row.key, start);
  const range: Range = { from: names.under(prefix), to: past(names.under(prefix)) };
  let left = Math.min(resultsMax, PAGE_MAX);
  let from = marker ? seek(names, marker, range) : range.from;
  /** The last item: a row, or what several names were joined to. */
  let last: Row | string | undefined;
  let slice = SLICE_ROWS;
  let work = 0;
  for (;;) {
    const { rows, next, work: looked } = await names.scan({ from, to: range.to }, slice);
    const items: (Item | { prefix: string })[] = [];
    let alone: Found[] = [];
    let joined: string | undefined;
    for (const row of rows) {
      if (joined !== undefined && nameIn(row).startsWith(joined)) continue;
      if (left === 0) {
        emit([...items, ...(await load(alone, nameIn))]);
        return typeof last === 'string' ? encodeMarker('past', last) : encodeMarker('after', nameIn(last!));
      }
      left--;
      joined = delimiter === '' ? undefined : joinedName(nameIn(row), prefix, delimiter);
      last = joined ?? row;
      if (joined === undefined) {
        alone.push(row);
      } else {
        items.push(...(await load(alone, nameIn)), { prefix: joined });
        alone = [];
      }
    }
    emit([...items, ...(await load(alone, nameIn))]);
    if (next === undefined) return '';
    // Behind a long run of joined names a short look tells whether the next ones are joined too.
    slice = joined === undefined ? SLICE_ROWS : Math.max(2, slice >> 2);
    from = joined === undefined ? next : past(names.under(joined));
    work += looked + SEEK_ROWS;
    if (work < SLICE_ROWS) continue;
    work = 0;
    await othersFirst();
  }
}

/** What stands for this name and all others that share its beginning up to the delimiter. */
function joinedName(name: string, prefix: string, delimiter: string): string | undefined {
  const end = name.indexOf(delimiter, prefix.length);
  return end < 0 ? undefined : name.slice(0, end + delimiter.length);
}

/** Opaque to clients: where the next page begins. */
function encodeMarker(how: 'after' | 'past', name: string): string {
  return `1-${how}-${Buffer.from(name, 'utf16le').toString('base64url')}`;
}

function seek(names: Names<Row>, marker: string, range: Range): Key {
  const [, how, text = ''] = /^1-(after|past)-([\w-]+)$/.exec(marker) ?? [];
  const name = Buffer.from(text, 'base64url').toString('utf16le');
  if (how === undefined || name.length > BLOB_NAME_MAX) {
    throw fail('InvalidQueryParameterValue', { QueryParameterName: 'marker', QueryParameterValue: marker });
  }
  const from = how === 'past' ? past(names.under(name)) : after(names.at(name));
  if (from < range.from) return range.from;
  return from;
}
