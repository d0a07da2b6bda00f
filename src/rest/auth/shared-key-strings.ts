/** String-to-sign of Shared Key and Shared Key Lite; path and query count as sent. */

import { CanonicalRequest, type CanonicalVariant, type SignedRequest } from './canonical.ts';

export type { CanonicalVariant, SignedRequest } from './canonical.ts';

/** `canonical`: that of the request, where the strings of several variants are wanted. */
export type StringToSign = (
  account: string,
  request: SignedRequest,
  variant?: CanonicalVariant,
  canonical?: CanonicalRequest,
) => string;

/** From this version on a Content-Length of 0 is signed as empty. */
const NO_ZERO_SINCE = '2015-02-21';

export function sharedKeyStringToSign(
  account: string,
  request: SignedRequest,
  variant: CanonicalVariant = {},
  canonical: CanonicalRequest = new CanonicalRequest(request),
): string {
  const { headers } = request;
  const length = headers['content-length'];
  // One line per header, whether it was sent or not.
  const lines = [
    request.method,
    headers['content-encoding'],
    headers['content-language'],
    length === '0' && !isBefore(request, NO_ZERO_SINCE) ? undefined : length,
    headers['content-md5'],
    headers['content-type'],
    headers['x-ms-date'] === undefined ? headers.date : undefined,
    headers['if-modified-since'],
    headers['if-match'],
    headers['if-none-match'],
    headers['if-unmodified-since'],
    headers.range,
  ];
  const resource = `/${account}${request.rawPath}${canonical.query(variant)}`;
  return `${lines.join('\n')}\n${canonical.headers(variant)}${resource}`;
}

export function sharedKeyLiteStringToSign(
  account: string,
  request: SignedRequest,
  variant: CanonicalVariant = {},
  canonical: CanonicalRequest = new CanonicalRequest(request),
): string {
  const { headers } = request;
  const date = headers['x-ms-date'] === undefined ? headers.date : undefined;
  const text = `${request.method}\n${headers['content-md5'] ?? ''}\n${headers['content-type'] ?? ''}\n${date ?? ''}\n`;
  const comp = canonical.parameters(variant).get('comp')?.[0];
  const resource = `/${account}${request.rawPath}${comp === undefined ? '' : `?comp=${comp}`}`;
  return `${text}${canonical.headers(variant)}${resource}`;
}

/** For tables: the date has its line, whichever header it was sent in. */
export function tableSharedKeyStringToSign(account: string, request: SignedRequest): string {
  const { headers } = request;
  const lines = [request.method, headers['content-md5'] ?? '', headers['content-type'] ?? ''];
  return `${lines.join('\n')}\n${tableSharedKeyLiteStringToSign(account, request)}`;
}

export function tableSharedKeyLiteStringToSign(account: string, request: SignedRequest): string {
  const { headers, rawPath } = request;
  const comp = new CanonicalRequest(request).parameters({}).get('comp')?.[0];
  const date = headers['x-ms-date'] ?? headers.date ?? '';
  return `${date}\n/${account}${rawPath}${comp === undefined ? '' : `?comp=${comp}`}`;
}

function isBefore({ headers }: SignedRequest, version: string): boolean {
  const sent = headers['x-ms-version'];
  return typeof sent === 'string' && sent < version;
}
