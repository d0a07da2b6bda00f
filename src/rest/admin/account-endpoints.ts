/** The accounts of a running server, for `holdfast account` and `holdfast sas`. */
import { iso7 } from '../../base/time.ts';
import type { AccountDirectory, KnownAccount, StoredAccount } from '../../services/accounts/accounts.ts';
import { commonErrors, raising } from '../../services/common/errors.ts';
import { guarded, jsonBody, jsonReply } from './guard.ts';
import type { OwnEndpoints } from './management-endpoints.ts';

/** As it goes over the wire, and to scripts. */
export interface ListedAccount {
  readonly name: string;
  readonly created: string;
  readonly from: StoredAccount['from'];
  readonly isServed: boolean;
  readonly keyCount: number;
  /** Only if they were asked for. */
  readonly keys?: readonly string[];
}

export type NamedKeys = Pick<KnownAccount, 'name' | 'keys'>;

export interface AccountEndpointOptions {
  readonly accounts: AccountDirectory;
  readonly token: string;
  /** Something is to be swept. */
  readonly onRemoved: () => void;
}

const fail = raising(commonErrors);
const PATH = '/_holdfast/accounts';

export function accountEndpoints({ accounts, token, onRemoved }: AccountEndpointOptions): OwnEndpoints {
  return {
    [`GET ${PATH}`]: guarded(token, async ({ query }) => {
      return jsonReply(200, { accounts: listed(accounts, query.keys === 'true') });
    }),
    [`POST ${PATH}`]: guarded(token, async (call) => {
      const { name, keys } = await jsonBody(call);
      return jsonReply(201, namedKeys(await accounts.add(text('name', name), optionalKeys(keys))));
    }),
    [`DELETE ${PATH}`]: guarded(token, async ({ query }) => {
      await accounts.remove(text('name', query.name), { withData: query.withdata === 'true' });
      onRemoved();
      return { status: 204 };
    }),
    [`POST ${PATH}/rotate-key`]: guarded(token, async (call) => {
      const { name, which } = await jsonBody(call);
      if (which !== 1 && which !== 2) throw invalid('which', 'is 1 or 2');
      return jsonReply(200, namedKeys(await accounts.rotateKey(text('name', name), which)));
    }),
  };
}

/** Keys are shown to who asks for them. */
export function listed(accounts: AccountDirectory, withKeys: boolean): ListedAccount[] {
  return accounts.stored().map(({ id, name, from, isServed, keys }) => {
    const account = { name, created: iso7(id), from, isServed, keyCount: keys.length };
    return withKeys ? { ...account, keys } : account;
  });
}

/** Without its id, which JSON cannot take. */
export function namedKeys({ name, keys }: KnownAccount): NamedKeys {
  return { name, keys };
}

function text(field: string, value: unknown): string {
  if (typeof value !== 'string' || value === '') throw invalid(field, 'is missing');
  return value;
}

function optionalKeys(keys: unknown): readonly string[] | undefined {
  if (keys === undefined) return undefined;
  if (Array.isArray(keys) && keys.every((key) => typeof key === 'string')) return keys;
  throw invalid('keys', 'is a list of strings');
}

function invalid(field: string, fault: string) {
  return fail('InvalidInput', undefined, `${field} ${fault}.`);
}
