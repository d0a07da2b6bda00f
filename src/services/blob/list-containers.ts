/** List Containers. */
import { decodeKeySuffix, type Key, keyAfter, type Range } from '../../partition/keys.ts';
import type { Page, PagedSnapshot, PageOptions, Row } from '../../partition/partition.ts';
import { type LeaseState, leaseState } from '../../rules/lease.ts';
import { LOGS_CONTAINER } from '../../rules/names.ts';
import type { WithVersion } from '../common/etagged-rows.ts';
import { decodeName } from '../common/names.ts';
import type { AccountId, Storage } from '../common/storage.ts';
import {
  type DeletedContainer,
  decodeDeletedContainer,
  deletedKeyPrefix,
  remainingDays,
} from './deleted-containers.ts';
import { type ListInput, type Named, type NameSource, readPage } from './list-pages.ts';
import { pageStream } from './list-streams.ts';
import { type ContainerProperties, decodeProperties, nameKey, nameKeyPrefix, propertiesKey } from './rows.ts';

/** The properties of all rows of a page are in memory at once, each as long as its metadata. */
const CONTAINERS_PER_READ = 1_000;

export interface ListedContainer {
  readonly name: string;
  readonly container: WithVersion<ContainerProperties>;
  readonly leaseState: LeaseState;
  /** Undefined: it is not deleted. */
  readonly deleted?: (DeletedContainer & { readonly remainingDays: number }) | undefined;
}

interface FoundContainer extends Named {
  readonly properties: Row;
  readonly deleted?: DeletedContainer;
}

/** Emits and returns as `listBlobs` does. `system`: with the container of the logs; `deleted`: with those that can be restored. */
export async function listContainers(
  storage: Storage,
  input: ListInput & { readonly system?: boolean; readonly deleted?: boolean },
  emit: (containers: readonly ListedContainer[]) => void,
): Promise<string> {
  const { account, partition } = storage;
  return partition.read(async (at) => {
    const read = input.deleted ? pageWithDeleted : pageOfNames;
    const [start, logs] = [nameKeyPrefix(account, ''), nameKey(account, LOGS_CONTAINER)];
    const names: NameSource<FoundContainer, ListedContainer> = {
      under: (prefix) => nameKeyPrefix(account, prefix),
      at: (name) => nameKey(account, name),
      after: (name) => keyAfter(nameKey(account, name)),
      open: ({ from, to }) =>
        pageStream(async (first, limit) => {
          const options = { limit: Math.min(limit, CONTAINERS_PER_READ) };
          const { rows: all, next } = await read(at, account, { from: first, to }, options);
          const rows = input.system ? all : all.filter(({ key }) => key !== logs);
          const found = await at.getMany(rows.map((row) => propertiesKey(account, row.deleted?.id ?? decodeName(row))));
          return {
            rows: rows.map(({ key, deleted }, i) => ({
              name: deleted?.name ?? decodeKeySuffix(key, start),
              ...(deleted && { deleted, keySuffix: key.slice(start.length) }),
              properties: found[i]!,
            })),
            next,
          };
        }, from),
      item({ name, properties, deleted: gone }) {
        const container = decodeProperties(properties);
        const deleted = gone && { ...gone, remainingDays: remainingDays(gone, at.now) };
        // As recorded: the lease of a deleted container has ended.
        return { name, container, leaseState: deleted ? 'expired' : leaseState(container.lease, at.now), deleted };
      },
      bytesOf: ({ properties }) => properties.value.length,
    };
    // Without a delimiter there are no common prefixes.
    return readPage(names, input, '', (items) => emit(items as readonly ListedContainer[]));
  });
}

/** A name row; or a deleted container, under the key of its name and the timestamp of the deletion. */
type ContainerRow = Row & { readonly deleted?: DeletedContainer };

async function pageOfNames(
  at: PagedSnapshot,
  _: AccountId,
  range: Range,
  options: PageOptions,
): Promise<TypedPage<ContainerRow>> {
  return at.page(range, options);
}

/** After a name, its deleted containers. The keys of the two differ only in their prefixes, which are equally long. */
async function pageWithDeleted(
  at: PagedSnapshot,
  account: AccountId,
  { from, to }: Range,
  options: PageOptions,
): Promise<TypedPage<ContainerRow>> {
  const [namePrefix, deletedPrefix] = [nameKeyPrefix(account, ''), deletedKeyPrefix(account)];
  const toDeletedKey = (key: Key) => (deletedPrefix + key.slice(namePrefix.length)) as Key;
  const toNameKey = (key: Key) => (namePrefix + key.slice(deletedPrefix.length)) as Key;
  const [names, gone] = await Promise.all([
    at.page({ from, to }, options),
    at.page({ from: toDeletedKey(from), to: toDeletedKey(to) }, options),
  ]);
  const restorable = gone.rows.flatMap((row) => {
    const deleted = decodeDeletedContainer(row);
    return deleted.until > at.now ? [{ ...row, key: toNameKey(row.key), deleted }] : [];
  });
  return mergePages(
    { rows: names.rows, next: names.next },
    { rows: restorable, next: gone.next && toNameKey(gone.next) },
  );
}

interface TypedPage<Found extends Row> extends Page {
  readonly rows: readonly Found[];
}

/** In the order of the keys. After the end of the shorter page, the other one may have rows that belong in between. */
function mergePages<Found extends Row>(one: TypedPage<Found>, other: TypedPage<Found>): TypedPage<Found> {
  const [next] = [one.next, other.next].filter((key) => key !== undefined).sort();
  const rows = [...one.rows, ...other.rows].filter(({ key }) => next === undefined || key < next);
  rows.sort((first, second) => (first.key < second.key ? -1 : 1));
  return { rows, next };
}
