/** A permission in a request and in an answer: a security descriptor as SDDL, or as the base64 of its binary form. */
import { formatSddl, parseSddl } from './sddl.ts';
import { decodeDescriptor, encodeDescriptor, type SecurityDescriptor } from './security-descriptor.ts';

export type PermissionFormat = 'sddl' | 'binary';

/** Of x-ms-file-permission; longer ones are stored first, by Create Permission, and named by their key. */
export const PERMISSION_HEADER_BYTES_MAX = 8 << 10;

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Undefined: not in this format, or without an owner, a group or a discretionary list, or too long for a descriptor. */
export function parsePermission(text: string, format: PermissionFormat): SecurityDescriptor | undefined {
  const descriptor = format === 'sddl' ? parseSddl(text) : parseBase64(text);
  if (descriptor?.owner === undefined || descriptor.group === undefined || descriptor.dacl === undefined)
    return undefined;
  return encodeDescriptor(descriptor) && describeAudit(descriptor);
}

/** Undefined: SDDL has no words for an entry. */
export function formatPermission(bytes: Buffer, format: PermissionFormat): string | undefined {
  return format === 'binary' ? bytes.toString('base64') : formatSddl(decodeDescriptor(bytes)!);
}

/** Azure answers a permission that was named without a list for audits as one that has an empty list: S:NO_ACCESS_CONTROL. */
export function describeAudit(descriptor: SecurityDescriptor): SecurityDescriptor {
  return descriptor.sacl === undefined ? { ...descriptor, sacl: null } : descriptor;
}

function parseBase64(text: string): SecurityDescriptor | undefined {
  return BASE64.test(text) ? decodeDescriptor(Buffer.from(text, 'base64')) : undefined;
}
