/**
 * `--oauth basic`: who issued a token, for whom and for when is looked at, its signature is not. It lets programs run that
 * know no other way to authenticate; it keeps nobody out.
 */
import { ticksOf } from '../../base/time.ts';
import { commonErrors, raising, type StorageError } from '../../services/errors.ts';

const fail = raising(commonErrors);

/** Of the public cloud and the national ones. */
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

export interface BearerContext {
  readonly account: string;
  /** 'blob', 'queue' ...: tokens may be for one service of the account. */
  readonly service?: string;
  readonly wall?: () => bigint;
}

/** Throws unless the header carries a token that Azure would have issued for this account, for now. */
export function checkBearer(authorization: string, context: BearerContext): void {
  const { account, service = 'blob', wall = () => ticksOf(Date.now()) } = context;
  const claims = claimsOf(authorization);
  const now = wall();
  if (claims.notBefore > now + SKEW_TICKS) throw refused('Lifetime validation failed. The token is not valid yet.');
  if (claims.expiry <= now - SKEW_TICKS) throw refused('Lifetime validation failed. The token is expired.');
  const { issuer, audiences } = claims;
  if (!ISSUERS.some((known) => issuer.startsWith(known) && issuer.length > known.length)) {
    throw refused('Issuer validation failed. Issuer did not match.');
  }
  const accepted = [...STORAGE, ...CLOUDS.map((cloud) => `https://${account}.${service}.${cloud}`)];
  if (!audiences.some((audience) => accepted.includes(audience.replace(/\/$/, '')))) {
    throw refused('Audience validation failed. Audience did not match.');
  }
}

function claimsOf(authorization: string) {
  const payload = /^Bearer +[\w-]+\.([\w-]+)\.[\w-]*={0,2}$/.exec(authorization)?.[1];
  if (payload === undefined) throw fail('InvalidAuthenticationInfo');
  const claims = objectOf(Buffer.from(payload, 'base64url').toString());
  if (claims === undefined) throw fail('InvalidAuthenticationInfo');
  const { iss, aud, nbf, exp } = claims;
  const audiences: unknown[] = Array.isArray(aud) ? aud : [aud];
  return {
    issuer: typeof iss === 'string' ? iss : '',
    audiences: audiences.filter((audience) => typeof audience === 'string'),
    notBefore: instantOf(nbf, 'nbf'),
    expiry: instantOf(exp, 'exp'),
  };
}

function objectOf(json: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

const SECONDS_MAX = 253_402_300_799;

function instantOf(claim: unknown, name: string): bigint {
  if (typeof claim !== 'number' || !(claim >= 0 && claim <= SECONDS_MAX)) {
    throw refused(`Lifetime validation failed. The token has no ${name}.`);
  }
  return ticksOf(claim * 1_000);
}

function refused(detail: string): StorageError {
  return fail('BearerTokenRefused', { AuthenticationErrorDetail: detail });
}
