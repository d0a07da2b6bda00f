/** A subcommand: its flags, its help, and the flags that several subcommands share. */
import { isPartitionUrl, StartError } from '../server/config.ts';

export { DEFAULT_LOCATION } from '../server/config.ts';

import type { Flags, ParsedArguments } from './arguments.ts';

/** Lines of the help: the words after `holdfast`, and what the command does. */
export type Usage = readonly (readonly [words: string, does: string])[];

export interface Subcommand<Table extends Flags, Read> {
  readonly usage: Usage;
  /** A sentence of the help, below the usage. */
  readonly notes?: string;
  readonly flags: Table;
  /** Throws a StartError for flags that contradict each other. */
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

export const extents = {
  type: 'string',
  value: 'folder',
  help: 'with --partition: the bytes that processes share',
} as const;

/** The URL given by flag; that of the environment only if no folder is named. Throws a StartError. */
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
