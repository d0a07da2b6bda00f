/** A page of a list of names: one snapshot, read in slices so that no event-loop turn is long. */
import { nextSlice } from '../../base/time-slices.ts';
import { encodeKeyText, type Key, keyAfter, prefixEnd, type Range } from '../../partition/keys.ts';
import type { Timestamp } from '../../partition/partition.ts';
import { BLOB_NAME_MAX } from '../../rules/names.ts';
import { commonErrors, errorFactory } from './errors.ts';
import type { RowStream, StreamRange } from './row-streams.ts';
import { createSliceBuffer } from './slices.ts';

const fail = errorFactory(commonErrors);

const PAGE_MAX = 5_000;
/** The XML of a slice stays below 128 KiB: a longer string is allocated separately, and costs twice as much. */
const SLICE_ROWS = 125;

export interface ListInput {
  readonly prefix: string | undefined;
  readonly marker: string | undefined;
  readonly resultsMax: number | undefined;
}

/** What has names, and perhaps snapshots. */
export interface NameSource<Found, Item> {
  /** The prefix of the keys of all names with this prefix. */
  under(prefix: string): Key;
  at(name: string): Key;
  /** The key after that of the name and of all rows that come before it. */
  after(name: string): Key;
  open(range: StreamRange): RowStream<Found>;
  item(found: Found): Item;
  /** The stored bytes that the item is made of. */
  bytesOf(found: Found): number;
}

export interface Named {
  readonly name: string;
  readonly snapshot?: Timestamp;
  /** Of a row that comes after that of its name: the rest of its key. */
  readonly keySuffix?: string;
}

/**
 * Reads the names with the prefix. The store skips the names after the first of a common prefix (skip scan), so the cost is that
 * of the items, not of the names that they stand for.
 */
export async function readPage<Found extends Named, Item>(
  names: NameSource<Found, Item>,
  {
    prefix = '',
    marker,
    startFrom = '',
    resultsMax = PAGE_MAX,
  }: ListInput & { readonly startFrom?: string | undefined },
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
      const { name } = found;
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
      if (left > 0) continue;
      nextMarker = encodeMarker(common === undefined ? markerAfter(found) : { how: 'past', name: common });
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
  /** After this name, or after this snapshot of it; past all names with this prefix; after the row with this rest of its key. */
  readonly how: 'after' | 'past' | 'row';
  readonly name: string;
  readonly snapshot?: Timestamp | undefined;
}

function markerAfter({ name, snapshot, keySuffix }: Named): Marker {
  return keySuffix === undefined ? { how: 'after', name, snapshot } : { how: 'row', name: keySuffix };
}

/** Opaque to clients. */
function encodeMarker({ how, name, snapshot }: Marker): string {
  const stamp = snapshot === undefined ? '' : `.${snapshot}`;
  return `1-${how}-${Buffer.from(name, 'utf16le').toString('base64url')}${stamp}`;
}

function parseMarker(text: string | undefined): Marker | undefined {
  if (!text) return undefined;
  const [, how, encoded = '', stamp] = /^1-(after|past|row)-([\w-]+)(?:\.(\d{1,18}))?$/.exec(text) ?? [];
  const name = Buffer.from(encoded, 'base64url').toString('utf16le');
  if (how === undefined || name.length > BLOB_NAME_MAX) {
    throw fail('InvalidQueryParameterValue', { QueryParameterName: 'marker', QueryParameterValue: text });
  }
  return { how: how as Marker['how'], name, snapshot: stamp === undefined ? undefined : BigInt(stamp) };
}

/** The key of the first name that is not before this one. */
function seekName(names: Pick<NameSource<never, unknown>, 'at' | 'after'>, name: string): Key {
  if (name.length <= BLOB_NAME_MAX) return names.at(name);
  // An engine could not store a longer key; the longest name that this one starts with is before it.
  return names.after(name.slice(0, BLOB_NAME_MAX));
}

function seekMarker(
  names: Pick<NameSource<never, unknown>, 'under' | 'at' | 'after'>,
  { how, name, snapshot }: Marker,
): Key {
  if (how === 'past') return prefixEnd(names.under(name));
  if (how === 'row') return keyAfter(`${names.under('')}${name}` as Key);
  return snapshot === undefined ? names.after(name) : names.at(name);
}
