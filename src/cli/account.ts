/** `holdfast account`: lists, adds and removes accounts, and rotates their keys. */
import { resolve } from 'node:path';
import type { ListedAccount, NamedKeys } from '../rest/admin/account-endpoints.ts';
import { resolveConfig } from '../server/config.ts';
import { formatConnectionString, formatOrigin, type Origins } from '../server/endpoints.ts';
import type { AccountSettings } from '../services/common/account-settings.ts';
import type { AccountCommand } from './account-flags.ts';
import { type AdminClient, withAdminClient } from './admin-client.ts';

/** Where a server listens that is started without flags. */
export const DEFAULT_ORIGINS: Origins = Object.fromEntries(
  resolveConfig().endpoints.map(({ service, host, port }) => [service, formatOrigin('http', host, port)]),
);

/** Returns the text to print. */
export function runAccount(command: AccountCommand): Promise<string> {
  const { partition, location } = command;
  return withAdminClient(partition === undefined ? resolve(location) : { partition }, (accounts) =>
    runAction(accounts, command),
  );
}

async function runAction(accounts: AdminClient, command: AccountCommand): Promise<string> {
  const { json } = command;
  switch (command.action) {
    case 'list': {
      const list = await accounts.list(command.showKeys);
      return json ? JSON.stringify(list) : formatAccounts(list);
    }
    case 'add':
      return formatKeys(await accounts.add(command.name, command.keys), accounts.origins, json);
    case 'rotate-key':
      return formatKeys(await accounts.rotateKey(command.name, command.which), accounts.origins, json);
    case 'set': {
      const { name, settings } = command;
      const all = await accounts.set(name, settings);
      return json ? JSON.stringify({ name, ...all }) : formatSettings(name, settings);
    }
    case 'remove':
      await accounts.remove(command.name, command.withData);
      return json ? JSON.stringify({ name: command.name, removed: true }) : `The account ${command.name} is removed.`;
  }
}

/** One line for each setting that was changed. */
function formatSettings(name: string, changed: Partial<AccountSettings>): string {
  const { containerRetentionDays, shareRetentionDays } = changed;
  return [
    ...formatRetention(name, 'containers', containerRetentionDays),
    ...formatRetention(name, 'shares', shareRetentionDays),
  ].join('\n');
}

function formatRetention(name: string, what: string, days: number | undefined): string[] {
  if (days === undefined) return [];
  if (days === 0) return [`The account ${name} deletes ${what} at once.`];
  return [`The account ${name} keeps deleted ${what} for ${days === 1 ? 'one day' : `${days} days`}.`];
}

function formatAccounts(list: readonly ListedAccount[]): string {
  if (list.length === 0) return 'There are no accounts: holdfast account add <name> makes one.';
  const width = Math.max(...list.map(({ name }) => name.length));
  const lines = list.flatMap(({ name, created, keyCount, keys = [], isServed, from }) => {
    const count = keyCount === 1 ? '1 key' : `${keyCount} keys`;
    const note = isServed
      ? ''
      : `  not served: named by ${from === 'default' ? 'nobody' : 'an earlier AZURITE_ACCOUNTS'}`;
    return [`${name.padEnd(width)}  ${created.slice(0, 19)}Z  ${count}${note}`, ...keys.map((key) => `  ${key}`)];
  });
  return lines.join('\n');
}

function formatKeys(account: NamedKeys, origins: Origins | undefined, json: boolean): string {
  const connectionString = formatConnectionString(account, origins ?? DEFAULT_ORIGINS);
  if (json) return JSON.stringify({ ...account, connectionString });
  const keys = account.keys.map((key, index) => `key ${index + 1}              ${key}`);
  return [`account            ${account.name}`, ...keys, `connection string  ${connectionString}`].join('\n');
}
