/** Flags of `holdfast check`. */
import type { Where } from '../server/public.ts';
import { StartError } from '../server/public.ts';
import { DEFAULT_LOCATION, defineSubcommand, extents, location, partition, partitionFrom } from './subcommand.ts';

export const check = defineSubcommand({
  usage: [
    ['check', 'read and verify all rows and bytes of a folder; a server may run on it meanwhile'],
    ['check --partition <URL> --extents <folder>', 'the same for a store that servers share'],
  ],
  notes:
    'It changes nothing. It ends with 0 if everything is in order, and otherwise with 1 and a line for each finding.',
  flags: { location, partition, extents },
  parse({ values, positionals }, env): Where {
    if (positionals[0] !== undefined) throw new StartError(`Unexpected ${positionals[0]}: flags begin with --.`);
    const url = partitionFrom(values, env);
    if (url === undefined) {
      if (values.extents !== undefined) throw new StartError('--extents goes with --partition: give that, too.');
      return values.location ?? DEFAULT_LOCATION;
    }
    if (values.extents === undefined) throw new StartError('check --partition looks at the bytes, too: --extents.');
    return { partition: url, extents: values.extents };
  },
});
