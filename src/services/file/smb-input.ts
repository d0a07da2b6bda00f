/** SMB properties as a request has them, and what they ask for. */
import { type NodeKind, parseAttributes } from '../../rules/file/attributes.ts';
import { PERMISSION_HEADER_BYTES_MAX, type PermissionFormat, parsePermission } from '../../rules/file/permission.ts';
import { type AskedTime, type AskedTimes, parseTime } from '../../rules/file/times.ts';
import { fail } from './errors.ts';
import type { AskedPermission } from './permissions.ts';
import type { AskedSmb } from './smb-properties.ts';

export const SMB_HEADERS = {
  attributes: 'x-ms-file-attributes',
  creation: 'x-ms-file-creation-time',
  lastWrite: 'x-ms-file-last-write-time',
  change: 'x-ms-file-change-time',
  permission: 'x-ms-file-permission',
  permissionKey: 'x-ms-file-permission-key',
  permissionFormat: 'x-ms-file-permission-format',
  semantics: 'x-ms-file-property-semantics',
  permissionCopyMode: 'x-ms-file-permission-copy-mode',
  setsArchive: 'x-ms-file-copy-set-archive',
} as const;

/** As sent; undefined: absent or empty. */
export type SentSmb = { readonly [Name in keyof typeof SMB_HEADERS]: string | undefined };

/** Which words stand for values depends on it. */
export type SmbOperation = 'create' | 'change' | 'copy';

const TIME_WORDS = { create: ['now'], change: ['now', 'preserve'], copy: ['source'] } as const;
/** The word for a property that stays as it is, or as it is in the source of a copy. */
const KEEP_WORDS = { create: undefined, change: 'preserve', copy: 'source' } as const;
const TIMES = ['creation', 'lastWrite', 'change'] as const;
const PERMISSION_KEY = /^\d{1,20}\*\d{1,20}$/;

export function parseSmb(sent: SentSmb, kind: NodeKind, operation: SmbOperation): AskedSmb {
  const permission = parseAskedPermission(sent, operation);
  return {
    attributes: parseAskedAttributes(sent, kind, operation),
    times: parseTimes(sent, operation),
    permission,
    // Without a permission there is nothing to restore.
    semantics: typeof permission === 'object' ? parseWord(sent, 'semantics', ['new', 'restore']) : undefined,
    setsArchive: parseWord(sent, 'setsArchive', ['true', 'false']) !== 'false',
  };
}

export function parsePermissionKey(sent: Pick<SentSmb, 'permissionKey'>): string | undefined {
  const { permissionKey: key } = sent;
  if (key !== undefined && !PERMISSION_KEY.test(key)) throw invalid('permissionKey', key);
  return key;
}

export function parsePermissionFormat(sent: Pick<SentSmb, 'permissionFormat'>): PermissionFormat | undefined {
  return parseWord(sent, 'permissionFormat', ['sddl', 'binary']);
}

function parseAskedAttributes({ attributes: text }: SentSmb, kind: NodeKind, operation: SmbOperation) {
  if (text === undefined) return undefined;
  const word = KEEP_WORDS[operation];
  if (word !== undefined && text.toLowerCase() === word) return word;
  const attributes = parseAttributes(text, kind);
  if (attributes === undefined) throw invalid('attributes', text);
  return attributes;
}

function parseTimes(sent: SentSmb, operation: SmbOperation): Partial<AskedTimes> {
  const found: { -readonly [Time in (typeof TIMES)[number]]?: AskedTime } = {};
  for (const name of TIMES) {
    const text = sent[name];
    if (text === undefined) continue;
    const time = parseTime<AskedTime & string>(text, TIME_WORDS[operation]);
    if (time === undefined) throw invalid(name, text);
    found[name] = time;
  }
  // What is created with a last write in the past has not changed since.
  if (operation === 'create' && found.lastWrite !== undefined) found.change ??= found.lastWrite;
  return found;
}

function parseAskedPermission(sent: SentSmb, operation: SmbOperation): AskedPermission | undefined {
  const { permission: text } = sent;
  const key = parsePermissionKey(sent);
  const mode = parseWord(sent, 'permissionCopyMode', ['source', 'override']);
  if (mode === 'source') return mode;
  if (text !== undefined && (key !== undefined || text.length > PERMISSION_HEADER_BYTES_MAX))
    throw invalid('permission', text);
  if (key !== undefined) return { key };
  if (text !== undefined) return parseNamedPermission(sent, text, operation);
  if (mode === 'override') throw fail('MissingRequiredHeader', { HeaderName: SMB_HEADERS.permission });
  return undefined;
}

function parseNamedPermission(sent: SentSmb, text: string, operation: SmbOperation): AskedPermission {
  const word = text.toLowerCase();
  if (word === 'inherit' || (word === 'preserve' && operation === 'change')) return word;
  const descriptor = parsePermission(text, parsePermissionFormat(sent) ?? 'sddl');
  if (descriptor === undefined) throw fail('FileInvalidPermission');
  return { descriptor };
}

function parseWord<const Word extends string>(
  sent: Partial<SentSmb>,
  name: keyof SentSmb,
  words: readonly Word[],
): Word | undefined {
  const text = sent[name];
  if (text === undefined) return undefined;
  const word = words.find((one) => one === text.toLowerCase());
  if (word === undefined) throw invalid(name, text);
  return word;
}

function invalid(name: keyof SentSmb, value: string) {
  return fail('InvalidHeaderValue', { HeaderName: SMB_HEADERS[name], HeaderValue: value });
}
