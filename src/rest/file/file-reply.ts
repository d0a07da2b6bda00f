/** The properties of a file or directory in headers. */
import { formatRfc1123 } from '../../base/time.ts';
import type { LeaseState } from '../../rules/lease.ts';
import type { File, Node } from '../../services/file/node-rows.ts';
import { addCopyHeaders } from '../copy-reply.ts';
import { leaseDuration, leaseStatus } from '../lease-reply.ts';
import type { Request } from '../operation.ts';
import { type ReplyHeaders, validatorHeaders } from '../reply.ts';
import { addSmbHeaders } from './smb-headers.ts';

const LEASES_SINCE = '2019-02-02';

/** A request without a version counts as one of the newest. */
export const isBefore = (version: string, since: string): boolean => version !== '' && version < since;

/** Without length and MD5, which Get File has of the bytes that it sends. */
export function fileHeaders(file: File, state: LeaseState, request: Pick<Request, 'version' | 'query'>): ReplyHeaders {
  const { content, metadata, lease, copy } = file;
  // As recorded: a file of a snapshot has no lease.
  const hasLeases = !isBefore(request.version, LEASES_SINCE) && request.query.sharesnapshot === undefined;
  const headers: ReplyHeaders = {
    ETag: `"${file.etag}"`,
    'Last-Modified': formatRfc1123(file.modified),
    'Content-Type': content.contentType,
    'Content-Encoding': content.contentEncoding,
    'Content-Language': content.contentLanguage,
    'Content-Disposition': content.contentDisposition,
    'Cache-Control': content.cacheControl,
    'x-ms-type': 'File',
    'x-ms-server-encrypted': 'true',
    'x-ms-lease-status': hasLeases ? leaseStatus(state) : undefined,
    'x-ms-lease-state': hasLeases ? state : undefined,
    'x-ms-lease-duration': hasLeases ? leaseDuration(lease, state) : undefined,
  };
  addSmbHeaders(headers, file, request);
  for (const name in metadata) headers[`x-ms-meta-${name}`] = metadata[name];
  if (copy) addCopyHeaders(headers, copy);
  return headers;
}

/** What the answer to a write has. */
export const WRITTEN = { 'x-ms-request-server-encrypted': 'true' };

/** Of the answer to a write that reports the SMB properties. */
export function writtenHeaders(node: Node, request: Pick<Request, 'version'>): ReplyHeaders {
  return addSmbHeaders(validatorHeaders(node, WRITTEN), node, request);
}
