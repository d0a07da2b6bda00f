/** Shared Key and Shared Key Lite: the string to sign, path and query as sent, and the verification of its HMAC. */
import { parseHttpDateUnix } from '../../base/time.ts';
import { commonErrors, errorFactory, type StorageError } from '../../services/common/errors.ts';
import type { ServiceName } from '../../services/common/names.ts';
import { CanonicalRequest, type CanonicalVariant, type SignedRequest, verifySignature } from './canonical.ts';

const fail = errorFactory(commonErrors);

export interface Account {
  readonly name: string;
  /** In base64; each of them is valid. */
  readonly keys: readonly string[];
}

/** A signature is valid for a quarter of an hour before and after its date. */
const WINDOW_MILLISECONDS = 15 * 60 * 1_000;
/** Its key is public: disclosing the string-to-sign reveals nothing, and saves an hour of guessing. */
const PUBLIC_ACCOUNT = 'devstoreaccount1';

/** The check throws unless the Authorization header of the request has a valid signature of this account. */
export function createSharedKeyCheck(account: Account, service: ServiceName, wall: () => number = Date.now) {
  const [stringToSign, liteStringToSign] =
    service === 'table'
      ? [tableSharedKeyStringToSign, tableSharedKeyLiteStringToSign]
      : [sharedKeyStringToSign, sharedKeyLiteStringToSign];
  const prefix = `SharedKey ${account.name}:`;
  const litePrefix = `SharedKeyLite ${account.name}:`;
  return (request: SignedRequest): void => {
    const authorization = request.headers.authorization;
    if (typeof authorization !== 'string') throw fail('InvalidAuthenticationInfo');
    if (authorization.startsWith(prefix)) {
      checkDate(request, wall());
      checkSignature(account, request, authorization.slice(prefix.length), stringToSign);
    } else if (authorization.startsWith(litePrefix)) {
      checkDate(request, wall());
      checkSignature(account, request, authorization.slice(litePrefix.length), liteStringToSign);
    } else throw credentialError(authorization, account.name);
  };
}

/** The first word of an Authorization header. */
export function authScheme(authorization: string): string {
  const space = authorization.indexOf(' ');
  return space < 0 ? authorization : authorization.slice(0, space);
}

/** The string-to-sign for an error message; undefined: the caller must not see it. */
export function discloseStringToSign(account: string, text: string): string | undefined {
  return account === PUBLIC_ACCOUNT ? text : undefined;
}

/** Tried only after the usual canonical form has failed. */
const VARIANTS: readonly CanonicalVariant[] = [
  { byWord: true },
  { folded: true },
  { folded: true, byWord: true },
  { bytes: true },
  { bytes: true, byWord: true },
  { bytes: true, folded: true },
  { bytes: true, folded: true, byWord: true },
];

function checkSignature(
  { name: account, keys }: Account,
  request: SignedRequest,
  sent: string,
  stringToSign: StringToSign,
): void {
  const canonical = new CanonicalRequest(request);
  const text = stringToSign(account, request, {}, canonical);
  for (const key of keys) if (verifySignature(sent, key, text)) return;
  const tried = new Set([text]);
  for (const variant of VARIANTS) {
    const bytes = variant.bytes === true;
    if (bytes && isAscii(text)) continue;
    const other = stringToSign(account, request, variant, canonical);
    const key = bytes ? `bytes ${other}` : other;
    if (tried.has(key)) continue;
    tried.add(key);
    for (const accountKey of keys) if (verifySignature(sent, accountKey, other, bytes ? 'latin1' : 'utf8')) return;
  }
  const detail = `The MAC signature found in the HTTP request '${sent}' is not the same as any computed signature.`;
  const shown = discloseStringToSign(account, text);
  throw fail('AuthenticationFailed', {
    AuthenticationErrorDetail:
      shown === undefined ? detail : `${detail} Server used following string to sign: '${shown}'.`,
  });
}

function isAscii(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII
  return /^[\x00-\x7f]*$/.test(text);
}

function checkDate(request: SignedRequest, now: number): void {
  const text = request.headers['x-ms-date'] ?? request.headers.date;
  const date = typeof text === 'string' ? parseHttpDateUnix(text) : undefined;
  if (date === undefined) {
    throw fail('AuthenticationFailed', {
      AuthenticationErrorDetail: `x-ms-date or Date is missing or not an HTTP date: ${text ?? ''}`,
    });
  }
  if (Math.abs(date - now) > WINDOW_MILLISECONDS) {
    throw fail('AuthenticationFailed', {
      AuthenticationErrorDetail: `The date header in the request is incorrect: ${text} is more than 15 minutes from the server's time.`,
    });
  }
}

/** The credential is of another account, of another scheme, or malformed. */
function credentialError(authorization: string, account: string): StorageError {
  const named = /^SharedKey(?:Lite)? ([^:\s]+):\S+$/.exec(authorization)?.[1];
  if (named === undefined) return fail('InvalidAuthenticationInfo');
  return fail('AuthenticationFailed', {
    AuthenticationErrorDetail: `The request is for the account ${account}, but is signed for ${named}.`,
  });
}

export type { SignedRequest } from './canonical.ts';

/** `canonical`: that of the request, where the strings of several variants are wanted. */
export type StringToSign = (
  account: string,
  request: SignedRequest,
  variant?: CanonicalVariant,
  canonical?: CanonicalRequest,
) => string;

/** From this version on a Content-Length of 0 is signed as empty. */
const NO_ZERO_SINCE = '2015-02-21';

export function sharedKeyStringToSign(
  account: string,
  request: SignedRequest,
  variant: CanonicalVariant = {},
  canonical: CanonicalRequest = new CanonicalRequest(request),
): string {
  const { headers } = request;
  const sent = headers['content-length'];
  const length = sent === '0' && !isBefore(request, NO_ZERO_SINCE) ? undefined : sent;
  const date = headers['x-ms-date'] === undefined ? headers.date : undefined;
  // One line per header, whether it was sent or not.
  const content = `${line(headers['content-encoding'])}${line(headers['content-language'])}${line(length)}${line(headers['content-md5'])}${line(headers['content-type'])}`;
  const conditions = `${line(headers['if-modified-since'])}${line(headers['if-match'])}${line(headers['if-none-match'])}${line(headers['if-unmodified-since'])}`;
  const lines = `${request.method}\n${content}${line(date)}${conditions}${line(headers.range)}`;
  return `${lines}${canonical.headers(variant)}/${account}${request.rawPath}${canonical.query(variant)}`;
}

const line = (value: string | string[] | undefined): string => `${value ?? ''}\n`;

export function sharedKeyLiteStringToSign(
  account: string,
  request: SignedRequest,
  variant: CanonicalVariant = {},
  canonical: CanonicalRequest = new CanonicalRequest(request),
): string {
  const { headers } = request;
  const date = headers['x-ms-date'] === undefined ? headers.date : undefined;
  const text = `${request.method}\n${headers['content-md5'] ?? ''}\n${headers['content-type'] ?? ''}\n${date ?? ''}\n`;
  const comp = canonical.parameters(variant).get('comp')?.[0];
  const resource = `/${account}${request.rawPath}${comp === undefined ? '' : `?comp=${comp}`}`;
  return `${text}${canonical.headers(variant)}${resource}`;
}

/** For tables: the date has its line, whichever header it was sent in. */
function tableSharedKeyStringToSign(account: string, request: SignedRequest): string {
  const { headers } = request;
  const lines = [request.method, headers['content-md5'] ?? '', headers['content-type'] ?? ''];
  return `${lines.join('\n')}\n${tableSharedKeyLiteStringToSign(account, request)}`;
}

function tableSharedKeyLiteStringToSign(account: string, request: SignedRequest): string {
  const { headers, rawPath } = request;
  const comp = new CanonicalRequest(request).parameters({}).get('comp')?.[0];
  const date = headers['x-ms-date'] ?? headers.date ?? '';
  return `${date}\n/${account}${rawPath}${comp === undefined ? '' : `?comp=${comp}`}`;
}

function isBefore({ headers }: SignedRequest, version: string): boolean {
  const sent = headers['x-ms-version'];
  return typeof sent === 'string' && sent < version;
}
