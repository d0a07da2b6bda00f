/** Whether a caller may do what a row of the operation table does. */
import { commonErrors, raising, type StorageError } from '../../services/errors.ts';
import type { Granted } from '../../services/storage.ts';
import type { Operation, Permission, Shape } from '../operation.ts';
import type { AccountSas, Identity, ServiceSas } from './identity.ts';

const fail = raising(commonErrors);

export type Asked = Pick<Operation<never>, 'permission' | 'shape'>;

const LETTERS = { read: 'r', add: 'a', create: 'c', write: 'w', delete: 'd', list: 'l' } as const;
const RESOURCE_TYPES: Readonly<Record<Shape, string>> = { '/': 's', '/{container}': 'c', '/{container}/{blob}': 'o' };

/** What the operation itself must mind; throws if the caller may not run it at all. Who is anonymous is looked at elsewhere. */
export function permit(
  identity: Exclude<Identity, { kind: 'anonymous' }>,
  row: Asked,
  service: string,
): Granted | undefined {
  if (identity.kind === 'owner') return undefined;
  if (identity.kind === 'account SAS') checkScope(identity, row, service);
  else checkReach(row);
  if (row.permission === 'owner') throw fail('AuthorizationFailure');
  const letters = lettersOf(row.permission);
  const held = letters.filter((letter) => identity.permissions.includes(letter));
  if (held.length === 0 && row.permission !== 'any') throw fail('AuthorizationPermissionMismatch');
  const creates = held.length > 0 && held.every((letter) => letter === 'c');
  const container = identity.kind === 'service SAS' ? identity.container : undefined;
  if (!creates && container === undefined) return undefined;
  return { ...(creates && { overwrite: false }), ...(container !== undefined && { container }) };
}

function checkScope({ services, resourceTypes }: AccountSas, row: Asked, service: string): void {
  if (!services.includes(service)) throw fail('AuthorizationServiceMismatch');
  if (row.permission === 'any') return;
  if (!resourceTypes.includes(RESOURCE_TYPES[row.shape])) throw fail('AuthorizationResourceTypeMismatch');
}

/** A signature for a container is for what is in it: of the container's own operations it opens the list only. */
function checkReach(row: Asked): void {
  if (row.permission === 'any' || row.shape === '/{container}/{blob}') return;
  if (row.shape !== '/{container}' || row.permission !== 'list') throw fail('AuthorizationFailure');
}

function lettersOf(permission: Permission): readonly string[] {
  if (permission === 'owner' || permission === 'any') return [];
  const names = typeof permission === 'string' ? [permission] : permission;
  return names.map((name) => LETTERS[name]);
}

/** Whether a container of this access level lets strangers do it. */
export function isPublic(row: Asked, level: 'blob' | 'container' | undefined): boolean {
  if (level === undefined) return false;
  if (row.shape === '/{container}/{blob}') return row.permission === 'read';
  return (
    level === 'container' && row.shape === '/{container}' && (row.permission === 'read' || row.permission === 'list')
  );
}

/** From this version on the service asks a stranger for credentials. */
const CHALLENGE_SINCE = '2019-12-12';

/** The service does not tell a stranger what exists. */
export function strangerRefused(version: string): StorageError {
  return fail(version >= CHALLENGE_SINCE ? 'NoAuthenticationInformation' : 'ResourceNotFound');
}

/** Overrides of a signature change what a read of a blob says, and nothing else. */
export function overridesOf(identity: Identity, row: Asked): ServiceSas['responseHeaders'] | undefined {
  if (identity.kind !== 'service SAS' || row.permission !== 'read' || row.shape !== '/{container}/{blob}')
    return undefined;
  return identity.responseHeaders;
}
