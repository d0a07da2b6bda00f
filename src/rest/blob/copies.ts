/** Where a copy comes from, as the headers say it. */
import type { Conditions } from '../../rules/conditions.ts';
import type { CopySource } from '../../services/blob/copies.ts';
import { notImplemented, type Reader, type Request } from '../operation.ts';
import { conditions, invalidHeader, reader } from '../params.ts';
import { addressOf, queryOf } from '../request.ts';

const HEADER = 'x-ms-copy-source';
const SOURCE = /^https?:\/\/([^/?#]+)(\/[^#]*)$/i;
const LOOPBACK = /^(?:localhost|127\.0\.0\.1|\[::1\])(?=:|$)/i;

/** Of this account on this server, by a path-style URL. */
export const copySource: Reader<CopySource> = reader((request) => {
  const url = String(request.headers[HEADER] ?? '');
  const [, host, path] = SOURCE.exec(url) ?? [];
  if (host === undefined || path === undefined) throw invalidHeader(HEADER, url);
  if (nameOf(host) !== nameOf(String(request.headers.host))) {
    throw notImplemented(`Copying from another server (${host}) is not implemented by this server yet.`);
  }
  const { account, container, blob, rawQuery } = addressOf(path);
  if (account !== request.account) {
    throw notImplemented(`Copying from another account (${account}) is not implemented by this server yet.`);
  }
  if (container === '' || blob === '') throw invalidHeader(HEADER, url);
  refuseQuery(queryOf(rawQuery), url);
  return { url, container, blob };
});

/** A signature would have to be checked, a snapshot to be found. */
function refuseQuery(query: Readonly<Record<string, string>>, url: string): void {
  for (const name in query) {
    if (name === 'sig') {
      throw notImplemented('A shared access signature for the copy source is not implemented by this server yet.');
    }
    if (name === 'snapshot' || name === 'versionid') {
      throw notImplemented(`Copying from a ${name} is not implemented by this server yet.`);
    }
  }
  if (Object.keys(query).length > 0) throw invalidHeader(HEADER, url);
}

/** However a client calls this machine, it is this machine. */
function nameOf(host: string): string {
  return host.toLowerCase().replace(LOOPBACK, 'localhost');
}

/** x-ms-source-if-match and the like. */
export const sourceConditions: Reader<Conditions> = reader((request) => {
  const { headers } = request;
  const asked: Request['headers'] = {
    'if-match': headers['x-ms-source-if-match'],
    'if-none-match': headers['x-ms-source-if-none-match'],
    'if-modified-since': headers['x-ms-source-if-modified-since'],
    'if-unmodified-since': headers['x-ms-source-if-unmodified-since'],
  };
  return conditions.read({ ...request, headers: asked });
});

/** A copy that is to be done before the answer is another operation. */
export const asynchronous: Reader<void> = reader(({ headers }) => {
  const value = headers['x-ms-requires-sync'];
  if (value !== undefined && String(value).toLowerCase() !== 'false') {
    throw invalidHeader('x-ms-requires-sync', String(value));
  }
});

export const abortAction: Reader<void> = reader(({ headers }) => {
  const value = String(headers['x-ms-copy-action'] ?? '');
  if (value.toLowerCase() !== 'abort') throw invalidHeader('x-ms-copy-action', value);
});
