/** Find Blobs by Tags, in an account or a container: the index of tags leads to the blobs, and none is read that does not match by its rows. */
import { nextSlice } from '../../base/time-slices.ts';
import { decodeKey, type Key } from '../../partition/keys.ts';
import type { Page, PagedSnapshot } from '../../partition/partition.ts';
import { decodeText } from '../../partition/values.ts';
import { meetsAll, parseTagQuery, type TagComparison, TagFilterError, type TagQuery } from '../../rules/tag-filter.ts';
import type { Tags } from '../../rules/tags.ts';
import type { ListInput } from '../common/list-pages.ts';
import { decodeName } from '../common/names.ts';
import type { Storage } from '../common/storage.ts';
import { decodeBlobRecord } from './blob-record.ts';
import { fail } from './errors.ts';
import { checkContainerName } from './request-checks.ts';
import { blobKey, type ContainerId, nameKey, readContainerId, taggedNameKey } from './rows.ts';
import { type Candidate, openCursor, type TagCursor } from './tag-cursors.ts';
import { taggedContainersIn } from './tag-index.ts';

export interface FindBlobsInput extends Omit<ListInput, 'prefix'> {
  readonly where: string;
  /** Undefined: in all containers of the account. */
  readonly container?: string | undefined;
}

export interface FoundBlob {
  readonly container: string;
  readonly name: string;
  /** Those that the query compares. */
  readonly tags: Tags;
}

const PAGE_MAX = 5_000;
/** Index entries and containers that one page looks at: Azure, too, may answer fewer blobs than were asked for, with a marker. */
const WORK_MAX = 5_000;
const SLICE_ROWS = 100;

/** Emits the blobs in slices, by container and then in the order of the index; resolves with the marker of the next page. */
export async function findBlobs(
  storage: Storage,
  input: FindBlobsInput,
  emit: (blobs: readonly FoundBlob[]) => void,
): Promise<string> {
  const query = parseQuery(input.where);
  const start = parseMarker(input.marker);
  if (input.container !== undefined) checkContainerName(input.container);
  return storage.partition.read(async (at) => {
    const containers = await openContainers(at, storage, input, query, start?.container ?? '');
    let left = Math.min(input.resultsMax ?? PAGE_MAX, PAGE_MAX);
    let work = WORK_MAX;
    for (let found = await containers(); found; found = await containers()) {
      const { name: container, id } = found;
      let after = start?.container === container ? start.after : undefined;
      const cursor = openCursor(at, storage.account, id, query.comparisons, after);
      work--;
      for (;;) {
        if (left === 0 || work <= 0) return formatMarker(container, after);
        const candidates = await take(cursor.next, Math.min(left, work, SLICE_ROWS));
        if (candidates.length === 0) break;
        work -= candidates.length;
        after = candidates.at(-1);
        const blobs = await readMatches(at, storage, found, candidates, query.comparisons, cursor);
        left -= blobs.length;
        emit(blobs);
        await nextSlice();
      }
    }
    return '';
  });
}

function parseQuery(where: string): TagQuery {
  try {
    return parseTagQuery(where);
  } catch (error) {
    if (!(error instanceof TagFilterError)) throw error;
    const details = { QueryParameterName: 'where', QueryParameterValue: where };
    throw fail('InvalidQueryParameterValue', details, error.message);
  }
}

interface NamedContainer {
  readonly name: string;
  readonly id: ContainerId;
}

/** The containers to search, by name, one with each call. */
async function openContainers(
  at: PagedSnapshot,
  storage: Storage,
  { container }: FindBlobsInput,
  { containers: named, comparisons }: TagQuery,
  from: string,
): Promise<() => Promise<NamedContainer | undefined>> {
  const { account } = storage;
  if (container === undefined && named === undefined) return taggedContainers(at, storage, comparisons, from);
  const only = container ?? named![0]!;
  let id: ContainerId | undefined;
  if (container !== undefined) id = await readContainerId(at, storage, container);
  else if (only.length <= CONTAINER_NAME_MAX) {
    const row = await at.get(nameKey(account, only));
    id = row && decodeName(row);
  }
  const isNamed = (named ?? []).every((name) => name === only) && only >= from;
  let next = id !== undefined && isNamed ? { name: only, id } : undefined;
  return async () => {
    const found = next;
    next = undefined;
    return found;
  };
}

const CONTAINER_NAME_MAX = 63;

/** The containers that have the first key, in the order of their names; one that is being deleted has index rows, but no name. */
async function taggedContainers(
  at: PagedSnapshot,
  { account }: Storage,
  comparisons: readonly TagComparison[],
  start: string,
): Promise<() => Promise<NamedContainer | undefined>> {
  const { key } = comparisons.find(({ operator }) => operator === '=') ?? comparisons[0]!;
  const { from, to } = taggedContainersIn(account, key);
  const found: NamedContainer[] = [];
  for (let next: Key | undefined = from; next !== undefined; await nextSlice()) {
    const page: Page = await at.page({ from: next, to }, { limit: SLICE_ROWS });
    const ids = page.rows.map((row) => decodeKey(row.key)[3] as ContainerId);
    const names = await at.getMany(ids.map((id) => taggedNameKey(account, id)));
    for (const [i, row] of names.entries()) {
      const name = row && decodeText(row);
      if (name !== undefined && name >= start) found.push({ name, id: ids[i]! });
    }
    next = page.next;
  }
  found.sort((a, b) => (a.name < b.name ? 1 : -1));
  return async () => found.pop();
}

async function take(next: () => Promise<Candidate | undefined>, limit: number): Promise<Candidate[]> {
  const taken: Candidate[] = [];
  while (taken.length < limit) {
    const candidate = await next();
    if (!candidate) break;
    taken.push(candidate);
  }
  return taken;
}

/** Where the index knows all tags that are compared, no blob is read. */
async function readMatches(
  at: PagedSnapshot,
  { account }: Storage,
  { name: container, id }: NamedContainer,
  candidates: readonly Candidate[],
  comparisons: readonly TagComparison[],
  cursor: TagCursor,
): Promise<FoundBlob[]> {
  if (comparisons.every(({ key }) => cursor.keys.has(key))) {
    return candidates
      .map((candidate) => ({ container, name: candidate.name, tags: cursor.tagsOf(candidate) }))
      .filter(({ tags }) => meetsAll(tags, comparisons));
  }
  const rows = await at.getMany(candidates.map(({ name }) => blobKey(account, id, name)));
  const compared = new Set(comparisons.map(({ key }) => key));
  return candidates.flatMap(({ name }, i) => {
    if (!rows[i]) throw new Error('a tag that no blob has');
    const { tags } = decodeBlobRecord(rows[i]);
    if (!meetsAll(tags, comparisons)) return [];
    return [{ container, name, tags: tags.filter(([key]) => compared.has(key)) }];
  });
}

interface Position {
  readonly container: string;
  /** Undefined: before the first blob of the container. */
  readonly after: Candidate | undefined;
}

/** Opaque to clients. */
function formatMarker(container: string, after: Candidate | undefined): string {
  const parts = after ? [container, after.value, after.name] : [container];
  return `1-${parts.map((part) => Buffer.from(part, 'utf16le').toString('base64url')).join('.')}`;
}

/** No longer than the longest value and name, because an engine could not look longer keys up. */
const MARKER = /^1-([\w-]{1,200})(?:\.([\w-]{0,683})\.([\w-]{1,2731}))?$/;

function parseMarker(marker: string | undefined): Position | undefined {
  if (!marker) return undefined;
  const [, container, value, name] = MARKER.exec(marker) ?? [];
  if (container === undefined) {
    throw fail('InvalidQueryParameterValue', { QueryParameterName: 'marker', QueryParameterValue: marker });
  }
  const decode = (text: string) => Buffer.from(text, 'base64url').toString('utf16le');
  const after = name === undefined ? undefined : { value: decode(value!), name: decode(name) };
  return { container: decode(container), after };
}
