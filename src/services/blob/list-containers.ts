/** List Containers. */
import { decodeKeySuffix, keyAfter } from '../../partition/keys.ts';
import type { Row } from '../../partition/partition.ts';
import { type LeaseState, leaseState } from '../../rules/lease.ts';
import { LOGS_CONTAINER } from '../../rules/names.ts';
import { type DeletedName, remainingDays } from '../common/deleted-names.ts';
import type { WithVersion } from '../common/etagged-rows.ts';
import { type ListInput, type Named, type NameSource, readPage } from '../common/list-pages.ts';
import { pageOfNames } from '../common/name-pages.ts';
import { decodeName } from '../common/names.ts';
import { pageStream } from '../common/row-streams.ts';
import type { Storage } from '../common/storage.ts';
import { type ContainerProperties, decodeProperties, nameKey, nameKeyPrefix, propertiesKey } from './rows.ts';

/** The properties of all rows of a page are in memory at once, each as long as its metadata. */
const CONTAINERS_PER_READ = 1_000;

export interface ListedContainer {
  readonly name: string;
  readonly container: WithVersion<ContainerProperties>;
  readonly leaseState: LeaseState;
  /** Undefined: it is not deleted. */
  readonly deleted?: (DeletedName & { readonly remainingDays: number }) | undefined;
}

interface FoundContainer extends Named {
  readonly properties: Row;
  readonly deleted?: DeletedName;
}

/** Emits and returns as `listBlobs` does. `system`: with the container of the logs; `deleted`: with those that can be restored. */
export async function listContainers(
  storage: Storage,
  input: ListInput & { readonly system?: boolean; readonly deleted?: boolean },
  emit: (containers: readonly ListedContainer[]) => void,
): Promise<string> {
  const { account, partition } = storage;
  return partition.read(async (at) => {
    const range = { account, service: 'blob', withDeleted: input.deleted ?? false } as const;
    const [start, logs] = [nameKeyPrefix(account, ''), nameKey(account, LOGS_CONTAINER)];
    const names: NameSource<FoundContainer, ListedContainer> = {
      under: (prefix) => nameKeyPrefix(account, prefix),
      at: (name) => nameKey(account, name),
      after: (name) => keyAfter(nameKey(account, name)),
      open: ({ from, to }) =>
        pageStream(async (first, limit) => {
          const options = { limit: Math.min(limit, CONTAINERS_PER_READ) };
          const { rows: all, next } = await pageOfNames(at, range, { from: first, to }, options);
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
