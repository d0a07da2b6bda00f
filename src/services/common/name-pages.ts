/** Pages of name rows, with or without the soft-deleted names. */
import type { Key, Range } from '../../partition/keys.ts';
import type { Page, PagedSnapshot, PageOptions, Row } from '../../partition/partition.ts';
import { type DeletedName, decodeDeletedName, deletedKeyPrefix, type RestorableService } from './deleted-names.ts';
import { nameKeyPrefix } from './names.ts';
import type { AccountId } from './storage.ts';

/** A name row; or a deleted name, under the key of its name and the timestamp of the deletion. */
export type ListedName = Row & { readonly deleted?: DeletedName };

export interface NameRange {
  readonly account: AccountId;
  readonly service: RestorableService;
  /** Those that can be restored. */
  readonly withDeleted: boolean;
}

/** `range`: of the keys of name rows. After a name come its deleted ones: the keys of the two differ only in their prefixes, which are equally long. */
export async function pageOfNames(
  at: PagedSnapshot,
  { account, service, withDeleted }: NameRange,
  { from, to }: Range,
  options: PageOptions,
): Promise<TypedPage<ListedName>> {
  if (!withDeleted) return at.page({ from, to }, options);
  const [namePrefix, deletedPrefix] = [nameKeyPrefix(account, service, ''), deletedKeyPrefix(account, service)];
  const toDeletedKey = (key: Key) => (deletedPrefix + key.slice(namePrefix.length)) as Key;
  const toNameKey = (key: Key) => (namePrefix + key.slice(deletedPrefix.length)) as Key;
  const [names, gone] = await Promise.all([
    at.page({ from, to }, options),
    at.page({ from: toDeletedKey(from), to: toDeletedKey(to) }, options),
  ]);
  const restorable = gone.rows.flatMap((row) => {
    const deleted = decodeDeletedName(row);
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
