/** Flags of `holdfast clock`. */
import { StartError } from '../server/config.ts';
import { DEFAULT_LOCATION, defineSubcommand, json, location } from './subcommand.ts';

export interface ClockCommand {
  readonly location: string;
  readonly setBack: boolean;
  readonly json: boolean;
}

export const clock = defineSubcommand({
  usage: [
    ['clock', "how far the time of the data is ahead of this machine's clock"],
    ['clock --set-back', 'let it go by that clock again, while no server runs'],
  ],
  flags: {
    location,
    'set-back': { type: 'boolean', help: "give the data the time of this machine's clock" },
    json,
  },
  parse({ values, positionals }): ClockCommand {
    if (positionals[0] !== undefined) throw new StartError(`Unexpected ${positionals[0]}: flags begin with --.`);
    return {
      location: values.location ?? DEFAULT_LOCATION,
      setBack: values['set-back'] ?? false,
      json: values.json ?? false,
    };
  },
});
