/** holdfast account */
import { resolve } from 'node:path';
import type { ListedAccount, NamedKeys } from '../rest/admin/account-endpoints.ts';
import { configOf } from '../server/config.ts';
import { connectionStringOf, type Origins, originOf } from '../server/endpoints.ts';
import type { AccountCommand } from './account-flags.ts';
import { type Administration, administer } from './admin-client.ts';

/** Where a server that is started without flags will be. */
export const USUAL_ORIGINS: Origins = Object.fromEntries(
  configOf().endpoints.map(({ service, host, port }) => [service, originOf('http', host, port)]),
);

/** What is to be printed. */
export function runAccount(command: AccountCommand): Promise<string> {
  const { partition, location } = command;
  return administer(partition === undefined ? resolve(location) : { partition }, (accounts) => act(accounts, command));
}

async function act(accounts: Administration, command: AccountCommand): Promise<string> {
  const { json } = command;
  switch (command.action) {
    case 'list': {
      const list = await accounts.list(command.showKeys);
      return json ? JSON.stringify(list) : textOf(list);
    }
    case 'add':
      return keysText(await accounts.add(command.name, command.keys), accounts.origins, json);
    case 'rotate-key':
      return keysText(await accounts.rotateKey(command.name, command.which), accounts.origins, json);
    case 'remove':
      await accounts.remove(command.name, command.withData);
      return json ? JSON.stringify({ name: command.name, removed: true }) : `The account ${command.name} is removed.`;
  }
}

function textOf(list: readonly ListedAccount[]): string {
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

function keysText(account: NamedKeys, origins: Origins | undefined, json: boolean): string {
  const connectionString = connectionStringOf(account, origins ?? USUAL_ORIGINS);
  if (json) return JSON.stringify({ ...account, connectionString });
  const keys = account.keys.map((key, index) => `key ${index + 1}              ${key}`);
  return [`account            ${account.name}`, ...keys, `connection string  ${connectionString}`].join('\n');
}
