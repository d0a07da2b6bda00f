/** Flags of `holdfast import`. */
import { parseAccounts, StartError, type StartOptions } from '../server/config.ts';
import { DEFAULT_LOCATION, defineSubcommand, json, location, partition, partitionFrom } from './subcommand.ts';

export interface ImportCommand {
  /** The folder of an Azurite. */
  readonly from: string;
  /** Where the data goes. */
  readonly to: Pick<StartOptions, 'location' | 'partition' | 'extents' | 'accounts'>;
  readonly json: boolean;
}

export const imports = defineSubcommand({
  usage: [['import --from-azurite <folder>', 'take over the data of a stopped Azurite']],
  notes:
    'Stop Azurite first: one that runs is refused where it is noticed. It ends with 0 if everything was imported, with 2 if something\nis missing, which is listed with the reason, and with 1 if the import was refused or ended early.',
  flags: {
    'from-azurite': { type: 'string', value: 'folder', help: 'the folder of the Azurite, which stays as it is' },
    location: { ...location, help: 'where the data goes (./holdfast-data)' },
    partition,
    extents: { type: 'string', value: 'folder', help: 'with --partition: the bytes that processes share' },
    json,
  },
  parse({ values, positionals }, env): ImportCommand {
    if (positionals[0] !== undefined) throw new StartError(`Unexpected ${positionals[0]}: flags begin with --.`);
    const from = values['from-azurite'];
    if (from === undefined) throw new StartError('import needs the folder of an Azurite: --from-azurite <folder>.');
    const url = partitionFrom(values, env);
    const accounts = env.AZURITE_ACCOUNTS ? { accounts: parseAccounts(env.AZURITE_ACCOUNTS) } : {};
    const place =
      url === undefined
        ? {
            location: values.location ?? DEFAULT_LOCATION,
            ...(values.extents !== undefined && { extents: values.extents }),
          }
        : { partition: url, ...(values.extents !== undefined && { extents: values.extents }) };
    return { from, to: { ...place, ...accounts }, json: values.json ?? false };
  },
});
