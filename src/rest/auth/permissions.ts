/** Authorization: whether an identity may run an operation. */
import { commonErrors, errorFactory, type StorageError } from '../../services/common/errors.ts';
import type { ServiceName } from '../../services/common/names.ts';
import type { Granted } from '../../services/common/storage.ts';
import type { Operation, Permission, Request, ResourceType, Right, Shape } from '../operation.ts';
import type { AccountSas, ContainerAccess, Identity, LookUpAccess, ServiceSas } from './identity.ts';

const fail = errorFactory(commonErrors);

export type OperationAccess = Pick<Operation<never>, 'permission' | 'shape'> & {
  readonly anonymous?: boolean;
  readonly resourceType?: ResourceType | undefined;
};

const LETTERS: Readonly<Record<Right, string>> = {
  read: 'r',
  add: 'a',
  create: 'c',
  write: 'w',
  delete: 'd',
  'permanent delete': 'y',
  list: 'l',
  update: 'u',
  process: 'p',
  tags: 't',
  filter: 'f',
};
const SERVICE_LETTERS: Readonly<Record<ServiceName, string>> = { blob: 'b', queue: 'q', table: 't', file: 'f' };
const RESOURCE_TYPES: Readonly<Record<Shape, ResourceType>> = {
  '/': 's',
  '/{container}': 'c',
  '/{container}/{blob}': 'o',
  '/{queue}': 'c',
  '/{queue}/messages': 'o',
  '/{queue}/messages/{message}': 'o',
  '/$batch': 'o',
  '/Tables': 'c',
  '/Tables({table})': 'c',
  '/{table}': 'o',
  '/{table}({keys})': 'o',
  '/{share}': 'c',
  '/{share}/{path}': 'o',
};

/** The restrictions that the operation itself must enforce; throws if the identity may not run it at all. Anonymous callers: authorizeAnonymous. */
export function authorize(
  identity: Exclude<Identity, { kind: 'anonymous' }>,
  row: OperationAccess,
  service: ServiceName,
  name: string,
  usesTags = false,
): Granted | undefined {
  if (identity.kind === 'owner') return undefined;
  if (identity.kind === 'account SAS') checkAccountSasScope(identity, row, service);
  else checkServiceSasScope(identity, row, name);
  if (row.permission === 'owner') throw fail('AuthorizationFailure');
  const { letters, all } = requiredLetters(row.permission);
  const granted = letters.filter((letter) => identity.permissions.includes(letter));
  if (granted.length < (all ? letters.length : Math.min(1, letters.length)))
    throw fail('AuthorizationPermissionMismatch');
  if (usesTags && !identity.permissions.includes(LETTERS.tags)) throw fail('AuthorizationPermissionMismatch');
  const onlyCreates = granted.length > 0 && granted.every((letter) => letter === 'c');
  const { container, entities } = identity.kind === 'service SAS' ? identity : {};
  if (!onlyCreates && container === undefined && entities === undefined) return undefined;
  return { ...(onlyCreates && { overwrite: false }), container, entities };
}

function checkAccountSasScope(
  { services, resourceTypes }: AccountSas,
  row: OperationAccess,
  service: ServiceName,
): void {
  if (!services.includes(SERVICE_LETTERS[service])) throw fail('AuthorizationServiceMismatch');
  if (row.permission === 'any') return;
  if (!resourceTypes.includes(resourceTypeOf(row))) throw fail('AuthorizationResourceTypeMismatch');
}

function resourceTypeOf({ resourceType, shape }: OperationAccess): ResourceType {
  return resourceType ?? RESOURCE_TYPES[shape];
}

/**
 * A signature for a container covers the items in it: of the container's own operations it permits lists and searches only, and of a queue's own
 * operations the reads.
 */
const CONTAINER_LEVEL_PERMISSIONS: Readonly<Partial<Record<Shape, readonly Permission[]>>> = {
  '/{container}': ['list', 'filter'],
  '/{queue}': ['read'],
  '/{share}': ['list'],
  '/{share}/{path}': ['list'],
};

function checkServiceSasScope({ table }: ServiceSas, row: OperationAccess, name: string): void {
  const { permission, shape } = row;
  if (permission === 'any') return;
  if (resourceTypeOf(row) !== 'o' && !CONTAINER_LEVEL_PERMISSIONS[shape]?.includes(permission))
    throw fail('AuthorizationFailure');
  if (table !== undefined && table !== name.toLowerCase()) throw fail('AuthorizationFailure');
}

function requiredLetters(permission: Permission): { readonly letters: readonly string[]; readonly all: boolean } {
  if (permission === 'owner' || permission === 'any') return { letters: [], all: false };
  const all = typeof permission === 'object' && 'all' in permission;
  const rights = typeof permission === 'string' ? [permission] : all ? permission.all : permission;
  return { letters: rights.map((right) => LETTERS[right]), all };
}

/** Whether a request reads or writes tags beside what its operation does: that requires the right to tags, too. */
export function namesTags({ headers, query }: Pick<Request, 'headers' | 'query'>): boolean {
  if (headers['x-ms-tags'] !== undefined || headers['x-ms-if-tags'] !== undefined) return true;
  return query.include?.split(',').some((part) => part.trim().toLowerCase() === 'tags') ?? false;
}

/** Whether a container of this access level permits the operation to anonymous callers. */
function isPublic(row: OperationAccess, level: ContainerAccess['level']): boolean {
  if (level === undefined || row.anonymous === false) return false;
  if (row.shape === '/{container}/{blob}') return row.permission === 'read';
  return (
    level === 'container' && row.shape === '/{container}' && (row.permission === 'read' || row.permission === 'list')
  );
}

/** Throws unless the container is open to the public. */
export async function authorizeAnonymous(
  row: OperationAccess,
  request: Request,
  lookUpAccess: LookUpAccess,
): Promise<Granted> {
  const { container, version } = request;
  const access = container === '' ? undefined : await lookUpAccess(container);
  if (!access || !isPublic(row, access.level) || namesTags(request)) throw anonymousRefused(version);
  return { container: access.id };
}

/** From this version on Azure asks an anonymous caller for credentials. */
const CHALLENGE_SINCE = '2019-12-12';

/** Azure does not reveal to an anonymous caller what exists. */
export function anonymousRefused(version: string): StorageError {
  return fail(version >= CHALLENGE_SINCE ? 'NoAuthenticationInformation' : 'ResourceNotFound');
}

/** The header overrides of a signature apply to reads of a blob or file only. */
export function responseOverrides(identity: Identity, row: OperationAccess): ServiceSas['responseHeaders'] | undefined {
  const readsItem =
    row.permission === 'read' && (row.shape === '/{container}/{blob}' || row.shape === '/{share}/{path}');
  return identity.kind === 'service SAS' && readsItem ? identity.responseHeaders : undefined;
}
