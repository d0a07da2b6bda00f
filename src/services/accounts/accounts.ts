/** The accounts of a store: a directory in memory that every request asks, and that says what the rows say. */
import { randomBytes } from 'node:crypto';
import { keysUnder } from '../../partition/keys.ts';
import type { Partition, Row, Transaction } from '../../partition/partition.ts';
import { encodeValue } from '../../partition/values.ts';
import { accountKeysFault, accountNameFault } from '../../rules/account-names.ts';
import {
  type AccountOrigin,
  type AccountRow,
  accountKey,
  accountsIn,
  DEVELOPMENT_ACCOUNT,
  decodeAccount,
  disableDefaultAccount,
  hasDefaultAccount,
  putAccount,
  removedAccountId,
  removedAccountKey,
  removedAccountsIn,
  scanAll,
} from '../common/account-rows.ts';
import { errorFactory, errorTable } from '../common/errors.ts';
import type { AccountId } from '../common/storage.ts';

/** It never changes: an account that was changed is another one of these. */
export interface KnownAccount {
  readonly id: AccountId;
  readonly name: string;
  /** In base64; any of them will do. */
  readonly keys: readonly string[];
}

export interface StoredAccount extends KnownAccount {
  readonly from: AccountOrigin;
  /** One that only a former environment named is not. */
  readonly isServed: boolean;
}

export interface AccountDirectory {
  /** Of those that are served. */
  find(name: string): KnownAccount | undefined;
  /** Those that are served. */
  list(): readonly KnownAccount[];
  /** Makes two keys where none are given. */
  add(name: string, keys?: readonly string[]): Promise<KnownAccount>;
  /** In one step; what it held is given back by the sweeper. */
  remove(name: string, options: { withData: boolean }): Promise<void>;
  rotateKey(name: string, which: 1 | 2): Promise<KnownAccount>;
  /** All that there are. */
  stored(): readonly StoredAccount[];
  /** Those that are gone, and of which there may be rows. */
  removed(): readonly AccountId[];
  /** Other processes may have changed them. What did not change stays the same object. */
  refresh(): Promise<void>;
}

/** Which accounts a server serves, besides those that were added by the command. */
export interface ServedAccounts {
  /** Just these, with these keys. */
  readonly environment?: readonly NewAccount[] | undefined;
  /** The keys of the development account, which is there without an environment, unless it was removed. */
  readonly developmentKeys: readonly string[];
}

export type NewAccount = Pick<KnownAccount, 'name' | 'keys'>;

const KEY_BYTES = 64;

export const accountErrors = errorTable({
  AccountAlreadyExists: [409, 'The specified account already exists.'],
  AccountHasContainers: [409, 'The specified account has containers.'],
  AccountNotFound: [404, 'The specified account does not exist.'],
  InvalidAccount: [400, 'The name or a key of the account is invalid.'],
});
const fail = errorFactory(accountErrors);

export interface AccountsOptions {
  /** Other processes work on the store at the same time. */
  readonly isShared?: boolean;
}

/** Without `serves` all accounts are as they are: for who only looks at them or changes them. */
export async function openAccounts(
  partition: Partition,
  serves?: ServedAccounts,
  { isShared = false }: AccountsOptions = {},
): Promise<AccountDirectory> {
  if (serves) await ensureAccounts(partition, serves);
  const environment = serves?.environment && new Set(serves.environment.map(({ name }) => name));
  const accounts = new Map<string, StoredAccount & { readonly version: bigint }>();
  const served = new Map<string, KnownAccount>();
  const removed = new Set<AccountId>();
  /** Gone, and nothing is left of them. */
  const swept = new Set<AccountId>();
  for (const [id, isEmpty] of await findRemovedAccounts(partition, !isShared)) (isEmpty ? swept : removed).add(id);
  await readAll();

  async function readAll(): Promise<void> {
    const [rows, gone] = await partition.read((at) =>
      Promise.all([scanAll(at, accountsIn()), scanAll(at, removedAccountsIn())]),
    );
    const names = new Set(rows.map((row) => decodeAccount(row).name));
    for (const name of [...accounts.keys()]) if (!names.has(name)) forget(name);
    for (const row of rows) applyRow(row);
    for (const id of gone.map(({ key }) => removedAccountId(key))) if (!swept.has(id)) removed.add(id);
  }

  function isServed({ name, from, keys }: AccountRow): boolean {
    if (keys.length === 0) return false;
    if (!serves || from === 'command') return true;
    return environment ? environment.has(name) : from === 'default';
  }

  function applyRow(row: Row): void {
    const account = decodeAccount(row);
    const { id, name, keys } = account;
    if (accounts.get(name)?.version === row.version) return;
    accounts.set(name, { ...account, isServed: isServed(account), version: row.version });
    if (isServed(account)) served.set(name, Object.freeze({ id, name, keys: Object.freeze(keys) }));
    else served.delete(name);
  }

  function forget(name: string): void {
    for (const known of [accounts, served]) known.delete(name);
  }

  let tail: Promise<unknown> = Promise.resolve();
  /** One at a time: what was read earlier must not come after what was read later. */
  function runExclusive<T>(work: () => Promise<T>): Promise<T> {
    const done = tail.then(work);
    tail = done.catch(() => {});
    return done;
  }

  /** However it ended, the directory says what the row says then. */
  function change<T>(name: string, fn: (tx: Transaction, row: Row | undefined) => Promise<T>): Promise<T> {
    const key = accountKey(name);
    return runExclusive(async () => {
      try {
        return (await partition.transact(key, async (tx) => fn(tx, await tx.get(key)))).value;
      } finally {
        const row = await partition.read((at) => at.get(key));
        if (row) applyRow(row);
        else forget(name);
      }
    });
  }

  return {
    find: (name) => served.get(name),
    list: () => [...served.values()].sort(byName),
    stored: () => [...accounts.values()].sort(byName),
    removed: () => [...removed],
    refresh: () => runExclusive(readAll),
    add: async (name, given) => {
      const keys = given ?? [newKey(), newKey()];
      const fault = accountNameFault(name) ?? accountKeysFault(keys);
      if (fault) throw fail('InvalidAccount', undefined, `The account cannot be added: ${fault}.`);
      return change(name, async (tx, row) => {
        if (row) throw alreadyExists(decodeAccount(row));
        putAccount(tx, { id: tx.timestamp, name, keys, from: 'command' });
        return { id: tx.timestamp, name, keys };
      });
    },
    rotateKey: (name, which) => {
      const [key, missingKey] = [newKey(), newKey()];
      return change(name, async (tx, row) => {
        const { id, from, keys: old } = decodeExisting(name, row);
        const keys = which === 1 ? [key, ...old.slice(1)] : [old[0] ?? missingKey, key];
        putAccount(tx, { id, name, keys, from });
        return { id, name, keys };
      });
    },
    remove: async (name, { withData }) => {
      const id = await change(name, async (tx, row) => {
        const account = decodeExisting(name, row);
        if (!withData && (await tx.scan(keysUnder([account.id, 'n']), { limit: 1 })).length > 0)
          throw fail(
            'AccountHasContainers',
            undefined,
            `The account ${name} has containers, queues or tables, which would go with it.`,
          );
        tx.remove(accountKey(name));
        tx.put(removedAccountKey(account.id), encodeValue({ name }));
        if (name === DEVELOPMENT_ACCOUNT) disableDefaultAccount(tx);
        return account.id;
      });
      removed.add(id);
    },
  };
}

/** Makes the accounts of this start, and gives them their keys. */
async function ensureAccounts(partition: Partition, { environment, developmentKeys }: ServedAccounts): Promise<void> {
  for (const { name, keys } of environment ?? []) {
    await partition.transact(accountKey(name), async (tx) => {
      const row = await tx.get(accountKey(name));
      const found = row && decodeAccount(row);
      const from = found?.from === 'command' ? 'command' : 'environment';
      putAccount(tx, { id: found?.id ?? tx.timestamp, name, keys, from });
    });
  }
  if (environment) return;
  const name = DEVELOPMENT_ACCOUNT;
  await partition.transact(accountKey(name), async (tx) => {
    const row = await tx.get(accountKey(name));
    const found = row && decodeAccount(row);
    const isReady = found?.from === 'command' || (found?.from === 'default' && found.keys.length > 0);
    if (isReady || !(await hasDefaultAccount(tx))) return;
    putAccount(tx, { id: found?.id ?? tx.timestamp, name, keys: developmentKeys, from: 'default' });
  });
}

/**
 * Accounts that were removed, and whether nothing is left of each. What was on its way in an earlier process has ended, so that
 * one without rows is forgotten; the others are swept in this process, and forgotten by the next. Where several processes
 * share the store a request may still be on its way that would make rows in it: none is ever forgotten.
 */
async function findRemovedAccounts(partition: Partition, mayForget: boolean): Promise<Map<AccountId, boolean>> {
  const found = new Map<AccountId, boolean>();
  for (const { key } of await partition.read((at) => scanAll(at, removedAccountsIn()))) {
    const id = removedAccountId(key);
    const { value: isEmpty } = await partition.transact(key, async (tx) => {
      if ((await tx.scan(keysUnder([id]), { limit: 1 })).length > 0) return false;
      if (mayForget) tx.remove(key);
      return true;
    });
    found.set(id, isEmpty);
  }
  return found;
}

function decodeExisting(name: string, row: Row | undefined): AccountRow {
  if (!row) throw fail('AccountNotFound', undefined, `There is no account ${name}.`);
  return decodeAccount(row);
}

function alreadyExists({ name, from }: AccountRow) {
  const why = from === 'environment' ? ', which AZURITE_ACCOUNTS has named' : '';
  return fail('AccountAlreadyExists', undefined, `There is an account ${name} already${why}.`);
}

function newKey(): string {
  return randomBytes(KEY_BYTES).toString('base64');
}

function byName(one: { readonly name: string }, other: { readonly name: string }): number {
  return one.name < other.name ? -1 : 1;
}
