/** A directory through a handle, as SMB lists it: in the order of folded names, by a search pattern, from any name on. */
import { nextSlice } from '../../base/time-slices.ts';
import { keyAfter, prefixEnd } from '../../partition/keys.ts';
import { RIGHTS } from '../../rules/file/access-mask.ts';
import { foldName } from '../../rules/file/names.ts';
import { matchesPattern, type Pattern, patternCost } from '../../rules/file/patterns.ts';
import type { Storage } from '../common/storage.ts';
import { scanEntries } from './entries-at.ts';
import { fail } from './errors.ts';
import { entryAt } from './history.ts';
import { type ListedEntry, readEntries } from './listing.ts';
import { readEntryTimes, readNode } from './namespace.ts';
import type { Directory } from './node-rows.ts';
import type { Handle } from './open-rows.ts';
import { entryKey, entryKeyPrefix } from './rows.ts';
import { nodeByShortName } from './short-names.ts';
import { requireOpened } from './snapshot-handles.ts';

export { type Pattern, parsePattern } from '../../rules/file/patterns.ts';

const SLICE_ROWS = 250;
/** Steps of the matcher between two turns of the event loop, for names of 255 units. */
const SLICE_COST = 2_000;

export interface ListHandleInput {
  readonly pattern: Pattern;
  /** The last name of the list before; undefined: from the first on. */
  readonly after: string | undefined;
  /** Those of `.` and `..` that match come first, without as many as this. */
  readonly dotsSent: number;
}

export type DirectoryEntry = Pick<ListedEntry, 'name'> & { readonly found: NonNullable<ListedEntry['found']> };

/**
 * Shows one committed state.
 * @param take gets the entries in order, until it returns false
 */
export async function listThroughHandle(
  storage: Storage,
  handle: Handle,
  { pattern, after, dotsSent }: ListHandleInput,
  take: (entry: DirectoryEntry) => boolean,
): Promise<void> {
  await storage.partition.read(async (at) => {
    const { share, node, open, seenAt } = await requireOpened(at, storage, handle);
    if (!(open.rights & RIGHTS.readData)) throw fail('AccessDenied');
    if (node.kind !== 'directory') throw fail('ResourceTypeMismatch');
    if (dotsSent < 2) {
      const parent = await readEntryTimes(
        at,
        share,
        (await readNode(at, share, node.parent, seenAt)) as Directory,
        seenAt,
      );
      const dots = [
        { name: '.', found: await readEntryTimes(at, share, node, seenAt) },
        { name: '..', found: parent },
      ].filter(({ name }) => matchesPattern(pattern, name));
      for (const dot of dots.slice(dotsSent)) if (!take(dot)) return;
    }
    const short = await findByShortName();
    if (short) {
      take({ name: short.name, found: short });
      return;
    }
    const { from: start, to } = rangeOf(pattern);
    for (let from = start; ; ) {
      const rows = await scanEntries(at, share, { from, to }, sliceRows(pattern), seenAt);
      for (const entry of await readEntries(at, { share, seenAt }, rows, true)) {
        if (!matchesPattern(pattern, foldName(entry.name))) continue;
        if (!take({ name: entry.name, found: entry.found! })) return;
      }
      if (rows.length < sliceRows(pattern)) return;
      from = keyAfter(rows.at(-1)!.key);
      await nextSlice();
    }

    /** Undefined: the pattern is the short name of nothing, or the name of an entry. */
    async function findByShortName() {
      const { prefix, rest } = pattern;
      if (rest !== undefined || after !== undefined) return undefined;
      const found = await nodeByShortName(at, share, node.id, prefix, seenAt);
      if (!found || (await entryAt(at, share, node.id, prefix, seenAt))) return undefined;
      return found.kind === 'directory' ? readEntryTimes(at, share, found, seenAt) : found;
    }

    function rangeOf({ prefix, rest }: Pattern) {
      const under = entryKeyPrefix(share, node.id, prefix);
      const first = rest === undefined ? entryKey(share, node.id, prefix) : under;
      const last = rest === undefined ? keyAfter(first) : prefixEnd(under);
      let begin = first;
      const next = after === undefined ? first : keyAfter(entryKey(share, node.id, foldName(after)));
      if (next > begin) begin = next;
      return { from: begin, to: last };
    }
  });
}

const sliceRows = (pattern: Pattern): number =>
  Math.max(8, Math.min(SLICE_ROWS, Math.floor(SLICE_COST / patternCost(pattern))));
