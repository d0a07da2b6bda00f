/** The command line, with the flags that users of the Azurite emulator know. */
import { parseArgs } from 'node:util';
import {
  configOf,
  type LogFormat,
  type LogLevel,
  logFormats,
  logLevels,
  parseAccounts,
  StartError,
  type StartOptions,
} from './config.ts';

export type Command =
  | { readonly command: 'start'; readonly options: StartOptions; readonly silent: boolean }
  | { readonly command: 'check'; readonly location: string }
  | { readonly command: 'help' }
  | { readonly command: 'version' };

interface Flag {
  readonly type: 'string' | 'boolean';
  readonly short?: string;
  readonly value?: string;
  readonly help: string;
}

const flags = {
  location: { type: 'string', short: 'l', value: 'folder', help: 'where the data is (./holdfast-data)' },
  inMemoryPersistence: { type: 'boolean', help: 'keep the data in memory, and lose it at the end' },
  blobHost: { type: 'string', value: 'host', help: 'address that the blob service listens on (127.0.0.1)' },
  blobPort: { type: 'string', value: 'port', help: 'port of the blob service (10000; 0 picks a free one)' },
  blobKeepAliveTimeout: { type: 'string', value: 'seconds', help: 'how long an idle connection stays open (5)' },
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

/** Flags of the emulator that come with later versions. To take one and do nothing would mislead. */
const laterFlags: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ['queue', 'table'].flatMap((service) =>
      ['Host', 'Port', 'KeepAliveTimeout'].map((end) => [service + end, `the ${service} service`]),
    ),
  ),
  loose: 'loose mode',
  disableProductStyleUrl: 'host-style URLs',
  oauth: 'bearer tokens',
  cert: 'HTTPS',
  key: 'HTTPS',
  pwd: 'HTTPS',
  extentMemoryLimit: 'a limit on data in memory',
};

type FlagName = keyof typeof flags;
const commands = ['start', 'check', 'help', 'version'] as const;

export function readCommand(words: readonly string[], env: NodeJS.ProcessEnv = {}): Command {
  const [first] = words;
  const named = first !== undefined && !first.startsWith('-');
  const command = named ? commands.find((each) => each === first) : 'start';
  if (!command) throw new StartError(`There is no command ${first}.${suggestion(first ?? '', commands)}`);
  const values = readFlags(named ? words.slice(1) : words);
  if (values.help || command === 'help') return { command: 'help' };
  if (values.version || command === 'version') return { command: 'version' };
  if (command === 'check') {
    const other = Object.keys(values).find((name) => name !== 'location');
    if (other) throw new StartError(`check takes --location only, not --${other}.`);
    return { command, location: values.location ?? 'holdfast-data' };
  }
  const options = startOptions(values, env);
  configOf(options);
  return { command, options, silent: values.silent ?? false };
}

export function helpText(): string {
  const rows = Object.entries<Flag>(flags).map(([name, { short, value, help }]) => {
    const left = `${short ? `-${short}, ` : '    '}--${name}${value ? ` <${value}>` : ''}`;
    return `  ${left.padEnd(38)}${help}`;
  });
  return `Usage: holdfast [start] [flags]           serve until SIGINT or SIGTERM
       holdfast check [--location <folder>]  look through the data of a folder, without changing it
       holdfast help | version

${rows.join('\n')}

Environment:
  AZURITE_ACCOUNTS   name:key[:key2];...   accounts instead of devstoreaccount1, keys in base64`;
}

type Values = { [Name in FlagName]?: (typeof flags)[Name]['type'] extends 'boolean' ? true : string };

function readFlags(words: readonly string[]): Values {
  const { tokens } = parseArgs({ args: words.map(canonical), options: flags, strict: false, tokens: true });
  const values: Record<string, string | true> = {};
  for (const token of tokens) {
    if (token.kind === 'positional') throw new StartError(`Unexpected ${token.value}: flags begin with --.`);
    if (token.kind !== 'option') continue;
    const flag = Object.hasOwn(flags, token.name) ? (flags[token.name as FlagName] as Flag) : undefined;
    if (!flag) throw unknownFlag(token.name, token.rawName);
    const { value, rawName } = token;
    if (flag.type === 'boolean') {
      if (value !== undefined) throw new StartError(`${rawName} takes no value: write just ${rawName}.`);
      values[token.name] = true;
    } else {
      if (!value || (!token.inlineValue && value.startsWith('--'))) {
        throw new StartError(`${rawName} needs a value: ${rawName} <${flag.value}>.`);
      }
      values[token.name] = value;
    }
  }
  return values as Values;
}

/** --blob-port and --blobport are --blobPort. */
function canonical(word: string): string {
  const match = /^--([^=]+)(=.*)?$/s.exec(word);
  if (!match?.[1]) return word;
  const known = [...Object.keys(flags), ...Object.keys(laterFlags)].find(
    (name) => plain(name) === plain(match[1] ?? ''),
  );
  return known ? `--${known}${match[2] ?? ''}` : word;
}

function unknownFlag(name: string, rawName: string): StartError {
  const emulators = name === 'L' ? 'loose' : name;
  const later = Object.hasOwn(laterFlags, emulators) && laterFlags[emulators];
  if (later) return new StartError(`This version of Holdfast does not have ${rawName} (${later}) yet: leave it out.`);
  const near = suggestion(name, Object.keys(flags), '--');
  return new StartError(`There is no flag ${rawName}.${near || ' See holdfast --help.'}`);
}

function startOptions(values: Values, env: NodeJS.ProcessEnv): StartOptions {
  if (env.AZURITE_DB) {
    throw new StartError(
      'This version of Holdfast keeps no data in SQL: unset AZURITE_DB, and name a folder by --location.',
    );
  }
  const { location, blobHost, debug } = values;
  const quietest: LogLevel = debug ? 'debug' : values.silent ? 'silent' : 'info';
  return {
    ...(values.inMemoryPersistence && { inMemory: true }),
    ...(location !== undefined && { location }),
    ...(blobHost !== undefined && { blobHost }),
    ...(values.blobPort !== undefined && { blobPort: whole('blobPort', values.blobPort, 65_535) }),
    ...(values.blobKeepAliveTimeout !== undefined && {
      blobKeepAliveSeconds: whole('blobKeepAliveTimeout', values.blobKeepAliveTimeout, 86_400),
    }),
    ...(env.AZURITE_ACCOUNTS && { accounts: parseAccounts(env.AZURITE_ACCOUNTS) }),
    ...(values['test-clock'] && { testClock: true }),
    log: {
      level: oneOf<LogLevel>('log-level', values['log-level'] ?? quietest, logLevels),
      format: oneOf<LogFormat>('log-format', values['log-format'] ?? 'text', logFormats),
      ...(debug !== undefined && { file: debug }),
    },
  };
}

function whole(flag: FlagName, text: string, max: number): number {
  const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (number <= max) return number;
  throw new StartError(`--${flag} is a whole number from 0 to ${max}, not ${text}.`);
}

function oneOf<Choice extends string>(flag: FlagName, text: string, choices: readonly Choice[]): Choice {
  const choice = choices.find((each) => each === text);
  if (choice) return choice;
  throw new StartError(`--${flag} is ${choices.join(', ')}, not ${text}.`);
}

function suggestion(word: string, known: readonly string[], prefix = ''): string {
  const [near] = known
    .map((name) => ({ name, distance: editDistance(plain(word), plain(name)) }))
    .filter(({ name, distance }) => distance <= Math.ceil(name.length / 3))
    .sort((one, other) => one.distance - other.distance);
  return near ? ` Did you mean ${prefix}${near.name}?` : '';
}

function plain(name: string): string {
  return name.replaceAll('-', '').toLowerCase();
}

function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [index, letter] of [...from].entries()) {
    const next = [index + 1];
    for (let column = 0; column < to.length; column++) {
      const replaced = row[column]! + (to[column] === letter ? 0 : 1);
      next.push(Math.min(replaced, row[column + 1]! + 1, next[column]! + 1));
    }
    row = next;
  }
  return row[to.length]!;
}
