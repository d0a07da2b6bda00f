/** The security descriptor definition language, MS-DTYP 2.5.1, without conditional entries, which Azure takes and gives in binary only. */
import { formatFlags, formatRights, formatType, parseFlags, parseRights, parseType } from './sddl-letters.ts';
import {
  type Ace,
  type Acl,
  CONTROL,
  decodeAccess,
  encodeAccess,
  type GrantedAccess,
  isObjectType,
  LIST_BYTES_MAX,
  type SecurityDescriptor,
} from './security-descriptor.ts';
import { abbreviateSid, parseSid } from './sid.ts';

const NO_ACCESS_CONTROL = 'NO_ACCESS_CONTROL';
const SECTION = /([OGDS]):/iy;
const LIST_FLAGS = /(?:NO_ACCESS_CONTROL|P|AR|AI)/iy;
const ENTRY = /\(([^()]*)\)/y;
const SID_TEXT = /S-1-[0-9a-fx-]+(?=[OGDS]:|$)|[A-Z]{2}/iy;
const GUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Undefined: the text is not SDDL, or names what this server does not know, or more than a list can hold. */
export function parseSddl(text: string): SecurityDescriptor | undefined {
  const scanner = new Scanner(text);
  let control = 0;
  const found: { owner?: string; group?: string; sacl?: Acl; dacl?: Acl } = {};
  while (!scanner.atEnd) {
    const section = scanner.take(SECTION)?.[1]?.toUpperCase();
    if (section === undefined) return undefined;
    if (section === 'O' || section === 'G') {
      const field = section === 'O' ? 'owner' : 'group';
      const sid = parseSid(scanner.take(SID_TEXT)?.[0] ?? '');
      if (sid === undefined || found[field] !== undefined) return undefined;
      found[field] = sid;
    } else {
      const field = section === 'D' ? 'dacl' : 'sacl';
      const list = parseList(scanner, field);
      if (list === undefined || found[field] !== undefined) return undefined;
      found[field] = list.entries;
      control |= list.control;
    }
  }
  const { owner, group, sacl, dacl } = found;
  return { control, owner, group, sacl, dacl };
}

/** Undefined: an entry has a condition or other bytes of its own. */
export function formatSddl({ control, owner, group, sacl, dacl }: SecurityDescriptor): string | undefined {
  const lists = [formatList(dacl, control, 'dacl'), formatList(sacl, control, 'sacl')];
  if (lists.includes(undefined)) return undefined;
  const owners = (owner ? `O:${abbreviateSid(owner)}` : '') + (group ? `G:${abbreviateSid(group)}` : '');
  return owners + lists.join('');
}

function parseList(scanner: Scanner, list: 'dacl' | 'sacl'): { entries: Acl; control: number } | undefined {
  let control = 0;
  let isNull = false;
  for (let flag = scanner.take(LIST_FLAGS); flag !== null; flag = scanner.take(LIST_FLAGS)) {
    const word = flag[0].toUpperCase();
    if (word === 'P') control |= CONTROL[`${list}Protected`];
    else if (word === 'AR') control |= CONTROL[`${list}AutoInheritRequired`];
    else if (word === 'AI') control |= CONTROL[`${list}AutoInherited`];
    else isNull = true;
  }
  const entries: Ace[] = [];
  const kinds = new Map<string, EntryKind>();
  let bytes = 0;
  for (let entry = scanner.take(ENTRY); entry !== null; entry = scanner.take(ENTRY)) {
    const ace = parseEntry(entry[1]!, kinds);
    if (ace === undefined || isNull) return undefined;
    bytes += ace.body.length;
    if (bytes > LIST_BYTES_MAX) return undefined;
    entries.push(ace);
  }
  return { entries: isNull ? null : entries, control };
}

/** All of an entry but its identifier: the entries of a list have few different ones. */
interface EntryKind extends GrantedAccess {
  readonly type: number;
  readonly flags: number;
}

function parseEntry(text: string, kinds: Map<string, EntryKind>): Ace | undefined {
  const end = text.lastIndexOf(';');
  const kindText = text.slice(0, end);
  let kind = kinds.get(kindText);
  if (kind === undefined) {
    kind = parseEntryKind(kindText);
    if (kind === undefined) return undefined;
    kinds.set(kindText, kind);
  }
  const sid = parseSid(text.slice(end + 1).trim());
  return sid === undefined ? undefined : encodeAccess(kind.type, kind.flags, kind, sid);
}

function parseEntryKind(text: string): EntryKind | undefined {
  const fields = text.split(';').map((field) => field.trim());
  // A condition or a resource attribute would be the seventh, after the identifier.
  if (fields.length !== 5) return undefined;
  const [typeText, flagsText, rightsText, objectText, inheritedObjectText] = fields as [
    string,
    string,
    string,
    string,
    string,
  ];
  const type = parseType(typeText);
  const flags = parseFlags(flagsText);
  const mask = parseRights(rightsText);
  const objectType = parseGuid(objectText);
  const inheritedObjectType = parseGuid(inheritedObjectText);
  if (type === undefined || flags === undefined || mask === undefined) return undefined;
  if (objectType === 'invalid' || inheritedObjectType === 'invalid') return undefined;
  if (!isObjectType(type) && (objectType || inheritedObjectType)) return undefined;
  return { type, flags, mask, objectType, inheritedObjectType };
}

function formatList(list: Acl | undefined, control: number, name: 'dacl' | 'sacl'): string | undefined {
  if (list === undefined) return '';
  const entries = list === null ? [NO_ACCESS_CONTROL] : list.map(formatEntry);
  if (entries.includes(undefined)) return undefined;
  const flags =
    (control & CONTROL[`${name}Protected`] ? 'P' : '') +
    (control & CONTROL[`${name}AutoInheritRequired`] ? 'AR' : '') +
    (control & CONTROL[`${name}AutoInherited`] ? 'AI' : '');
  return `${name === 'dacl' ? 'D' : 'S'}:${flags}${entries.join('')}`;
}

function formatEntry(ace: Ace): string | undefined {
  const access = decodeAccess(ace);
  const flags = formatFlags(ace.flags);
  if (access === undefined || flags === undefined) return undefined;
  const rights = formatRights(access.mask, ace.type);
  const guids = `${formatGuid(access.objectType)};${formatGuid(access.inheritedObjectType)}`;
  return `(${formatType(ace.type)};${flags};${rights};${guids};${abbreviateSid(access.sid)})`;
}

/** The first three groups are little-endian. */
function parseGuid(text: string): Buffer | undefined | 'invalid' {
  if (text === '') return undefined;
  if (!GUID.test(text)) return 'invalid';
  return swapGuid(Buffer.from(text.replaceAll('-', ''), 'hex'));
}

function formatGuid(bytes: Buffer | undefined): string {
  if (bytes === undefined) return '';
  return swapGuid(bytes)
    .toString('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

function swapGuid(bytes: Buffer): Buffer {
  const swapped = Buffer.from(bytes);
  swapped.subarray(0, 4).swap32();
  swapped.subarray(4, 8).swap16();
  return swapped;
}

/** Walks the text once: each pattern is sticky and tried at one place. */
class Scanner {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  get atEnd(): boolean {
    return this.#at === this.#text.length;
  }

  take(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text);
    if (match !== null) this.#at = pattern.lastIndex;
    return match;
  }
}
