/** SharedKey: the caller signs what it asks with a key of the account. */
import { createHmac } from 'node:crypto';
import { parseHttpDate, ticksOf } from '../../base/time.ts';
import { commonErrors, raising } from '../../services/errors.ts';

const fail = raising(commonErrors);

export interface Account {
  readonly name: string;
  /** In base64; any of them will do. */
  readonly keys: readonly string[];
}

/** What is signed of a request. */
export interface Signed {
  readonly method: string;
  readonly rawPath: string;
  readonly rawQuery: string;
  readonly rawHeaders: readonly string[];
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** A signature is good for a quarter of an hour before and after its date. */
const WINDOW_TICKS = 15n * 60n * 10_000_000n;
/** From this version on the service asks a stranger for credentials. */
const CHALLENGE_SINCE = '2019-12-12';
/** Its key is public: telling what was signed gives nothing away, and saves an hour of guessing. */
const PUBLIC_ACCOUNT = 'devstoreaccount1';

/** Throws unless the request carries a good signature of this account. */
export function sharedKeyOf(account: Account, wall: () => bigint = () => ticksOf(Date.now())) {
  const keys = account.keys.map((key) => Buffer.from(key, 'base64'));
  const prefix = `SharedKey ${account.name}:`;
  return (request: Signed): void => {
    const authorization = request.headers.authorization;
    if (authorization === undefined) throw anonymous(request);
    if (typeof authorization !== 'string' || !authorization.startsWith(prefix)) {
      throw refusalOf(String(authorization), account.name);
    }
    checkDate(request, wall());
    const text = stringToSign(account.name, request);
    const sent = authorization.slice(prefix.length);
    if (keys.some((key) => isSignature(sent, key, text))) return;
    // The documentation folds white space inside values, most clients do not.
    const folded = stringToSign(account.name, request, true);
    if (folded !== text && keys.some((key) => isSignature(sent, key, folded))) return;
    throw fail('AuthenticationFailed', { AuthenticationErrorDetail: mismatch(account.name, sent, text) });
  };
}

/** The headers with a line of their own, in their order. */
const LINES = [
  'content-encoding',
  'content-language',
  'content-length',
  'content-md5',
  'content-type',
  'date',
  'if-modified-since',
  'if-match',
  'if-none-match',
  'if-unmodified-since',
  'range',
] as const;

/** As of version 2015-02-21. */
export function stringToSign(account: string, request: Signed, folded = false): string {
  let text = request.method;
  for (const name of LINES) {
    const value = request.headers[name];
    if (value === undefined) text += '\n';
    else if (name === 'content-length' && value === '0') text += '\n';
    else if (name === 'date' && request.headers['x-ms-date'] !== undefined) text += '\n';
    else text += `\n${value}`;
  }
  const headers = canonicalHeaders(request.rawHeaders, folded);
  return `${text}\n${headers}/${account}${request.rawPath}${canonicalQuery(request.rawQuery)}`;
}

function canonicalHeaders(rawHeaders: readonly string[], folded: boolean): string {
  const found: [name: string, value: string][] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const raw = rawHeaders[at]!;
    if (!(raw.startsWith('x-ms-') || raw.slice(0, 5).toLowerCase() === 'x-ms-')) continue;
    const name = raw.toLowerCase();
    const value = rawHeaders[at + 1]!.trim();
    const same = found.find((pair) => pair[0] === name);
    if (same) same[1] += `,${value}`;
    else found.push([name, value]);
  }
  found.sort(byName);
  let text = '';
  for (const [name, value] of found) text += `${name}:${folded ? value.replace(/\s+/g, ' ') : value}\n`;
  return text;
}

function canonicalQuery(rawQuery: string): string {
  if (rawQuery === '') return '';
  const found: [name: string, values: string[]][] = [];
  for (const part of rawQuery.split('&')) {
    if (part === '') continue;
    const equals = part.indexOf('=');
    const name = decode(equals < 0 ? part : part.slice(0, equals)).toLowerCase();
    const value = equals < 0 ? '' : decode(part.slice(equals + 1));
    const same = found.find((pair) => pair[0] === name);
    if (same) same[1].push(value);
    else found.push([name, [value]]);
  }
  found.sort(byName);
  let text = '';
  for (const [name, values] of found) text += `\n${name}:${values.length === 1 ? values[0] : values.sort().join(',')}`;
  return text;
}

/** By UTF-16 units; the order of a language would sort some names another way. */
function byName(one: readonly [string, unknown], other: readonly [string, unknown]): number {
  return one[0] < other[0] ? -1 : 1;
}

function decode(text: string): string {
  if (!text.includes('%') && !text.includes('+')) return text;
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return text;
  }
}

function isSignature(sent: string, key: Buffer, text: string): boolean {
  return isSame(sent, createHmac('sha256', key).update(text, 'utf8').digest('base64'));
}

/** Takes as long whichever character differs, so that the time tells nothing about the signature. */
function isSame(sent: string, expected: string): boolean {
  let difference = sent.length ^ expected.length;
  for (let at = 0; at < expected.length; at++) difference |= sent.charCodeAt(at) ^ expected.charCodeAt(at);
  return difference === 0;
}

/** Nothing is public yet, and the service does not tell a stranger what exists. */
function anonymous(request: Signed) {
  if (/(?:^|&)sig=/i.test(request.rawQuery)) {
    return fail(
      'NotImplemented',
      undefined,
      'Shared access signatures are not implemented by this server yet; use SharedKey.',
    );
  }
  const version = request.headers['x-ms-version'];
  return fail(version !== undefined && version >= CHALLENGE_SINCE ? 'NoAuthenticationInformation' : 'ResourceNotFound');
}

function checkDate(request: Signed, now: bigint): void {
  const text = request.headers['x-ms-date'] ?? request.headers.date;
  const date = typeof text === 'string' ? parseHttpDate(text) : undefined;
  if (date === undefined) {
    throw fail('AuthenticationFailed', {
      AuthenticationErrorDetail: `x-ms-date or Date is missing or not an HTTP date: ${text ?? ''}`,
    });
  }
  if (date < now - WINDOW_TICKS || date > now + WINDOW_TICKS) {
    throw fail('AuthenticationFailed', {
      AuthenticationErrorDetail: `The date header in the request is incorrect: ${text} is more than 15 minutes from the server's time.`,
    });
  }
}

/** A credential of another kind, of another account, or of no form at all. */
function refusalOf(authorization: string, account: string) {
  const scheme = /^(\S+) \S/.exec(authorization)?.[1];
  if (scheme === 'SharedKey') {
    const named = /^SharedKey ([^:\s]+):\S+$/.exec(authorization)?.[1];
    if (named === undefined) return fail('InvalidAuthenticationInfo');
    return fail('AuthenticationFailed', {
      AuthenticationErrorDetail: `The request is for the account ${account}, but is signed for ${named}.`,
    });
  }
  if (scheme === 'SharedKeyLite' || scheme === 'Bearer') {
    return fail('NotImplemented', undefined, `${scheme} is not implemented by this server yet; use SharedKey.`);
  }
  return fail('InvalidAuthenticationInfo');
}

function mismatch(account: string, sent: string, text: string): string {
  const detail = `The MAC signature found in the HTTP request '${sent}' is not the same as any computed signature.`;
  return account === PUBLIC_ACCOUNT ? `${detail} Server used following string to sign: '${text}'.` : detail;
}
