/** Protection against web pages of other sites (CSRF, DNS rebinding); the decisions are in rules/browser-requests.ts. */
import {
  isCrossSite,
  isForbiddenWrite,
  isRebound,
  type KnownHosts,
  type PageHeaders,
} from '../../rules/browser-requests.ts';
import type { CorsRule } from '../../rules/cors.ts';
import { commonErrors, errorFactory } from './errors.ts';

export { isFromBrowser } from '../../rules/browser-requests.ts';

const fail = errorFactory(commonErrors);

/** Azure has no code for these refusals: this is its general one, with or without authentication. */
const refused = (message: string) => fail('AuthorizationFailure', undefined, message);

export function checkHost(headers: PageHeaders, known: KnownHosts): void {
  if (!isRebound(headers, known)) return;
  throw refused(
    `A web page asks by the host ${headers.host}, which is no name of this server: if it is meant to be one, name it by --allowed-hosts.`,
  );
}

export function checkPageWrite(method: string, headers: PageHeaders, rules: readonly CorsRule[]): void {
  if (!isForbiddenWrite(method, headers, rules)) return;
  throw refused(`No CORS rule lets a page of ${headers.origin ?? 'another site'} write here by ${method}.`);
}

export function checkSameSite(headers: PageHeaders): void {
  if (isCrossSite(headers)) throw refused('No page of another site may do this.');
}
