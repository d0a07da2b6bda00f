/** Configuration: validates the options of `start()` and completes them to one frozen Config. */
import { resolve } from 'node:path';
import { parseOrigin } from '../rest/outgoing/origins.ts';
import { accountKeysFault, accountNameFault } from '../rules/account-names.ts';
import { REHYDRATION_SECONDS } from '../rules/tiers.ts';
import { type ServiceName, serviceNames } from '../services/common/names.ts';
import { defaultBodyBytesMax, defaultMemoryBytesMax } from './available-memory.ts';

/** An error that the user can correct: the message is one line that says what is wrong and what to do. */
export class StartError extends Error {
  override readonly name = 'StartError';
}

/** A service cannot listen on its address; `cause` has the reason. */
export class CannotListen extends Error {
  override readonly name = 'CannotListen';
  readonly endpoint: Endpoint;
  /** EADDRINUSE and the like. */
  readonly code: string | undefined;

  constructor(endpoint: Endpoint, cause: NodeJS.ErrnoException) {
    const { service, host, port } = endpoint;
    super(`The ${service} service cannot listen on ${host}:${port}: ${cause.message}`, { cause });
    this.endpoint = endpoint;
    this.code = cause.code;
  }
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

/** Paths of files. */
export interface CertificateFiles {
  /** In PEM, with the certificates above it; or a PFX. */
  readonly cert: string;
  /** In PEM. */
  readonly key?: string;
  /** Of the key or the PFX. */
  readonly password?: string;
}

type ServiceOptions = {
  /** The address that the service listens on: 127.0.0.1. */
  readonly [Name in `${ServiceName}Host`]?: string;
} & {
  /** 10000, 10001 and 10002; 0 picks a free port, also for the services whose port is not given. */
  readonly [Name in `${ServiceName}Port`]?: number;
} & {
  /** Seconds that an idle connection stays open: 5. */
  readonly [Name in `${ServiceName}KeepAliveSeconds`]?: number;
};

/** Options of `start()`; everything has a default. */
export interface StartOptions extends ServiceOptions {
  /** Which services to serve: all of them. */
  readonly services?: readonly ServiceName[];
  /** Keep all data in memory, and lose it at the end. */
  readonly inMemory?: boolean;
  /** The folder of the data: ./holdfast-data. */
  readonly location?: string;
  /** postgres://...: rows that any number of processes share. Then `location` only keeps certificates. */
  readonly partition?: string;
  /** With `partition`: the folder of bytes that the processes share. */
  readonly extents?: string;
  /** Instead of devstoreaccount1 and those of earlier starts. */
  readonly accounts?: readonly Account[];
  /** Let tests move the server's time and empty the server. */
  readonly testClock?: boolean;
  /** Serve HTTPS, with the given certificate or with a self-signed one that the server makes and keeps. */
  readonly https?: 'auto' | CertificateFiles;
  /** Accept bearer tokens by their claims, without verifying their signature. Only with https. */
  readonly oauth?: 'basic';
  /** Ignore headers and parameters of missing features, instead of refusing them. */
  readonly looseMode?: boolean;
  /** Read the account from the first segment of the path, whatever the host name is. */
  readonly pathStyleOnly?: boolean;
  /** Origins whose pages may do everything, whatever the service properties say; '*' is all of them. */
  readonly cors?: readonly string[];
  /** Names of this server by which web pages may call over plain HTTP, besides localhost and the like. */
  readonly allowedHosts?: readonly string[];
  /** In memory: bytes of blobs of more than 16 KiB, and of blocks, beyond which uploads are refused: half of the memory. */
  readonly memoryBytesMax?: number;
  /** Bytes of bodies in transit, in both directions and all services, beyond which requests are refused: an eighth of the memory, at most 512 MiB. */
  readonly bodyBytesMax?: number;
  /** Seconds until an archived blob is back in an online tier: 5. With high priority, a fifth of it. */
  readonly rehydrationSeconds?: number;
  /** Accounts, containers, queues and tables that are created at the start where they are missing: a file in YAML or JSON, or its content. */
  readonly seed?: string | object;
  /** Let other machines read /metrics, which names accounts and queues. */
  readonly remoteMetrics?: boolean;
  /** Origins of other servers that copies may read from, as in https://example.com:8080: none. */
  readonly copyFrom?: readonly string[];
  /** Nothing is logged without it. */
  readonly log?: LogOptions;
}

export interface Endpoint {
  readonly service: ServiceName;
  readonly host: string;
  /** 0: a free one. */
  readonly port: number;
  readonly keepAliveSeconds: number;
}

export interface Config {
  readonly inMemory: boolean;
  /** An absolute path; undefined: this process keeps nothing in a folder of its own. */
  readonly location: string | undefined;
  /** Shared with other processes: the URL of the rows, and the absolute path of the folder with the bytes. */
  readonly shared: { readonly partition: string; readonly extents: string } | undefined;
  /** One for each service that is served. */
  readonly endpoints: readonly Endpoint[];
  /** Undefined: the accounts that are stored. */
  readonly accounts: readonly Account[] | undefined;
  readonly testClock: boolean;
  readonly https: 'auto' | CertificateFiles | undefined;
  readonly oauth: 'basic' | undefined;
  readonly looseMode: boolean;
  readonly pathStyleOnly: boolean;
  readonly cors: readonly string[];
  /** In lower case. */
  readonly allowedHosts: readonly string[];
  readonly memoryBytesMax: number | undefined;
  readonly bodyBytesMax: number;
  readonly rehydrationSeconds: number;
  /** A file, or its content. */
  readonly seed: string | object | undefined;
  readonly remoteMetrics: boolean;
  /** Origins, in the form that a URL has. */
  readonly copyFrom: readonly string[];
  readonly log: { readonly level: LogLevel; readonly format: LogFormat; readonly file: string | undefined };
}

/** The account that every Azure SDK means by UseDevelopmentStorage=true. */
export const developmentAccount: Account = {
  name: 'devstoreaccount1',
  keys: ['Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=='],
};

export function resolveConfig(options: StartOptions = {}): Config {
  if (options.inMemory && options.location !== undefined) {
    throw new StartError(
      'Data is kept either in memory (inMemoryPersistence) or in a folder (location): leave one out.',
    );
  }
  const shared = resolveSharedStore(options);
  const { accounts } = options;
  const fault = accounts && accountsFault(accounts);
  if (fault) throw new StartError(`accounts: ${fault}.`);
  checkOptions(options);
  const { level = options.log ? 'info' : 'silent', format = 'text', file } = options.log ?? {};
  return Object.freeze({
    inMemory: options.inMemory ?? false,
    location: resolveLocation(options),
    shared,
    endpoints: resolveEndpoints(options),
    accounts: accounts && Object.freeze(accounts.map(freezeAccount)),
    testClock: options.testClock ?? false,
    https: options.https,
    oauth: options.oauth,
    looseMode: options.looseMode ?? false,
    pathStyleOnly: options.pathStyleOnly ?? false,
    cors: Object.freeze([...(options.cors ?? [])]),
    allowedHosts: Object.freeze((options.allowedHosts ?? []).map((name) => name.toLowerCase())),
    memoryBytesMax: options.memoryBytesMax ?? (options.inMemory ? defaultMemoryBytesMax() : undefined),
    bodyBytesMax: options.bodyBytesMax ?? defaultBodyBytesMax(),
    rehydrationSeconds: options.rehydrationSeconds ?? REHYDRATION_SECONDS,
    seed: options.seed,
    remoteMetrics: options.remoteMetrics ?? false,
    copyFrom: Object.freeze((options.copyFrom ?? []).map(resolveCopyOrigin)),
    log: Object.freeze({ level, format, file: file === undefined ? undefined : resolve(file) }),
  });
}

function resolveCopyOrigin(text: string): string {
  const origin = parseOrigin(text);
  if (origin !== undefined) return origin;
  throw new StartError(`copy-from: ${text} is not an origin, as in https://example.com:8080, without a path.`);
}

const DEFAULT_PORTS: Readonly<Record<ServiceName, number>> = { blob: 10_000, queue: 10_001, table: 10_002 };

function resolveEndpoints(options: StartOptions): readonly Endpoint[] {
  const { services = serviceNames } = options;
  if (services.length === 0) throw new StartError('services: at least one is to be served.');
  // A caller that asks for one free port wants no fixed port to be taken, either.
  const usesFreePorts = services.some((service) => options[`${service}Port`] === 0);
  const endpoints = serviceNames
    .filter((service) => services.includes(service))
    .map((service): Endpoint => {
      const port = options[`${service}Port`] ?? (usesFreePorts ? 0 : DEFAULT_PORTS[service]);
      if (!Number.isInteger(port) || port < 0 || port > 65_535) {
        throw new StartError(`${service}Port: ${port} is not a port: it is a whole number from 0 to 65535.`);
      }
      const host = options[`${service}Host`] ?? '127.0.0.1';
      return Object.freeze({ service, host, port, keepAliveSeconds: options[`${service}KeepAliveSeconds`] ?? 5 });
    });
  return Object.freeze(endpoints);
}

function resolveLocation({ inMemory, partition, location }: StartOptions): string | undefined {
  if (inMemory || (partition !== undefined && location === undefined)) return undefined;
  return resolve(location ?? 'holdfast-data');
}

const PARTITION_EXAMPLE = 'postgres://user:password@host:5432/database';

function resolveSharedStore({ inMemory, partition, extents, location, https }: StartOptions): Config['shared'] {
  if (partition === undefined) {
    if (extents === undefined) return undefined;
    throw new StartError('A folder of bytes (extents) goes with rows that are shared: give --partition, too.');
  }
  if (inMemory) throw new StartError('Data is kept either in memory (inMemoryPersistence) or in --partition.');
  // The URL may hold a password: the message does not repeat it.
  if (!isPartitionUrl(partition)) throw new StartError(`partition: it is a URL, as in ${PARTITION_EXAMPLE}.`);
  if (extents === undefined) {
    throw new StartError('With --partition the bytes lie in a folder that all processes share: name it by --extents.');
  }
  if (https === 'auto' && location === undefined) {
    throw new StartError('With --partition, --https auto needs a folder to keep the certificate in: --location.');
  }
  return Object.freeze({ partition, extents: resolve(extents) });
}

export function isPartitionUrl(text: string): boolean {
  return /^postgres(?:ql)?:\/\//.test(text) && URL.canParse(text);
}

/** Where the data is, for messages: without the password. */
export function describeDataLocation({ inMemory, location, shared }: Config): string {
  if (inMemory) return 'in memory, gone at the end';
  if (!shared) return location!;
  const { host, pathname } = new URL(shared.partition);
  return `postgres://${host}${pathname}, and ${shared.extents}`;
}

const freezeAccount = ({ name, keys }: Account): Account => Object.freeze({ name, keys: Object.freeze([...keys]) });

const ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/[^/?#\s,]+$/i;

const HOST_NAME = /^[a-z\d_-]+(?:\.[a-z\d_-]+)*$/i;

function checkOptions(options: StartOptions): void {
  const { https, oauth, cors = [], allowedHosts = [], memoryBytesMax, bodyBytesMax = 1, inMemory } = options;
  const { rehydrationSeconds = 0 } = options;
  if (oauth !== undefined && https === undefined) {
    throw new StartError('Bearer tokens (oauth) are taken over HTTPS only: give --cert and --key, or --https auto.');
  }
  const invalidOrigin = cors.find((origin) => origin !== '*' && !ORIGIN.test(origin));
  if (invalidOrigin !== undefined) {
    throw new StartError(
      `cors: ${invalidOrigin} is not an origin, as in https://example.com:8080, without a path; * is all.`,
    );
  }
  const invalidHost = allowedHosts.find((name) => !HOST_NAME.test(name));
  if (invalidHost !== undefined) {
    throw new StartError(
      `allowed-hosts: ${invalidHost} is not the name of a host, as in storage.example.com, without a port.`,
    );
  }
  if (memoryBytesMax !== undefined && !inMemory) {
    throw new StartError('A limit on data in memory (extentMemoryLimit) needs --inMemoryPersistence.');
  }
  if (memoryBytesMax !== undefined && !(memoryBytesMax > 0)) {
    throw new StartError('A limit on data in memory (extentMemoryLimit) is more than 0.');
  }
  if (!(bodyBytesMax > 0)) throw new StartError('A limit on bodies in memory (body-memory) is more than 0.');
  if (!Number.isInteger(rehydrationSeconds) || rehydrationSeconds < 0) {
    throw new StartError(`rehydration: it is a whole number of seconds, not ${rehydrationSeconds}.`);
  }
}

/** AZURITE_ACCOUNTS: name:key[:key2], several separated by semicolons. */
export function parseAccounts(text: string): readonly Account[] {
  const entries = text.split(';').map((entry) => entry.trim());
  while (entries.at(-1) === '') entries.pop();
  const accounts = entries.map((entry) => {
    const [name = '', ...keys] = entry.split(':').map((part) => part.trim());
    return { name, keys: keys.length === 2 ? [keys[0]!, ...parseSecondKey(keys[1]!)] : keys };
  });
  const fault = accountsFault(accounts);
  if (fault)
    throw new StartError(`AZURITE_ACCOUNTS: ${fault}. It is name:key[:key2], several separated by semicolons.`);
  return accounts;
}

/** Azurite decodes of a second key whatever is base64. An empty result is no key: an empty key would sign for the owner. */
function parseSecondKey(text: string): string[] {
  const bytes = Buffer.from(text, 'base64');
  return bytes.length === 0 ? [] : [bytes.toString('base64')];
}

/** Names an entry by its number only: where parts are mixed up, the name may be a key. */
function accountsFault(accounts: readonly Account[]): string | undefined {
  if (accounts.length === 0) return 'it names no account';
  const names = new Set<string>();
  for (const [index, { name, keys }] of accounts.entries()) {
    const entry = `entry ${index + 1}`;
    if (name === '') return `${entry} has no account name`;
    const nameFault = accountNameFault(name);
    if (nameFault) return `${entry}: ${nameFault}`;
    const keysFault = accountKeysFault(keys);
    if (keysFault) return `${entry}: ${keysFault}`;
    if (names.has(name)) return `${entry} repeats the name of an earlier one`;
    names.add(name);
  }
  return undefined;
}
