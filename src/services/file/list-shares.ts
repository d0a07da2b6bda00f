/** List Shares. */
import { decodeKeySuffix, keyAfter } from '../../partition/keys.ts';
import type { Instant, Row, Snapshot } from '../../partition/partition.ts';
import { SNAPSHOTS_MAX } from '../../rules/file/share-snapshots.ts';
import { type LeaseState, leaseState } from '../../rules/lease.ts';
import { type DeletedName, remainingDays } from '../common/deleted-names.ts';
import { type ListInput, type Named, type NameSource, readPage } from '../common/list-pages.ts';
import { pageOfNames } from '../common/name-pages.ts';
import { pageStream, type StreamRange } from '../common/row-streams.ts';
import type { Storage } from '../common/storage.ts';
import type { DeletedShare } from './deleted-shares.ts';
import { decodeShare, nameKey, nameKeyPrefix, propertiesKey, type Share, snapshotKey, snapshotsIn } from './rows.ts';
import { type FoundShare, foundShare, foundSnapshot } from './share-reads.ts';
import { decodeSnapshot } from './snapshot-rows.ts';

/** The properties of all rows of a page are in memory at once, each as long as its metadata. */
const SHARES_PER_READ = 1_000;
/** Each may have 200 snapshots. */
const SHARES_WITH_SNAPSHOTS_PER_READ = 5;

export interface ListedShare {
  readonly name: string;
  readonly share: FoundShare;
  readonly leaseState: LeaseState;
  /** Undefined: it is the share itself. */
  readonly snapshot?: Instant | undefined;
  /** Undefined: it is not deleted. */
  readonly deleted?: (DeletedName & { readonly remainingDays: number }) | undefined;
}

interface ShareRow extends Named {
  readonly share: Share;
  /** The row of the properties, or of the snapshot. */
  readonly properties: Row;
  readonly deleted?: DeletedName;
}

/**
 * Emits the shares of a page slice by slice, and returns the marker of the next page. `deleted`: with those that can be restored. `snapshots`: each
 * share comes after its snapshots, the oldest of which is the first.
 */
export async function listShares(
  storage: Storage,
  input: ListInput & { readonly deleted?: boolean; readonly snapshots?: boolean },
  emit: (shares: readonly ListedShare[]) => void,
): Promise<string> {
  const { account, partition } = storage;
  return partition.read(async (at) => {
    const range = { account, service: 'file', withDeleted: input.deleted ?? false } as const;
    const start = nameKeyPrefix(account, '');
    const names: NameSource<ShareRow, ListedShare> = {
      under: (prefix) => nameKeyPrefix(account, prefix),
      at: (name) => nameKey(account, name),
      after: (name) => keyAfter(nameKey(account, name)),
      open: ({ from, to, after }) =>
        pageStream(async (first, limit) => {
          const options = {
            limit: Math.min(limit, input.snapshots ? SHARES_WITH_SNAPSHOTS_PER_READ : SHARES_PER_READ),
          };
          const { rows, next } = await pageOfNames(at, range, { from: first, to }, options);
          const shares = rows.map((row) =>
            row.deleted ? { account, ...(row.deleted as DeletedShare) } : decodeShare(account, row),
          );
          const found = await at.getMany(shares.map(({ id }) => propertiesKey(account, id)));
          const listed = rows.map(
            ({ key, deleted }, i): ShareRow => ({
              name: deleted?.name ?? decodeKeySuffix(key, start),
              ...(deleted && { deleted, keySuffix: key.slice(start.length) }),
              share: shares[i]!,
              properties: found[i]!,
            }),
          );
          return { rows: input.snapshots ? await withSnapshots(at, listed, after) : listed, next };
        }, from),
      item({ name, share: row, properties, snapshot, deleted: gone }) {
        if (snapshot !== undefined) {
          const share = foundSnapshot(row, decodeSnapshot(properties));
          return { name, share, snapshot, leaseState: leaseState(share.lease, at.now) };
        }
        const share = foundShare(row, properties);
        const deleted = gone && { ...gone, remainingDays: remainingDays(gone, at.now) };
        // As recorded: the lease of a deleted share is broken.
        return { name, share, leaseState: deleted ? 'broken' : leaseState(share.lease, at.now), deleted };
      },
      bytesOf: ({ properties }) => properties.value.length,
    };
    // Without a delimiter there are no common prefixes.
    return readPage(names, input, '', (items) => emit(items as readonly ListedShare[]));
  });
}

async function withSnapshots(
  at: Snapshot,
  shares: readonly ShareRow[],
  after: StreamRange['after'],
): Promise<ShareRow[]> {
  const lists = await Promise.all(
    shares.map(async (row) => {
      if (row.deleted || row.share.newest === 0) return [row];
      const range = snapshotsIn(row.share);
      const from = row.name === after?.name ? keyAfter(snapshotKey(row.share, after.snapshot)) : range.from;
      const snapshots = await at.scan({ from, to: range.to }, { limit: SNAPSHOTS_MAX });
      return [...snapshots.map((each) => ({ ...row, properties: each, snapshot: decodeSnapshot(each).second })), row];
    }),
  );
  return lists.flat();
}
