/** Account directory: a cache of the account rows in memory, which every request asks. */
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
  putAccount,
  removedAccountId,
  removedAccountKey,
  removedAccountsIn,
  scanAll,
} from '../common/account-rows.ts';
import {
  type AccountSettings,
  isAccountSetting,
  putAccountSettings,
  RETENTION_DAYS_MAX,
  readAccountSettings,
} from '../common/account-settings.ts';
import { errorFactory, errorTable } from '../common/errors.ts';
import type { AccountId } from '../common/storage.ts';
import { ensureAccounts, findRemovedAccounts } from './startup.ts';

/** Immutable: after a change of the account, the directory returns another object. */
export interface KnownAccount {
  readonly id: AccountId;
  readonly name: string;
  /** In base64; requests can be signed by any of them. */
  readonly keys: readonly string[];
}

export interface StoredAccount extends KnownAccount {
  readonly from: AccountOrigin;
  /** False for an account that only the environment of an earlier start named. */
  readonly isServed: boolean;
}

/** The accounts that a server serves, besides those that were added by the command. */
export interface ServedAccounts {
  /** Exactly these, with these keys. */
  readonly environment?: readonly NewAccount[] | undefined;
  /** The keys of the development account, which exists without an environment, unless it was removed. */
  readonly developmentKeys: readonly string[];
}

export type NewAccount = Pick<KnownAccount, 'name' | 'keys'>;

const KEY_BYTES = 64;

const accountErrors = errorTable({
  AccountAlreadyExists: [409, 'The specified account already exists.'],
  AccountHasContainers: [409, 'The specified account has containers.'],
  AccountNotFound: [404, 'The specified account does not exist.'],
  InvalidAccount: [400, 'The name or a key of the account is invalid.'],
});
const fail = errorFactory(accountErrors);

export interface AccountsOptions {
  /** Other processes use the store at the same time. */
  readonly isShared?: boolean;
}

/** Without `serves` every account with keys counts as served: for commands that only list or change accounts. */
export async function openAccounts(
  partition: Partition,
  serves?: ServedAccounts,
  { isShared = false }: AccountsOptions = {},
): Promise<AccountDirectory> {
  if (serves) await ensureAccounts(partition, serves);
  const directory = new AccountDirectory(partition, serves, await findRemovedAccounts(partition, !isShared));
  await directory.refresh();
  return directory;
}

export class AccountDirectory {
  private readonly partition: Partition;
  private readonly serves: ServedAccounts | undefined;
  /** The names in the environment; undefined: there is none. */
  private readonly environment: ReadonlySet<string> | undefined;
  private readonly accounts = new Map<string, StoredAccount & { readonly version: bigint }>();
  /** The served ones among `accounts`, as requests get them. */
  private readonly served = new Map<string, KnownAccount>();
  /** Removed accounts that may have rows. */
  private readonly removedIds = new Set<AccountId>();
  /** Removed accounts that had no rows left when the directory was opened. They stay out of `removedIds`. */
  private readonly sweptIds = new Set<AccountId>();
  /** The end of the last read or change: they run one at a time, so that no older state overwrites a newer one. */
  private tail: Promise<unknown> = Promise.resolve();

  constructor(
    partition: Partition,
    serves: ServedAccounts | undefined,
    removedAccounts: ReadonlyMap<AccountId, { readonly isEmpty: boolean }>,
  ) {
    this.partition = partition;
    this.serves = serves;
    this.environment = serves?.environment && new Set(serves.environment.map(({ name }) => name));
    for (const [id, { isEmpty }] of removedAccounts) (isEmpty ? this.sweptIds : this.removedIds).add(id);
  }

  /** Undefined: there is no such account, or it is not served. */
  find(name: string): KnownAccount | undefined {
    return this.served.get(name);
  }

  /** The served accounts. */
  list(): readonly KnownAccount[] {
    return [...this.served.values()].sort(byName);
  }

  /** All accounts. */
  stored(): readonly StoredAccount[] {
    return [...this.accounts.values()].sort(byName);
  }

  /** Removed accounts that may have rows. */
  removed(): readonly AccountId[] {
    return [...this.removedIds];
  }

  /** Reads the rows again: other processes may have changed them. An unchanged account stays the same object. */
  refresh(): Promise<void> {
    return this.runExclusive(async () => {
      const [rows, removedRows] = await this.partition.read((at) =>
        Promise.all([scanAll(at, accountsIn()), scanAll(at, removedAccountsIn())]),
      );
      const names = new Set(rows.map((row) => decodeAccount(row).name));
      for (const name of [...this.accounts.keys()]) if (!names.has(name)) this.forget(name);
      for (const row of rows) this.applyRow(row);
      for (const id of removedRows.map(({ key }) => removedAccountId(key)))
        if (!this.sweptIds.has(id)) this.removedIds.add(id);
    });
  }

  /** Generates two keys if none are given. */
  async add(name: string, given?: readonly string[]): Promise<KnownAccount> {
    const keys = given ?? [generateKey(), generateKey()];
    const fault = accountNameFault(name) ?? accountKeysFault(keys);
    if (fault) throw fail('InvalidAccount', undefined, `The account cannot be added: ${fault}.`);
    return this.change(name, async (tx, row) => {
      if (row) throw alreadyExists(decodeAccount(row));
      putAccount(tx, { id: tx.timestamp, name, keys, from: 'command' });
      return { id: tx.timestamp, name, keys };
    });
  }

  async rotateKey(name: string, which: 1 | 2): Promise<KnownAccount> {
    const [newKey, missingKey] = [generateKey(), generateKey()];
    return this.change(name, async (tx, row) => {
      const { id, from, keys: old } = decodeExisting(name, row);
      const keys = which === 1 ? [newKey, ...old.slice(1)] : [old[0] ?? missingKey, newKey];
      putAccount(tx, { id, name, keys, from });
      return { id, name, keys };
    });
  }

  /** Only the settings that are given change; returns all of them. */
  async set(name: string, changes: Partial<AccountSettings>): Promise<AccountSettings> {
    for (const [setting, days] of Object.entries(changes)) {
      if (!isAccountSetting(setting)) throw fail('InvalidAccount', undefined, `There is no setting ${setting}.`);
      if (!Number.isInteger(days) || days < 0 || days > RETENTION_DAYS_MAX)
        throw fail('InvalidAccount', undefined, `${setting} is a number of days from 0 to ${RETENTION_DAYS_MAX}.`);
    }
    return this.change(name, async (tx, row) => {
      const { id } = decodeExisting(name, row);
      const settings = { ...(await readAccountSettings(tx, id)), ...changes };
      putAccountSettings(tx, id, settings);
      return settings;
    });
  }

  /** In one commit; the sweeper deletes the rows of the account. */
  async remove(name: string, { withData }: { withData: boolean }): Promise<void> {
    const removedId = await this.change(name, async (tx, row) => {
      const { id } = decodeExisting(name, row);
      const holds = async (kind: string) => (await tx.scan(keysUnder([id, kind]), { limit: 1 })).length > 0;
      // Names, and the deleted containers and shares that can be restored.
      if (!withData && ((await holds('n')) || (await holds('g'))))
        throw fail(
          'AccountHasContainers',
          undefined,
          `The account ${name} has containers, queues, tables or shares, or deleted ones that can be restored: --with-data (withData=true) removes them with it.`,
        );
      tx.remove(accountKey(name));
      tx.put(removedAccountKey(id), encodeValue({ name }));
      if (name === DEVELOPMENT_ACCOUNT) disableDefaultAccount(tx);
      return id;
    });
    this.removedIds.add(removedId);
  }

  /** A transaction on the account row. After it, even after a failure or an unknown outcome, the row is read again. */
  private change<T>(name: string, fn: (tx: Transaction, row: Row | undefined) => Promise<T>): Promise<T> {
    const key = accountKey(name);
    return this.runExclusive(async () => {
      try {
        return (await this.partition.transact(key, async (tx) => fn(tx, await tx.get(key)))).value;
      } finally {
        const row = await this.partition.read((at) => at.get(key));
        if (row) this.applyRow(row);
        else this.forget(name);
      }
    });
  }

  private runExclusive<T>(work: () => Promise<T>): Promise<T> {
    const done = this.tail.then(work);
    this.tail = done.catch(() => {});
    return done;
  }

  private applyRow(row: Row): void {
    const account = decodeAccount(row);
    const { id, name, keys } = account;
    if (this.accounts.get(name)?.version === row.version) return;
    const isServed = this.isServed(account);
    this.accounts.set(name, { ...account, isServed, version: row.version });
    if (isServed) this.served.set(name, Object.freeze({ id, name, keys: Object.freeze(keys) }));
    else this.served.delete(name);
  }

  private forget(name: string): void {
    this.accounts.delete(name);
    this.served.delete(name);
  }

  private isServed({ name, from, keys }: AccountRow): boolean {
    if (keys.length === 0) return false;
    if (!this.serves || from === 'command') return true;
    return this.environment ? this.environment.has(name) : from === 'default';
  }
}

function decodeExisting(name: string, row: Row | undefined): AccountRow {
  if (!row) throw fail('AccountNotFound', undefined, `There is no account ${name}.`);
  return decodeAccount(row);
}

function alreadyExists({ name, from }: AccountRow) {
  const why = from === 'environment' ? ', which AZURITE_ACCOUNTS has named' : '';
  return fail('AccountAlreadyExists', undefined, `There is an account ${name} already${why}.`);
}

function generateKey(): string {
  return randomBytes(KEY_BYTES).toString('base64');
}

function byName(one: { readonly name: string }, other: { readonly name: string }): number {
  return one.name < other.name ? -1 : 1;
}
