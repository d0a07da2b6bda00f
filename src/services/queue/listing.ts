/** List Queues: a page shows one committed state, and is read in slices that leave the event loop to others. */
import { nextSlice } from '../../base/time-slices.ts';
import { decodeKeySuffix, keyAfter, prefixEnd } from '../../partition/keys.ts';
import { queueNameFault } from '../../rules/names.ts';
import { decodeName, type Metadata } from '../common/names.ts';
import { createSliceBuffer } from '../common/slices.ts';
import type { Storage } from '../common/storage.ts';
import { fail } from './errors.ts';
import { decodeProperties, nameKey, nameKeyPrefix, propertiesKey } from './rows.ts';

const PAGE_MAX = 5_000;
const SLICE_ROWS = 250;
const PREFIX_MAX = 63;

export interface ListedQueue {
  readonly name: string;
  readonly metadata: Metadata;
}

export interface ListQueuesInput {
  readonly prefix: string | undefined;
  readonly marker: string | undefined;
  readonly resultsMax: number | undefined;
}

/**
 * `emit` is called with the queues of a page slice by slice, so that the metadata of thousands need not be in memory at once.
 * Resolves with the marker of the next page.
 */
export async function listQueues(
  { account, partition }: Storage,
  { prefix = '', marker, resultsMax = PAGE_MAX }: ListQueuesInput,
  emit: (queues: readonly ListedQueue[]) => void,
): Promise<string> {
  const last = marker ? parseMarker(marker) : undefined;
  // No name is longer, and engines limit the length of keys.
  if (prefix.length > PREFIX_MAX) return '';
  const start = nameKeyPrefix(account, '');
  const to = prefixEnd(nameKeyPrefix(account, prefix));
  const slices = createSliceBuffer(emit, SLICE_ROWS);
  return partition.read(async (at) => {
    let from = nameKeyPrefix(account, prefix);
    if (last !== undefined && keyAfter(nameKey(account, last)) > from) from = keyAfter(nameKey(account, last));
    let left = Math.min(resultsMax, PAGE_MAX);
    for (let end = ''; ; ) {
      const limit = Math.min(SLICE_ROWS, left + 1);
      const rows = await at.scan({ from, to }, { limit });
      const found = await at.getMany(rows.map((row) => propertiesKey(account, decodeName(row))));
      for (const [i, row] of rows.entries()) {
        if (left-- === 0) {
          slices.flush();
          return formatMarker(end);
        }
        if (slices.isFull()) {
          slices.flush();
          await nextSlice();
        }
        end = decodeKeySuffix(row.key, start);
        const properties = found[i]!;
        slices.add({ name: end, metadata: decodeProperties(properties).metadata }, properties.value.length);
      }
      slices.flush();
      if (rows.length < limit) return '';
      from = keyAfter(rows.at(-1)!.key);
      await nextSlice();
    }
  });
}

/** Opaque to clients: the name after which the next page starts. */
function formatMarker(name: string): string {
  return `1-${name}`;
}

function parseMarker(marker: string): string {
  const name = marker.slice(2);
  if (!marker.startsWith('1-') || queueNameFault(name)) throw fail('InvalidMarker');
  return name;
}
