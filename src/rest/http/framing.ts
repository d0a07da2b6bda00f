/**
 * What Node's parser lets through, and another reader of the same bytes, such as a proxy, could take for other requests.
 * Node refuses the rest by itself, as long as it is not told to be lenient; test/truth-tables/smuggling.ts has both.
 */
import type { IncomingMessage } from 'node:http';
import { HEADERS_MAX } from '../../base/input-limits.ts';
import { commonErrors, errorFactory, StorageError } from '../../services/common/errors.ts';

const fail = errorFactory(commonErrors);

const LENGTH = /^(?:0|[1-9]\d{0,14})$/;
/** A name, which may hold an underscore as those of containers do, or an address. */
const HOST = /^(?:[\w.-]+|\[[\da-f:.]+(?:%[\w.-]+)?\])(?::\d{1,5})?$/i;
const ABSOLUTE = /^https?:\/\/([^/?#]*)/i;
/** A body of theirs means nothing, and some readers skip it and some do not. */
const WITHOUT_BODY = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE']);

/** Why nothing that follows on this connection can be trusted. */
export function framingFault(incoming: IncomingMessage, urlBytesMax: number): StorageError | undefined {
  const { method = '', url = '', rawHeaders, httpVersion } = incoming;
  if (rawHeaders.length > 2 * HEADERS_MAX) return tooManyHeaders();
  // Node makes them of the raw ones when they are asked for.
  const { headers } = incoming;
  if (httpVersion !== '1.1' && httpVersion !== '1.0') {
    return fail('InvalidInput', undefined, `HTTP/${httpVersion} is not spoken here.`);
  }
  const coding = headers['transfer-encoding'];
  if (coding !== undefined) {
    if (httpVersion === '1.0' || coding.trim().toLowerCase() !== 'chunked')
      return badHeader('Transfer-Encoding', coding);
  }
  const length = headers['content-length'];
  if (length !== undefined && (!LENGTH.test(length) || (length !== '0' && WITHOUT_BODY.has(method)))) {
    return badHeader('Content-Length', length);
  }
  return hostFault(incoming) ?? targetFault(url, method, headers.host, urlBytesMax);
}

/**
 * Whether nothing behind it is taken, though the request itself is answered. No operation takes chunks, as none of Azure's
 * does, and it is not worth following them to their end. What comes with a request for an upgrade is dropped by Node.
 */
export function endsConnection({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || headers.upgrade !== undefined;
}

/** Whether something follows the headers. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
}

/** Node keeps the first of several. */
function hostFault({ rawHeaders, headers: { host }, httpVersion }: IncomingMessage): StorageError | undefined {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!;
    if (name.length === 4 && name.toLowerCase() === 'host') count++;
  }
  if (count === 0 && httpVersion === '1.0') return undefined;
  if (count === 0) return fail('MissingRequiredHeader', { HeaderName: 'Host' });
  return count > 1 || !HOST.test(host!) ? badHeader('Host', host!) : undefined;
}

function targetFault(
  url: string,
  method: string,
  host: string | undefined,
  urlBytesMax: number,
): StorageError | undefined {
  if (url.length > urlBytesMax) {
    return new StorageError('InvalidUri', 414, `The URL is longer than ${urlBytesMax} bytes.`);
  }
  if (method === 'TRACE') return fail('UnsupportedHttpVerb');
  if (url.includes('#')) return fail('InvalidUri');
  if (url.startsWith('/')) return undefined;
  const authority = ABSOLUTE.exec(url)?.[1];
  return authority === undefined || authority.toLowerCase() !== host?.toLowerCase() ? fail('InvalidUri') : undefined;
}

function tooManyHeaders(): StorageError {
  return new StorageError('RequestHeaderFieldsTooLarge', 431, `The request has more than ${HEADERS_MAX} headers.`);
}

function badHeader(name: string, value: string): StorageError {
  return fail('InvalidHeaderValue', { HeaderName: name, HeaderValue: value });
}
