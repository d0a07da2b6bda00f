/** Paths and parameters of the File service. */
import { fail } from '../../services/file/errors.ts';
import { parseShareSnapshot } from '../../services/file/snapshot-rows.ts';
import type { Operation, Reader } from '../operation.ts';
import {
  base64Header,
  booleanHeader,
  type ContentHeaders,
  header,
  pathPart,
  reader,
  rejectConditions,
  rejectSourceConditions,
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

/** The parameter sharesnapshot. */
export const snapshot: Reader<bigint | undefined> = reader(({ query }) =>
  query.sharesnapshot === undefined ? undefined : parseShareSnapshot(query.sharesnapshot),
);

/** Where a directory or file is, in the share or in a snapshot. */
export const readPlace = { ...place, snapshot };

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

/** The operations that take the parameter sharesnapshot. */
const SNAPSHOT_OPERATIONS: ReadonlySet<string> = new Set([
  'Get Share Properties',
  'Get Share Metadata',
  'Delete Share',
  'Lease Share',
  'List Directories and Files',
  'Get Directory Properties',
  'Get Directory Metadata',
  'Get File',
  'Get File Properties',
  'Get File Metadata',
  'List Ranges',
  'List Handles',
  'Force Close Handles',
]);

/**
 * What holds for every operation of the service: conditions are refused, and so are snapshots where none can be read or changed. To an account SAS a
 * directory is an object, wherever it is, and its list belongs to the share; permissions are objects, since files have them.
 */
export function withServiceRules<Context>(row: Operation<Context>): Operation<Context> {
  if (!row.isImplemented) return row;
  return {
    ...row,
    ...(row.query?.restype === 'directory' && { resourceType: row.query.comp === 'list' ? 'c' : 'o' }),
    ...(row.query?.comp === 'filepermission' && { resourceType: 'o' }),
    read(request, lenient) {
      rejectConditions.read(request);
      rejectSourceConditions.read(request);
      if (request.query.sharesnapshot !== undefined && !SNAPSHOT_OPERATIONS.has(row.name))
        throw fail('ShareSnapshotOperationNotSupported');
      return row.read(request, lenient);
    },
  };
}
