/** The text that a caller signs with a key of the account, of the path and query as they were sent. */

import { Canonical, type Reading, type Signed } from './canonical.ts';

export type { Reading, Signed } from './canonical.ts';

/** `canonical` is that of the request, for those who want the texts of several readings. */
export type TextToSign = (account: string, request: Signed, reading?: Reading, canonical?: Canonical) => string;

/** From this version on a length of 0 is left out. */
const NO_ZERO_SINCE = '2015-02-21';

export function sharedKeyText(
  account: string,
  request: Signed,
  reading: Reading = {},
  canonical: Canonical = new Canonical(request),
): string {
  const { headers } = request;
  const length = headers['content-length'];
  // A line for each of these, whether it was sent or not.
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
  const resource = `/${account}${request.rawPath}${canonical.query(reading)}`;
  return `${lines.join('\n')}\n${canonical.headers(reading)}${resource}`;
}

export function sharedKeyLiteText(
  account: string,
  request: Signed,
  reading: Reading = {},
  canonical: Canonical = new Canonical(request),
): string {
  const { headers } = request;
  const date = headers['x-ms-date'] === undefined ? headers.date : undefined;
  const text = `${request.method}\n${headers['content-md5'] ?? ''}\n${headers['content-type'] ?? ''}\n${date ?? ''}\n`;
  const comp = canonical.parameters(reading).get('comp')?.[0];
  const resource = `/${account}${request.rawPath}${comp === undefined ? '' : `?comp=${comp}`}`;
  return `${text}${canonical.headers(reading)}${resource}`;
}

/** Of tables: the date stands in its line, however it was sent. */
export function tableSharedKeyText(account: string, request: Signed): string {
  const { headers } = request;
  const lines = [request.method, headers['content-md5'] ?? '', headers['content-type'] ?? ''];
  return `${lines.join('\n')}\n${tableSharedKeyLiteText(account, request)}`;
}

export function tableSharedKeyLiteText(account: string, request: Signed): string {
  const { headers, rawPath } = request;
  const comp = new Canonical(request).parameters({}).get('comp')?.[0];
  const date = headers['x-ms-date'] ?? headers.date ?? '';
  return `${date}\n/${account}${rawPath}${comp === undefined ? '' : `?comp=${comp}`}`;
}

function isBefore({ headers }: Signed, version: string): boolean {
  const sent = headers['x-ms-version'];
  return typeof sent === 'string' && sent < version;
}
