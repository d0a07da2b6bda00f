/**
 * The request: its line and headers parsed, the account and resource that its URL addresses, and the context of its HTTP exchange. The accounts
 * of the server decide between host style and path style, so no flag is needed.
 */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { QUERY_PARAMETERS_MAX } from '../base/input-limits.ts';
import { memoize } from '../base/memoize.ts';
import { commonErrors, errorFactory, type StorageError } from '../services/common/errors.ts';
import { isSasField, malformedField } from './auth/sas-fields.ts';
import type { BudgetShare } from './http/byte-budget.ts';
import type { RequestBody } from './http/request-body.ts';
import type { Request, Shape } from './operation.ts';
import type { Reply } from './reply.ts';

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

/** Inherits nothing, as Object.create(null), whose fields V8 keeps in a hash table: each would cost a call of its runtime. */
const Parameters = function Parameters() {} as unknown as new () => Record<string, string>;
Parameters.prototype = Object.create(null);

/** Shorter queries are few: they select an operation. Longer ones mostly have a value that comes once, such as a signature or a marker. */
export const QUERY_OFTEN_LENGTH_MAX = 48;

export const parseQuery = memoize(parseQueryText, QUERY_OFTEN_LENGTH_MAX);

function parseQueryText(rawQuery: string): Readonly<Record<string, string>> {
  if (rawQuery === '') return NO_QUERY;
  const query = new Parameters();
  const parts = rawQuery.split('&', QUERY_PARAMETERS_MAX + 1);
  if (parts.length > QUERY_PARAMETERS_MAX) throw tooManyParameters();
  for (const part of parts) {
    if (part === '') continue;
    const equals = part.indexOf('=');
    const name = decodeParameter(equals < 0 ? part : part.slice(0, equals), part).toLowerCase();
    if (query[name] !== undefined) checkRepeatable(name);
    else query[name] = equals < 0 ? '' : decodeParameter(part.slice(equals + 1), part);
  }
  return Object.freeze(query);
}

/** They select the operation, or the state of a blob that it reads. */
const SELECTING_PARAMETERS = new Set([
  'comp',
  'restype',
  'blocklisttype',
  'peekonly',
  'snapshot',
  'versionid',
  'deletetype',
]);

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

export interface RequestContext {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly id: string;
  readonly body: RequestBody;
  /** The bytes of the byte budget that the reply uses. */
  readonly replyShare: BudgetShare;
  /** Set once the account of the request is known. */
  request: Routable | undefined;
  /** The name of the operation, once the request is routed. */
  operation: string | undefined;
  /** The code of the error reply. */
  code: string | undefined;
  /** Headers that are added to every reply, errors included. */
  extraHeaders: ((reply: Reply) => Reply['headers']) | undefined;
}

export function createRequestContext(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  body: RequestBody,
  replyShare: BudgetShare,
): RequestContext {
  return {
    incoming,
    outgoing,
    id: randomUUID(),
    body,
    replyShare,
    request: undefined,
    operation: undefined,
    code: undefined,
    extraHeaders: undefined,
  };
}

export type Address = Pick<
  Request,
  'rawPath' | 'rawQuery' | 'account' | 'secondary' | 'base' | 'readsHosts' | 'container' | 'item'
> & { readonly shape: Shape };

/** The resource of the part of a path after the account: empty, or a slash and more, still encoded. */
export type ParsePath = (rest: string) => Pick<Address, 'container' | 'item' | 'shape'>;

type IsAccount = (name: string) => boolean;

const SECONDARY = '-secondary';
const ABSOLUTE = /^https?:\/\/[^/?#]*/i;
/** A numeric IP address has no labels. */
const NUMERIC = /^(?:[\d.]+(?::\d*)?|\[.*)$/;

/**
 * Host-style if the first label of the host is an account, otherwise path-style: the first segment of the path is the account.
 * Percent-encoding is decoded once, and never in the path that is signed.
 */
export function parseAddress(
  url: string,
  host: string | undefined,
  isAccount: IsAccount,
  parsePath: ParsePath,
): Address {
  const absolute = url.startsWith('/') ? undefined : ABSOLUTE.exec(url);
  const target = absolute ? url.slice(absolute[0].length) : url;
  const question = target.indexOf('?');
  const rawPath = question < 0 ? target : target.slice(0, question);
  const rawQuery = question < 0 ? '' : target.slice(question + 1);
  if (!rawPath.startsWith('/')) throw fail('InvalidUri');

  const readsHosts = host !== undefined;
  const label = firstHostLabel(host);
  if (label !== undefined) {
    const account = primaryName(label);
    if (isAccount(account)) {
      const secondary = account !== label;
      const { container, item, shape } = parsePath(rawPath);
      return { rawPath, rawQuery, account, secondary, base: '', readsHosts, container, item, shape };
    }
  }
  const end = rawPath.indexOf('/', 1);
  const segment = decodePart(end < 0 ? rawPath.slice(1) : rawPath.slice(1, end));
  const account = isAccount(segment) ? segment : primaryName(segment);
  const secondary = account !== segment;
  const { container, item, shape } = parsePath(end < 0 ? '' : rawPath.slice(end));
  return { rawPath, rawQuery, account, secondary, base: `/${segment}`, readsHosts, container, item, shape };
}

/** A cache of one entry, written by firstHostLabel only: nearly every request names the same host as the one before. */
let lastHost: string | undefined;
let lastLabel: string | undefined;

/** The first label of a host that has several labels. */
function firstHostLabel(host: string | undefined): string | undefined {
  if (host === lastHost) return lastLabel;
  const dot = host === undefined || NUMERIC.test(host) ? -1 : host.indexOf('.');
  lastHost = host;
  lastLabel = dot < 1 ? undefined : host!.slice(0, dot).toLowerCase();
  return lastLabel;
}

function primaryName(name: string): string {
  return name.endsWith(SECONDARY) ? name.slice(0, -SECONDARY.length) : name;
}

/** A part of a path, percent-decoded. */
export function decodePart(text: string): string {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    throw fail('InvalidUri');
  }
}

export function unknownAccount({ account }: Address, host: string | undefined): StorageError {
  const label = firstHostLabel(host);
  const tried = [
    ...(label === undefined ? [] : [`the first label of the host, "${label}"`]),
    `the first segment of the path, "${account}"`,
  ];
  const verdict = tried.length > 1 ? ': neither is an account of this server' : ', is not an account of this server';
  return fail(
    'InvalidUri',
    undefined,
    `The requested URI does not represent any resource on the server: ${tried.join(', and ')}${verdict} (host ${host ?? 'not given'}).`,
  );
}
