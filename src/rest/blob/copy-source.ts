/**
 * The source of a copy: its URL, its conditions, and the request that authorizes reading it. The credential in the URL decides, not the
 * caller of the copy.
 */
import type { Conditions } from '../../rules/conditions.ts';
import type { CopySource } from '../../services/blob/copies.ts';
import { StorageError } from '../../services/common/errors.ts';
import { notImplemented, type Reader, type Request } from '../operation.ts';
import { conditions, invalidHeader, reader, singleHeader } from '../params.ts';
import { type Address, parseAddress, parseQuery } from '../request.ts';
import { parseBlobPath } from './params.ts';

const HEADER = 'x-ms-copy-source';
const SOURCE = /^https?:\/\/([^/?#]+)\/[^#]*$/i;
const LOOPBACK = /^(?:(?:[\w-]+\.)*localhost|127\.0\.0\.1|\[::1\])(?=:|$)/i;

/** The source must be of this account on this server. A host whose first label is the account is this server, too. */
export function parseCopySource(request: Request): Address & { readonly url: string } {
  const url = String(request.headers[HEADER] ?? '');
  const host = SOURCE.exec(url)?.[1];
  if (host === undefined) throw invalidHeader(HEADER, url);
  const ownHost = String(request.headers.host);
  const isSame = normalizeHost(host) === normalizeHost(ownHost);
  // The host is parsed as in requests: the host of this request as it was there, others unless only paths name accounts.
  const isOwnInPath = host.toLowerCase() === ownHost.toLowerCase() && request.base !== '';
  const readAsHost = isOwnInPath || !request.readsHosts ? undefined : host;
  const address = parseAddress(url, readAsHost, (name) => name === request.account, parseBlobPath);
  if (!isSame && address.base !== '') {
    throw notImplemented(`Copying from another server (${host}) is not implemented by this server yet.`);
  }
  if (address.account !== request.account) {
    throw notImplemented(`Copying from another account (${address.account}) is not implemented by this server yet.`);
  }
  if (address.container === '' || address.item === '') throw invalidHeader(HEADER, url);
  return { ...address, url };
}

/** All names of the loopback interface are the same host. */
function normalizeHost(host: string): string {
  return host.toLowerCase().replace(LOOPBACK, 'localhost');
}

export const copySource: Reader<CopySource> = reader((request) => {
  const { url, container, item: blob, rawQuery } = parseCopySource(request);
  const query = parseQuery(rawQuery);
  for (const name of ['snapshot', 'versionid']) {
    if (query[name] !== undefined)
      throw notImplemented(`Copying from a ${name} is not implemented by this server yet.`);
  }
  return { url: query.sig === undefined ? url : url.slice(0, url.indexOf('?')), container, blob };
});

/** x-ms-source-if-match and the like. */
export const sourceConditions: Reader<Conditions> = reader((request) => {
  const { headers } = request;
  const sourceHeaders: Request['headers'] = {
    'if-match': headers['x-ms-source-if-match'],
    'if-none-match': headers['x-ms-source-if-none-match'],
    'if-modified-since': singleHeader(request, 'x-ms-source-if-modified-since'),
    'if-unmodified-since': singleHeader(request, 'x-ms-source-if-unmodified-since'),
  };
  return conditions.read({ ...request, headers: sourceHeaders });
});

/** A synchronous copy is another operation. */
export const requireAsyncCopy: Reader<void> = reader(({ headers }) => {
  const value = headers['x-ms-requires-sync'];
  if (value !== undefined && String(value).toLowerCase() !== 'false') {
    throw invalidHeader('x-ms-requires-sync', String(value));
  }
});

export const requireAbortAction: Reader<void> = reader(({ headers }) => {
  const value = String(headers['x-ms-copy-action'] ?? '');
  if (value.toLowerCase() !== 'abort') throw invalidHeader('x-ms-copy-action', value);
});

/** The read of the source as a request that can be authenticated and authorized. */
export function copySourceRequest(request: Request): Request {
  const { rawPath, rawQuery, container, item, secondary } = parseCopySource(request);
  const { id, account, base, readsHosts, secure, version } = request;
  const query = parseQuery(rawQuery);
  return {
    ...{ id, account, base, readsHosts, secure, version, rawPath, rawQuery, query, container, item, secondary },
    ...{ method: 'GET', headers: {}, rawHeaders: [] },
  };
}

/** Errors of the source have a code of their own. */
export function copySourceError(error: unknown): unknown {
  if (!(error instanceof StorageError) || error.status === 501) return error;
  return new StorageError('CannotVerifyCopySource', error.status, error.message, error.details);
}
