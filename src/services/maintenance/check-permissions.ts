/** The check of permissions: what a directory or file names is there, and is what its key says. */
import { decodeKey } from '../../partition/keys.ts';
import type { Row, Snapshot } from '../../partition/partition.ts';
import { decodeBytes } from '../../partition/values.ts';
import { decodeDescriptor } from '../../rules/file/security-descriptor.ts';
import { hashDescriptor, isBuiltInPermission } from '../file/permissions.ts';
import { permissionKey, type ShareKeys } from '../file/rows.ts';

export function checkPermission(row: Row): void {
  const hash = decodeKey(row.key).at(-1);
  const bytes = decodeBytes(row);
  if (hashDescriptor(bytes) !== hash) throw new Error('its bytes have another hash');
  if (decodeDescriptor(bytes) === undefined) throw new Error('it is no security descriptor');
}

export async function checkPermissionOf(
  at: Snapshot,
  share: ShareKeys,
  { permission }: { readonly permission: string },
): Promise<void> {
  if (!isBuiltInPermission(permission) && !(await at.get(permissionKey(share, permission))))
    throw new Error(`its permission ${permission} is missing`);
}
