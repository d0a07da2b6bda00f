/** Command line parser: reads flags by a table of them, and prints the table as help. */
import { parseArgs } from 'node:util';
import { StartError } from '../server/config.ts';

export interface Flag {
  readonly type: 'string' | 'boolean';
  /** It may be given several times: its value is a list. */
  readonly repeats?: true;
  readonly short?: string;
  /** What the help calls its value. */
  readonly value?: string;
  readonly help: string;
}

export type Flags = Readonly<Record<string, Flag>>;

export type Values<Table extends Flags> = {
  readonly [Name in keyof Table]?: Table[Name] extends { readonly repeats: true }
    ? readonly string[]
    : Table[Name]['type'] extends 'boolean'
      ? true
      : string;
};

export interface ParsedArguments<Table extends Flags> {
  readonly values: Values<Table>;
  /** Words that are neither a flag nor its value. */
  readonly positionals: readonly string[];
}

/** Throws a StartError for a flag that is not in the table, or without its value. */
export function parseArguments<const Table extends Flags>(
  words: readonly string[],
  flags: Table,
): ParsedArguments<Table> {
  const args = joinBooleanValues(
    words.map((word) => canonicalFlag(word, flags)),
    flags,
  );
  const { tokens } = parseArgs({ args, options: flags, strict: false, tokens: true });
  const values: Record<string, string | true | readonly string[]> = {};
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value);
    if (token.kind !== 'option') continue;
    const { name, value, rawName } = token;
    const flag = Object.hasOwn(flags, name) ? flags[name] : undefined;
    if (!flag) throw unknownFlag(name, rawName, flags);
    if (flag.type === 'boolean') {
      if (value !== undefined && !BOOLEAN.test(value))
        throw new StartError(`${rawName} is true or false, not ${value}: write just ${rawName}.`);
      // If a flag is given twice, the last one counts.
      if (value?.toLowerCase() === 'false') delete values[name];
      else values[name] = true;
    } else {
      if (!value || (!token.inlineValue && value.startsWith('--'))) {
        throw new StartError(`${rawName} needs a value: ${rawName} <${flag.value}>.`);
      }
      values[name] = flag.repeats ? [...((values[name] as readonly string[] | undefined) ?? []), value] : value;
    }
  }
  return { values: values as Values<Table>, positionals };
}

/** --blob-port and --blobport are --blobPort, and --no-loose is --loose=false. */
function canonicalFlag(word: string, flags: Flags): string {
  const [, spelling = '', rest = ''] = /^--([^=]+)(=.*)?$/s.exec(word) ?? [];
  const findFlag = (text: string) => Object.keys(flags).find((each) => normalizeName(each) === normalizeName(text));
  const name = spelling && findFlag(spelling);
  if (name) return `--${name}${rest}`;
  const negated = /^no-./i.test(spelling) && rest === '' ? findFlag(spelling.slice(3)) : undefined;
  return negated && flags[negated]!.type === 'boolean' ? `--${negated}=false` : word;
}

const BOOLEAN = /^(?:true|false)$/i;

/** Azurite also accepts `--loose true`: the next word is the value of the flag. */
function joinBooleanValues(words: readonly string[], flags: Flags): string[] {
  const joined: string[] = [];
  for (const word of words) {
    const last = joined.at(-1) ?? '';
    if (BOOLEAN.test(word) && last.startsWith('--') && flags[last.slice(2)]?.type === 'boolean') {
      joined[joined.length - 1] = `${last}=${word}`;
    } else joined.push(word);
  }
  return joined;
}

function unknownFlag(name: string, rawName: string, flags: Flags): StartError {
  return new StartError(
    `There is no flag ${rawName}.${suggestion(name, Object.keys(flags), '--') || ' See holdfast --help.'}`,
  );
}

export function formatFlags(flags: Flags): string {
  const rows = Object.entries(flags).map(([name, { short, value, help }]) => {
    const left = `${short ? `-${short}, ` : '    '}--${name}${value ? ` <${value}>` : ''}`;
    return `  ${left.padEnd(38)}${help}`;
  });
  return rows.join('\n');
}

/** A sentence that names the known word nearest to a misspelt one; empty if none is near. */
export function suggestion(word: string, known: readonly string[], prefix = ''): string {
  const [near] = known
    .map((name) => ({ name, distance: editDistance(normalizeName(word), normalizeName(name)) }))
    .filter(({ name, distance }) => distance <= Math.ceil(name.length / 3))
    .sort((one, other) => one.distance - other.distance);
  return near ? ` Did you mean ${prefix}${near.name}?` : '';
}

function normalizeName(name: string): string {
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
