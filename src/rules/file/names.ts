/** Names and paths of directories and files. Share names have the rules of containers. */
import { foldName } from './folding.ts';

export { foldName } from './folding.ts';

/** UTF-16 units, as .NET counts. */
const NAME_MAX = 255;
const PATH_MAX = 2048;
const DEPTH_MAX = 250;

// Control characters, and those that SMB reserves.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are refused
const INVALID = /["\\/:|<>*?\x00-\x1f\x80-\x9f]/;
const PRIVATE_USE = /[\ue000-\uf8ff]/;
const RESERVED = /^(?:LPT[1-9]|COM[1-9]|PRN|AUX|NUL|CON|CLOCK\$|\.\.?)$/;

export type PathFault = 'InvalidResourceName' | 'PathTooLong' | 'TooManySubdirectories';

/** A name in a directory, as given and folded. */
export interface Name {
  readonly name: string;
  readonly folded: string;
}

/** From the root on; empty: the root itself. */
export type Path = readonly Name[];

export interface PathOptions {
  /** Without it the dots at the end of each name are cut off, as Windows does. */
  readonly keepsTrailingDots?: boolean | undefined;
  /** Clients of SMB write characters that SMB reserves as characters of the private use area; in an address these are refused. */
  readonly allowsPrivateUse?: boolean | undefined;
}

/** One slash at the end is allowed: Azure removes it from directories. */
export function parsePath(
  text: string,
  { keepsTrailingDots = false, allowsPrivateUse = false }: PathOptions = {},
): Path | PathFault {
  const trimmed = text.endsWith('/') ? text.slice(0, -1) : text;
  if (trimmed === '') return [];
  if (trimmed.length > PATH_MAX) return 'PathTooLong';
  const path: Name[] = [];
  for (const part of trimmed.split('/')) {
    const name = keepsTrailingDots || RESERVED.test(part) ? part : withoutTrailingDots(part);
    const folded = foldName(name);
    if (name === '' || INVALID.test(name) || !name.isWellFormed() || RESERVED.test(folded))
      return 'InvalidResourceName';
    if (!allowsPrivateUse && PRIVATE_USE.test(name)) return 'InvalidResourceName';
    if (name.length > NAME_MAX) return 'PathTooLong';
    path.push({ name, folded });
  }
  return path.length > DEPTH_MAX ? 'TooManySubdirectories' : path;
}

export const formatPath = (path: Path): string => path.map(({ name }) => name).join('/');

/** A regular expression for dots at the end takes quadratic time for dots in the middle. */
function withoutTrailingDots(name: string): string {
  let end = name.length;
  while (name[end - 1] === '.') end--;
  return name.slice(0, end);
}
