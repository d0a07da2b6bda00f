/** Paths and parameters of the File service. */
import { notImplemented, type Operation, type Reader } from '../operation.ts';
import {
  base64Header,
  booleanHeader,
  type ContentHeaders,
  header,
  pathPart,
  reader,
  rejectConditions,
} from '../params.ts';
import { decodePart, type ParsePath } from '../request.ts';

/** The item is the path of a directory or file in the share, decoded and with slashes between its parts; the root directory has none. */
export const parseFilePath: ParsePath = (rest) => {
  const end = rest.indexOf('/', 1);
  const container = decodePart(end < 0 ? rest.slice(1) : rest.slice(1, end));
  const item = end < 0 ? '' : decodePart(rest.slice(end + 1));
  if (container === '') return { container, item: '', shape: '/' };
  return { container, item, shape: item === '' ? '/{share}' : '/{share}/{path}' };
};

/** Where a directory or file is. */
export const place = {
  share: pathPart(0),
  path: pathPart(1),
  keepsTrailingDots: booleanHeader('x-ms-allow-trailing-dot'),
};

const DEFAULT_TYPE = 'application/octet-stream';

/** The headers x-ms-content-* that a file keeps for its readers. */
export const fileContentHeaders: Reader<ContentHeaders> = reader((request) => ({
  contentType: header('x-ms-content-type').read(request) ?? DEFAULT_TYPE,
  contentEncoding: header('x-ms-content-encoding').read(request),
  contentLanguage: header('x-ms-content-language').read(request),
  contentDisposition: header('x-ms-content-disposition').read(request),
  cacheControl: header('x-ms-cache-control').read(request),
  contentMd5: base64Header(request, 'x-ms-content-md5'),
}));

/** Those of Set File Properties; undefined: none was sent, and all stay as they are. */
export const changedContentHeaders: Reader<ContentHeaders | undefined> = reader((request) => {
  const isSent = Object.keys(request.headers).some((name) => /^x-ms-(?:content-(?!length)|cache-control)/.test(name));
  return isSent ? fileContentHeaders.read(request) : undefined;
});

/**
 * What holds for every operation of the service: conditions are refused, and share snapshots are not there yet. To an account SAS a
 * directory is an object, wherever it is, and its list belongs to the share; permissions are objects, since files have them.
 */
export function withServiceRules<Context>(row: Operation<Context>): Operation<Context> {
  if (!row.isImplemented) return row;
  return {
    ...row,
    ...(row.query?.restype === 'directory' && { resourceType: row.query.comp === 'list' ? 'c' : 'o' }),
    ...(row.query?.comp === 'filepermission' && { resourceType: 'o' }),
    unsupported: [...row.unsupported, '?sharesnapshot'],
    read(request, lenient) {
      rejectConditions.read(request);
      if (request.query.sharesnapshot !== undefined)
        throw notImplemented('Share snapshots are not implemented by this server yet.');
      return row.read(request, lenient);
    },
  };
}
