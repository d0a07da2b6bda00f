/** Flags, environment and the library's options become one frozen Config. */
import { resolve } from 'node:path';

/** Something that the user can put right: its message is one line that says what and how. */
export class StartError extends Error {
  override readonly name = 'StartError';
}

export interface Account {
  readonly name: string;
  /** One or two, in base64. */
  readonly keys: readonly string[];
}

export const logLevels = ['silent', 'error', 'warn', 'info', 'debug'] as const;
export type LogLevel = (typeof logLevels)[number];
export const logFormats = ['text', 'json'] as const;
export type LogFormat = (typeof logFormats)[number];

export interface LogOptions {
  readonly level?: LogLevel;
  readonly format?: LogFormat;
  /** Where the log goes instead of the console. */
  readonly file?: string;
}

/** What `start()` takes; everything has a default. */
export interface StartOptions {
  /** Keep all data in memory, and lose it at the end. */
  readonly inMemory?: boolean;
  /** The folder of the data: ./holdfast-data. */
  readonly location?: string;
  readonly blobHost?: string;
  /** 0 picks a free port. */
  readonly blobPort?: number;
  readonly blobKeepAliveSeconds?: number;
  /** Instead of devstoreaccount1. */
  readonly accounts?: readonly Account[];
  /** Let tests move the server's time and empty the server. */
  readonly testClock?: boolean;
  /** Nothing is logged without it. */
  readonly log?: LogOptions;
}

export interface Config {
  /** An absolute path; undefined: in memory. */
  readonly location: string | undefined;
  readonly blobHost: string;
  readonly blobPort: number;
  readonly blobKeepAliveSeconds: number;
  readonly accounts: readonly Account[];
  readonly testClock: boolean;
  readonly log: { readonly level: LogLevel; readonly format: LogFormat; readonly file: string | undefined };
}

/** The account that every Azure SDK means by UseDevelopmentStorage=true. */
export const developmentAccount: Account = {
  name: 'devstoreaccount1',
  keys: ['Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=='],
};

export function configOf(options: StartOptions = {}): Config {
  if (options.inMemory && options.location !== undefined) {
    throw new StartError(
      'Data is kept either in memory (inMemoryPersistence) or in a folder (location): leave one out.',
    );
  }
  const { blobPort = 10_000 } = options;
  if (!Number.isInteger(blobPort) || blobPort < 0 || blobPort > 65_535) {
    throw new StartError(`blobPort: ${blobPort} is not a port: it is a whole number from 0 to 65535.`);
  }
  const accounts = options.accounts ?? [developmentAccount];
  const fault = accountsFault(accounts);
  if (fault) throw new StartError(`accounts: ${fault}.`);
  const { level = options.log ? 'info' : 'silent', format = 'text', file } = options.log ?? {};
  return Object.freeze({
    location: options.inMemory ? undefined : resolve(options.location ?? 'holdfast-data'),
    blobHost: options.blobHost ?? '127.0.0.1',
    blobPort,
    blobKeepAliveSeconds: options.blobKeepAliveSeconds ?? 5,
    accounts: Object.freeze(accounts.map(({ name, keys }) => Object.freeze({ name, keys: Object.freeze([...keys]) }))),
    testClock: options.testClock ?? false,
    log: Object.freeze({ level, format, file: file === undefined ? undefined : resolve(file) }),
  });
}

/** AZURITE_ACCOUNTS: name:key[:key2], several separated by semicolons. */
export function parseAccounts(text: string): readonly Account[] {
  const entries = text.split(';').map((entry) => entry.trim());
  while (entries.at(-1) === '') entries.pop();
  const accounts = entries.map((entry) => {
    const [name = '', ...keys] = entry.split(':').map((part) => part.trim());
    return { name, keys };
  });
  const fault = accountsFault(accounts);
  if (fault)
    throw new StartError(`AZURITE_ACCOUNTS: ${fault}. It is name:key[:key2], several separated by semicolons.`);
  return accounts;
}

/** First segments of paths that no account can have. */
const OWN_PATHS = new Set(['health', '_holdfast']);
const ACCOUNT_NAME = /^[A-Za-z0-9_-]{1,63}$/;
const BASE64 =
  /^(?:[A-Za-z0-9+/]{4})+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$|^[A-Za-z0-9+/]{2}==$|^[A-Za-z0-9+/]{3}=$/;

/** Says which entry by its number only: where parts are mixed up, the name may be a key. */
function accountsFault(accounts: readonly Account[]): string | undefined {
  if (accounts.length === 0) return 'it names no account';
  const names = new Set<string>();
  for (const [index, { name, keys }] of accounts.entries()) {
    const entry = `entry ${index + 1}`;
    if (name === '') return `${entry} has no account name`;
    if (!ACCOUNT_NAME.test(name)) return `${entry}: an account name is 1 to 63 letters, digits, - and _`;
    if (OWN_PATHS.has(name)) return `${entry}: ${name} is where the server's own endpoints are`;
    if (name.endsWith('-secondary')) return `${entry}: the ending -secondary belongs to secondary endpoints`;
    if (keys.length === 0) return `${entry} has no key`;
    if (keys.length > 2) return `${entry} has ${keys.length} keys, and an account has one or two`;
    const wrong = keys.findIndex((key) => !BASE64.test(key));
    if (wrong >= 0) return `${entry}: key ${wrong + 1} is not base64`;
    if (names.has(name)) return `${entry} repeats the name of an earlier one`;
    names.add(name);
  }
  return undefined;
}
