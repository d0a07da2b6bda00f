/** Client of the admin endpoints: changes the accounts of a folder through the server that runs on it, or in the folder itself if none does. */
import { type IncomingMessage, request as overHttp } from 'node:http';
import { request as overHttps } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ListedAccount, listAccounts, type NamedKeys, withoutId } from '../rest/admin/account-endpoints.ts';
import { type AdminFile, readAdminFile } from '../server/admin-file.ts';
import { StartError } from '../server/config.ts';
import { readSupportedFormat } from '../server/data-directory.ts';
import { DirectoryInUse } from '../server/directory-lock.ts';
import type { Origins } from '../server/endpoints.ts';
import type { AccountDirectory } from '../services/accounts/accounts.ts';
import type { AccountSettings } from '../services/common/account-settings.ts';
import { asStorageError } from '../services/common/errors.ts';

export interface AdminClient {
  /** Of the running server; undefined: none runs. */
  readonly origins: Origins | undefined;
  list(withKeys: boolean): Promise<readonly ListedAccount[]>;
  add(name: string, keys: readonly string[] | undefined): Promise<NamedKeys>;
  remove(name: string, withData: boolean): Promise<void>;
  rotateKey(name: string, which: 1 | 2): Promise<NamedKeys>;
  set(name: string, settings: Partial<AccountSettings>): Promise<AccountSettings>;
}

const PATH = '/_holdfast/accounts';
const TIMEOUT_MILLISECONDS = 60_000;
const LOCK_WAIT_MILLISECONDS = 5_000;
const RETRY_MILLISECONDS = 100;

/** For a folder, or for a shared store. Every refusal is a StartError. */
export async function withAdminClient<T>(
  where: string | { readonly partition: string },
  work: (client: AdminClient) => Promise<T>,
): Promise<T> {
  const deadline = performance.now() + LOCK_WAIT_MILLISECONDS;
  for (;;) {
    const admin =
      typeof where === 'string'
        ? findAdminFile(where, ' Accounts of a server in memory cannot be changed.')
        : undefined;
    try {
      if (admin && (await isRunning(admin))) return await work(serverClient(admin));
      // If a server uses the folder after all, the lock of the folder refuses.
      const { withAccounts } = await import('../server/open-storage.ts');
      return await withAccounts(where, (accounts) => work(offlineClient(accounts)));
    } catch (error) {
      // Another command releases the lock soon, and a server that is starting can soon be asked.
      if (error instanceof DirectoryInUse && performance.now() < deadline) {
        await sleep(RETRY_MILLISECONDS);
        continue;
      }
      const known = asStorageError(error);
      throw known ? new StartError(known.message) : error;
    }
  }
}

/** A server that runs on a folder. */
export interface RunningServer {
  readonly accounts: AdminClient;
  /** Calls a management endpoint, and throws a StartError if it refuses. */
  call<T>(method: string, target: string): Promise<T>;
}

/** For what exists only while a server runs. Every refusal is a StartError. */
export async function withRunningServer<T>(location: string, work: (server: RunningServer) => Promise<T>): Promise<T> {
  const admin = findAdminFile(location);
  if (!admin || !(await isRunning(admin))) throw new StartError(`No server runs on ${location}.`);
  const call: RunningServer['call'] = (method, target) => callServer(admin, method, target);
  return work({ accounts: serverClient(admin), call });
}

function findAdminFile(location: string, hint = ''): AdminFile | undefined {
  if (readSupportedFormat(location) === undefined)
    throw new StartError(`There is no data of Holdfast in ${location}: name its folder by --location.${hint}`);
  return readAdminFile(location);
}

function offlineClient(accounts: AccountDirectory): AdminClient {
  return {
    origins: undefined,
    list: async (withKeys) => listAccounts(accounts, withKeys),
    add: async (name, keys) => withoutId(await accounts.add(name, keys)),
    remove: (name, withData) => accounts.remove(name, { withData }),
    rotateKey: async (name, which) => withoutId(await accounts.rotateKey(name, which)),
    set: (name, settings) => accounts.set(name, settings),
  };
}

function serverClient(admin: AdminFile): AdminClient {
  return {
    origins: admin.origins,
    async list(withKeys) {
      const { accounts } = await callServer<{ accounts: ListedAccount[] }>(
        admin,
        'GET',
        `${PATH}${withKeys ? '?keys=true' : ''}`,
      );
      return accounts;
    },
    add: (name, keys) => callServer(admin, 'POST', PATH, { name, keys }),
    remove: (name, withData) =>
      callServer(admin, 'DELETE', `${PATH}?name=${encodeURIComponent(name)}&withData=${withData}`),
    rotateKey: (name, which) => callServer(admin, 'POST', `${PATH}/rotate-key`, { name, which }),
    set: (name, settings) => callServer(admin, 'POST', `${PATH}/settings`, { name, ...settings }),
  };
}

/** The file of a killed server names a port that is closed, or that another process has taken. */
async function isRunning(admin: AdminFile): Promise<boolean> {
  try {
    const { status } = await sendRequest(admin, 'GET', PATH);
    return status === 200 || status === 403 || status >= 500;
  } catch {
    return false;
  }
}

async function callServer<T>(admin: AdminFile, method: string, target: string, value?: object): Promise<T> {
  let answer: { status: number; body: string };
  try {
    answer = await sendRequest(admin, method, target, value);
  } catch (error) {
    throw new StartError(`The server at ${admin.url} gave no answer (${(error as Error).message}).`);
  }
  if (answer.status < 300) return (answer.body === '' ? undefined : JSON.parse(answer.body)) as T;
  throw new StartError(errorMessage(answer.body) ?? `The server at ${admin.url} answered ${answer.status}.`);
}

function errorMessage(body: string): string | undefined {
  try {
    return (JSON.parse(body) as { error: { message: string } }).error.message;
  } catch {
    return undefined;
  }
}

async function sendRequest(admin: AdminFile, method: string, target: string, value?: object) {
  const body = value && JSON.stringify(value);
  const url = new URL(target, admin.url);
  const headers = {
    Authorization: `Bearer ${admin.token}`,
    ...(body !== undefined && { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }),
  };
  const incoming = await new Promise<IncomingMessage>((resolve, reject) => {
    const options = { method, headers, agent: false, timeout: TIMEOUT_MILLISECONDS };
    // The certificate is often self-signed, and the address came from the server's own folder.
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
