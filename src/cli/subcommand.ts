import { isPartitionUrl, StartError } from '../server/config.ts';
import type { Flags, ParsedArguments } from './arguments.ts';

/** Behind `holdfast`, with what it does: a line each. */
export type Usage = readonly (readonly [words: string, does: string])[];

/** A command with flags of its own, and its help. */
export interface Subcommand<Table extends Flags, Read> {
  readonly usage: Usage;
  readonly flags: Table;
  /** Throws a StartError for what cannot be done. */
  parse(line: ParsedArguments<Table>, env: NodeJS.ProcessEnv): Read;
}

export function defineSubcommand<const Table extends Flags, Read>(
  command: Subcommand<Table, Read>,
): Subcommand<Table, Read> {
  return command;
}

export const location = {
  type: 'string',
  short: 'l',
  value: 'folder',
  help: 'where the data is (./holdfast-data)',
} as const;
export const partition = {
  type: 'string',
  value: 'URL',
  help: 'rows that processes share: postgres://... (HOLDFAST_PARTITION)',
} as const;

/** The one of the environment, unless a folder is named. Throws a StartError. */
export function partitionFrom(
  values: { readonly partition?: string | undefined; readonly location?: string | undefined },
  env: NodeJS.ProcessEnv,
): string | undefined {
  const { partition: given, location: folder } = values;
  if (given !== undefined && folder !== undefined)
    throw new StartError('Data is either in a folder (--location) or in --partition: leave one out.');
  const url = given ?? (folder === undefined ? env.HOLDFAST_PARTITION || undefined : undefined);
  if (url !== undefined && !isPartitionUrl(url))
    throw new StartError('--partition is a URL, as in postgres://user:password@host:5432/database.');
  return url;
}

export const json = { type: 'boolean', help: 'print JSON, for scripts' } as const;
export const DEFAULT_LOCATION = 'holdfast-data';
