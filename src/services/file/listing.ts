/**
 * List Directories and Files: a page of one directory, in the order of folded names. It shows one committed state, and is read in slices
 * that leave the event loop to others; its cost is that of its entries, wherever in the directory it begins.
 */
import { nextSlice } from '../../base/time-slices.ts';
import { keyAfter, prefixEnd } from '../../partition/keys.ts';
import type { PagedSnapshot, Row } from '../../partition/partition.ts';
import { decodeCounter } from '../../partition/values.ts';
import { foldName } from '../../rules/file/names.ts';
import { createSliceBuffer } from '../common/slices.ts';
import type { Storage } from '../common/storage.ts';
import { scanEntries } from './entries-at.ts';
import { fail } from './errors.ts';
import { nodeFrom, timesAt } from './history.ts';
import { checkPath, followEntries, type ReadPathInput, resolveDirectory, type Target } from './namespace.ts';
import { type Directory, decodeEntry, type Entry, type Node } from './node-rows.ts';
import { checkSharing, findDeletePending, hasOpens } from './opens.ts';
import { entryKey, entryKeyPrefix, nodeKey, type Share, timesKey } from './rows.ts';

const PAGE_MAX = 5_000;
const SLICE_ROWS = 250;
const NAME_MAX = 255;

export interface ListDirectoryInput extends ReadPathInput {
  readonly prefix: string | undefined;
  readonly marker: string | undefined;
  readonly resultsMax: number | undefined;
  /** Whether properties of directories are wanted; of files they are read in any case, for their length. */
  readonly isExtended: boolean;
}

export type ListedEntry = Entry & { readonly found: Node | undefined };

/** What a page consists of, in this order. */
export interface DirectoryPage {
  begin(directory: Directory): void;
  /** Called slice by slice. */
  add(entries: readonly ListedEntry[]): void;
  /** @param nextMarker empty: this is the last page */
  end(nextMarker: string): void;
}

export async function listDirectory(storage: Storage, input: ListDirectoryInput, page: DirectoryPage): Promise<void> {
  const path = checkPath(input);
  const { prefix = '', resultsMax = PAGE_MAX } = input;
  const first = input.marker ? parseMarker(input.marker) : '';
  await storage.partition.read(async (at) => {
    const target = await resolveDirectory(at, storage, input.share, path, input.snapshot);
    const { share, node: directory, seenAt } = target;
    await checkSharing(at, target, 'none');
    page.begin(directory);
    // No name is longer, and engines limit the length of keys.
    if (prefix.length > NAME_MAX) return page.end('');
    const under = entryKeyPrefix(share, directory.id, foldName(prefix));
    const to = prefixEnd(under);
    const start = entryKey(share, directory.id, foldName(first));
    const slices = createSliceBuffer(page.add, SLICE_ROWS);
    const isAnythingOpen = seenAt === undefined && (await hasOpens(at, share));
    let from = under;
    if (start > from) from = start;
    for (let left = Math.min(resultsMax, PAGE_MAX); ; ) {
      const limit = Math.min(SLICE_ROWS, left + 1);
      const scanned = await scanEntries(at, share, { from, to }, limit, seenAt);
      const rows = isAnythingOpen ? await withoutDeletePending(at, share, scanned) : scanned;
      const listed = await readEntries(at, target, rows.slice(0, left), input.isExtended);
      for (const [i, entry] of listed.entries()) slices.add(entry, rows[i]!.value.length + NAME_MAX);
      slices.flush();
      if (rows.length > left) return page.end(formatMarker(decodeEntry(rows[left]!).name));
      if (scanned.length < limit) return page.end('');
      left -= rows.length;
      from = keyAfter(scanned.at(-1)!.key);
      await nextSlice();
    }
  });
}

/** What is marked for deletion by SMB is not shown. */
async function withoutDeletePending(at: PagedSnapshot, share: Share, rows: readonly Row[]): Promise<readonly Row[]> {
  const hidden = await findDeletePending(
    at,
    share,
    rows.map((row) => decodeEntry(row).node),
  );
  return hidden.size === 0 ? rows : rows.filter((row) => !hidden.has(decodeEntry(row).node));
}

export async function readEntries(
  at: PagedSnapshot,
  { share, seenAt }: Pick<Target, 'share' | 'seenAt'>,
  rows: readonly Row[],
  isExtended: boolean,
): Promise<ListedEntry[]> {
  const entries = rows.map(decodeEntry);
  const wanted = entries.filter(({ kind }) => isExtended || kind === 'file');
  const directories = wanted.filter(({ kind }) => kind === 'directory');
  const found = await at.getMany([
    ...wanted.map(({ node }) => nodeKey(share, node)),
    ...(seenAt === undefined ? directories : []).map(({ node }) => timesKey(share, node)),
  ]);
  const changed = await Promise.all(
    directories.map(({ node }, i) =>
      seenAt === undefined ? decodeCounter(found[wanted.length + i]) : timesAt(at, share, node, seenAt),
    ),
  );
  const times = new Map(directories.map(({ node }, i) => [node, changed[i]!]));
  const nodes = new Map<bigint, Node>();
  for (const [i, { node: id }] of wanted.entries()) {
    const node = (await nodeFrom(at, share, id, found[i], seenAt))!;
    nodes.set(id, node.kind === 'directory' ? followEntries(node, times.get(id)!) : node);
  }
  return entries.map((entry) => ({ ...entry, found: nodes.get(entry.node) }));
}

/** The form of Azure's markers; opaque to clients: the name with which the next page starts. */
function formatMarker(name: string): string {
  const text = Buffer.from(name).toString('base64url');
  return `1!${text.length}!${text}`;
}

function parseMarker(marker: string): string {
  const [, length, text = ''] = /^1!(\d{1,4})!([\w-]+)$/.exec(marker) ?? [];
  const name = Buffer.from(text, 'base64url').toString();
  if (Number(length) === text.length && name.length <= NAME_MAX && formatMarker(name) === marker) return name;
  throw fail('InvalidQueryParameterValue', { QueryParameterName: 'marker', QueryParameterValue: marker });
}
