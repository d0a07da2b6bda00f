/** Requests of web pages: the preflight that a browser sends first, and what it needs to be told with the answer to the request itself. */
import { HEADERS_MAX } from '../base/input-limits.ts';
import type { CorsRule } from '../rules/cors.ts';
import { checkPreflight, decideCors, exposedNames } from '../services/common/cors.ts';
import { commonErrors, errorFactory } from '../services/common/errors.ts';
import type { Request } from './operation.ts';
import type { Reply } from './reply.ts';

export type { CorsRule } from '../rules/cors.ts';

const fail = errorFactory(commonErrors);

const TOO_MANY = `The request that is announced has more than ${HEADERS_MAX} headers.`;

type CorsRequest = Pick<Request, 'method' | 'headers'>;

/** It asks about the service, not about a resource: whether the path leads anywhere does not matter. */
export function preflight({ headers }: CorsRequest, rules: readonly CorsRule[]): Reply {
  const origin = requiredHeader(headers, 'Origin');
  const method = requiredHeader(headers, 'Access-Control-Request-Method');
  const names = headerText(headers['access-control-request-headers']);
  const announced = splitNames(names);
  if (announced.length > HEADERS_MAX)
    throw fail('InvalidHeaderValue', { HeaderName: 'Access-Control-Request-Headers' }, TOO_MANY);
  const rule = checkPreflight(rules, { origin, method, headers: announced });
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

/** What goes out with the answer, a refusal too, for the page's browser to go by; undefined: nothing. */
export function corsHeaders(
  { method, headers }: CorsRequest,
  rules: readonly CorsRule[],
  reply: Reply,
): Record<string, string> | undefined {
  const caller = headerText(headers.origin) || undefined;
  const { rule, origin, varies } = decideCors(rules, caller, method);
  const added: Record<string, string> = {};
  if (rule) {
    added['Access-Control-Allow-Origin'] = origin === '*' ? '*' : caller!;
    const exposed = exposedNames(rule, sentHeaderNames(reply));
    if (exposed.length > 0) added['Access-Control-Expose-Headers'] = exposed.join(',');
    if (origin !== '*') added['Access-Control-Allow-Credentials'] = 'true';
  }
  if (varies) added.Vary = 'Origin';
  return rule || varies ? added : undefined;
}

/** The names of all headers of the answer: its own, and between them those that the server adds to each. */
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
