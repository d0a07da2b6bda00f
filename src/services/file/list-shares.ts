/** List Shares. */
import { decodeKeySuffix, keyAfter } from '../../partition/keys.ts';
import type { Row } from '../../partition/partition.ts';
import { type LeaseState, leaseState } from '../../rules/lease.ts';
import { type DeletedName, remainingDays } from '../common/deleted-names.ts';
import { type ListInput, type Named, type NameSource, readPage } from '../common/list-pages.ts';
import { pageOfNames } from '../common/name-pages.ts';
import { pageStream } from '../common/row-streams.ts';
import type { Storage } from '../common/storage.ts';
import type { DeletedShare } from './deleted-shares.ts';
import { decodeShare, nameKey, nameKeyPrefix, propertiesKey, type Share } from './rows.ts';
import { type FoundShare, foundShare } from './share-reads.ts';

/** The properties of all rows of a page are in memory at once, each as long as its metadata. */
const SHARES_PER_READ = 1_000;

export interface ListedShare {
  readonly name: string;
  readonly share: FoundShare;
  readonly leaseState: LeaseState;
  /** Undefined: it is not deleted. */
  readonly deleted?: (DeletedName & { readonly remainingDays: number }) | undefined;
}

interface ShareRow extends Named {
  readonly share: Share;
  readonly properties: Row;
  readonly deleted?: DeletedName;
}

/** Emits the shares of a page slice by slice, and returns the marker of the next page. `deleted`: with those that can be restored. */
export async function listShares(
  storage: Storage,
  input: ListInput & { readonly deleted?: boolean },
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
      open: ({ from, to }) =>
        pageStream(async (first, limit) => {
          const options = { limit: Math.min(limit, SHARES_PER_READ) };
          const { rows, next } = await pageOfNames(at, range, { from: first, to }, options);
          const shares = rows.map((row) =>
            row.deleted ? { account, ...(row.deleted as DeletedShare) } : decodeShare(account, row),
          );
          const found = await at.getMany(shares.map(({ id }) => propertiesKey(account, id)));
          return {
            rows: rows.map(({ key, deleted }, i) => ({
              name: deleted?.name ?? decodeKeySuffix(key, start),
              ...(deleted && { deleted, keySuffix: key.slice(start.length) }),
              share: shares[i]!,
              properties: found[i]!,
            })),
            next,
          };
        }, from),
      item({ name, share: row, properties, deleted: gone }) {
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
