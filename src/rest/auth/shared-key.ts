/** SharedKey and SharedKeyLite: the caller signs what it asks with a key of the account. */
import { parseHttpDateUnix } from '../../base/time.ts';
import { commonErrors, errorFactory, type StorageError } from '../../services/common/errors.ts';
import type { ServiceName } from '../../services/common/names.ts';
import { CanonicalRequest } from './canonical.ts';
import { verifySignature } from './hmac.ts';
import {
  type CanonicalVariant,
  type SignedRequest,
  type StringToSign,
  sharedKeyLiteStringToSign,
  sharedKeyStringToSign,
  tableSharedKeyLiteStringToSign,
  tableSharedKeyStringToSign,
} from './shared-key-strings.ts';

const fail = errorFactory(commonErrors);

export interface Account {
  readonly name: string;
  /** In base64; any of them will do. */
  readonly keys: readonly string[];
}

/** A signature is good for a quarter of an hour before and after its date. */
const WINDOW_MILLISECONDS = 15 * 60 * 1_000;
/** Its key is public: telling what was signed gives nothing away, and saves an hour of guessing. */
const PUBLIC_ACCOUNT = 'devstoreaccount1';

/** Throws unless the request carries a good signature of this account in its Authorization header. */
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

/** What to tell the caller of a text that it was to sign; nothing about it to strangers of other accounts. */
export function discloseStringToSign(account: string, text: string): string | undefined {
  return account === PUBLIC_ACCOUNT ? text : undefined;
}

/** Readings other than the usual one are tried only where the usual one has failed. */
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
    const mark = bytes ? `bytes ${other}` : other;
    if (tried.has(mark)) continue;
    tried.add(mark);
    for (const key of keys) if (verifySignature(sent, key, other, bytes ? 'latin1' : 'utf8')) return;
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

/** A credential of another account, of another kind, or of no form at all. */
function credentialError(authorization: string, account: string): StorageError {
  const named = /^SharedKey(?:Lite)? ([^:\s]+):\S+$/.exec(authorization)?.[1];
  if (named === undefined) return fail('InvalidAuthenticationInfo');
  return fail('AuthenticationFailed', {
    AuthenticationErrorDetail: `The request is for the account ${account}, but is signed for ${named}.`,
  });
}
