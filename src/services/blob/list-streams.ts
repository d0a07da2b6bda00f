/** The rows of List Blobs as streams in the order of names: blob records, uncommitted blocks, snapshots; and the merge of several. */
import { nextSlice } from '../../base/time-slices.ts';
import { decodeKeySuffix, groupPrefix, type Key, type KeyGrouping, keyAfter, prefixEnd } from '../../partition/keys.ts';
import type { Page, PagedSnapshot, Row, Timestamp } from '../../partition/partition.ts';
import type { AccountId } from '../common/storage.ts';
import {
  decodeDeletedUpTo,
  deletedUpToKey,
  readDeletedUpTo,
  snapshotKey,
  snapshotKeyPrefix,
  stampInKey,
  withoutStamp,
  withStamp,
} from './old-rows.ts';
import {
  blobKeyPrefix,
  type ContainerId,
  decodeUncommitted,
  isExpired,
  type UncommittedBlocks,
  uncommittedKeyPrefix,
} from './rows.ts';

export interface RowStream<Found> {
  /** The next rows, at least one and about as many as this; undefined: nothing follows. */
  next(limit: number): Promise<readonly Found[] | undefined>;
  /** It is known that nothing follows. */
  hasEnded(): boolean;
}

/** Where a page begins, and what it may contain. */
export interface StreamRange {
  /** Among the keys of blob records. */
  readonly from: Key;
  readonly to: Key;
  /** The snapshots of this blob up to this one are before the page; the blob itself is at `from`. */
  readonly after?: { readonly name: string; readonly snapshot: Timestamp } | undefined;
  readonly grouping: KeyGrouping | undefined;
}

/** A blob record, or uncommitted blocks without one, or a snapshot. */
export interface ListRow {
  readonly name: string;
  readonly row: Row;
  /** The order of the list, among the keys of blob records: a blob comes after its snapshots. */
  readonly position: Key;
  readonly uncommitted?: UncommittedBlocks;
  readonly snapshot?: Timestamp;
}

interface ListedContents {
  readonly at: PagedSnapshot;
  readonly account: AccountId;
  readonly id: ContainerId;
}

const GROUP_ROWS = 125;

export function pageStream<Found>(
  readPage: (from: Key, limit: number) => Promise<{ readonly rows: readonly Found[]; readonly next: Key | undefined }>,
  first: Key,
): RowStream<Found> {
  let from: Key | undefined = first;
  return {
    async next(limit) {
      while (from !== undefined) {
        const { rows, next }: { rows: readonly Found[]; next: Key | undefined } = await readPage(from, limit);
        from = next;
        if (rows.length > 0) return rows;
        await nextSlice();
      }
      return undefined;
    },
    hasEnded: () => from === undefined,
  };
}

/** Records come before uncommitted blocks of the same blob, and hide them. */
export function mergeStreams(streams: readonly RowStream<ListRow>[]): RowStream<ListRow> {
  const heads = streams.map((stream) => ({ stream, rows: [] as readonly ListRow[], at: 0 }));
  return {
    async next(limit) {
      const empty = heads.filter(({ rows, at }) => at === rows.length);
      await Promise.all(
        empty.map(async (head) => {
          Object.assign(head, { rows: (await head.stream.next(limit)) ?? [], at: 0 });
        }),
      );
      const merged: ListRow[] = [];
      for (;;) {
        let least: ListRow | undefined;
        for (const { rows, at, stream } of heads) {
          const row = rows[at];
          // The next row of this stream may belong here.
          if (!row && !stream.hasEnded()) return merged;
          if (row && (!least || row.position < least.position)) least = row;
        }
        if (!least) return merged.length > 0 ? merged : undefined;
        merged.push(least);
        for (const head of heads) if (head.rows[head.at]?.position === least.position) head.at++;
      }
    },
    hasEnded: () => heads.every(({ rows, at, stream }) => at === rows.length && stream.hasEnded()),
  };
}

export function recordStream(
  { at, account, id }: ListedContents,
  { from, to, grouping }: StreamRange,
): RowStream<ListRow> {
  const prefix = blobKeyPrefix(account, id, '');
  return pageStream(async (first, limit) => {
    const { rows, next } = await at.page({ from: first, to }, { limit, grouping });
    const found = rows.map((row) => ({
      name: decodeKeySuffix(row.key, prefix),
      row,
      position: prefixEnd(row.key),
    }));
    return { rows: found, next };
  }, from);
}

/** The keys differ from those of blob records only in their prefixes, which are equally long. */
export function uncommittedStream({ at, account, id }: ListedContents, range: StreamRange): RowStream<ListRow> {
  const { grouping } = range;
  const [records, own] = [blobKeyPrefix(account, id, ''), uncommittedKeyPrefix(account, id, '')];
  const toOwn = (key: Key) => replacePrefix(key, records, own);
  return pageStream(async (from, limit) => {
    const { rows, next } = await at.page({ from, to: toOwn(range.to) }, { limit, grouping });
    const found: ListRow[] = [];
    for (const first of rows) {
      const unexpired = await findUnexpired(at, first, grouping);
      if (!unexpired) continue;
      const key = replacePrefix(unexpired.row.key, own, records);
      found.push({ ...unexpired, name: decodeKeySuffix(key, records), position: prefixEnd(key) });
    }
    return { rows: found, next };
  }, toOwn(range.from));
}

/** These uncommitted blocks, or if they have expired, the next unexpired ones under the same common prefix. */
async function findUnexpired(
  at: PagedSnapshot,
  first: Row,
  grouping: KeyGrouping | undefined,
): Promise<{ row: Row; uncommitted: UncommittedBlocks } | undefined> {
  const decodeUnexpired = (row: Row) => {
    const uncommitted = decodeUncommitted(row);
    return isExpired(uncommitted, at.now) ? undefined : { row, uncommitted };
  };
  const found = decodeUnexpired(first);
  const group = grouping && groupPrefix(first.key, grouping);
  if (found || group === undefined) return found;
  let from: Key | undefined = keyAfter(first.key);
  while (from !== undefined) {
    const { rows, next }: Page = await at.page({ from, to: prefixEnd(group) }, { limit: GROUP_ROWS });
    for (const row of rows) {
      const other = decodeUnexpired(row);
      if (other) return other;
    }
    from = next;
    await nextSlice();
  }
  return undefined;
}

/**
 * The snapshots, without those that the mark of their blob says are deleted. Snapshots under a common prefix are left out: their blobs
 * are under it, too.
 */
export function snapshotStream(source: ListedContents, range: StreamRange): RowStream<ListRow> {
  const { at, account, id } = source;
  const { grouping, after } = range;
  const [records, own] = [blobKeyPrefix(account, id, ''), snapshotKeyPrefix(account, id, '')];
  const toOwn = (key: Key) => replacePrefix(key, records, own);
  /** The last mark that was passed. */
  let mark: { readonly key: Key; readonly upTo: Timestamp } | undefined;
  const isDeleted = (key: Key, stamp: Timestamp) =>
    mark !== undefined && stamp <= mark.upTo && withoutStamp(key) === mark.key;
  const first = after ? keyAfter(snapshotKey(account, id, after.name, after.snapshot)) : toOwn(range.from);
  return pageStream(async (from, limit) => {
    if (after && from === first) {
      const upTo = await readDeletedUpTo(at, account, id, after.name);
      mark = { key: deletedUpToKey(account, id, after.name), upTo };
    }
    const { rows, next } = await at.page({ from, to: toOwn(range.to) }, { limit, grouping });
    const found: ListRow[] = [];
    let last: Timestamp | undefined;
    for (const row of rows) {
      last = undefined;
      if (grouping && groupPrefix(row.key, grouping) !== undefined) continue;
      const snapshot = stampInKey(row.key);
      if (snapshot === undefined) mark = { key: row.key, upTo: decodeDeletedUpTo(row) };
      else if (isDeleted(row.key, snapshot)) last = snapshot;
      else found.push(foundSnapshot(row, snapshot));
    }
    // However many deleted ones follow, they are skipped at once.
    const skips = next !== undefined && last !== undefined;
    return { rows: found, next: skips ? keyAfter(withStamp(mark!.key, mark!.upTo)) : next };
  }, first);

  function foundSnapshot(row: Row, snapshot: Timestamp): ListRow {
    const name = decodeKeySuffix(withoutStamp(row.key), own);
    return { name, row, position: replacePrefix(row.key, own, records), snapshot };
  }
}

function replacePrefix(key: Key, from: Key, to: Key): Key {
  return (to + key.slice(from.length)) as Key;
}
