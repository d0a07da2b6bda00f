/** List Shares: a page shows one committed state, and is read in slices that leave the event loop to others. */
import { nextSlice } from '../../base/time-slices.ts';
import { decodeKeySuffix, keyAfter, prefixEnd } from '../../partition/keys.ts';
import { type LeaseState, leaseState } from '../../rules/lease.ts';
import { shareNameFault } from '../../rules/names.ts';
import { createSliceBuffer } from '../common/slices.ts';
import type { Storage } from '../common/storage.ts';
import { fail } from './errors.ts';
import { decodeShare, nameKey, nameKeyPrefix, propertiesKey } from './rows.ts';
import { type FoundShare, foundShare } from './share-reads.ts';

const PAGE_MAX = 5_000;
const SLICE_ROWS = 250;
const PREFIX_MAX = 63;

export interface ListedShare {
  readonly name: string;
  readonly share: FoundShare;
  readonly leaseState: LeaseState;
}

export interface ListSharesInput {
  readonly prefix: string | undefined;
  readonly marker: string | undefined;
  readonly resultsMax: number | undefined;
}

/**
 * `emit` is called with the shares of a page slice by slice, so that the metadata of thousands need not be in memory at once.
 * Resolves with the marker of the next page.
 */
export async function listShares(
  { account, partition }: Storage,
  { prefix = '', marker, resultsMax = PAGE_MAX }: ListSharesInput,
  emit: (shares: readonly ListedShare[]) => void,
): Promise<string> {
  const first = marker ? parseMarker(marker) : undefined;
  // No name is longer, and engines limit the length of keys.
  if (prefix.length > PREFIX_MAX) return '';
  const start = nameKeyPrefix(account, '');
  const to = prefixEnd(nameKeyPrefix(account, prefix));
  const slices = createSliceBuffer(emit, SLICE_ROWS);
  return partition.read(async (at) => {
    let from = nameKeyPrefix(account, prefix);
    if (first !== undefined && nameKey(account, first) > from) from = nameKey(account, first);
    for (let left = Math.min(resultsMax, PAGE_MAX); ; ) {
      const limit = Math.min(SLICE_ROWS, left + 1);
      const rows = await at.scan({ from, to }, { limit });
      const found = await at.getMany(rows.map((row) => propertiesKey(account, decodeShare(account, row).id)));
      for (const [i, row] of rows.entries()) {
        const name = decodeKeySuffix(row.key, start);
        if (left-- === 0) {
          slices.flush();
          return formatMarker(name);
        }
        if (slices.isFull()) {
          slices.flush();
          await nextSlice();
        }
        const properties = found[i]!;
        const share = foundShare(decodeShare(account, row), properties);
        slices.add({ name, share, leaseState: leaseState(share.lease, at.now) }, properties.value.length);
      }
      slices.flush();
      if (rows.length < limit) return '';
      from = keyAfter(rows.at(-1)!.key);
      await nextSlice();
    }
  });
}

/** Opaque to clients: the name with which the next page starts. */
function formatMarker(name: string): string {
  return `1-${name}`;
}

function parseMarker(marker: string): string {
  const name = marker.slice(2);
  if (marker.startsWith('1-') && !shareNameFault(name)) return name;
  throw fail('InvalidQueryParameterValue', { QueryParameterName: 'marker', QueryParameterValue: marker });
}
