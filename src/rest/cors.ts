/** Cross-origin resource sharing (CORS): replies to preflight requests, and the headers that a browser needs on the reply to the request itself. */
import { HEADERS_MAX } from '../base/input-limits.ts';
import type { CorsRule } from '../rules/cors.ts';
import { checkPreflight, decideCors, exposedNames } from '../services/common/cors.ts';
import { commonErrors, errorFactory } from '../services/common/errors.ts';
import type { Request } from './operation.ts';
import type { Reply } from './reply.ts';

const fail = errorFactory(commonErrors);

const TOO_MANY_HEADERS = `The request that is announced has more than ${HEADERS_MAX} headers.`;

type CorsRequest = Pick<Request, 'method' | 'headers'>;

/** A preflight asks about the service, not about a resource: whether the path leads to one does not matter. */
export function preflight({ headers }: CorsRequest, rules: readonly CorsRule[]): Reply {
  const origin = requiredHeader(headers, 'Origin');
  const method = requiredHeader(headers, 'Access-Control-Request-Method');
  const names = headerText(headers['access-control-request-headers']);
  const announcedHeaders = splitNames(names);
  if (announcedHeaders.length > HEADERS_MAX)
    throw fail('InvalidHeaderValue', { HeaderName: 'Access-Control-Request-Headers' }, TOO_MANY_HEADERS);
  const rule = checkPreflight(rules, { origin, method, headers: announcedHeaders });
  return {
    status: 200,
    headers: {
      'Access-Control-Allow-Origin': origin,
      'Access-Control-Allow-Methods': method,
      'Access-Control-Allow-Headers': names || undefined,
      'Access-Control-Max-Age': rule.maxAgeSeconds,
      'Access-Control-Allow-Credentials': 'true',
    },
  };
}

/** The CORS headers of a reply, errors included; undefined: none. */
export function corsHeaders(
  { method, headers }: CorsRequest,
  rules: readonly CorsRule[],
  reply: Reply,
): Record<string, string> | undefined {
  const requestOrigin = headerText(headers.origin) || undefined;
  const { rule, origin, varies } = decideCors(rules, requestOrigin, method);
  const added: Record<string, string> = {};
  if (rule) {
    added['Access-Control-Allow-Origin'] = origin === '*' ? '*' : requestOrigin!;
    const exposed = exposedNames(rule, sentHeaderNames(reply));
    if (exposed.length > 0) added['Access-Control-Expose-Headers'] = exposed.join(',');
    if (origin !== '*') added['Access-Control-Allow-Credentials'] = 'true';
  }
  if (varies) added.Vary = 'Origin';
  return rule || varies ? added : undefined;
}

/** The names of all headers of the reply, in the order of Azure: its own stand between those that the server adds to every reply. */
function sentHeaderNames({ headers = {} }: Reply): string[] {
  const own = Object.keys(headers).filter((name) => headers[name] !== undefined && !ADDED_BY_SERVER.includes(name));
  return [...ADDED_BY_SERVER.slice(0, 4), ...own, ...ADDED_BY_SERVER.slice(4)];
}

const ADDED_BY_SERVER = [
  'x-ms-request-id',
  'x-ms-client-request-id',
  'Server',
  'x-ms-version',
  'Content-Length',
  'Date',
  'Transfer-Encoding',
];

function requiredHeader(headers: CorsRequest['headers'], name: string): string {
  const value = headerText(headers[name.toLowerCase()]);
  if (value) return value;
  const details = { HeaderName: name, HeaderValue: '' };
  throw fail('InvalidHeaderValue', details, 'A required CORS header is not present.');
}

function headerText(value: string | string[] | undefined): string | undefined {
  return typeof value === 'object' ? value.join(',') : value;
}

function splitNames(names: string | undefined): string[] {
  return (names ?? '').split(',', HEADERS_MAX + 1).flatMap((name) => name.trim() || []);
}
