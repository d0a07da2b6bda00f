/** The URL that a copy comes from, and who may read there: what the URL itself shows counts, not who asks for the copy. */
import { StorageError } from '../services/common/errors.ts';
import { type Address, parseAddress } from './address.ts';
import { parseBlobPath } from './blob/address.ts';
import { notImplemented, type Request } from './operation.ts';
import { invalidHeader } from './params.ts';
import { parseQuery } from './request.ts';

const HEADER = 'x-ms-copy-source';
const SOURCE = /^https?:\/\/([^/?#]+)\/[^#]*$/i;
const LOOPBACK = /^(?:(?:[\w-]+\.)*localhost|127\.0\.0\.1|\[::1\])(?=:|$)/i;

/** Of this account on this server: another host is this server, too, if its first label is the account. */
export function parseCopySource(request: Request): Address & { readonly url: string } {
  const url = String(request.headers[HEADER] ?? '');
  const host = SOURCE.exec(url)?.[1];
  if (host === undefined) throw invalidHeader(HEADER, url);
  const ownHost = String(request.headers.host);
  const isSame = normalizeHost(host) === normalizeHost(ownHost);
  // Hosts are read as they are in requests: the caller's own host as in this request, others unless the path alone names accounts.
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

/** However a client calls this machine, it is this machine. */
function normalizeHost(host: string): string {
  return host.toLowerCase().replace(LOOPBACK, 'localhost');
}

/** The read of the source as a request of its own. */
export function copySourceRequest(request: Request): Request {
  const { rawPath, rawQuery, container, item, secondary } = parseCopySource(request);
  const { id, account, base, readsHosts, secure, version } = request;
  const query = parseQuery(rawQuery);
  return {
    ...{ id, account, base, readsHosts, secure, version, rawPath, rawQuery, query, container, item, secondary },
    ...{ method: 'GET', headers: {}, rawHeaders: [] },
  };
}

/** What is wrong with the source is told under a code of its own. */
export function copySourceError(error: unknown): unknown {
  if (!(error instanceof StorageError) || error.status === 501) return error;
  return new StorageError('CannotVerifyCopySource', error.status, error.message, error.details);
}
