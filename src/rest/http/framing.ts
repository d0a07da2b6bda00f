/**
 * Protection against HTTP request smuggling: refuses framing that Node's parser accepts and that another parser of the same bytes, such as
 * a proxy, may split into other requests. Node's strict parser refuses the rest; test/truth-tables/smuggling.ts has both.
 */
import type { IncomingMessage } from 'node:http';
import { HEADERS_MAX } from '../../base/input-limits.ts';
import { commonErrors, errorFactory, StorageError } from '../../services/common/errors.ts';

const fail = errorFactory(commonErrors);

const LENGTH = /^(?:0|[1-9]\d{0,14})$/;
/** A name, which may contain underscores as those of Docker containers do, or an IP address. */
const HOST = /^(?:[\w.-]+|\[[\da-f:.]+(?:%[\w.-]+)?\])(?::\d{1,5})?$/i;
const ABSOLUTE = /^https?:\/\/([^/?#]*)/i;
/** A body of these methods has no meaning; some parsers skip it and some do not. */
const METHODS_WITHOUT_BODY = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE']);

/** The error of a request after which nothing on its connection can be trusted; undefined: its framing is unambiguous. */
export function framingFault(incoming: IncomingMessage, urlBytesMax: number): StorageError | undefined {
  const { method = '', url = '', rawHeaders, httpVersion } = incoming;
  if (rawHeaders.length > 2 * HEADERS_MAX) return tooManyHeaders();
  // Node parses the raw headers on first access: after the check of their number.
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
  if (length !== undefined && (!LENGTH.test(length) || (length !== '0' && METHODS_WITHOUT_BODY.has(method)))) {
    return badHeader('Content-Length', length);
  }
  return hostFault(incoming) ?? targetFault(url, method, headers.host, urlBytesMax);
}

/**
 * Whether the request is the last of its connection, though it gets its reply. No operation accepts a chunked body, like none of Azure's,
 * and reading the chunks to their end is not worth it. Bytes after a request for an upgrade are dropped by Node.
 */
export function endsConnection({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || headers.upgrade !== undefined;
}

/** Whether a body follows the headers. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
}

/** Of several Host headers Node keeps the first. */
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
