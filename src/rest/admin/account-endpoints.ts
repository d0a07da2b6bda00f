/** Management endpoints for the accounts of a running server, used by `holdfast account` and `holdfast sas`. */
import { formatIso7 } from '../../base/time.ts';
import type { AccountDirectory, KnownAccount, StoredAccount } from '../../services/accounts/accounts.ts';
import type { AccountSettings } from '../../services/common/account-settings.ts';
import { commonErrors, errorFactory } from '../../services/common/errors.ts';
import { jsonReply, parseJsonBody, requireToken } from './guard.ts';
import type { ManagementEndpoints } from './management-endpoints.ts';

/** The JSON form of an account; scripts rely on it. */
export interface ListedAccount {
  readonly name: string;
  readonly created: string;
  readonly from: StoredAccount['from'];
  readonly isServed: boolean;
  readonly keyCount: number;
  /** Only on request. */
  readonly keys?: readonly string[];
}

export type NamedKeys = Pick<KnownAccount, 'name' | 'keys'>;

interface AccountEndpointOptions {
  readonly accounts: AccountDirectory;
  readonly token: string;
  /** Called when the sweeper has something to delete. */
  readonly onRemoved: () => void;
}

const fail = errorFactory(commonErrors);
const PATH = '/_holdfast/accounts';

export function accountEndpoints({ accounts, token, onRemoved }: AccountEndpointOptions): ManagementEndpoints {
  return {
    [`GET ${PATH}`]: requireToken(token, async ({ query }) => {
      return jsonReply(200, { accounts: listAccounts(accounts, query.keys === 'true') });
    }),
    [`POST ${PATH}`]: requireToken(token, async (call) => {
      const { name, keys } = await parseJsonBody(call);
      return jsonReply(201, withoutId(await accounts.add(requiredText('name', name), parseKeys(keys))));
    }),
    [`DELETE ${PATH}`]: requireToken(token, async ({ query }) => {
      await accounts.remove(requiredText('name', query.name), { withData: query.withdata === 'true' });
      onRemoved();
      return { status: 204 };
    }),
    [`POST ${PATH}/settings`]: requireToken(token, async (call) => {
      const { name, ...settings } = await parseJsonBody(call);
      return jsonReply(200, await accounts.set(requiredText('name', name), parseSettings(settings)));
    }),
    [`POST ${PATH}/rotate-key`]: requireToken(token, async (call) => {
      const { name, which } = await parseJsonBody(call);
      if (which !== 1 && which !== 2) throw invalidField('which', 'is 1 or 2');
      return jsonReply(200, withoutId(await accounts.rotateKey(requiredText('name', name), which)));
    }),
  };
}

export function listAccounts(accounts: AccountDirectory, withKeys: boolean): ListedAccount[] {
  return accounts.stored().map(({ id, name, from, isServed, keys }) => {
    const account = { name, created: formatIso7(id), from, isServed, keyCount: keys.length };
    return withKeys ? { ...account, keys } : account;
  });
}

/** Without the id, a bigint, which JSON does not have. */
export function withoutId({ name, keys }: KnownAccount): NamedKeys {
  return { name, keys };
}

function requiredText(field: string, value: unknown): string {
  if (typeof value !== 'string' || value === '') throw invalidField(field, 'is missing');
  return value;
}

function parseSettings(sent: Readonly<Record<string, unknown>>): Partial<AccountSettings> {
  const settings: { -readonly [Name in keyof AccountSettings]?: AccountSettings[Name] } = {};
  for (const name of ['containerRetentionDays', 'shareRetentionDays'] as const) {
    const days = sent[name];
    if (days === undefined) continue;
    if (typeof days !== 'number') throw invalidField(name, 'is a number');
    settings[name] = days;
  }
  return settings;
}

function parseKeys(keys: unknown): readonly string[] | undefined {
  if (keys === undefined) return undefined;
  if (Array.isArray(keys) && keys.every((key) => typeof key === 'string')) return keys;
  throw invalidField('keys', 'is a list of strings');
}

function invalidField(field: string, fault: string) {
  return fail('InvalidInput', undefined, `${field} ${fault}.`);
}
