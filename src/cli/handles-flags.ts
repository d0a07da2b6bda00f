/** Flags and arguments of `holdfast handles`. */
import { StartError } from '../server/config.ts';
import { DEFAULT_LOCATION, defineSubcommand, json, location } from './subcommand.ts';

const actions = ['list', 'close'] as const;

interface HandlesFlags {
  readonly location: string;
  readonly account: string | undefined;
  readonly json: boolean;
}

/** A share, and a path in it. */
export interface HandlePlace {
  readonly share: string;
  readonly path: string;
}

interface ClosedByCommand {
  /** `*`: all. */
  readonly id: string;
  readonly isRecursive: boolean;
}

export type HandlesCommand = HandlesFlags &
  (
    | { readonly action: 'list'; readonly place: HandlePlace | undefined }
    | { readonly action: 'close'; readonly place: HandlePlace; readonly closes: ClosedByCommand }
  );

export const handles = defineSubcommand({
  usage: [
    ['handles list [<share>[/<path>]]', 'what clients have open in a share, or in all, below a directory or of a file'],
    ['handles close <share>[/<path>] --id <id>', 'close one handle of a file or directory'],
    ['handles close <share>[/<path>] --all', 'close all its handles; with --recursive all below a directory, too'],
  ],
  notes:
    'Files are open only while a server runs. The clients of servers that share a store are asked for by List Handles, and closed by Force Close Handles, at any of these servers.',
  flags: {
    location,
    account: {
      type: 'string',
      short: 'a',
      value: 'name',
      help: 'of which account (devstoreaccount1, or the only one)',
    },
    json,
    id: { type: 'string', value: 'id', help: 'close: the handle, as list prints it' },
    all: { type: 'boolean', help: 'close: every handle' },
    recursive: { type: 'boolean', help: 'close: also what is below the directory' },
  },
  parse({ values, positionals: [word, place, ...more] }): HandlesCommand {
    const action = actions.find((each) => each === word);
    if (!action) throw new StartError(`handles ${word ?? 'needs to know what to do'}: ${actions.join(' or ')}.`);
    if (more[0] !== undefined) throw new StartError(`Unexpected ${more[0]}: flags begin with --.`);
    const common = {
      location: values.location ?? DEFAULT_LOCATION,
      account: values.account,
      json: values.json ?? false,
    };
    const named = place === undefined ? undefined : parsePlace(place);
    const { id, all = false, recursive = false } = values;
    if (action === 'list') {
      if (id !== undefined || all || recursive)
        throw new StartError('--id, --all and --recursive belong to handles close.');
      return { ...common, action, place: named };
    }
    if (!named) throw new StartError('handles close needs a share: handles close <share>[/<path>].');
    if ((id === undefined) === !all) throw new StartError('handles close needs either --id <id> or --all.');
    return { ...common, action, place: named, closes: { id: id ?? '*', isRecursive: recursive } };
  },
});

function parsePlace(text: string): HandlePlace {
  const end = text.indexOf('/');
  return end < 0 ? { share: text, path: '' } : { share: text.slice(0, end), path: text.slice(end + 1) };
}
