/** Commands, and the flags of `start`: those of the Azurite emulator, and a few more. */

import {
  type LogFormat,
  type LogLevel,
  logFormats,
  logLevels,
  parseAccounts,
  resolveConfig,
  StartError,
  type StartOptions,
} from '../server/config.ts';
import { type ServiceName, serviceNames } from '../services/common/names.ts';
import { type AccountCommand, account } from './account-flags.ts';
import { type Flag, type Flags, formatFlags, parseArguments, suggestion, type Values } from './arguments.ts';
import { type ClockCommand, clock } from './clock-flags.ts';
import { type SasCommand, sas } from './sas-flags.ts';
import { DEFAULT_LOCATION, location, partition, partitionFrom, type Usage } from './subcommand.ts';

export type Command =
  | { readonly command: 'start'; readonly options: StartOptions; readonly silent: boolean }
  | { readonly command: 'check'; readonly where: string | { readonly partition: string; readonly extents: string } }
  | { readonly command: 'account'; readonly account: AccountCommand }
  | { readonly command: 'sas'; readonly sas: SasCommand }
  | { readonly command: 'clock'; readonly clock: ClockCommand }
  | { readonly command: 'help'; readonly topic?: string | undefined }
  | { readonly command: 'version' };

const keepAliveFlag = { type: 'string', value: 'seconds', help: 'how long an idle connection stays open (5)' } as const;

function hostFlag(service: ServiceName) {
  return { type: 'string', value: 'host', help: `address that the ${service} service listens on (127.0.0.1)` } as const;
}

function portFlag(service: ServiceName, usual: number) {
  return {
    type: 'string',
    value: 'port',
    help: `port of the ${service} service (${usual}; 0 picks a free one)`,
  } as const;
}

const flags = {
  location,
  partition,
  extents: { type: 'string', value: 'folder', help: 'with --partition: the bytes that processes share' },
  inMemoryPersistence: { type: 'boolean', help: 'keep the data in memory, and lose it at the end' },
  blobHost: hostFlag('blob'),
  blobPort: portFlag('blob', 10_000),
  blobKeepAliveTimeout: keepAliveFlag,
  queueHost: hostFlag('queue'),
  queuePort: portFlag('queue', 10_001),
  queueKeepAliveTimeout: keepAliveFlag,
  tableHost: hostFlag('table'),
  tablePort: portFlag('table', 10_002),
  tableKeepAliveTimeout: keepAliveFlag,
  cert: { type: 'string', value: 'file', help: 'serve HTTPS with this certificate: PEM, or a PFX with its key' },
  key: { type: 'string', value: 'file', help: 'its key in PEM' },
  pwd: { type: 'string', value: 'password', help: 'of the key, or of the PFX' },
  https: { type: 'string', value: 'auto', help: 'serve HTTPS with a certificate that is made and kept here' },
  oauth: { type: 'string', value: 'basic', help: 'take bearer tokens unverified, for tests; needs HTTPS' },
  cors: { type: 'string', value: 'origins', help: "origins whose pages may call, separated by commas; '*' is all" },
  'allowed-hosts': {
    type: 'string',
    value: 'names',
    help: 'names of this server by which web pages may call, separated by commas',
  },
  loose: { type: 'boolean', short: 'L', help: 'pass over headers and parameters of missing features' },
  disableProductStyleUrl: { type: 'boolean', help: 'look for the account in the path only, never in the host' },
  extentMemoryLimit: {
    type: 'string',
    value: 'MB',
    help: 'with --inMemoryPersistence: refuse uploads beyond this (half of the memory)',
  },
  'body-memory': { type: 'string', value: 'MB', help: 'bodies on their way in memory (an eighth of it, at most 512)' },
  rehydration: {
    type: 'string',
    value: 'seconds',
    help: 'until an archived blob is back online (5; a fifth with high priority)',
  },
  seed: { type: 'string', value: 'file', help: 'YAML or JSON: containers, queues, tables ... to create where missing' },
  'remote-metrics': { type: 'boolean', help: 'let other machines read /metrics, which names accounts and queues' },
  'copy-from': {
    type: 'string',
    repeats: true,
    value: 'origin',
    help: 'other server that copies may read from, as https://host:port; repeatable (none)',
  },
  silent: { type: 'boolean', short: 's', help: 'print and log nothing but errors that end the start' },
  debug: { type: 'string', short: 'd', value: 'file', help: 'log at level debug, into this file' },
  'log-level': { type: 'string', value: 'level', help: `${logLevels.join(', ')} (info)` },
  'log-format': { type: 'string', value: 'format', help: `${logFormats.join(' or ')} (text)` },
  'test-clock': { type: 'boolean', help: "let tests move the server's time and empty the server" },
  skipApiVersionCheck: { type: 'boolean', help: 'changes nothing: every well-formed version is served' },
  disableTelemetry: { type: 'boolean', help: 'changes nothing: there is no telemetry' },
  help: { type: 'boolean', short: 'h', help: 'print this' },
  version: { type: 'boolean', short: 'v', help: 'print the version' },
} as const satisfies Record<string, Flag>;

type FlagName = keyof typeof flags;
const commands = ['start', 'check', 'account', 'sas', 'clock', 'help', 'version'] as const;

export function parseCommand(words: readonly string[], env: NodeJS.ProcessEnv = {}): Command {
  const [first] = words;
  const isNamed = first !== undefined && !first.startsWith('-');
  const command = isNamed ? commands.find((each) => each === first) : 'start';
  if (!command) throw new StartError(`There is no command ${first}.${suggestion(first ?? '', commands)}`);
  const rest = isNamed ? words.slice(1) : words;
  if (command === 'help') return { command, topic: rest[0] };
  if (command === 'account' || command === 'sas' || command === 'clock') {
    if (rest.some((word) => word === '--help' || word === '-h')) return { command: 'help', topic: command };
    if (command === 'account') return { command, account: account.parse(parseArguments(rest, account.flags), env) };
    if (command === 'sas') return { command, sas: sas.parse(parseArguments(rest, sas.flags), env) };
    return { command, clock: clock.parse(parseArguments(rest, clock.flags), env) };
  }
  const values = parseStartFlags(rest);
  if (values.help) return { command: 'help' };
  if (values.version || command === 'version') return { command: 'version' };
  if (command === 'check') {
    const other = Object.keys(values).find((name) => !['location', 'partition', 'extents'].includes(name));
    if (other) throw new StartError(`check takes --location, or --partition and --extents, not --${other}.`);
    return { command, where: parseCheckTarget(values, env) };
  }
  const options = startOptions(values, env);
  resolveConfig(options);
  return { command, options, silent: values.silent ?? false };
}

export function helpText(topic?: string): string {
  if (topic === 'account') return topicHelp(account);
  if (topic === 'sas') return topicHelp(sas);
  if (topic === 'clock') return topicHelp(clock);
  return `Usage:
${formatUsage([
  ['[start] [flags]', 'serve until SIGINT or SIGTERM'],
  ['check [--location <folder>]', 'look through the data, without changing it'],
  ...account.usage,
  ...sas.usage,
  ...clock.usage,
  ['help [account | sas | clock]', 'the flags of these'],
  ['version', 'print the version'],
])}

${formatFlags(flags)}

Environment:
  AZURITE_ACCOUNTS     name:key[:key2];...   accounts instead of devstoreaccount1, keys in base64
  HOLDFAST_PARTITION   postgres://...        as --partition, where others do not see the password`;
}

function topicHelp({ usage, flags: topicFlags }: { usage: Usage; flags: Flags }): string {
  return `Usage:\n${formatUsage(usage)}\n\n${formatFlags(topicFlags)}`;
}

function formatUsage(usage: Usage): string {
  return usage.map(([words, does]) => `  ${`holdfast ${words}`.padEnd(38)}${does}`).join('\n');
}

function parseCheckTarget(values: StartValues, env: NodeJS.ProcessEnv) {
  const url = partitionFrom(values, env);
  if (url === undefined) {
    if (values.extents !== undefined) throw new StartError('--extents goes with --partition: give that, too.');
    return values.location ?? DEFAULT_LOCATION;
  }
  if (values.extents === undefined) throw new StartError('check --partition looks at the bytes, too: --extents.');
  return { partition: url, extents: values.extents };
}

type StartValues = Values<typeof flags>;

function parseStartFlags(words: readonly string[]): StartValues {
  const { values, positionals } = parseArguments(words, flags);
  if (positionals[0] !== undefined) throw new StartError(`Unexpected ${positionals[0]}: flags begin with --.`);
  return values;
}

function startOptions(values: StartValues, env: NodeJS.ProcessEnv): StartOptions {
  if (env.AZURITE_DB) {
    throw new StartError(
      'This version of Holdfast keeps no data in SQL: unset AZURITE_DB, and name a folder by --location.',
    );
  }
  const { location, debug } = values;
  const url = values.partition ?? (env.HOLDFAST_PARTITION || undefined);
  const defaultLevel: LogLevel = debug ? 'debug' : values.silent ? 'silent' : 'info';
  return {
    ...(values.inMemoryPersistence && { inMemory: true }),
    ...(location !== undefined && { location }),
    ...(url !== undefined && { partition: url }),
    ...(values.extents !== undefined && { extents: values.extents }),
    ...Object.assign({}, ...serviceNames.map((service) => serviceOptions(service, values))),
    ...(env.AZURITE_ACCOUNTS && { accounts: parseAccounts(env.AZURITE_ACCOUNTS) }),
    ...(values['test-clock'] && { testClock: true }),
    ...httpsOption(values),
    ...(values.oauth !== undefined && { oauth: parseChoice<'basic'>('oauth', values.oauth, ['basic']) }),
    ...(values.cors !== undefined && { cors: parseList(values.cors) }),
    ...(values['allowed-hosts'] !== undefined && { allowedHosts: parseList(values['allowed-hosts']) }),
    ...(values.loose && { looseMode: true }),
    ...(values.disableProductStyleUrl && { pathStyleOnly: true }),
    ...(values.extentMemoryLimit !== undefined && {
      memoryBytesMax: parseMegabytes('extentMemoryLimit', values.extentMemoryLimit),
    }),
    ...(values['body-memory'] !== undefined && { bodyBytesMax: parseMegabytes('body-memory', values['body-memory']) }),
    ...(values.rehydration !== undefined && {
      rehydrationSeconds: parseWhole('rehydration', values.rehydration, 86_400),
    }),
    ...(values.seed !== undefined && { seed: values.seed }),
    ...(values['remote-metrics'] && { remoteMetrics: true }),
    ...(values['copy-from'] !== undefined && { copyFrom: values['copy-from'] }),
    log: {
      level: parseChoice<LogLevel>('log-level', values['log-level'] ?? defaultLevel, logLevels),
      format: parseChoice<LogFormat>('log-format', values['log-format'] ?? 'text', logFormats),
      ...(debug !== undefined && { file: debug }),
    },
  };
}

function serviceOptions(service: ServiceName, values: StartValues): Partial<StartOptions> {
  const { [`${service}Host` as const]: host, [`${service}Port` as const]: port } = values;
  const keepAlive = values[`${service}KeepAliveTimeout`];
  return {
    ...(host !== undefined && { [`${service}Host`]: host }),
    ...(port !== undefined && { [`${service}Port`]: parseWhole(`${service}Port`, port, 65_535) }),
    ...(keepAlive !== undefined && {
      [`${service}KeepAliveSeconds`]: parseWhole(`${service}KeepAliveTimeout`, keepAlive, 86_400),
    }),
  };
}

function httpsOption({ cert, key, pwd, https }: StartValues): Pick<StartOptions, 'https'> {
  if (https !== undefined) {
    const auto = parseChoice<'auto'>('https', https, ['auto']);
    if (cert !== undefined) throw new StartError('Give either --cert or --https auto: leave one out.');
    if (key === undefined && pwd === undefined) return { https: auto };
  }
  if (cert !== undefined) {
    return { https: { cert, ...(key !== undefined && { key }), ...(pwd !== undefined && { password: pwd }) } };
  }
  if (key !== undefined) throw new StartError('--key is the key of a certificate: name that by --cert.');
  if (pwd !== undefined)
    throw new StartError('--pwd is the password of a key or a PFX: name the certificate by --cert.');
  return {};
}

function parseWhole(flag: FlagName, text: string, max: number): number {
  const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (number <= max) return number;
  throw new StartError(`--${flag} is a whole number from 0 to ${max}, not ${text}.`);
}

function parseList(text: string): string[] {
  return text.split(',').map((part) => part.trim());
}

/** Testcontainers gives the number with decimals. */
function parseMegabytes(flag: FlagName, text: string): number {
  if (/^\d{1,7}(?:\.\d{1,9})?$/.test(text)) return Math.floor(Number(text) * 1024 * 1024);
  throw new StartError(`--${flag} is a number of megabytes, not ${text}.`);
}

function parseChoice<Choice extends string>(flag: FlagName, text: string, choices: readonly Choice[]): Choice {
  const choice = choices.find((each) => each === text);
  if (choice) return choice;
  throw new StartError(`--${flag} is ${choices.join(', ')}, not ${text}.`);
}
