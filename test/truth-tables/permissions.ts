/**
 * Permissions of signatures, as Microsoft's pages "Create an account SAS" and "Create a service SAS" have it, written
 * down from them and not from the server's own table.
 *
 * Where the two differ: an account SAS opens a container's own operations, a service SAS for the container only its list.
 * Where they are silent: a container's access policies need the key; Get Account Information is for every caller that has been
 * given anything at all, and so is a Blob Batch, whose parts are signed one by one.
 */

/** The resource type of a signature: a service, a container or an object; a service SAS: a blob, a container, a directory. */
export type ResourceType = 's' | 'c' | 'o';
export type SignedResource = 'b' | 'c' | 'd';

export interface PermissionRow {
  readonly operation: string;
  /** Where a row of the server's table stands for several. */
  readonly variant?: string;
  readonly method: string;
  /** {fresh} is a name that nothing has yet. */
  readonly path: string;
  readonly query?: string;
  /** With these an allowed request changes nothing that other rows need. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Any of these letters will do; 'any': whichever there is. */
  readonly account: { readonly types: string; readonly letters: string };
  readonly service: { readonly on: string; readonly letters: string };
}

export const ACCOUNT_LETTERS = [...'rwdxylacuptfi'];
export const SERVICE_LETTERS = [...'racwdxyltfmeopi'];

/** Checked after authorization: the request is allowed and does nothing. */
const UNMET = { 'If-Match': '"0x1"' };
const UNMET_DATE = { 'If-Unmodified-Since': 'Thu, 01 Jan 1970 00:00:00 GMT' };
const LEASE_ID = 'aaaaaaaa-0000-4000-8000-00000000000a';

const service = (letters: string) => ({
  account: { types: 's', letters },
  service: { on: '', letters: '' },
});
const container = (letters: string) => ({
  account: { types: 'c', letters },
  service: { on: '', letters: '' },
});
const object = (letters: string) => ({
  account: { types: 'o', letters },
  service: { on: 'bcd', letters },
});

/** Without parts, each of which would need a signature of its own. */
const BATCH = { headers: { 'Content-Type': 'multipart/mixed; boundary=b' }, body: '--b--' };
const CONTAINER = '/{container}';
const BLOB = '/{container}/dir/blob';
const FRESH = '/{container}/dir/{fresh}';

// biome-ignore format: a table
export const permissionRows: readonly PermissionRow[] = [
  { operation: 'List Containers', method: 'GET', path: '/', query: 'comp=list', ...service('l') },
  { operation: 'Get Blob Service Properties', method: 'GET', path: '/', query: 'restype=service&comp=properties', ...service('r') },
  { operation: 'Set Blob Service Properties', method: 'PUT', path: '/', query: 'restype=service&comp=properties', body: '<StorageServiceProperties><Cors /></StorageServiceProperties>', ...service('w') },
  { operation: 'Get Blob Service Stats', method: 'GET', path: '/', query: 'restype=service&comp=stats', ...service('r') },
  { operation: 'Get Account Information', variant: 'of the account', method: 'GET', path: '/', query: 'restype=account&comp=properties', ...service('any'), account: { types: 'sco', letters: 'any' } },
  { operation: 'Get Account Information', variant: 'at a container', method: 'HEAD', path: CONTAINER, query: 'restype=account&comp=properties', account: { types: 'sco', letters: 'any' }, service: { on: 'c', letters: 'any' } },
  { operation: 'Get Account Information', variant: 'at a blob', method: 'GET', path: BLOB, query: 'restype=account&comp=properties', account: { types: 'sco', letters: 'any' }, service: { on: 'bcd', letters: 'any' } },
  { operation: 'Blob Batch', variant: 'of the account', method: 'POST', path: '/', query: 'comp=batch', ...BATCH, ...service('any'), account: { types: 'sco', letters: 'any' } },
  { operation: 'Blob Batch', variant: 'of a container', method: 'POST', path: CONTAINER, query: 'restype=container&comp=batch', ...BATCH, account: { types: 'sco', letters: 'any' }, service: { on: 'c', letters: 'any' } },

  { operation: 'Create Container', method: 'PUT', path: CONTAINER, query: 'restype=container', ...container('cw') },
  { operation: 'Get Container Properties', method: 'GET', path: CONTAINER, query: 'restype=container', ...container('r') },
  { operation: 'Get Container Metadata', method: 'HEAD', path: CONTAINER, query: 'restype=container&comp=metadata', ...container('r') },
  { operation: 'Set Container Metadata', method: 'PUT', path: CONTAINER, query: 'restype=container&comp=metadata', headers: { 'If-Modified-Since': 'Fri, 31 Dec 2100 00:00:00 GMT' }, ...container('w') },
  { operation: 'Get Container ACL', method: 'GET', path: CONTAINER, query: 'restype=container&comp=acl', ...container('') },
  { operation: 'Set Container ACL', method: 'PUT', path: CONTAINER, query: 'restype=container&comp=acl', headers: UNMET_DATE, ...container('') },
  { operation: 'Delete Container', method: 'DELETE', path: CONTAINER, query: 'restype=container', headers: UNMET_DATE, ...container('d') },
  { operation: 'Restore Container', method: 'PUT', path: CONTAINER, query: 'restype=container&comp=undelete', headers: { 'x-ms-deleted-container-name': 'not-there', 'x-ms-deleted-container-version': '08DE000000000000' }, ...container('cw') },
  { operation: 'Rename Container', method: 'PUT', path: CONTAINER, query: 'restype=container&comp=rename', headers: { 'x-ms-source-container-name': 'not-there' }, ...container('') },
  { operation: 'Lease Container', variant: 'acquire', method: 'PUT', path: CONTAINER, query: 'restype=container&comp=lease', headers: { 'x-ms-lease-action': 'acquire', 'x-ms-lease-duration': '15', ...UNMET_DATE }, ...container('w') },
  { operation: 'Lease Container', variant: 'renew', method: 'PUT', path: CONTAINER, query: 'restype=container&comp=lease', headers: { 'x-ms-lease-action': 'renew', 'x-ms-lease-id': LEASE_ID }, ...container('w') },
  { operation: 'Lease Container', variant: 'break', method: 'PUT', path: CONTAINER, query: 'restype=container&comp=lease', headers: { 'x-ms-lease-action': 'break' }, ...container('wd') },
  { operation: 'List Blobs', method: 'GET', path: CONTAINER, query: 'restype=container&comp=list', ...container('l'), service: { on: 'c', letters: 'l' } },

  { operation: 'Find Blobs by Tags', method: 'GET', path: '/', query: 'comp=blobs&where=a%3D%27b%27', ...service('f') },
  { operation: 'Find Blobs by Tags in Container', method: 'GET', path: CONTAINER, query: 'restype=container&comp=blobs&where=a%3D%27b%27', ...container('f'), service: { on: 'c', letters: 'f' } },

  { operation: 'Put Blob', method: 'PUT', path: FRESH, headers: { 'x-ms-blob-type': 'BlockBlob' }, body: 'new', ...object('cw') },
  { operation: 'Get Blob', method: 'GET', path: BLOB, ...object('r') },
  { operation: 'Get Blob Properties', method: 'HEAD', path: BLOB, ...object('r') },
  { operation: 'Get Blob Metadata', method: 'GET', path: BLOB, query: 'comp=metadata', ...object('r') },
  { operation: 'Set Blob Metadata', method: 'PUT', path: BLOB, query: 'comp=metadata', headers: UNMET, ...object('w') },
  { operation: 'Set Blob Properties', method: 'PUT', path: BLOB, query: 'comp=properties', headers: UNMET, ...object('w') },
  { operation: 'Delete Blob', method: 'DELETE', path: BLOB, headers: UNMET, ...object('d') },
  { operation: 'Lease Blob', variant: 'acquire', method: 'PUT', path: BLOB, query: 'comp=lease', headers: { 'x-ms-lease-action': 'acquire', 'x-ms-lease-duration': '15', ...UNMET }, ...object('w') },
  { operation: 'Lease Blob', variant: 'change', method: 'PUT', path: BLOB, query: 'comp=lease', headers: { 'x-ms-lease-action': 'change', 'x-ms-lease-id': LEASE_ID, 'x-ms-proposed-lease-id': LEASE_ID }, ...object('w') },
  { operation: 'Lease Blob', variant: 'release', method: 'PUT', path: BLOB, query: 'comp=lease', headers: { 'x-ms-lease-action': 'release', 'x-ms-lease-id': LEASE_ID }, ...object('w') },
  { operation: 'Lease Blob', variant: 'break', method: 'PUT', path: BLOB, query: 'comp=lease', headers: { 'x-ms-lease-action': 'break' }, ...object('wd') },
  { operation: 'Set Blob Tier', method: 'PUT', path: BLOB, query: 'comp=tier', headers: { 'x-ms-access-tier': 'Hot' }, ...object('w') },
  { operation: 'Copy Blob', method: 'PUT', path: FRESH, headers: { 'x-ms-copy-source': '{source}' }, ...object('cw') },
  { operation: 'Copy Blob From URL', method: 'PUT', path: FRESH, headers: { 'x-ms-copy-source': '{source}', 'x-ms-requires-sync': 'true' }, ...object('cw') },
  { operation: 'Put Blob From URL', method: 'PUT', path: FRESH, headers: { 'x-ms-copy-source': '{source}', 'x-ms-blob-type': 'BlockBlob' }, ...object('cw') },
  { operation: 'Put Block From URL', method: 'PUT', path: FRESH, query: 'comp=block&blockid=YQ%3D%3D', headers: { 'x-ms-copy-source': '{source}' }, ...object('w') },
  { operation: 'Snapshot Blob', method: 'PUT', path: BLOB, query: 'comp=snapshot', ...object('cw') },
  { operation: 'Undelete Blob', method: 'PUT', path: BLOB, query: 'comp=undelete', ...object('w') },
  { operation: 'Get Blob Tags', method: 'GET', path: BLOB, query: 'comp=tags', ...object('t') },
  { operation: 'Set Blob Tags', method: 'PUT', path: BLOB, query: 'comp=tags', body: '<Tags><TagSet /></Tags>', ...object('t') },
  { operation: 'Incremental Copy Blob', method: 'PUT', path: FRESH, query: 'comp=incrementalcopy', headers: { 'x-ms-copy-source': '{source}', ...UNMET }, ...object('cw') },
  { operation: 'Abort Copy Blob', method: 'PUT', path: BLOB, query: `comp=copy&copyid=${LEASE_ID}`, headers: { 'x-ms-copy-action': 'abort' }, ...object('w') },
  { operation: 'Put Block', method: 'PUT', path: FRESH, query: 'comp=block&blockid=YQ%3D%3D', body: 'block', ...object('w') },
  { operation: 'Put Block List', method: 'PUT', path: FRESH, query: 'comp=blocklist', body: '<BlockList />', ...object('w') },
  { operation: 'Get Block List', method: 'GET', path: BLOB, query: 'comp=blocklist', ...object('r') },
  { operation: 'Put Blob (append blob)', method: 'PUT', path: FRESH, headers: { 'x-ms-blob-type': 'AppendBlob' }, ...object('cw') },
  { operation: 'Append Block', method: 'PUT', path: BLOB, query: 'comp=appendblock', headers: UNMET, body: 'block', ...object('aw') },
  { operation: 'Append Block From URL', method: 'PUT', path: BLOB, query: 'comp=appendblock', headers: { 'x-ms-copy-source': '{source}', ...UNMET }, ...object('aw') },
  { operation: 'Put Blob (page blob)', method: 'PUT', path: FRESH, headers: { 'x-ms-blob-type': 'PageBlob', 'x-ms-blob-content-length': '512' }, ...object('cw') },
  { operation: 'Put Page', method: 'PUT', path: BLOB, query: 'comp=page', headers: { 'x-ms-page-write': 'update', 'x-ms-range': 'bytes=0-511', ...UNMET }, body: 'x'.repeat(512), ...object('w') },
  { operation: 'Put Page From URL', method: 'PUT', path: BLOB, query: 'comp=page', headers: { 'x-ms-page-write': 'update', 'x-ms-range': 'bytes=0-511', 'x-ms-source-range': 'bytes=0-511', 'x-ms-copy-source': '{source}', ...UNMET }, ...object('w') },
  { operation: 'Clear Page', method: 'PUT', path: BLOB, query: 'comp=page', headers: { 'x-ms-page-write': 'clear', 'x-ms-range': 'bytes=0-511', ...UNMET }, ...object('w') },
  { operation: 'Get Page Ranges', method: 'GET', path: BLOB, query: 'comp=pagelist', ...object('r') },
  { operation: 'Append Blob Seal', method: 'PUT', path: BLOB, query: 'comp=seal', headers: UNMET, ...object('w') },
];

/** Answered before authentication. */
export const forEveryone: readonly string[] = ['Preflight Blob Request'];

export interface PermissionCell {
  readonly row: PermissionRow;
  readonly title: string;
  readonly sas:
    | { readonly kind: 'account'; readonly services: string; readonly types: string; readonly letters: string }
    | { readonly kind: 'service'; readonly resource: SignedResource; readonly letters: string };
  /** Undefined: it is allowed. */
  readonly code: string | undefined;
}

const allows = (wanted: string, letters: string) =>
  wanted === 'any' ? letters !== '' : [...letters].some((letter) => wanted.includes(letter));

/** All letters but those that would do. */
const others = (all: readonly string[], wanted: string) => all.filter((letter) => !wanted.includes(letter)).join('');

export function cellsOf(row: PermissionRow): PermissionCell[] {
  const cells: PermissionCell[] = [];
  const name = row.variant === undefined ? row.operation : `${row.operation} (${row.variant})`;
  const all =
    row.account.letters === 'any'
      ? ACCOUNT_LETTERS
      : [...ACCOUNT_LETTERS, others(ACCOUNT_LETTERS, row.account.letters)];
  for (const types of ['s', 'c', 'o', others(['s', 'c', 'o'], row.account.types)]) {
    if (types === '') continue;
    for (const letters of all) {
      const isFor = allows(row.account.types, types);
      cells.push({
        row,
        title: `${name} by an account SAS for ${types} with ${letters}`,
        sas: { kind: 'account', services: 'b', types, letters },
        code: !isFor
          ? 'AuthorizationResourceTypeMismatch'
          : allows(row.account.letters, letters)
            ? undefined
            : row.account.letters === ''
              ? 'AuthorizationFailure'
              : 'AuthorizationPermissionMismatch',
      });
    }
  }
  cells.push({
    row,
    title: `${name} by an account SAS for other services`,
    sas: { kind: 'account', services: 'qtf', types: 'sco', letters: ACCOUNT_LETTERS.join('') },
    code: 'AuthorizationServiceMismatch',
  });
  for (const resource of ['b', 'c', 'd'] as const) {
    const wanted = row.service.on.includes(resource) ? row.service.letters : '';
    for (const letters of wanted === 'any' ? SERVICE_LETTERS : [...SERVICE_LETTERS, others(SERVICE_LETTERS, wanted)]) {
      cells.push({
        row,
        title: `${name} by a service SAS for ${resource} with ${letters}`,
        sas: { kind: 'service', resource, letters },
        code: allows(wanted, letters) ? undefined : serviceCode(row, resource),
      });
    }
  }
  return cells;
}

/** A signature for another resource than that of the URL is refused. */
function serviceCode({ path, service }: PermissionRow, resource: SignedResource): string {
  if (service.on.includes(resource)) return 'AuthorizationPermissionMismatch';
  return path !== '/' && resource === 'c' ? 'AuthorizationFailure' : 'AuthenticationFailed';
}
