/**
 * Protection against DNS rebinding and cross-site request forgery, beyond what Azure does. The key of the development account is public, so
 * every web page that its user opens could sign requests to a server on the same machine.
 */
import { type CorsRule, decideCors } from './cors.ts';

/** By lower-case name. */
export type PageHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

export interface KnownHosts {
  isAccount(name: string): boolean;
  /** Of this server, in lower case. */
  readonly names: readonly string[];
}

/** DNS rebinding: to the browser, a page whose host name was pointed at this machine has the same origin as the server. */
export function isRebound(headers: PageHeaders, known: KnownHosts): boolean {
  if (!isFromBrowser(headers)) return false;
  const hostKind = classifyHost(headerText(headers.host), known);
  // Any domain can have an account's name as its first label. Only a page of that same host name could gain from it.
  return hostKind === 'unknown' || (hostKind === 'account' && requestSite(headers) === 'same');
}

/** A write that a browser sends without a preflight, for a page whose origin no rule allows. */
export function isForbiddenWrite(method: string, headers: PageHeaders, rules: readonly CorsRule[]): boolean {
  if (requestSite(headers) !== 'other' || !skipsPreflight(method, headers)) return false;
  // An opaque origin is allowed where all are.
  return decideCors(rules, headerText(headers.origin) ?? 'null', method).rule === undefined;
}

/** Whether the request is of a page of another site. */
export function isCrossSite(headers: PageHeaders): boolean {
  return requestSite(headers) === 'other';
}

/** Whether the headers are those of a browser. */
export function isFromBrowser(headers: PageHeaders): boolean {
  if (headers.origin !== undefined || headers['sec-fetch-site'] !== undefined) return true;
  if (headers['sec-fetch-dest'] !== undefined || headers['sec-fetch-user'] !== undefined) return true;
  const mode = headers['sec-fetch-mode'];
  // Node's fetch sends this header, and is no browser.
  return mode !== undefined && mode !== 'cors';
}

/** 'none': the request is not of a page, but of the user of the browser, or of another program. */
function requestSite(headers: PageHeaders): 'same' | 'other' | 'none' {
  const site = headerText(headers['sec-fetch-site']);
  if (site !== undefined) return site === 'same-origin' ? 'same' : site === 'none' ? 'none' : 'other';
  const origin = headerText(headers.origin);
  if (origin === undefined) return 'none';
  return origin.replace(/^https?:\/\//, '') === headerText(headers.host)?.toLowerCase() ? 'same' : 'other';
}

const SIMPLE_METHODS = ['GET', 'HEAD', 'POST'];
const SIMPLE_TYPES = ['', 'application/x-www-form-urlencoded', 'multipart/form-data', 'text/plain'];

/** By the Fetch standard, as far as it matters here: a page needs a preflight to add one of these headers. */
function skipsPreflight(method: string, headers: PageHeaders): boolean {
  if (!SIMPLE_METHODS.includes(method) || headers.authorization !== undefined) return false;
  for (const name in headers) if (name.startsWith('x-ms-')) return false;
  const [type = ''] = (headerText(headers['content-type']) ?? '').split(';');
  return SIMPLE_TYPES.includes(type.trim().toLowerCase());
}

const ADDRESS = /^(?:(?:\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])(?:\.(?!$)|$)){4}$/;
const AZURE = /\.core\.(?:windows\.net|chinacloudapi\.cn|usgovcloudapi\.net|cloudapi\.de)$/;

/** A name without a dot is one of this machine or its network, which cannot be registered; so are addresses and names below localhost. */
function classifyHost(host: string | undefined, { isAccount, names }: KnownHosts): 'known' | 'account' | 'unknown' {
  if (host === undefined || host.startsWith('[')) return 'known';
  const name = host.toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '');
  if (!name.includes('.') || ADDRESS.test(name) || name.endsWith('.localhost')) return 'known';
  if (names.includes(name)) return 'known';
  const label = name.slice(0, name.indexOf('.')).replace(/-secondary$/, '');
  if (!isAccount(label)) return 'unknown';
  return AZURE.test(name) ? 'known' : 'account';
}

function headerText(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === 'object' ? value.join(',') : value;
}
