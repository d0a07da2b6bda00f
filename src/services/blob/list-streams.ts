/** The rows of List Blobs as streams in the order of names: blob records, uncommitted blocks, snapshots; and the merge of several. */
import { nextSlice } from '../../base/time-slices.ts';
import { decodeKeySuffix, groupPrefix, type Key, type KeyGrouping, keyAfter, prefixEnd } from '../../partition/keys.ts';
import type { Page, PagedSnapshot, Row, Timestamp } from '../../partition/partition.ts';
import { type Deletion, isRetained } from '../../rules/soft-delete.ts';
import { pageStream, type RowStream, type StreamRange } from '../common/row-streams.ts';
import type { AccountId } from '../common/storage.ts';
import {
  decodeDeletedBlob,
  decodeMark,
  deletedBlobKeyPrefix,
  deletedStateKey,
  deletedStateKeyPrefix,
  hiddenUpTo,
  markKey,
  readMark,
  type SnapshotMark,
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

/** A blob record, or uncommitted blocks without one, or a snapshot. */
export interface ListRow {
  readonly name: string;
  readonly row: Row;
  /** The order of the list, among the keys of blob records: a blob comes after its snapshots. */
  readonly position: Key;
  readonly uncommitted?: UncommittedBlocks;
  readonly snapshot?: Timestamp;
  /** Soft-deleted. */
  readonly deletion?: Deletion;
  /** Of a row that has more than the blob record: the record. */
  readonly record?: string;
}

interface ListedContents {
  readonly at: PagedSnapshot;
  readonly account: AccountId;
  readonly id: ContainerId;
}

const GROUP_ROWS = 125;

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
      const row = await findInGroup(at, first, grouping, (one) => !isExpired(decodeUncommitted(one), at.now));
      if (!row) continue;
      const key = replacePrefix(row.key, own, records);
      const uncommitted = decodeUncommitted(row);
      found.push({ name: decodeKeySuffix(key, records), row, uncommitted, position: prefixEnd(key) });
    }
    return { rows: found, next };
  }, toOwn(range.from));
}

/** This row, or if it does not count, the next one under the same common prefix that does. */
async function findInGroup(
  at: PagedSnapshot,
  first: Row,
  grouping: KeyGrouping | undefined,
  counts: (row: Row) => boolean,
): Promise<Row | undefined> {
  if (counts(first)) return first;
  const group = grouping && groupPrefix(first.key, grouping);
  let from: Key | undefined = group && keyAfter(first.key);
  while (from !== undefined) {
    const { rows, next }: Page = await at.page({ from, to: prefixEnd(group!) }, { limit: GROUP_ROWS });
    const found = rows.find(counts);
    if (found) return found;
    from = next;
    await nextSlice();
  }
  return undefined;
}

/** What is listed besides what exists. */
export interface ListedStates {
  readonly snapshots: boolean;
  /** With what is soft-deleted. */
  readonly deleted: boolean;
  /** Without what exists. */
  readonly onlyDeleted: boolean;
}

/**
 * The snapshots, as the mark of their blob has them. Those under a common prefix are left out: their blobs, or their deleted blobs, are
 * under it, too.
 */
export function snapshotStream(
  { at, account, id }: ListedContents,
  range: StreamRange,
  { deleted: withDeleted, onlyDeleted }: ListedStates,
): RowStream<ListRow> {
  const { grouping, after } = range;
  const [records, own] = [blobKeyPrefix(account, id, ''), snapshotKeyPrefix(account, id, '')];
  const toOwn = (key: Key) => replacePrefix(key, records, own);
  /** The last mark that was passed, and the last stamp that it hides. */
  let mark: { readonly key: Key; readonly kept: SnapshotMark['kept']; readonly skips: Timestamp } | undefined;
  const setMark = (key: Key, found: SnapshotMark) => {
    const kept = withDeleted && found.kept && isRetained(found.kept, at.now) ? found.kept : undefined;
    mark = { key, kept, skips: kept ? found.upTo : hiddenUpTo(found) };
  };
  const first = after ? keyAfter(snapshotKey(account, id, after.name, after.snapshot)) : toOwn(range.from);
  return pageStream(async (from, limit) => {
    if (after && from === first) {
      setMark(markKey(account, id, after.name), await readMark(at, account, id, after.name));
    }
    const { rows, next } = await at.page({ from, to: toOwn(range.to) }, { limit, grouping });
    const found: ListRow[] = [];
    let isSkipping = false;
    for (const row of rows) {
      isSkipping = false;
      if (grouping && groupPrefix(row.key, grouping) !== undefined) continue;
      const snapshot = stampInKey(row.key);
      if (snapshot === undefined) setMark(row.key, decodeMark(row));
      else {
        const own = mark && withoutStamp(row.key) === mark.key ? mark : undefined;
        const deletion = own?.kept && snapshot <= own.kept.upTo ? own.kept : undefined;
        isSkipping = own !== undefined && snapshot <= own.skips;
        if (!isSkipping && (deletion || !onlyDeleted)) found.push(foundSnapshot(row, snapshot, deletion));
      }
    }
    // However many that are gone follow, they are skipped at once.
    return { rows: found, next: next && isSkipping ? keyAfter(withStamp(mark!.key, mark!.skips)) : next };
  }, first);

  function foundSnapshot(row: Row, snapshot: Timestamp, deletion: Deletion | undefined): ListRow {
    const name = decodeKeySuffix(withoutStamp(row.key), own);
    return { name, row, position: replacePrefix(row.key, own, records), snapshot, ...(deletion && { deletion }) };
  }
}

/** The soft-deleted blobs. */
export function deletedBlobStream({ at, account, id }: ListedContents, range: StreamRange): RowStream<ListRow> {
  const { grouping } = range;
  const [records, own] = [blobKeyPrefix(account, id, ''), deletedBlobKeyPrefix(account, id, '')];
  const toOwn = (key: Key) => replacePrefix(key, records, own);
  return pageStream(async (from, limit) => {
    const { rows, next } = await at.page({ from, to: toOwn(range.to) }, { limit, grouping });
    const found: ListRow[] = [];
    for (const first of rows) {
      const row = await findInGroup(at, first, grouping, (one) => isRetained(decodeDeletedBlob(one), at.now));
      if (!row) continue;
      const key = replacePrefix(row.key, own, records);
      const name = decodeKeySuffix(key, records);
      const { record, ...deletion } = decodeDeletedBlob(row);
      found.push({ name, row, position: prefixEnd(key), deletion, record });
    }
    return { rows: found, next };
  }, toOwn(range.from));
}

/** The soft-deleted snapshots and replaced states. Those under a common prefix are left out, as snapshots are. */
export function deletedStateStream({ at, account, id }: ListedContents, range: StreamRange): RowStream<ListRow> {
  const { grouping, after } = range;
  const [records, own] = [blobKeyPrefix(account, id, ''), deletedStateKeyPrefix(account, id, '')];
  const toOwn = (key: Key) => replacePrefix(key, records, own);
  const first = after ? keyAfter(deletedStateKey(account, id, after.name, after.snapshot)) : toOwn(range.from);
  return pageStream(async (from, limit) => {
    const { rows, next } = await at.page({ from, to: toOwn(range.to) }, { limit, grouping });
    const found: ListRow[] = [];
    for (const row of rows) {
      const { record, ...deletion } = decodeDeletedBlob(row);
      if ((grouping && groupPrefix(row.key, grouping) !== undefined) || !isRetained(deletion, at.now)) continue;
      const name = decodeKeySuffix(withoutStamp(row.key), own);
      found.push({
        name,
        row,
        position: replacePrefix(row.key, own, records),
        snapshot: deletion.stamp,
        deletion,
        record,
      });
    }
    return { rows: found, next };
  }, first);
}

function replacePrefix(key: Key, from: Key, to: Key): Key {
  return (to + key.slice(from.length)) as Key;
}
