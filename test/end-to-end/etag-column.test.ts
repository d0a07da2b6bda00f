/** The column `returnsETag` of the operation tables, which docs/guide/concurrency.md prints, is what answers have. */
import { expect, it } from 'vitest';
import { compileRouter } from '../../src/rest/router.ts';
import { serviceDefinitions } from '../../src/server/services.ts';
import { type RawRequest, serverFor } from '../support/test-server.ts';

type Service = keyof typeof serviceDefinitions;
type Play = readonly [operation: string, target: string, headers?: Record<string, string>, body?: string];

const LEASE = 'aaaaaaaa-0000-4000-8000-00000000000a';
const acquire = { 'x-ms-lease-action': 'acquire', 'x-ms-lease-duration': '-1', 'x-ms-proposed-lease-id': LEASE };
const leased = { 'x-ms-lease-id': LEASE };
const meta = { 'x-ms-meta-colour': 'blue' };
const source = (path: string) => ({ 'x-ms-copy-source': `{origin}${path}` });
const json = { 'Content-Type': 'application/json', Accept: 'application/json;odata=minimalmetadata' };
const policies = '<?xml version="1.0" encoding="utf-8"?><SignedIdentifiers/>';
const blockList = '<?xml version="1.0" encoding="utf-8"?><BlockList><Latest>YQ==</Latest></BlockList>';
const tags =
  '<?xml version="1.0" encoding="utf-8"?><Tags><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tags>';
const page = { 'x-ms-page-write': 'update', Range: 'bytes=0-511' };
const backup = { 'x-ms-type': 'file' };
const fromUrl = { ...source('/ccc/blob'), 'x-ms-source-range': 'bytes=0-3' };

/** One successful request of each operation, in an order in which all of them succeed. */
const plays: Readonly<Record<Service, readonly Play[]>> = {
  blob: [
    ['Create Container', 'PUT /ccc?restype=container'],
    ['Get Container Properties', 'GET /ccc?restype=container'],
    ['Set Container Metadata', 'PUT /ccc?restype=container&comp=metadata', meta],
    ['Get Container Metadata', 'GET /ccc?restype=container&comp=metadata'],
    ['Set Container ACL', 'PUT /ccc?restype=container&comp=acl', { 'x-ms-blob-public-access': 'blob' }, policies],
    ['Get Container ACL', 'GET /ccc?restype=container&comp=acl'],
    ['Lease Container', 'PUT /ccc?restype=container&comp=lease', acquire],
    ['Put Blob', 'PUT /ccc/blob', { 'x-ms-blob-type': 'BlockBlob' }, 'text'],
    ['Get Blob', 'GET /ccc/blob'],
    ['Get Blob Properties', 'HEAD /ccc/blob'],
    ['Set Blob Metadata', 'PUT /ccc/blob?comp=metadata', meta],
    ['Get Blob Metadata', 'GET /ccc/blob?comp=metadata'],
    ['Set Blob Properties', 'PUT /ccc/blob?comp=properties', { 'x-ms-blob-content-type': 'text/plain' }],
    ['Set Blob Tags', 'PUT /ccc/blob?comp=tags', {}, tags],
    ['Get Blob Tags', 'GET /ccc/blob?comp=tags'],
    ['Find Blobs by Tags in Container', 'GET /ccc?restype=container&comp=blobs&where=a%3D%27b%27'],
    ['Set Blob Tier', 'PUT /ccc/blob?comp=tier', { 'x-ms-access-tier': 'Cool' }],
    ['Snapshot Blob', 'PUT /ccc/blob?comp=snapshot'],
    ['Put Block', 'PUT /ccc/blocks?comp=block&blockid=YQ%3D%3D', {}, 'text'],
    ['Put Block From URL', 'PUT /ccc/blocks?comp=block&blockid=Yg%3D%3D', fromUrl],
    ['Put Block List', 'PUT /ccc/blocks?comp=blocklist', {}, blockList],
    ['Get Block List', 'GET /ccc/blocks?comp=blocklist'],
    ['Copy Blob', 'PUT /ccc/copy', source('/ccc/blob')],
    ['Copy Blob From URL', 'PUT /ccc/copy', { ...source('/ccc/blob'), 'x-ms-requires-sync': 'true' }],
    ['Put Blob From URL', 'PUT /ccc/copy', { ...source('/ccc/blob'), 'x-ms-blob-type': 'BlockBlob' }],
    ['Put Blob (append blob)', 'PUT /ccc/append', { 'x-ms-blob-type': 'AppendBlob' }],
    ['Append Block', 'PUT /ccc/append?comp=appendblock', {}, 'text'],
    ['Append Block From URL', 'PUT /ccc/append?comp=appendblock', fromUrl],
    ['Append Blob Seal', 'PUT /ccc/append?comp=seal'],
    ['Put Blob (page blob)', 'PUT /ccc/page', { 'x-ms-blob-type': 'PageBlob', 'x-ms-blob-content-length': '1024' }],
    ['Put Page', 'PUT /ccc/page?comp=page', page, 'x'.repeat(512)],
    [
      'Put Page From URL',
      'PUT /ccc/page?comp=page',
      { ...page, ...source('/ccc/page'), 'x-ms-source-range': 'bytes=0-511' },
    ],
    ['Get Page Ranges', 'GET /ccc/page?comp=pagelist'],
    ['Clear Page', 'PUT /ccc/page?comp=page', { 'x-ms-page-write': 'clear', Range: 'bytes=0-511' }],
    ['Lease Blob', 'PUT /ccc/blob?comp=lease', acquire],
    ['List Blobs', 'GET /ccc?restype=container&comp=list'],
    ['Delete Blob', 'DELETE /ccc/blob', { ...leased, 'x-ms-delete-snapshots': 'include' }],
    ['Delete Container', 'DELETE /ccc?restype=container', leased],
  ],
  queue: [
    ['Create Queue', 'PUT /queue'],
    ['Set Queue Metadata', 'PUT /queue?comp=metadata', meta],
    ['Get Queue Metadata', 'GET /queue?comp=metadata'],
    ['Put Message', 'POST /queue/messages', {}, '<QueueMessage><MessageText>text</MessageText></QueueMessage>'],
    ['Peek Messages', 'GET /queue/messages?peekonly=true'],
    ['Get Messages', 'GET /queue/messages'],
    ['Clear Messages', 'DELETE /queue/messages'],
    ['Delete Queue', 'DELETE /queue'],
  ],
  table: [
    ['Create Table', 'POST /Tables', json, '{"TableName":"ttt"}'],
    ['Query Tables', 'GET /Tables', json],
    ['Insert Entity', 'POST /ttt', json, '{"PartitionKey":"p","RowKey":"r"}'],
    ['Get Entity', "GET /ttt(PartitionKey='p',RowKey='r')", json],
    ['Query Entities', 'GET /ttt()', json],
    ['Update Entity', "PUT /ttt(PartitionKey='p',RowKey='r')", { ...json, 'If-Match': '*' }, '{}'],
    ['Merge Entity', "MERGE /ttt(PartitionKey='p',RowKey='r')", { ...json, 'If-Match': '*' }, '{}'],
    ['Insert Or Replace Entity', "PUT /ttt(PartitionKey='p',RowKey='r')", json, '{}'],
    ['Insert Or Merge Entity', "MERGE /ttt(PartitionKey='p',RowKey='r')", json, '{}'],
    ['Delete Entity', "DELETE /ttt(PartitionKey='p',RowKey='r')", { ...json, 'If-Match': '*' }],
    ['Delete Table', "DELETE /Tables('ttt')", json],
  ],
  file: [
    ['Create Share', 'PUT /sss?restype=share'],
    ['Get Share Properties', 'GET /sss?restype=share'],
    ['Set Share Properties', 'PUT /sss?restype=share&comp=properties', { 'x-ms-share-quota': '10' }],
    ['Set Share Metadata', 'PUT /sss?restype=share&comp=metadata', meta],
    ['Get Share Metadata', 'GET /sss?restype=share&comp=metadata'],
    ['Set Share ACL', 'PUT /sss?restype=share&comp=acl', {}, policies],
    ['Get Share ACL', 'GET /sss?restype=share&comp=acl'],
    ['Get Share Stats', 'GET /sss?restype=share&comp=stats'],
    ['Create Directory', 'PUT /sss/d?restype=directory'],
    ['Get Directory Properties', 'GET /sss/d?restype=directory'],
    [
      'Set Directory Properties',
      'PUT /sss/d?restype=directory&comp=properties',
      { 'x-ms-file-attributes': 'Directory' },
    ],
    ['Set Directory Metadata', 'PUT /sss/d?restype=directory&comp=metadata', meta],
    ['Get Directory Metadata', 'GET /sss/d?restype=directory&comp=metadata'],
    ['Create File', 'PUT /sss/d/f', { ...backup, 'x-ms-content-length': '1024' }],
    ['Put Range', 'PUT /sss/d/f?comp=range', { 'x-ms-write': 'update', 'x-ms-range': 'bytes=0-3' }, 'text'],
    ['Put Range (clear)', 'PUT /sss/d/f?comp=range', { 'x-ms-write': 'clear', 'x-ms-range': 'bytes=0-511' }],
    ['Get File', 'GET /sss/d/f'],
    ['Get File Properties', 'HEAD /sss/d/f'],
    ['Set File Properties', 'PUT /sss/d/f?comp=properties', { 'x-ms-content-type': 'text/plain' }],
    ['Set File Metadata', 'PUT /sss/d/f?comp=metadata', meta],
    ['Get File Metadata', 'GET /sss/d/f?comp=metadata'],
    ['List Ranges', 'GET /sss/d/f?comp=rangelist'],
    ['Copy File', 'PUT /sss/d/copy', source('/sss/d/f')],
    ['Rename File', 'PUT /sss/d/g?comp=rename', { 'x-ms-file-rename-source': '{origin}/sss/d/copy' }],
    ['Lease File', 'PUT /sss/d/f?comp=lease', acquire],
    ['Delete File', 'DELETE /sss/d/f', leased],
    ['Rename Directory', 'PUT /sss/e?restype=directory&comp=rename', { 'x-ms-file-rename-source': '{origin}/sss/d' }],
    ['List Directories and Files', 'GET /sss/e?restype=directory&comp=list'],
    ['Lease Share', 'PUT /sss?restype=share&comp=lease', acquire],
    ['Delete Share', 'DELETE /sss?restype=share', leased],
  ],
};
/** These need a signed source, retention, or a snapshot of another blob; the tests of their rows look at the ETag. */
const elsewhere = ['Incremental Copy Blob', 'Put Range From URL', 'Restore Share'];

const running = serverFor('memory');

it.each(Object.keys(plays) as Service[])('The %s service returns ETags where its table says so', async (service) => {
  const rows = compileRouter(serviceDefinitions[service].definition.table).rows.filter((row) => row.isImplemented);
  const origin = { blob: 'blobUrl', queue: 'queueUrl', table: 'tableUrl', file: 'fileUrl' } as const;
  const seen: [string, boolean][] = [];
  for (const [name, target, headers = {}, body] of plays[service]) {
    const [method, path] = target.split(' ') as [string, string];
    const filled = Object.entries(headers).map(([key, value]) => [
      key,
      value.replace('{origin}', running.server[origin[service]]),
    ]);
    const request: RawRequest = {
      of: service,
      headers: Object.fromEntries(filled),
      ...(body !== undefined && { body }),
    };
    const answer = await running.request(method, path, request);
    expect(answer.status, `${name}: ${answer.text}`).toBeLessThan(300);
    seen.push([name, answer.headers.etag !== undefined]);
  }
  const column = new Map(rows.map((row) => [row.name, row.returnsETag]));
  expect(seen).toEqual(seen.map(([name]) => [name, column.get(name)]));
  const played = new Set([...seen.map(([name]) => name), ...elsewhere]);
  expect(rows.filter((row) => row.returnsETag && !played.has(row.name)).map((row) => row.name)).toEqual([]);
});
