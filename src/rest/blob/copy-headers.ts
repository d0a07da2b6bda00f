/** Where a copy comes from, as the headers say it. */
import type { Conditions } from '../../rules/conditions.ts';
import type { CopySource } from '../../services/blob/copies.ts';
import { parseCopySource } from '../copy-source.ts';
import { notImplemented, type Reader, type Request } from '../operation.ts';
import { conditions, invalidHeader, reader, singleHeader } from '../params.ts';
import { parseQuery } from '../request.ts';

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
  const asked: Request['headers'] = {
    'if-match': headers['x-ms-source-if-match'],
    'if-none-match': headers['x-ms-source-if-none-match'],
    'if-modified-since': singleHeader(request, 'x-ms-source-if-modified-since'),
    'if-unmodified-since': singleHeader(request, 'x-ms-source-if-unmodified-since'),
  };
  return conditions.read({ ...request, headers: asked });
});

/** A copy that is to be done before the answer is another operation. */
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
