/** File attributes: the bits of MS-FSCC 2.6 and the names of x-ms-file-attributes. */

export const READ_ONLY = 0x1;
export const HIDDEN = 0x2;
export const SYSTEM = 0x4;
export const DIRECTORY = 0x10;
export const ARCHIVE = 0x20;
/** Shown by SMB alone: x-ms-file-attributes has no name for it. */
export const SPARSE = 0x200;

/** In the order of the bits, which is the order of Azure's answers. */
const NAMES: readonly (readonly [name: string, bit: number])[] = [
  ['ReadOnly', READ_ONLY],
  ['Hidden', HIDDEN],
  ['System', SYSTEM],
  ['Directory', DIRECTORY],
  ['Archive', ARCHIVE],
  ['Temporary', 0x100],
  ['Offline', 0x1000],
  ['NotContentIndexed', 0x2000],
  ['NoScrubData', 0x2_0000],
];
const BITS = new Map(NAMES.map(([name, bit]) => [name.toLowerCase(), bit]));
const NONE = 'None';

export type NodeKind = 'file' | 'directory';

/** `ReadOnly|Archive`, in any case and with spaces around the bars. Undefined: a name is unknown, or is not for this kind. */
export function parseAttributes(text: string, kind: NodeKind): number | undefined {
  if (text.trim().toLowerCase() === NONE.toLowerCase()) return withKind(0, kind);
  let attributes = 0;
  for (const name of text.split('|')) {
    const bit = BITS.get(name.trim().toLowerCase());
    if (bit === undefined || (bit === DIRECTORY && kind === 'file')) return undefined;
    attributes |= bit;
  }
  return withKind(attributes, kind);
}

/** By attributes: most shares have a few combinations. */
const formatted = new Map<number, string>();
const FORMATTED_MAX = 1_000;

/** `ReadOnly | Archive`, as Azure writes it. */
export function formatAttributes(attributes: number): string {
  let text = formatted.get(attributes);
  if (text === undefined) {
    text = joinNames(attributes);
    if (formatted.size < FORMATTED_MAX) formatted.set(attributes, text);
  }
  return text;
}

function joinNames(attributes: number): string {
  const names = NAMES.filter(([, bit]) => attributes & bit).map(([name]) => name);
  return names.length === 0 ? NONE : names.join(' | ');
}

export function isReadOnly(attributes: number): boolean {
  return (attributes & READ_ONLY) !== 0;
}

/** What creates a file marks it for the next backup, as a file system does. */
export function attributesOfNew(attributes: number, kind: NodeKind): number {
  return kind === 'file' ? attributes | ARCHIVE : withKind(attributes, kind);
}

export function withKind(attributes: number, kind: NodeKind): number {
  return kind === 'directory' ? attributes | DIRECTORY : attributes;
}
