/** Accounts as rows; docs/adr/0002-row-schema.md has the schema. */
import { decodeKey, encodeKey, type Key, keyAfter, keysUnder, type Range } from '../../partition/keys.ts';
import type { Row, Snapshot, Transaction } from '../../partition/partition.ts';
import { decodeValue, encodeValue } from '../../partition/values.ts';
import { commonErrors, errorFactory } from './errors.ts';
import type { AccountId } from './storage.ts';

/** What created the account: the environment of a start, the command, or nothing: the development account that every SDK knows. */
export type AccountOrigin = 'environment' | 'default' | 'command';

export interface AccountRow {
  /** The timestamp of the commit that created it: never reused, so a new account does not get the rows of a removed one. */
  readonly id: AccountId;
  readonly name: string;
  /** In base64. Rows of the first versions have none, because all keys came from the environment. */
  readonly keys: readonly string[];
  readonly from: AccountOrigin;
}

export const DEVELOPMENT_ACCOUNT = 'devstoreaccount1';

export const accountKey = (name: string): Key => encodeKey(['account', name]);
export const accountsIn = (): Range => keysUnder(['account']);
/** The tombstone of a removed account, as long as it may have rows. */
export const removedAccountKey = (id: AccountId): Key => encodeKey(['removed', id]);
export const removedAccountsIn = (): Range => keysUnder(['removed']);
export const removedAccountId = (key: Key): AccountId => decodeKey(key)[1] as AccountId;
export const removedAccountName = (row: Row): string => decodeValue<{ name: string }>(row).name;
/** Exists once the development account was removed, so that a start does not create it again. */
const DEFAULT_DISABLED_KEY = encodeKey(['without default account']);

const SLICE = { limit: 200 };
const fail = errorFactory(commonErrors);

export function putAccount(tx: Transaction, { id, name, keys, from }: AccountRow): void {
  tx.put(accountKey(name), encodeValue({ id: id.toString(), keys, from }));
}

export function decodeAccount(row: Row): AccountRow {
  const name = decodeKey(row.key)[1] as string;
  const { id, keys, from } = decodeValue<{ id: string; keys?: readonly string[]; from?: AccountOrigin }>(row);
  const first = name === DEVELOPMENT_ACCOUNT ? 'default' : 'environment';
  return { id: BigInt(id), name, keys: keys ?? [], from: from ?? first };
}

export async function hasDefaultAccount(at: Snapshot): Promise<boolean> {
  return (await at.get(DEFAULT_DISABLED_KEY)) === undefined;
}

export function disableDefaultAccount(tx: Transaction): void {
  tx.put(DEFAULT_DISABLED_KEY, encodeValue({}));
}

/** For writes that check no other row of the account: after its removal nothing is added to it. */
export async function checkNotRemoved(tx: Transaction, account: AccountId): Promise<void> {
  if (await tx.get(removedAccountKey(account))) throw fail('AccountIsDisabled');
}

/** For rows of the store itself, which are few. */
export async function scanAll(at: Snapshot, { from, to }: Range): Promise<Row[]> {
  const all: Row[] = [];
  for (let next = from; ; ) {
    const rows = await at.scan({ from: next, to }, SLICE);
    const last = rows.at(-1);
    if (!last) return all;
    all.push(...rows);
    next = keyAfter(last.key);
  }
}
