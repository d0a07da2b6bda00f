/** The changes of the account rows at a start. */
import { keysUnder } from '../../partition/keys.ts';
import type { Partition } from '../../partition/partition.ts';
import {
  accountKey,
  DEVELOPMENT_ACCOUNT,
  decodeAccount,
  hasDefaultAccount,
  putAccount,
  removedAccountId,
  removedAccountsIn,
  scanAll,
} from '../common/account-rows.ts';
import type { AccountId } from '../common/storage.ts';
import type { ServedAccounts } from './accounts.ts';

/** Creates the accounts of this start, and sets their keys. */
export async function ensureAccounts(
  partition: Partition,
  { environment, developmentKeys }: ServedAccounts,
): Promise<void> {
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
 * Removed accounts, and whether each is empty. Requests of earlier processes have ended, so the row of an empty account is removed;
 * an account with rows is swept by this process, and its row is removed by the next one. In a shared store a request of another
 * process may still add rows to the account: no row is ever removed.
 */
export async function findRemovedAccounts(
  partition: Partition,
  isExclusive: boolean,
): Promise<Map<AccountId, { readonly isEmpty: boolean }>> {
  const found = new Map<AccountId, { readonly isEmpty: boolean }>();
  for (const { key } of await partition.read((at) => scanAll(at, removedAccountsIn()))) {
    const id = removedAccountId(key);
    const { value: isEmpty } = await partition.transact(key, async (tx) => {
      if ((await tx.scan(keysUnder([id]), { limit: 1 })).length > 0) return false;
      if (isExclusive) tx.remove(key);
      return true;
    });
    found.set(id, { isEmpty });
  }
  return found;
}
