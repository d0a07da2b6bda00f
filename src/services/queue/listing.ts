/** List Queues: a page is one committed state, read in slices that leave the event loop to others. */
import { after, endingOf, past } from '../../partition/keys.ts';
import { queueNameFault } from '../../rules/queue/names.ts';
import type { Metadata } from '../metadata.ts';
import { decodeName } from '../names.ts';
import { nextSlice, type Storage } from '../storage.ts';
import { fail } from './errors.ts';
import { decodeProperties, nameKey, namesFrom, propertiesKey } from './rows.ts';

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

export async function listQueues(
  { account, partition }: Storage,
  { prefix = '', marker, resultsMax = PAGE_MAX }: ListQueuesInput,
): Promise<{ readonly queues: readonly ListedQueue[]; readonly nextMarker: string }> {
  const last = marker ? parseMarker(marker) : undefined;
  const queues: ListedQueue[] = [];
  // No name is longer, and a longer key is none that an engine could take.
  if (prefix.length > PREFIX_MAX) return { queues, nextMarker: '' };
  const wanted = Math.min(resultsMax, PAGE_MAX);
  const start = namesFrom(account, '');
  const to = past(namesFrom(account, prefix));
  return partition.read(async (at) => {
    let from = namesFrom(account, prefix);
    if (last !== undefined && after(nameKey(account, last)) > from) from = after(nameKey(account, last));
    for (;;) {
      const limit = Math.min(SLICE_ROWS, wanted - queues.length + 1);
      const rows = await at.scan({ from, to }, { limit });
      const found = await at.getMany(rows.map((row) => propertiesKey(account, decodeName(row))));
      for (const [i, row] of rows.entries()) {
        if (queues.length === wanted) return { queues, nextMarker: markerOf(queues.at(-1)!.name) };
        queues.push({ name: endingOf(row.key, start), metadata: decodeProperties(found[i]!).metadata });
      }
      if (rows.length < limit) return { queues, nextMarker: '' };
      from = after(rows.at(-1)!.key);
      await nextSlice();
    }
  });
}

/** Opaque to clients: behind whom the next page begins. */
function markerOf(name: string): string {
  return `1-${name}`;
}

function parseMarker(marker: string): string {
  const name = marker.slice(2);
  if (!marker.startsWith('1-') || queueNameFault(name)) throw fail('InvalidMarker');
  return name;
}
