/** Flags and arguments of `holdfast account`. */

import { StartError } from '../server/config.ts';
import type { AccountSettings } from '../services/common/account-settings.ts';
import { suggestion } from './arguments.ts';
import { DEFAULT_LOCATION, defineSubcommand, json, location, partition, partitionFrom } from './subcommand.ts';

const actions = ['list', 'add', 'set', 'remove', 'rotate-key'] as const;
type Action = (typeof actions)[number];

interface CommonFlags {
  readonly location: string;
  /** URL of a shared store, instead of the folder. */
  readonly partition: string | undefined;
  readonly json: boolean;
}

export type AccountCommand = CommonFlags &
  (
    | { readonly action: 'list'; readonly showKeys: boolean }
    | { readonly action: 'add'; readonly name: string; readonly keys: readonly string[] | undefined }
    | { readonly action: 'set'; readonly name: string; readonly settings: Partial<AccountSettings> }
    | { readonly action: 'remove'; readonly name: string; readonly withData: boolean }
    | { readonly action: 'rotate-key'; readonly name: string; readonly which: 1 | 2 }
  );

/** Flags that belong to one action; the others belong to all. */
const actionOfFlag: Readonly<Record<string, Action>> = {
  'show-keys': 'list',
  key: 'add',
  key2: 'add',
  'container-retention': 'set',
  'share-retention': 'set',
  'with-data': 'remove',
  which: 'rotate-key',
};

export const account = defineSubcommand({
  usage: [
    ['account list', 'the accounts of a folder, whether a server uses it or not'],
    ['account add <name>', 'make an account, and print its connection string'],
    ['account set <name>', 'change a setting: how long deleted containers or shares can be restored'],
    ['account remove <name> [--with-data]', 'remove an account, and with the flag all that it has'],
    ['account rotate-key <name>', 'give an account a new key; the old one fails from the next request on'],
  ],
  flags: {
    location,
    partition,
    json,
    'show-keys': { type: 'boolean', help: 'list: print the keys, too' },
    key: { type: 'string', value: 'base64', help: 'add: its first key (a new one)' },
    key2: { type: 'string', value: 'base64', help: 'add: its second key (a new one, or none beside --key)' },
    'container-retention': {
      type: 'string',
      value: 'days',
      help: 'set: 1 to 365, or 0 to delete containers at once (0)',
    },
    'share-retention': { type: 'string', value: 'days', help: 'set: likewise, of shares (0)' },
    'with-data': { type: 'boolean', help: 'remove: with all containers, queues, tables and shares' },
    which: { type: 'string', value: '1|2', help: 'rotate-key: which of the two keys (1)' },
  },
  parse({ values, positionals: [word, name, ...more] }, env): AccountCommand {
    const action = actions.find((each) => each === word);
    if (!action) {
      const which = word === undefined ? 'account needs to know what to do' : `account cannot ${word}`;
      throw new StartError(`${which}: ${actions.join(', ')}.${suggestion(word ?? '', actions)}`);
    }
    for (const flag of Object.keys(values)) {
      if (Object.hasOwn(actionOfFlag, flag) && actionOfFlag[flag] !== action)
        throw new StartError(`--${flag} belongs to account ${actionOfFlag[flag]}, not to account ${action}.`);
    }
    const common = {
      location: values.location ?? DEFAULT_LOCATION,
      partition: partitionFrom(values, env),
      json: values.json ?? false,
    };
    const surplus = action === 'list' ? name : more[0];
    if (surplus !== undefined) throw new StartError(`Unexpected ${surplus}: flags begin with --.`);
    if (action === 'list') return { ...common, action, showKeys: values['show-keys'] ?? false };
    if (name === undefined) throw new StartError(`account ${action} needs a name: account ${action} <name>.`);
    switch (action) {
      case 'add':
        return { ...common, action, name, keys: keysFrom(values.key, values.key2) };
      case 'set':
        return { ...common, action, name, settings: parseSettings(values) };
      case 'remove':
        return { ...common, action, name, withData: values['with-data'] ?? false };
      case 'rotate-key':
        return { ...common, action, name, which: parseWhich(values.which) };
    }
  },
});

function keysFrom(key: string | undefined, key2: string | undefined): readonly string[] | undefined {
  if (key === undefined && key2 !== undefined) throw new StartError('--key2 needs --key: an account has a first key.');
  return key === undefined ? undefined : [key, ...(key2 === undefined ? [] : [key2])];
}

const SETTINGS = {
  'container-retention': 'containerRetentionDays',
  'share-retention': 'shareRetentionDays',
} as const satisfies Record<string, keyof AccountSettings>;

function parseSettings(values: { readonly [Flag in keyof typeof SETTINGS]?: string | undefined }) {
  const settings: { -readonly [Name in keyof AccountSettings]?: AccountSettings[Name] } = {};
  for (const flag of ['container-retention', 'share-retention'] as const) {
    const text = values[flag];
    if (text !== undefined) settings[SETTINGS[flag]] = parseDays(flag, text);
  }
  if (Object.keys(settings).length > 0) return settings;
  throw new StartError('account set needs a setting: --container-retention <days> or --share-retention <days>.');
}

function parseDays(flag: string, text: string): number {
  const days = /^\d{1,3}$/.test(text) ? Number(text) : Number.NaN;
  if (!(days <= 365)) throw new StartError(`--${flag} is 0 to 365 days, not ${text}.`);
  return days;
}

function parseWhich(text = '1'): 1 | 2 {
  if (text !== '1' && text !== '2') throw new StartError(`--which is 1 or 2, not ${text}.`);
  return text === '1' ? 1 : 2;
}
