/**
 * Bearer tokens (JWT) with `--oauth basic`: issuer, audience and lifetime are validated, the signature is not. Programs that have no other
 * way to authenticate can run; this protects nothing.
 */
import { ticksFromUnix } from '../../base/time.ts';
import { commonErrors, errorFactory } from '../../services/common/errors.ts';
import type { ServiceName } from '../../services/common/names.ts';

const fail = errorFactory(commonErrors);

/** Issuers of the public cloud and the national clouds. */
const ISSUERS = [
  'https://sts.windows.net/',
  'https://sts.windows-ppe.net/',
  'https://sts.microsoftonline.de/',
  'https://sts.chinacloudapi.cn/',
  'https://login.microsoftonline.com/',
  'https://login.microsoftonline.us/',
  'https://login.microsoftonline.de/',
  'https://login.partner.microsoftonline.cn/',
  'https://login.chinacloudapi.cn/',
];
const CLOUDS = ['core.windows.net', 'core.chinacloudapi.cn', 'core.usgovcloudapi.net', 'core.cloudapi.de'];
/** Azure Storage itself; a token may name it by its id. */
const STORAGE = ['https://storage.azure.com', 'e406a681-f3d4-42a8-90b6-c2b029497af1'];
/** Clocks of issuers and servers differ by minutes. */
const SKEW_TICKS = 5n * 60n * 10_000_000n;

interface BearerContext {
  readonly account: string;
  /** A token may be for one service of the account. */
  readonly service: ServiceName;
  readonly wall?: () => bigint;
}

type Claims = Readonly<Record<string, unknown>>;

/** Throws unless the header has a token that Azure could have issued for this account, valid now. */
export function checkBearer(authorization: string, context: BearerContext): void {
  const token = /^Bearer +(\S.*)$/i.exec(authorization)?.[1];
  if (token === undefined) throw fail('InvalidAuthenticationInfo');
  const claims = parseClaims(token);
  const fault = claims ? findFault(claims, context) : 'The token is not a JSON Web Token.';
  if (fault === undefined) return;
  const refused = fail('BearerTokenRefused', { AuthenticationErrorDetail: fault });
  throw refused.withHeaders({ 'WWW-Authenticate': bearerChallenge(tenantFrom(claims?.iss)) });
}

function findFault({ iss, aud, nbf, exp }: Claims, { account, service, wall = wallTicks }: BearerContext) {
  const now = wall();
  const [notBefore, expiry] = [parseNumericDate(nbf), parseNumericDate(exp)];
  if (notBefore === undefined) return 'Lifetime validation failed. The token has no nbf.';
  if (expiry === undefined) return 'Lifetime validation failed. The token has no exp.';
  if (notBefore > now + SKEW_TICKS) return 'Lifetime validation failed. The token is not valid yet.';
  if (expiry <= now - SKEW_TICKS) return 'Lifetime validation failed. The token is expired.';
  if (!isKnownIssuer(iss)) return 'Issuer validation failed. Issuer did not match.';
  const accepted = [...STORAGE, ...CLOUDS.map((cloud) => `https://${account}.${service}.${cloud}`)];
  const audiences: unknown[] = Array.isArray(aud) ? aud : [aud];
  const isAudience = audiences.some((one) => typeof one === 'string' && accepted.includes(one.replace(/\/$/, '')));
  return isAudience ? undefined : 'Audience validation failed. Audience did not match.';
}

function isKnownIssuer(issuer: unknown): issuer is string {
  return (
    typeof issuer === 'string' && ISSUERS.some((known) => issuer.startsWith(known) && issuer.length > known.length)
  );
}

const TENANT = /^https:\/\/[^/]+\/([\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})(?:\/|$)/i;

/** A client whose token is refused is sent to its own tenant again: identity libraries fail when they are sent to another. */
function tenantFrom(issuer: unknown): string | undefined {
  return isKnownIssuer(issuer) ? TENANT.exec(issuer)?.[1] : undefined;
}

/** The authority of any tenant: the server itself belongs to none. */
const ANY_TENANT = 'common';

/** The WWW-Authenticate header of a 401. Microsoft's clients parse it, and some fail on any other form. */
export function bearerChallenge(tenant = ANY_TENANT): string {
  const authority = `https://login.microsoftonline.com/${tenant}/oauth2/authorize`;
  return `Bearer authorization_uri=${authority} resource_id=https://storage.azure.com`;
}

function parseClaims(token: string): Claims | undefined {
  const payload = /^[\w-]+\.([\w-]+)\.[\w-]*={0,2}$/.exec(token)?.[1];
  if (payload === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString());
    return typeof value === 'object' && value !== null ? (value as Claims) : undefined;
  } catch {
    return undefined;
  }
}

const SECONDS_MAX = 253_402_300_799;

function parseNumericDate(claim: unknown): bigint | undefined {
  return typeof claim === 'number' && claim >= 0 && claim <= SECONDS_MAX ? ticksFromUnix(claim * 1_000) : undefined;
}

function wallTicks(): bigint {
  return ticksFromUnix(Date.now());
}
