/** The request line and the headers → Request. */
import type { IncomingMessage } from 'node:http';
import { QUERY_PARAMETERS_MAX } from '../base/input-limits.ts';
import { commonErrors, errorFactory, type StorageError } from '../services/common/errors.ts';
import type { Address } from './address.ts';
import type { Request, Shape } from './operation.ts';
import { checkRepeatable } from './repeated-parameters.ts';

const fail = errorFactory(commonErrors);

/** A request, with what the router goes by. */
export type Routable = Request & { readonly shape: Shape };

const NO_QUERY: Readonly<Record<string, string>> = Object.freeze(Object.create(null));
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

/** Whether it came over TLS. */
export function isSecure({ socket }: IncomingMessage): boolean {
  return (socket as { encrypted?: boolean }).encrypted === true;
}

/** The URL of the account, as the caller knows it. */
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

/** Any well-formed version is served, known or not. */
function parseVersion(text: string | string[] | undefined): string {
  if (text === undefined) return '';
  if (typeof text === 'string' && VERSION.test(text)) return text;
  throw fail('InvalidHeaderValue', { HeaderName: 'x-ms-version', HeaderValue: String(text) });
}
