/** The accounts of a folder, for a command: through the server that works on it, or in the folder itself if none does. */
import { type IncomingMessage, request as overHttp } from 'node:http';
import { request as overHttps } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ListedAccount, listed, type NamedKeys, namedKeys } from '../rest/admin/account-endpoints.ts';
import { type Admin, readAdmin } from '../server/admin-file.ts';
import { StartError } from '../server/config.ts';
import { formatOf } from '../server/data-directory.ts';
import { FolderInUse } from '../server/directory-lock.ts';
import type { Origins } from '../server/endpoints.ts';
import type { AccountDirectory } from '../services/accounts/accounts.ts';
import { asStorageError } from '../services/common/errors.ts';

export interface Administration {
  /** Of the server that runs; undefined: none does. */
  readonly origins: Origins | undefined;
  list(withKeys: boolean): Promise<readonly ListedAccount[]>;
  add(name: string, keys: readonly string[] | undefined): Promise<NamedKeys>;
  remove(name: string, withData: boolean): Promise<void>;
  rotateKey(name: string, which: 1 | 2): Promise<NamedKeys>;
}

const PATH = '/_holdfast/accounts';
const TIMEOUT_MILLISECONDS = 60_000;
const PATIENCE_MILLISECONDS = 5_000;
const RETRY_MILLISECONDS = 100;

/** In a folder, or in a store that servers may share. Every refusal is a StartError. */
export async function administer<T>(
  where: string | { readonly partition: string },
  work: (accounts: Administration) => Promise<T>,
): Promise<T> {
  const deadline = performance.now() + PATIENCE_MILLISECONDS;
  for (;;) {
    const admin = typeof where === 'string' ? adminOf(where) : undefined;
    try {
      if (admin && (await isRunning(admin))) return await work(running(admin));
      // If a server uses the folder after all, its lock says so.
      const { withAccounts } = await import('../index.ts');
      return await withAccounts(where, (accounts) => work(stopped(accounts)));
    } catch (error) {
      // Another command is soon through, and a server that starts can soon be asked.
      if (error instanceof FolderInUse && performance.now() < deadline) {
        await sleep(RETRY_MILLISECONDS);
        continue;
      }
      const known = asStorageError(error);
      throw known ? new StartError(known.message) : error;
    }
  }
}

function adminOf(location: string): Admin | undefined {
  if (formatOf(location) === undefined) {
    throw new StartError(
      `There is no data of Holdfast in ${location}: name its folder by --location. Accounts of a server in memory cannot be changed.`,
    );
  }
  return readAdmin(location);
}

function stopped(accounts: AccountDirectory): Administration {
  return {
    origins: undefined,
    list: async (withKeys) => listed(accounts, withKeys),
    add: async (name, keys) => namedKeys(await accounts.add(name, keys)),
    remove: (name, withData) => accounts.remove(name, { withData }),
    rotateKey: async (name, which) => namedKeys(await accounts.rotateKey(name, which)),
  };
}

function running(admin: Admin): Administration {
  return {
    origins: admin.origins,
    async list(withKeys) {
      const { accounts } = await ask<{ accounts: ListedAccount[] }>(admin, 'GET', withKeys ? '?keys=true' : '');
      return accounts;
    },
    add: (name, keys) => ask(admin, 'POST', '', { name, keys }),
    remove: (name, withData) => ask(admin, 'DELETE', `?name=${encodeURIComponent(name)}&withData=${withData}`),
    rotateKey: (name, which) => ask(admin, 'POST', '/rotate-key', { name, which }),
  };
}

/** What a killed server has left leads nowhere, or to somebody else. */
async function isRunning(admin: Admin): Promise<boolean> {
  try {
    const { status } = await send(admin, 'GET', '');
    return status === 200 || status === 403 || status >= 500;
  } catch {
    return false;
  }
}

async function ask<T>(admin: Admin, method: string, path: string, value?: object): Promise<T> {
  let answer: { status: number; body: string };
  try {
    answer = await send(admin, method, path, value);
  } catch (error) {
    throw new StartError(`The server at ${admin.url} gave no answer (${(error as Error).message}).`);
  }
  if (answer.status < 300) return (answer.body === '' ? undefined : JSON.parse(answer.body)) as T;
  throw new StartError(messageOf(answer.body) ?? `The server at ${admin.url} answered ${answer.status}.`);
}

function messageOf(body: string): string | undefined {
  try {
    return (JSON.parse(body) as { error: { message: string } }).error.message;
  } catch {
    return undefined;
  }
}

async function send(admin: Admin, method: string, path: string, value?: object) {
  const body = value && JSON.stringify(value);
  const url = new URL(`${PATH}${path}`, admin.url);
  const headers = {
    Authorization: `Bearer ${admin.token}`,
    ...(body !== undefined && { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }),
  };
  const incoming = await new Promise<IncomingMessage>((resolve, reject) => {
    const options = { method, headers, agent: false, timeout: TIMEOUT_MILLISECONDS };
    // Its certificate is often its own, and the address came from its own folder.
    const request =
      url.protocol === 'https:'
        ? overHttps(url, { ...options, rejectUnauthorized: false }, resolve)
        : overHttp(url, options, resolve);
    request.on('error', reject);
    request.on('timeout', () => request.destroy(new Error('it took too long')));
    request.end(body);
  });
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return { status: incoming.statusCode!, body: Buffer.concat(chunks).toString() };
}
