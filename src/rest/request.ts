/** Parses the request line and the headers into a Request. */
import type { IncomingMessage } from 'node:http';
import { QUERY_PARAMETERS_MAX } from '../base/input-limits.ts';
import { commonErrors, errorFactory, type StorageError } from '../services/common/errors.ts';
import type { Address } from './address.ts';
import { isSasField, malformedField } from './auth/sas-fields.ts';
import type { Request, Shape } from './operation.ts';

const fail = errorFactory(commonErrors);

/** A request with its shape, by which the router finds the operation. */
export type Routable = Request & { readonly shape: Shape };

const NO_QUERY: Readonly<Record<string, string>> = Object.freeze(Object.create(null));
/** x-ms-version and sv: any date of this form. */
export const VERSION = /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])$/;

export function parseRequest(incoming: IncomingMessage, id: string, address: Address): Routable {
  const { rawPath, rawQuery, account, secondary, container, item, shape, base, readsHosts } = address;
  return {
    id,
    method: incoming.method!,
    rawPath,
    rawQuery,
    account,
    secondary,
    base,
    readsHosts,
    secure: isSecure(incoming),
    container,
    item,
    shape,
    query: parseQuery(rawQuery),
    headers: incoming.headers,
    rawHeaders: incoming.rawHeaders,
    version: parseVersion(incoming.headers['x-ms-version']),
  };
}

/** Whether the request came over TLS. */
export function isSecure({ socket }: IncomingMessage): boolean {
  return (socket as { encrypted?: boolean }).encrypted === true;
}

/** The URL of the account, as the client addressed it. */
export function accountUrl({ secure, base, headers }: Request): string {
  return `${secure ? 'https' : 'http'}://${headers.host ?? 'localhost'}${base}/`;
}

export function parseQuery(rawQuery: string): Readonly<Record<string, string>> {
  if (rawQuery === '') return NO_QUERY;
  const query: Record<string, string> = Object.create(null);
  const parts = rawQuery.split('&', QUERY_PARAMETERS_MAX + 1);
  if (parts.length > QUERY_PARAMETERS_MAX) throw tooManyParameters();
  for (const part of parts) {
    if (part === '') continue;
    const equals = part.indexOf('=');
    const name = decodeParameter(equals < 0 ? part : part.slice(0, equals), part).toLowerCase();
    if (query[name] !== undefined) checkRepeatable(name);
    else query[name] = equals < 0 ? '' : decodeParameter(part.slice(equals + 1), part);
  }
  return query;
}

/** They select the operation, or the state of a blob that it reads. */
const SELECTING_PARAMETERS = new Set(['comp', 'restype', 'blocklisttype', 'peekonly', 'snapshot', 'versionid']);

/**
 * Throws if this parameter, in lower case, must not be repeated: of two values one reader takes the first and another the last, and a
 * signature, which sorts them, is valid for either order. Of all other parameters the first value counts.
 */
function checkRepeatable(name: string): void {
  if (isSasField(name)) throw malformedField(`${name}, which is given more than once`);
  if (!SELECTING_PARAMETERS.has(name)) return;
  throw fail('InvalidQueryParameterValue', { QueryParameterName: name, Reason: 'It is given more than once.' });
}

function tooManyParameters(): StorageError {
  return fail('InvalidUri', undefined, `The query has more than ${QUERY_PARAMETERS_MAX} parameters.`);
}

function decodeParameter(text: string, part: string): string {
  if (!text.includes('%') && !text.includes('+')) return text;
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    const [name = '', value = ''] = part.split('=');
    throw fail('InvalidQueryParameterValue', { QueryParameterName: name, QueryParameterValue: value });
  }
}

/** Any well-formed version is served, whether Azure has it or not. */
function parseVersion(text: string | string[] | undefined): string {
  if (text === undefined) return '';
  if (typeof text === 'string' && VERSION.test(text)) return text;
  throw fail('InvalidHeaderValue', { HeaderName: 'x-ms-version', HeaderValue: String(text) });
}
