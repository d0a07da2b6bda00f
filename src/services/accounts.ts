import { encodeKey } from '../partition/keys.ts';
import type { Partition } from '../partition/partition.ts';
import { decodeValue, encodeValue } from '../partition/values.ts';
import type { AccountId } from './storage.ts';

/** Account name -> id. An id is never used again, so that a removed account's rows do not come back with its name. */
export type Accounts = ReadonlyMap<string, AccountId>;

/** Makes the accounts that are not there yet. */
export async function openAccounts(partition: Partition, names: Iterable<string>): Promise<Accounts> {
  const accounts = new Map<string, AccountId>();
  for (const name of names) {
    const key = encodeKey(['account', name]);
    const { value } = await partition.transact(key, async (tx) => {
      const row = await tx.get(key);
      if (row) return BigInt(decodeValue<{ id: string }>(row).id);
      tx.put(key, encodeValue({ id: String(tx.stamp) }));
      return tx.stamp;
    });
    accounts.set(name, value);
  }
  return accounts;
}
