/** The headers x-ms-file-* of SMB properties, in requests and in answers. */
import { formatIso7 } from '../../base/time.ts';
import type { NodeKind } from '../../rules/file/attributes.ts';
import type { PermissionFormat } from '../../rules/file/permission.ts';
import { fail } from '../../services/file/errors.ts';
import type { Node } from '../../services/file/node-rows.ts';
import {
  parsePermissionFormat,
  parsePermissionKey,
  parseSmb,
  type SentSmb,
  SMB_HEADERS,
  type SmbOperation,
} from '../../services/file/smb-input.ts';
import { type AskedSmb, formatAttributes } from '../../services/file/smb-properties.ts';
import type { Reader, Request } from '../operation.ts';
import { reader } from '../params.ts';
import type { ReplyHeaders } from '../reply.ts';

/** The version that brought SMB properties, and the one since which a client need not send them. */
const SINCE = '2019-02-02';
const OPTIONAL_SINCE = '2021-06-08';
const REQUIRED = ['attributes', 'creation', 'lastWrite'] as const;
const NAMES = Object.entries(SMB_HEADERS) as [keyof SentSmb, string][];

/** Create Directory and Create File. */
export const newSmb = (kind: NodeKind) => smbReader(kind, 'create', true);

/** Set Directory Properties and Set File Properties. */
export const changedSmb = (kind: NodeKind) => smbReader(kind, 'change', true);

/** Rename Directory and Rename File: what is not named stays, in every version. */
export const renamedSmb = (kind: NodeKind) => smbReader(kind, 'change', false);

/** Copy File: what is not named is that of a new file. */
export const copiedSmb = smbReader('file', 'copy', false);

export const permissionKeyHeader: Reader<string> = reader((request) => {
  const key = parsePermissionKey(readSent(request));
  if (key === undefined) throw fail('MissingRequiredHeader', { HeaderName: SMB_HEADERS.permissionKey });
  return key;
});

export const permissionFormatHeader: Reader<PermissionFormat | undefined> = reader((request) =>
  parsePermissionFormat(readSent(request)),
);

/**
 * Adds them to the headers of a reply; versions that do not know SMB properties have none. Literal names: V8 makes a slow object of computed
 * ones, and of those that come after a spread.
 */
export function addSmbHeaders(headers: ReplyHeaders, node: Node, { version }: Pick<Request, 'version'>): ReplyHeaders {
  if (isBefore(version, SINCE)) return headers;
  const { attributes, times, permission, id, parent } = node;
  const creation = formatIso7(times.creation);
  const lastWrite = times.lastWrite === times.creation ? creation : formatIso7(times.lastWrite);
  headers['x-ms-file-attributes'] = formatAttributes(attributes);
  headers['x-ms-file-creation-time'] = creation;
  headers['x-ms-file-last-write-time'] = lastWrite;
  headers['x-ms-file-change-time'] = times.change === times.lastWrite ? lastWrite : formatIso7(times.change);
  headers['x-ms-file-permission-key'] = permission;
  headers['x-ms-file-id'] = id.toString();
  headers['x-ms-file-parent-id'] = parent.toString();
  return headers;
}

function smbReader(kind: NodeKind, operation: SmbOperation, isRequired: boolean): Reader<AskedSmb> {
  return reader((request) => {
    const sent = readSent(request);
    if (isRequired && !isBefore(request.version, SINCE) && isBefore(request.version, OPTIONAL_SINCE)) checkSent(sent);
    return parseSmb(sent, kind, operation);
  });
}

function readSent({ headers }: Request): SentSmb {
  const sent: { -readonly [Name in keyof SentSmb]?: string | undefined } = {};
  // Microsoft's SDKs send empty headers for what they do not set.
  for (const [name, header] of NAMES) sent[name] = String(headers[header] ?? '') || undefined;
  return sent as SentSmb;
}

function checkSent(sent: SentSmb): void {
  const permission = sent.permissionKey === undefined ? 'permission' : 'permissionKey';
  for (const name of [permission, ...REQUIRED] as const) {
    if (sent[name] === undefined) throw fail('MissingRequiredHeader', { HeaderName: SMB_HEADERS[name] });
  }
}

/** A request without a version counts as one of the newest. */
function isBefore(version: string, since: string): boolean {
  return version !== '' && version < since;
}
