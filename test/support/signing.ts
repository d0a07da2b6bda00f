/** Signs as Microsoft's pages "Authorize with Shared Key" and "Create a service SAS" describe; independent of the server's code. */
import { createHmac } from 'node:crypto';

/** A request as on the wire; every character is a byte. */
export interface Sending {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
}

export interface Signer {
  readonly account: string;
  /** In base64. */
  readonly key: string;
  /** How the client encodes the string-to-sign: as the bytes that it sends, or as UTF-8 of the same characters. */
  readonly encoding?: 'latin1' | 'utf8';
}

export type Scheme = 'SharedKey' | 'SharedKeyLite';
const stringsToSign = {
  SharedKey: sharedKeyString,
  SharedKeyLite: sharedKeyLiteString,
  'SharedKey of tables': tableString,
  'SharedKeyLite of tables': tableLiteString,
};

/** The value of the Authorization header. */
export function authorizationFor(scheme: keyof typeof stringsToSign, sending: Sending, signer: Signer): string {
  return `${scheme.split(' ')[0]} ${signer.account}:${hmac(stringsToSign[scheme](sending, signer), signer)}`;
}

function tableString(sending: Sending, signer: Signer): string {
  const lines = [sending.method, headerOf(sending, 'Content-MD5'), headerOf(sending, 'Content-Type')];
  return [...lines, tableLiteString(sending, signer)].join('\n');
}

function tableLiteString(sending: Sending, { account }: Signer): string {
  const comp = parametersOf(sending).find(([name]) => name === 'comp');
  const date = headerOf(sending, 'x-ms-date') || headerOf(sending, 'Date');
  return `${date}\n/${account}${pathOf(sending)}${comp ? `?comp=${comp[1]}` : ''}`;
}

function sharedKeyString(sending: Sending, { account }: Signer): string {
  const length = headerOf(sending, 'Content-Length');
  const resource = [`/${account}${pathOf(sending)}`];
  const parameters = parametersOf(sending);
  for (const name of [...new Set(parameters.map((parameter) => parameter[0]))].sort()) {
    const values = parameters.filter((parameter) => parameter[0] === name).map((parameter) => parameter[1]);
    resource.push(`${name}:${values.sort().join(',')}`);
  }
  return [
    sending.method,
    headerOf(sending, 'Content-Encoding'),
    headerOf(sending, 'Content-Language'),
    length === '0' ? '' : length,
    headerOf(sending, 'Content-MD5'),
    headerOf(sending, 'Content-Type'),
    dateOf(sending),
    headerOf(sending, 'If-Modified-Since'),
    headerOf(sending, 'If-Match'),
    headerOf(sending, 'If-None-Match'),
    headerOf(sending, 'If-Unmodified-Since'),
    headerOf(sending, 'Range'),
    ...canonicalHeaders(sending),
    ...resource,
  ].join('\n');
}

function sharedKeyLiteString(sending: Sending, { account }: Signer): string {
  const comp = parametersOf(sending).find(([name]) => name === 'comp');
  return [
    sending.method,
    headerOf(sending, 'Content-MD5'),
    headerOf(sending, 'Content-Type'),
    dateOf(sending),
    ...canonicalHeaders(sending),
    `/${account}${pathOf(sending)}${comp ? `?comp=${comp[1]}` : ''}`,
  ].join('\n');
}

/** The parameters of a SAS by name, without the signature. */
export type SasParameters = Readonly<Record<string, string>>;

/** The query of a SAS for a container, or for a blob in it, of version 2020-12-06 or later. */
export function serviceSas(parameters: SasParameters, resource: string, signer: Signer): string {
  const lines = [
    'sp',
    'st',
    'se',
    '',
    'si',
    'sip',
    'spr',
    'sv',
    'sr',
    'moment',
    'ses',
    'rscc',
    'rscd',
    'rsce',
    'rscl',
    'rsct',
  ];
  const text = lines.map((name) => (name === '' ? `/blob/${signer.account}/${resource}` : (parameters[name] ?? '')));
  return queryWith(parameters, hmac(text.join('\n'), { ...signer, encoding: 'utf8' }));
}

/** The query of a SAS for the account, of version 2020-12-06 or later. */
export function accountSas(parameters: SasParameters, signer: Signer): string {
  const lines = ['sp', 'ss', 'srt', 'st', 'se', 'sip', 'spr', 'sv', 'ses'].map((name) => `${parameters[name] ?? ''}\n`);
  return queryWith(parameters, hmac(`${signer.account}\n${lines.join('')}`, { ...signer, encoding: 'utf8' }));
}

function queryWith({ moment: _, ...parameters }: SasParameters, sig: string): string {
  const pairs = Object.entries({ ...parameters, sig });
  return pairs.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&');
}

function hmac(text: string, { key, encoding = 'latin1' }: Signer): string {
  return createHmac('sha256', Buffer.from(key, 'base64')).update(Buffer.from(text, encoding)).digest('base64');
}

function headerOf({ headers }: Sending, wanted: string): string {
  const found = headers.find(([name]) => name.toLowerCase() === wanted.toLowerCase());
  return found ? trimmed(found[1]) : '';
}

function dateOf(sending: Sending): string {
  return headerOf(sending, 'x-ms-date') === '' ? headerOf(sending, 'Date') : '';
}

function canonicalHeaders({ headers }: Sending): string[] {
  const found = new Map<string, string[]>();
  for (const [name, value] of headers) {
    const key = name.toLowerCase();
    if (key.startsWith('x-ms-')) found.set(key, [...(found.get(key) ?? []), trimmed(value)]);
  }
  return [...found.keys()].sort().map((name) => `${name}:${found.get(name)!.join(',')}`);
}

function pathOf({ target }: Sending): string {
  return target.split('?')[0]!;
}

/** Names in lower case and values, decoded to bytes. */
function parametersOf({ target }: Sending): [name: string, value: string][] {
  const at = target.indexOf('?');
  if (at < 0) return [];
  const parts = target.slice(at + 1).split('&');
  return parts.filter(Boolean).map((part) => {
    const equals = part.indexOf('=');
    const [name, value] = equals < 0 ? [part, ''] : [part.slice(0, equals), part.slice(equals + 1)];
    return [decoded(name).toLowerCase(), decoded(value)];
  });
}

function decoded(text: string): string {
  let bytes = '';
  for (let at = 0; at < text.length; at++) {
    const hex = text.slice(at + 1, at + 3);
    if (text[at] === '%' && /^[0-9a-fA-F]{2}$/.test(hex)) {
      bytes += String.fromCharCode(Number(`0x${hex}`));
      at += 2;
    } else bytes += text[at] === '+' ? ' ' : text[at];
  }
  return bytes;
}

function trimmed(value: string): string {
  return value.replace(/^[ \t]+/, '').replace(/[ \t]+$/, '');
}
