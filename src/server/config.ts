/** Configuration: validates the options of `start()` and completes them to one frozen Config. */
import { resolve } from 'node:path';
import { parseOrigin } from '../rest/outgoing/origins.ts';
import { accountKeysFault, accountNameFault } from '../rules/account-names.ts';
import { REHYDRATION_SECONDS } from '../rules/tiers.ts';
import { type ServiceName, serviceNames } from '../services/common/names.ts';
import { defaultBodyBytesMax, defaultMemoryBytesMax } from './available-memory.ts';
import { checkOptionNames } from './option-names.ts';
import type { Account, CertificateFiles, Endpoint, LogFormat, LogLevel, StartOptions } from './public.ts';
import { StartError } from './public.ts';

export type {
  Account,
  CertificateFiles,
  Endpoint,
  LogFormat,
  LogLevel,
  LogOptions,
  StartOptions,
} from './public.ts';
export { CannotListen, StartError } from './public.ts';

/** In the current folder. */
export const DEFAULT_LOCATION = 'holdfast-data';

export const logLevels = ['silent', 'error', 'warn', 'info', 'debug'] as const satisfies readonly LogLevel[];
export const logFormats = ['text', 'json'] as const satisfies readonly LogFormat[];

export interface SmbEndpoint {
  readonly host: string;
  /** 0: a free one. */
  readonly port: number;
  readonly requiresEncryption: boolean;
  /** The port is the default: if another program has it, the server starts without SMB. */
  readonly isOptional: boolean;
}

export interface Config {
  readonly inMemory: boolean;
  /** An absolute path; undefined: this process keeps nothing in a folder of its own. */
  readonly location: string | undefined;
  /** Shared with other processes: the URL of the rows, and the absolute path of the folder with the bytes. */
  readonly shared: { readonly partition: string; readonly extents: string } | undefined;
  /** One for each service that is served. */
  readonly endpoints: readonly Endpoint[];
  /** Undefined: SMB is not served. */
  readonly smb: SmbEndpoint | undefined;
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
  readonly log: {
    readonly level: LogLevel;
    readonly format: LogFormat;
    readonly file: string | undefined;
    readonly requests: boolean;
  };
}

/** The account that an Azure SDK means by UseDevelopmentStorage=true. */
export const developmentAccount: Account = {
  name: 'devstoreaccount1',
  keys: ['Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=='],
};

export function resolveConfig(options: StartOptions = {}): Config {
  checkOptionNames(options);
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
  const { requests = level === 'info' && file === undefined } = options.log ?? {};
  return Object.freeze({
    inMemory: options.inMemory ?? false,
    location: resolveLocation(options),
    shared,
    endpoints: resolveEndpoints(options),
    smb: resolveSmb(options),
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
    log: Object.freeze({ level, format, file: file === undefined ? undefined : resolve(file), requests }),
  });
}

function resolveCopyOrigin(text: string): string {
  const origin = parseOrigin(text);
  if (origin !== undefined) return origin;
  throw new StartError(`copy-from: ${text} is not an origin, as in https://example.com:8080, without a path.`);
}

const DEFAULT_PORTS: Readonly<Record<ServiceName, number>> = {
  blob: 10_000,
  queue: 10_001,
  table: 10_002,
  file: 10_003,
};

function resolveEndpoints(options: StartOptions): readonly Endpoint[] {
  const { services = serviceNames } = options;
  if (services.length === 0) throw new StartError('services: at least one is to be served.');
  const endpoints = serviceNames
    .filter((service) => services.includes(service))
    .map((service): Endpoint => {
      const port = options[`${service}Port`] ?? (usesFreePorts(options) ? 0 : DEFAULT_PORTS[service]);
      checkPort(`${service}Port`, port);
      const host = options[`${service}Host`] ?? '127.0.0.1';
      const keepAliveSeconds = options[`${service}KeepAliveSeconds`] ?? 5;
      const isOptional = service === 'file' && port !== 0 && options.filePort === undefined && services.length > 1;
      return Object.freeze({ service, host, port, keepAliveSeconds, ...(isOptional && { isOptional }) });
    });
  return Object.freeze(endpoints);
}

const DEFAULT_SMB_PORT = 10_445;

/** SMB serves the shares of the File service, so it goes where that goes. */
function resolveSmb(options: StartOptions): SmbEndpoint | undefined {
  const { services = serviceNames, smb = true, smbHost: host = '127.0.0.1', smbPort, smbRequireEncryption } = options;
  if (!smb || !services.includes('file')) return undefined;
  const port = smbPort ?? (usesFreePorts(options) ? 0 : DEFAULT_SMB_PORT);
  checkPort('smbPort', port);
  const isOptional = port !== 0 && smbPort === undefined;
  return Object.freeze({ host, port, isOptional, requiresEncryption: smbRequireEncryption ?? false });
}

/** A caller that asks for one free port wants no fixed port to be taken, either. */
function usesFreePorts(options: StartOptions): boolean {
  const { services = serviceNames, smbPort } = options;
  return smbPort === 0 || services.some((service) => options[`${service}Port`] === 0);
}

function checkPort(option: string, port: number): void {
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return;
  throw new StartError(`${option}: ${port} is not a port: it is a whole number from 0 to 65535.`);
}

function resolveLocation({ inMemory, partition, location }: StartOptions): string | undefined {
  if (inMemory || (partition !== undefined && location === undefined)) return undefined;
  return resolve(location ?? DEFAULT_LOCATION);
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
