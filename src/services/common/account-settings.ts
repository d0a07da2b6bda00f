/** Settings of an account that the storage protocols have no operation for: `holdfast account set` changes them. */
import { encodeKey, type Key } from '../../partition/keys.ts';
import type { Snapshot, Transaction } from '../../partition/partition.ts';
import { decodeValue, encodeValue } from '../../partition/values.ts';
import type { AccountId } from './storage.ts';

export interface AccountSettings {
  /** How long a deleted container can be restored; 0: not at all. */
  readonly containerRetentionDays: number;
  /** Likewise, a deleted share. */
  readonly shareRetentionDays: number;
}

export const RETENTION_DAYS_MAX = 365;

const DEFAULTS: AccountSettings = { containerRetentionDays: 0, shareRetentionDays: 0 };

export const isAccountSetting = (name: string): name is keyof AccountSettings => Object.hasOwn(DEFAULTS, name);

/** Beside the service properties, because emptying the account removes it with them. */
const settingsKey = (account: AccountId): Key => encodeKey([account, 's', 'account']);

export async function readAccountSettings(at: Snapshot, account: AccountId): Promise<AccountSettings> {
  const row = await at.get(settingsKey(account));
  return row ? { ...DEFAULTS, ...decodeValue<Partial<AccountSettings>>(row) } : DEFAULTS;
}

export function putAccountSettings(tx: Transaction, account: AccountId, settings: AccountSettings): void {
  tx.put(settingsKey(account), encodeValue(settings));
}
