/**
 * Permissions of a caller without any credential, operation by operation and by the access level of the container, written down from
 * Microsoft's pages on anonymous read access to containers and blobs, and not from the server's own tables.
 *
 * Where they are silent: nothing of queues, tables and shares is open, and a preflight is answered to every page.
 */
import type { ServiceName } from '../../src/services/common/names.ts';

/** The least access level that opens the operation. */
export type OpenAt = 'blob' | 'container' | 'never' | 'always';

export interface AnonymousRow {
  readonly service: ServiceName;
  readonly operation: string;
  /** The method, and the path after the account. */
  readonly request: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly open: OpenAt;
}

type Line = readonly [operation: string, request: string, open: OpenAt, headers?: Readonly<Record<string, string>>];

const SOURCE = { 'x-ms-copy-source': 'http://127.0.0.1/devstoreaccount1/other/blob' };
const SYNC = { 'x-ms-requires-sync': 'true' };
const MATCH = { 'If-Match': '*' };
const PAGE = { Origin: 'http://page.example', 'Access-Control-Request-Method': 'GET' };

// biome-ignore format: a table
const BLOB: readonly Line[] = [
  ['List Containers', 'GET /?comp=list', 'never'],
  ['Get Blob Service Properties', 'GET /?restype=service&comp=properties', 'never'],
  ['Set Blob Service Properties', 'PUT /?restype=service&comp=properties', 'never'],
  ['Get Blob Service Stats', 'GET /?restype=service&comp=stats', 'never'],
  ['Preflight Blob Request', 'OPTIONS /', 'always', PAGE],
  ['Preflight Blob Request', 'OPTIONS /{container}', 'always', PAGE],
  ['Preflight Blob Request', 'OPTIONS /{container}/dir/blob', 'always', PAGE],
  ['Get Account Information', 'GET /?restype=account&comp=properties', 'never'],
  ['Get Account Information', 'HEAD /{container}?restype=account&comp=properties', 'never'],
  ['Get Account Information', 'GET /{container}/dir/blob?restype=account&comp=properties', 'never'],
  ['Get User Delegation Key', 'POST /?restype=service&comp=userdelegationkey', 'never'],
  ['Blob Batch', 'POST /?comp=batch', 'never'],
  ['Blob Batch', 'POST /?restype=container&comp=batch', 'never'],
  ['Find Blobs by Tags', 'GET /?comp=blobs', 'never'],

  ['Create Container', 'PUT /{container}?restype=container', 'never'],
  ['Get Container Properties', 'GET /{container}?restype=container', 'container'],
  ['Get Container Metadata', 'HEAD /{container}?restype=container&comp=metadata', 'container'],
  ['Set Container Metadata', 'PUT /{container}?restype=container&comp=metadata', 'never'],
  ['Get Container ACL', 'GET /{container}?restype=container&comp=acl', 'never'],
  ['Set Container ACL', 'PUT /{container}?restype=container&comp=acl', 'never'],
  ['Delete Container', 'DELETE /{container}?restype=container', 'never'],
  ['Lease Container', 'PUT /{container}?restype=container&comp=lease', 'never', { 'x-ms-lease-action': 'acquire' }],
  ['Lease Container', 'PUT /{container}?restype=container&comp=lease', 'never', { 'x-ms-lease-action': 'break' }],
  ['List Blobs', 'GET /{container}?restype=container&comp=list', 'container'],
  ['Restore Container', 'PUT /{container}?restype=container&comp=undelete', 'never'],
  ['Rename Container', 'PUT /{container}?restype=container&comp=rename', 'never'],
  ['Blob Batch', 'POST /{container}?restype=container&comp=batch', 'never'],
  ['Blob Batch', 'POST /{container}?comp=batch', 'never'],
  ['Find Blobs by Tags in Container', 'GET /{container}?restype=container&comp=blobs', 'never'],
  ['Create Session', 'POST /{container}?restype=container&comp=session', 'never'],

  ['Put Blob', 'PUT /{container}/dir/new', 'never', { 'x-ms-blob-type': 'BlockBlob' }],
  ['Put Blob (append blob)', 'PUT /{container}/dir/new', 'never', { 'x-ms-blob-type': 'AppendBlob' }],
  ['Put Blob (page blob)', 'PUT /{container}/dir/new', 'never', { 'x-ms-blob-type': 'PageBlob' }],
  ...['BlockBlob', 'AppendBlob', 'PageBlob'].flatMap((type): readonly Line[] => [
    ['Put Blob From URL', 'PUT /{container}/dir/new', 'never', { 'x-ms-blob-type': type, ...SOURCE }],
    ['Put Blob From URL', 'PUT /{container}/dir/new', 'never', { 'x-ms-blob-type': type, ...SOURCE, ...SYNC }],
  ]),
  ['Get Blob', 'GET /{container}/dir/blob', 'blob'],
  ['Get Blob Properties', 'HEAD /{container}/dir/blob', 'blob'],
  ['Get Blob Metadata', 'GET /{container}/dir/blob?comp=metadata', 'blob'],
  ['Set Blob Metadata', 'PUT /{container}/dir/blob?comp=metadata', 'never'],
  ['Set Blob Properties', 'PUT /{container}/dir/blob?comp=properties', 'never'],
  ['Delete Blob', 'DELETE /{container}/dir/blob', 'never'],
  ['Delete Blob', 'DELETE /{container}/dir/blob?deletetype=permanent', 'never'],
  ['Undelete Blob', 'PUT /{container}/dir/blob?comp=undelete', 'never'],
  ['Lease Blob', 'PUT /{container}/dir/blob?comp=lease', 'never', { 'x-ms-lease-action': 'acquire' }],
  ['Lease Blob', 'PUT /{container}/dir/blob?comp=lease', 'never', { 'x-ms-lease-action': 'break' }],
  ['Snapshot Blob', 'PUT /{container}/dir/blob?comp=snapshot', 'never'],
  ['Copy Blob', 'PUT /{container}/dir/new', 'never', SOURCE],
  ['Copy Blob From URL', 'PUT /{container}/dir/new', 'never', { ...SOURCE, ...SYNC }],
  ['Abort Copy Blob', 'PUT /{container}/dir/blob?comp=copy&copyid=1', 'never', { 'x-ms-copy-action': 'abort' }],
  ['Incremental Copy Blob', 'PUT /{container}/dir/blob?comp=incrementalcopy', 'never'],
  ['Set Blob Tier', 'PUT /{container}/dir/blob?comp=tier', 'never'],
  ['Set Blob Expiry', 'PUT /{container}/dir/blob?comp=expiry', 'never'],
  ['Set Blob Immutability Policy', 'PUT /{container}/dir/blob?comp=immutabilityPolicies', 'never'],
  ['Delete Blob Immutability Policy', 'DELETE /{container}/dir/blob?comp=immutabilityPolicies', 'never'],
  ['Set Blob Legal Hold', 'PUT /{container}/dir/blob?comp=legalhold', 'never'],
  ['Get Blob Tags', 'GET /{container}/dir/blob?comp=tags', 'never'],
  ['Set Blob Tags', 'PUT /{container}/dir/blob?comp=tags', 'never'],
  ['Query Blob Contents', 'POST /{container}/dir/blob?comp=query', 'never'],

  ['Put Block', 'PUT /{container}/dir/new?comp=block&blockid=YQ%3D%3D', 'never'],
  ['Put Block From URL', 'PUT /{container}/dir/new?comp=block&blockid=YQ%3D%3D', 'never', SOURCE],
  ['Put Block List', 'PUT /{container}/dir/new?comp=blocklist', 'never'],
  ['Get Block List', 'GET /{container}/dir/blob?comp=blocklist', 'blob'],
  ['Get Block List', 'GET /{container}/dir/blob?comp=blocklist&blocklisttype=committed', 'blob'],
  ['Get Block List', 'GET /{container}/dir/blob?comp=blocklist&blocklisttype=uncommitted', 'never'],
  ['Get Block List', 'GET /{container}/dir/blob?comp=blocklist&blocklisttype=all', 'never'],
  ['Get Block List', 'GET /{container}/dir/blob?comp=blocklist&BlockListType=ALL', 'never'],
  ['Append Block', 'PUT /{container}/dir/blob?comp=appendblock', 'never'],
  ['Append Block From URL', 'PUT /{container}/dir/blob?comp=appendblock', 'never', SOURCE],
  ['Append Blob Seal', 'PUT /{container}/dir/blob?comp=seal', 'never'],
  ['Put Page', 'PUT /{container}/dir/blob?comp=page', 'never', { 'x-ms-page-write': 'update' }],
  ['Put Page From URL', 'PUT /{container}/dir/blob?comp=page', 'never', { 'x-ms-page-write': 'update', ...SOURCE }],
  ['Clear Page', 'PUT /{container}/dir/blob?comp=page', 'never', { 'x-ms-page-write': 'clear' }],
  ['Get Page Ranges', 'GET /{container}/dir/disk?comp=pagelist', 'blob'],
];

// biome-ignore format: a table
const QUEUE: readonly Line[] = [
  ['List Queues', 'GET /?comp=list', 'never'],
  ['Get Queue Service Properties', 'GET /?restype=service&comp=properties', 'never'],
  ['Set Queue Service Properties', 'PUT /?restype=service&comp=properties', 'never'],
  ['Get Queue Service Stats', 'GET /?restype=service&comp=stats', 'never'],
  ['Get User Delegation Key', 'POST /?restype=service&comp=userdelegationkey', 'never'],
  ['Preflight Queue Request', 'OPTIONS /', 'always', PAGE],
  ['Preflight Queue Request', 'OPTIONS /{container}', 'always', PAGE],
  ['Preflight Queue Request', 'OPTIONS /{container}/messages', 'always', PAGE],
  ['Preflight Queue Request', 'OPTIONS /{container}/messages/1', 'always', PAGE],
  ['Create Queue', 'PUT /{container}', 'never'],
  ['Delete Queue', 'DELETE /{container}', 'never'],
  ['Get Queue Metadata', 'GET /{container}?comp=metadata', 'never'],
  ['Set Queue Metadata', 'PUT /{container}?comp=metadata', 'never'],
  ['Get Queue ACL', 'HEAD /{container}?comp=acl', 'never'],
  ['Set Queue ACL', 'PUT /{container}?comp=acl', 'never'],
  ['Put Message', 'POST /{container}/messages', 'never'],
  ['Get Messages', 'GET /{container}/messages', 'never'],
  ['Peek Messages', 'GET /{container}/messages?peekonly=true', 'never'],
  ['Clear Messages', 'DELETE /{container}/messages', 'never'],
  ['Delete Message', 'DELETE /{container}/messages/1?popreceipt=1', 'never'],
  ['Update Message', 'PUT /{container}/messages/1?popreceipt=1&visibilitytimeout=0', 'never'],
];

// biome-ignore format: a table
const TABLE: readonly Line[] = [
  ['Get Table Service Properties', 'GET /?restype=service&comp=properties', 'never'],
  ['Set Table Service Properties', 'PUT /?restype=service&comp=properties', 'never'],
  ['Get Table Service Stats', 'GET /?restype=service&comp=stats', 'never'],
  ['Preflight Table Request', 'OPTIONS /', 'always', PAGE],
  ['Preflight Table Request', 'OPTIONS /$batch', 'always', PAGE],
  ['Preflight Table Request', 'OPTIONS /Tables', 'always', PAGE],
  ['Preflight Table Request', "OPTIONS /Tables('{container}')", 'always', PAGE],
  ['Preflight Table Request', 'OPTIONS /{container}', 'always', PAGE],
  ['Preflight Table Request', "OPTIONS /{container}(PartitionKey='p',RowKey='r')", 'always', PAGE],
  ['Query Tables', 'GET /Tables', 'never'],
  ['Query Tables', "GET /Tables('{container}')", 'never'],
  ['Create Table', 'POST /Tables', 'never'],
  ['Delete Table', "DELETE /Tables('{container}')", 'never'],
  ['Get Table ACL', 'GET /{container}?comp=acl', 'never'],
  ['Set Table ACL', 'PUT /{container}?comp=acl', 'never'],
  ['Query Entities', 'GET /{container}()', 'never'],
  ['Get Entity', "GET /{container}(PartitionKey='p',RowKey='r')", 'never'],
  ['Insert Entity', 'POST /{container}', 'never'],
  ['Update Entity', "PUT /{container}(PartitionKey='p',RowKey='r')", 'never', MATCH],
  ['Insert Or Replace Entity', "PUT /{container}(PartitionKey='p',RowKey='r')", 'never'],
  ['Merge Entity', "PATCH /{container}(PartitionKey='p',RowKey='r')", 'never', MATCH],
  ['Insert Or Merge Entity', "MERGE /{container}(PartitionKey='p',RowKey='r')", 'never'],
  ['Delete Entity', "DELETE /{container}(PartitionKey='p',RowKey='r')", 'never', MATCH],
  ['Entity Group Transaction', 'POST /$batch', 'never'],
];

// biome-ignore format: a table
const FILE: readonly Line[] = [
  ['List Shares', 'GET /?comp=list', 'never'],
  ['Get File Service Properties', 'GET /?restype=service&comp=properties', 'never'],
  ['Set File Service Properties', 'PUT /?restype=service&comp=properties', 'never'],
  ['Get User Delegation Key', 'POST /?restype=service&comp=userdelegationkey', 'never'],
  ['Preflight File Request', 'OPTIONS /', 'always', PAGE],
  ['Preflight File Request', 'OPTIONS /{container}', 'always', PAGE],
  ['Preflight File Request', 'OPTIONS /{container}/dir/file', 'always', PAGE],
  ['Create Share', 'PUT /{container}?restype=share', 'never'],
  ['Get Share Properties', 'GET /{container}?restype=share', 'never'],
  ['Set Share Properties', 'PUT /{container}?restype=share&comp=properties', 'never'],
  ['Get Share Metadata', 'HEAD /{container}?restype=share&comp=metadata', 'never'],
  ['Set Share Metadata', 'PUT /{container}?restype=share&comp=metadata', 'never'],
  ['Delete Share', 'DELETE /{container}?restype=share', 'never'],
  ['Get Share ACL', 'GET /{container}?restype=share&comp=acl', 'never'],
  ['Set Share ACL', 'PUT /{container}?restype=share&comp=acl', 'never'],
  ['Get Share Stats', 'GET /{container}?restype=share&comp=stats', 'never'],
  ['Restore Share', 'PUT /{container}?restype=share&comp=undelete', 'never'],
  ['Lease Share', 'PUT /{container}?restype=share&comp=lease', 'never', { 'x-ms-lease-action': 'acquire' }],
  ['Lease Share', 'PUT /{container}?restype=share&comp=lease', 'never', { 'x-ms-lease-action': 'break' }],
  ['Create Permission', 'PUT /{container}?restype=share&comp=filepermission', 'never'],
  ['Get Permission', 'GET /{container}?restype=share&comp=filepermission', 'never'],
  ['Snapshot Share', 'PUT /{container}?restype=share&comp=snapshot', 'never'],
  ['List Directories and Files', 'GET /{container}?restype=directory&comp=list', 'never'],
  ['Create Directory', 'PUT /{container}?restype=directory', 'never'],
  ['Get Directory Properties', 'HEAD /{container}?restype=directory', 'never'],
  ['Delete Directory', 'DELETE /{container}?restype=directory', 'never'],
  ['Set Directory Properties', 'PUT /{container}?restype=directory&comp=properties', 'never'],
  ['Get Directory Metadata', 'GET /{container}?restype=directory&comp=metadata', 'never'],
  ['Set Directory Metadata', 'PUT /{container}?restype=directory&comp=metadata', 'never'],
  ['List Directories and Files', 'GET /{container}/dir?restype=directory&comp=list', 'never'],
  ['Create Directory', 'PUT /{container}/dir?restype=directory', 'never'],
  ['Get Directory Properties', 'HEAD /{container}/dir?restype=directory', 'never'],
  ['Delete Directory', 'DELETE /{container}/dir?restype=directory', 'never'],
  ['Set Directory Properties', 'PUT /{container}/dir?restype=directory&comp=properties', 'never'],
  ['Get Directory Metadata', 'GET /{container}/dir?restype=directory&comp=metadata', 'never'],
  ['Set Directory Metadata', 'PUT /{container}/dir?restype=directory&comp=metadata', 'never'],
  ['Rename Directory', 'PUT /{container}/dir?restype=directory&comp=rename', 'never'],
  ['Create File', 'PUT /{container}/dir/file', 'never', { 'x-ms-type': 'file' }],
  ['Get File', 'GET /{container}/dir/file', 'never'],
  ['Get File Properties', 'HEAD /{container}/dir/file', 'never'],
  ['Delete File', 'DELETE /{container}/dir/file', 'never'],
  ['Set File Properties', 'PUT /{container}/dir/file?comp=properties', 'never'],
  ['Get File Metadata', 'GET /{container}/dir/file?comp=metadata', 'never'],
  ['Set File Metadata', 'PUT /{container}/dir/file?comp=metadata', 'never'],
  ['Rename File', 'PUT /{container}/dir/file?comp=rename', 'never'],
  ['Put Range', 'PUT /{container}/dir/file?comp=range', 'never', { 'x-ms-write': 'update' }],
  ['Put Range (clear)', 'PUT /{container}/dir/file?comp=range', 'never', { 'x-ms-write': 'clear' }],
  ['Put Range From URL', 'PUT /{container}/dir/file?comp=range', 'never', { 'x-ms-write': 'update', ...SOURCE }],
  ['List Ranges', 'GET /{container}/dir/file?comp=rangelist', 'never'],
  ['Copy File', 'PUT /{container}/dir/file', 'never', SOURCE],
  ['Copy File', 'PUT /{container}/dir/file', 'never', { 'x-ms-type': 'file', ...SOURCE }],
  ['Abort Copy File', 'PUT /{container}/dir/file?comp=copy&copyid=1', 'never', { 'x-ms-copy-action': 'abort' }],
  ['Lease File', 'PUT /{container}/dir/file?comp=lease', 'never', { 'x-ms-lease-action': 'acquire' }],
  ['List Handles', 'GET /{container}?comp=listhandles', 'never'],
  ['Force Close Handles', 'PUT /{container}?comp=forceclosehandles', 'never'],
  ['List Handles', 'GET /{container}/dir?comp=listhandles', 'never'],
  ['Force Close Handles', 'PUT /{container}/dir?comp=forceclosehandles', 'never'],
  ['Create Symbolic Link', 'PUT /{container}/dir/link?restype=symboliclink', 'never'],
  ['Get Symbolic Link', 'GET /{container}/dir/link?restype=symboliclink', 'never'],
  ['Create Hard Link', 'PUT /{container}/dir/link?restype=hardlink', 'never'],
];

const rowsOf = (service: ServiceName, lines: readonly Line[]): readonly AnonymousRow[] =>
  lines.map(([operation, request, open, headers = {}]) => ({ service, operation, request, headers, open }));

export const anonymousRows: readonly AnonymousRow[] = [
  ...rowsOf('blob', BLOB),
  ...rowsOf('queue', QUEUE),
  ...rowsOf('table', TABLE),
  ...rowsOf('file', FILE),
];
