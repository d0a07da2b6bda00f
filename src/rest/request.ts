/** The request line and the headers → Request. Path-style: the first segment of the path is the account. */
import type { IncomingMessage } from 'node:http';
import { commonErrors, raising } from '../services/errors.ts';
import type { Request, Shape } from './operation.ts';

const fail = raising(commonErrors);

export type Address = Pick<Request, 'rawPath' | 'rawQuery' | 'account' | 'container' | 'blob'> & {
  readonly shape: Shape;
};

const NO_QUERY: Readonly<Record<string, string>> = Object.freeze(Object.create(null));
const VERSION = /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])$/;

export function requestOf(incoming: IncomingMessage, id: string): Request & { readonly shape: Shape } {
  const { rawPath, rawQuery, account, container, blob, shape } = addressOf(incoming.url!);
  return {
    id,
    method: incoming.method!,
    rawPath,
    rawQuery,
    account,
    container,
    blob,
    shape,
    query: queryOf(rawQuery),
    headers: incoming.headers,
    rawHeaders: incoming.rawHeaders,
    version: versionOf(incoming.headers['x-ms-version']),
  };
}

/** Percent-encoding is undone once, and never in the path that is signed. A blob's name may hold any number of slashes. */
export function addressOf(url: string): Address {
  const target = url.startsWith('/') ? url : url.replace(/^https?:\/\/[^/?]*/i, '');
  const question = target.indexOf('?');
  const rawPath = question < 0 ? target : target.slice(0, question);
  const rawQuery = question < 0 ? '' : target.slice(question + 1);
  if (!rawPath.startsWith('/')) throw fail('InvalidUri');
  const first = rawPath.indexOf('/', 1);
  if (first < 0) {
    return { rawPath, rawQuery, account: decode(rawPath.slice(1)), container: '', blob: '', shape: '/' };
  }
  const account = decode(rawPath.slice(1, first));
  const second = rawPath.indexOf('/', first + 1);
  const container = decode(second < 0 ? rawPath.slice(first + 1) : rawPath.slice(first + 1, second));
  const blob = second < 0 ? '' : decode(rawPath.slice(second + 1));
  const shape = blob !== '' ? '/{container}/{blob}' : container !== '' ? '/{container}' : '/';
  return { rawPath, rawQuery, account, container, blob, shape };
}

export function queryOf(rawQuery: string): Readonly<Record<string, string>> {
  if (rawQuery === '') return NO_QUERY;
  const query: Record<string, string> = Object.create(null);
  for (const part of rawQuery.split('&')) {
    if (part === '') continue;
    const equals = part.indexOf('=');
    const name = decodeParameter(equals < 0 ? part : part.slice(0, equals), part).toLowerCase();
    query[name] ??= equals < 0 ? '' : decodeParameter(part.slice(equals + 1), part);
  }
  return query;
}

function decode(text: string): string {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    throw fail('InvalidUri');
  }
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
function versionOf(text: string | string[] | undefined): string {
  if (text === undefined) return '';
  if (typeof text === 'string' && VERSION.test(text)) return text;
  throw fail('InvalidHeaderValue', { HeaderName: 'x-ms-version', HeaderValue: String(text) });
}
