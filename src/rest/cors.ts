/** Requests of web pages: the preflight that a browser sends first, and what it needs to be told with the answer to the request itself. */
import { HEADERS_MAX } from '../base/input-limits.ts';
import type { CorsRule } from '../rules/cors.ts';
import { allowPreflight, exposedNames, sharingOf } from '../services/common/cors.ts';
import { commonErrors, raising } from '../services/common/errors.ts';
import type { Request } from './operation.ts';
import type { Reply } from './reply.ts';

export type { CorsRule } from '../rules/cors.ts';

const fail = raising(commonErrors);

const TOO_MANY = `The request that is announced has more than ${HEADERS_MAX} headers.`;

type Asking = Pick<Request, 'method' | 'headers'>;

/** It asks about the service, not about a resource: whether the path leads anywhere does not matter. */
export function preflight({ headers }: Asking, rules: readonly CorsRule[]): Reply {
  const origin = required(headers, 'Origin');
  const method = required(headers, 'Access-Control-Request-Method');
  const names = text(headers['access-control-request-headers']);
  const announced = listOf(names);
  if (announced.length > HEADERS_MAX)
    throw fail('InvalidHeaderValue', { HeaderName: 'Access-Control-Request-Headers' }, TOO_MANY);
  const rule = allowPreflight(rules, { origin, method, headers: announced });
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
  { method, headers }: Asking,
  rules: readonly CorsRule[],
  reply: Reply,
): Record<string, string> | undefined {
  const caller = text(headers.origin) || undefined;
  const { rule, origin, varies } = sharingOf(rules, caller, method);
  const told: Record<string, string> = {};
  if (rule) {
    told['Access-Control-Allow-Origin'] = origin === '*' ? '*' : caller!;
    const exposed = exposedNames(rule, sentWith(reply));
    if (exposed.length > 0) told['Access-Control-Expose-Headers'] = exposed.join(',');
    if (origin !== '*') told['Access-Control-Allow-Credentials'] = 'true';
  }
  if (varies) told.Vary = 'Origin';
  return rule || varies ? told : undefined;
}

/** The names of all headers of the answer: its own, and between them those that the server adds to each. */
function sentWith({ headers = {} }: Reply): string[] {
  const own = Object.keys(headers).filter((name) => headers[name] !== undefined && !ADDED.includes(name));
  return [...ADDED.slice(0, 4), ...own, ...ADDED.slice(4)];
}

const ADDED = [
  'x-ms-request-id',
  'x-ms-client-request-id',
  'Server',
  'x-ms-version',
  'Content-Length',
  'Date',
  'Transfer-Encoding',
];

function required(headers: Asking['headers'], name: string): string {
  const value = text(headers[name.toLowerCase()]);
  if (value) return value;
  const details = { HeaderName: name, HeaderValue: '' };
  throw fail('InvalidHeaderValue', details, 'A required CORS header is not present.');
}

function text(value: string | string[] | undefined): string | undefined {
  return typeof value === 'object' ? value.join(',') : value;
}

function listOf(names: string | undefined): string[] {
  return (names ?? '').split(',', HEADERS_MAX + 1).flatMap((name) => name.trim() || []);
}
