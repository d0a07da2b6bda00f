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
import type { Where } from '../server/public.ts';
import { type ServiceName, serviceNames } from '../services/common/names.ts';
import { type AccountCommand, account } from './account-flags.ts';
import { type Flags, formatFlags, parseArguments, suggestion, type Values } from './arguments.ts';
import { check } from './check-flags.ts';
import { type ClockCommand, clock } from './clock-flags.ts';
import { type HandlesCommand, handles } from './handles-flags.ts';
import { type ImportCommand, imports } from './import-flags.ts';
import { type SasCommand, sas } from './sas-flags.ts';
import { flagGroups, flags } from './start-flag-groups.ts';
import type { Usage } from './subcommand.ts';

export type Command =
  | { readonly command: 'start'; readonly options: StartOptions; readonly silent: boolean }
  | { readonly command: 'import'; readonly import: ImportCommand }
  | { readonly command: 'check'; readonly where: Where }
  | { readonly command: 'account'; readonly account: AccountCommand }
  | { readonly command: 'sas'; readonly sas: SasCommand }
  | { readonly command: 'clock'; readonly clock: ClockCommand }
  | { readonly command: 'handles'; readonly handles: HandlesCommand }
  | { readonly command: 'help'; readonly topic?: string | undefined }
  | { readonly command: 'version' };

type FlagName = keyof typeof flags;
const commands = ['start', 'check', 'import', 'account', 'sas', 'clock', 'handles', 'help', 'version'] as const;

export function parseCommand(words: readonly string[], env: NodeJS.ProcessEnv = {}): Command {
  const [first] = words;
  const isNamed = first !== undefined && !first.startsWith('-');
  const command = isNamed ? commands.find((each) => each === first) : 'start';
  if (!command)
    throw new StartError(
      `There is no command ${first}.${suggestion(first ?? '', commands) || ' See holdfast --help.'}`,
    );
  const rest = isNamed ? words.slice(1) : words;
  if (command === 'help') return { command, topic: rest[0] };
  if (
    command === 'check' ||
    command === 'account' ||
    command === 'sas' ||
    command === 'clock' ||
    command === 'handles' ||
    command === 'import'
  ) {
    if (rest.some((word) => word === '--help' || word === '-h')) return { command: 'help', topic: command };
    if (command === 'check') return { command, where: check.parse(parseArguments(rest, check.flags), env) };
    if (command === 'account') return { command, account: account.parse(parseArguments(rest, account.flags), env) };
    if (command === 'import') return { command, import: imports.parse(parseArguments(rest, imports.flags), env) };
    if (command === 'handles') return { command, handles: handles.parse(parseArguments(rest, handles.flags), env) };
    if (command === 'sas') return { command, sas: sas.parse(parseArguments(rest, sas.flags), env) };
    return { command, clock: clock.parse(parseArguments(rest, clock.flags), env) };
  }
  const values = parseStartFlags(rest);
  if (values.help) return { command: 'help' };
  if (values.version || command === 'version') return { command: 'version' };
  const options = startOptions(values, env);
  resolveConfig(options);
  return { command, options, silent: values.silent ?? false };
}

export function helpText(topic?: string): string {
  if (topic === 'check') return topicHelp(check);
  if (topic === 'account') return topicHelp(account);
  if (topic === 'sas') return topicHelp(sas);
  if (topic === 'clock') return topicHelp(clock);
  if (topic === 'handles') return topicHelp(handles);
  if (topic === 'import') return topicHelp(imports);
  return `Usage:
${formatUsage([
  ['[start] [flags]', 'serve until SIGINT or SIGTERM'],
  ...check.usage.slice(0, 1),
  ...imports.usage,
  ...account.usage,
  ...sas.usage,
  ...clock.usage,
  ...handles.usage.slice(0, 2),
  ['help [check | import | account | sas | clock | handles]', 'the flags of these'],
  ['version', 'print the version'],
])}

Example:
  holdfast --location ./data --blobPort 20000 --https auto

${flagGroups.map(([title, group]) => `${title}:\n${formatFlags(group)}`).join('\n\n')}

Environment:
  AZURITE_ACCOUNTS     name:key[:key2];...   accounts instead of devstoreaccount1, keys in base64
  HOLDFAST_PARTITION   postgres://...        as --partition, where others do not see the password`;
}

function topicHelp({ usage, notes, flags: own }: { usage: Usage; notes?: string; flags: Flags }): string {
  return `Usage:\n${formatUsage(usage)}\n\n${notes ? `${notes}\n\n` : ''}Flags:\n${formatFlags(own)}`;
}

function formatUsage(usage: Usage): string {
  const width = Math.max(...usage.map(([words]) => words.length));
  return usage.map(([words, does]) => `  holdfast ${words.padEnd(width)}  ${does}`).join('\n');
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
  const level = parseChoice<LogLevel>('log-level', values['log-level'] ?? defaultLevel, logLevels);
  return {
    ...(values.inMemoryPersistence && { inMemory: true }),
    ...(location !== undefined && { location }),
    ...(url !== undefined && { partition: url }),
    ...(values.extents !== undefined && { extents: values.extents }),
    ...Object.assign({}, ...serviceNames.map((service) => serviceOptions(service, values))),
    ...(values.smbHost !== undefined && { smbHost: values.smbHost }),
    ...(values.smbPort !== undefined && { smbPort: parseWhole('smbPort', values.smbPort, 65_535) }),
    ...(values['no-smb'] && { smb: false }),
    ...(values['smb-require-encryption'] && { smbRequireEncryption: true }),
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
      level,
      format: parseChoice<LogFormat>('log-format', values['log-format'] ?? 'text', logFormats),
      ...(debug !== undefined && { file: debug, requests: level === 'info' || level === 'debug' }),
      ...(values.silent && { requests: false }),
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
