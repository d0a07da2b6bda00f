import type { Flags, Line } from '../command-line.ts';

/** Behind `holdfast`, with what it does: a line each. */
export type Usage = readonly (readonly [words: string, does: string])[];

/** A command with flags of its own, and its help. */
export interface OwnCommand<Table extends Flags, Read> {
  readonly usage: Usage;
  readonly flags: Table;
  /** Throws a StartError for what cannot be done. */
  read(line: Line<Table>): Read;
}

export function ownCommand<const Table extends Flags, Read>(command: OwnCommand<Table, Read>): OwnCommand<Table, Read> {
  return command;
}

export const location = {
  type: 'string',
  short: 'l',
  value: 'folder',
  help: 'where the data is (./holdfast-data)',
} as const;
export const json = { type: 'boolean', help: 'print JSON, for scripts' } as const;
export const DEFAULT_LOCATION = 'holdfast-data';
