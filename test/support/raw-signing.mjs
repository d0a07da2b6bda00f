/** Signatures over requests of any form; shares no code with the server. Most malformed requests must pass authentication. */
import { createHmac } from 'node:crypto';

export const ACCOUNT = 'devstoreaccount1';
export const ACCOUNT_KEY = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';
const KEY = Buffer.from(ACCOUNT_KEY, 'base64');

/** @typedef {[name: string, value: string]} Pair */

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
];
/** Of these Node keeps the first, others it joins. */
const FIRST_ONLY = new Set(['content-length', 'content-type', 'if-modified-since', 'if-unmodified-since']);

/**
 * The value of Authorization. Text is Latin-1, one character a byte, as it comes out of Node's parser.
 * @param {string} method @param {string} path with the account @param {string} query @param {readonly Pair[]} headers
 */
export function sharedKey(method, path, query, headers) {
  /** @type {Map<string, string>} */
  const found = new Map();
  for (const [name, raw] of headers) {
    const key = name.toLowerCase();
    const value = raw.trim();
    const known = found.get(key);
    if (known === undefined) found.set(key, value);
    else if (!FIRST_ONLY.has(key)) found.set(key, `${known}${key.startsWith('x-ms-') ? ',' : ', '}${value}`);
  }
  const lines = LINES.map((name) => {
    const value = found.get(name) ?? '';
    if (name === 'content-length' && value === '0') return '';
    return name === 'date' && found.has('x-ms-date') ? '' : value;
  });
  const own = [...found].filter(([name]) => name.startsWith('x-ms-')).sort(byName);
  const text = [method, ...lines, ...own.map(([name, value]) => `${name}:${value}`)].join('\n');
  return `SharedKey ${ACCOUNT}:${hmac(`${text}\n/${ACCOUNT}${path}${canonicalQuery(query)}`)}`;
}

/** @param {string} query */
function canonicalQuery(query) {
  /** @type {Map<string, string[]>} */
  const found = new Map();
  for (const part of query.split('&')) {
    if (part === '') continue;
    const equals = part.indexOf('=');
    const name = decoded(equals < 0 ? part : part.slice(0, equals)).toLowerCase();
    const value = equals < 0 ? '' : decoded(part.slice(equals + 1));
    found.set(name, [...(found.get(name) ?? []), value]);
  }
  return [...found]
    .sort(byName)
    .map(([name, values]) => `\n${name}:${values.sort().join(',')}`)
    .join('');
}

/**
 * Fields of an account SAS with their signature, as parts of a query.
 * @param {Readonly<Record<string, string>>} fields
 */
export function accountSas(fields) {
  const { sp = '', ss = '', srt = '', st = '', se = '', sip = '', spr = '', sv = '', ses = '' } = fields;
  const text = `${[ACCOUNT, sp, ss, srt, st, se, sip, spr, sv, ses].join('\n')}\n`;
  return parts({ ...fields, sig: hmac(text) });
}

/**
 * The same of a service SAS; `resource` is '/container' or '/container/blob', decoded.
 * @param {string} resource @param {Readonly<Record<string, string>>} fields @param {'blob' | 'file'} service
 */
export function serviceSas(resource, fields, service = 'blob') {
  const { sp = '', st = '', se = '', si = '', sip = '', spr = '', sv = '', sr = '', ses = '' } = fields;
  const { rscc = '', rscd = '', rsce = '', rscl = '', rsct = '', snapshot = '' } = fields;
  const place = `/${service}/${ACCOUNT}${resource}`;
  const ofBlob = service === 'blob' ? [sr, snapshot, ses] : [];
  const all = [sp, st, se, place, si, sip, spr, sv, ...ofBlob, rscc, rscd, rsce, rscl, rsct];
  return parts({ ...fields, sig: hmac(all.join('\n')) });
}

/** @param {Readonly<Record<string, string>>} fields */
function parts(fields) {
  return Object.entries(fields).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return text;
  }
}

/** @param {string} text */
function hmac(text) {
  return createHmac('sha256', KEY).update(text, 'utf8').digest('base64');
}

/** @param {[string, unknown]} one @param {[string, unknown]} other */
function byName([one], [other]) {
  return one < other ? -1 : 1;
}
