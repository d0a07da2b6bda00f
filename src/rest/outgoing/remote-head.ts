/** The head of a copy source's answer: length, validators, and the properties that a copy takes over. */
import { type IncomingHttpHeaders, STATUS_CODES } from 'node:http';
import { parseHttpDate } from '../../base/time.ts';
import { StorageError } from '../../services/common/errors.ts';
import type { RemoteHead } from '../../services/common/remote-sources.ts';

/** Azure's limit of a block blob: 50,000 blocks of 4,000 MiB. */
const SOURCE_BYTES_MAX = 50_000 * 4_000 * 2 ** 20;
const CONTENT_RANGE = /^bytes (\d+)-(\d+)\/(\d+)$/;
const METADATA = 'x-ms-meta-';
const MD5 = /^[A-Za-z\d+/]{22}==$/;

/** @returns with the offset of the first byte that follows */
export function readHead(
  status: number,
  headers: IncomingHttpHeaders,
  requestedFrom: number,
): { readonly head: RemoteHead; readonly from: number } {
  const [, first, , total] = CONTENT_RANGE.exec(headers['content-range'] ?? '') ?? [];
  const from = status === 206 ? Number(first) : 0;
  const length = Number(status === 206 ? total : (headers['content-length'] ?? Number.NaN));
  if (!Number.isSafeInteger(length) || length < 0) throw unusable('it does not tell its length');
  if (length > SOURCE_BYTES_MAX) throw unusable('it is too large');
  if (status === 206 && from !== requestedFrom) throw unusable('it sends another range');
  return { head: { length, ...validators(headers), ...properties(headers) }, from };
}

/** The status and, if the source has one, the code of Azure's protocol. Redirects are not followed, so they are refusals, too. */
export function statusError(status: number, headers: IncomingHttpHeaders): StorageError {
  const sent = String(headers['x-ms-error-code'] ?? '');
  const code = /^\w{1,100}$/.test(sent) ? sent : (STATUS_CODES[status] ?? 'Unknown').replaceAll(/\W/g, '');
  return new StorageError(code, status, `The copy source answers ${status} ${code}.`);
}

function unusable(why: string): StorageError {
  return new StorageError('CannotVerifyCopySource', 409, `The copy source cannot be used: ${why}.`);
}

function validators({ etag, 'last-modified': modified }: IncomingHttpHeaders) {
  return {
    etag: etag?.replace(/^"(.*)"$/, '$1'),
    modified: modified === undefined ? undefined : parseHttpDate(modified),
  };
}

function properties(headers: IncomingHttpHeaders): Omit<RemoteHead, 'length' | 'etag' | 'modified'> {
  const md5 = String(headers['x-ms-blob-content-md5'] ?? headers['content-md5'] ?? '');
  return {
    content: {
      contentType: headers['content-type'],
      contentEncoding: headers['content-encoding'],
      contentLanguage: headers['content-language'],
      contentDisposition: headers['content-disposition'],
      cacheControl: headers['cache-control'],
      contentMd5: MD5.test(md5) ? md5 : undefined,
    },
    metadata: Object.entries(headers)
      .filter(([name]) => name.startsWith(METADATA))
      .map(([name, value]) => [name.slice(METADATA.length), String(value)] as const),
    blobType: headers['x-ms-blob-type']?.toString(),
    blocks: parseCount(headers['x-ms-blob-committed-block-count']),
    isSealed: headers['x-ms-blob-sealed'] === 'true' ? true : undefined,
    sequenceNumber: parseSequence(headers['x-ms-blob-sequence-number']),
  };
}

type HeaderValue = IncomingHttpHeaders[string];

const parseCount = (text: HeaderValue) => (/^\d{1,9}$/.test(String(text)) ? Number(text) : undefined);
const parseSequence = (text: HeaderValue) => (/^\d{1,19}$/.test(String(text)) ? BigInt(String(text)) : undefined);
