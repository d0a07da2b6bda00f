/** The text that a caller signs with a key of the account, of the path and query as they were sent. */

/** What is signed of a request. */
export interface Signed {
  readonly method: string;
  readonly rawPath: string;
  readonly rawQuery: string;
  readonly rawHeaders: readonly string[];
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** Clients disagree about these; none of them changes what a request means. */
export interface Reading {
  /** White space inside a value is one space, as documented; most clients leave it as it is. */
  readonly folded?: boolean;
  /** Names in the order of a dictionary, as the service sorts them, instead of that of their characters. */
  readonly byWord?: boolean;
  /** Bytes beyond ASCII were signed as they were sent; others sign UTF-8 and send Latin-1. */
  readonly bytes?: boolean;
}

export type TextToSign = (account: string, request: Signed, reading?: Reading) => string;

/** From this version on a length of 0 is left out. */
const NO_ZERO_SINCE = '2015-02-21';

export function sharedKeyText(account: string, request: Signed, reading: Reading = {}): string {
  const { headers } = request;
  const length = headers['content-length'];
  // A line for each of these, whether it was sent or not.
  const lines = [
    request.method,
    headers['content-encoding'],
    headers['content-language'],
    length === '0' && !isBefore(request, NO_ZERO_SINCE) ? undefined : length,
    headers['content-md5'],
    headers['content-type'],
    headers['x-ms-date'] === undefined ? headers.date : undefined,
    headers['if-modified-since'],
    headers['if-match'],
    headers['if-none-match'],
    headers['if-unmodified-since'],
    headers.range,
  ];
  const resource = `/${account}${request.rawPath}${canonicalQuery(request.rawQuery, reading)}`;
  return `${lines.join('\n')}\n${canonicalHeaders(request.rawHeaders, reading)}${resource}`;
}

export function sharedKeyLiteText(account: string, request: Signed, reading: Reading = {}): string {
  const { headers } = request;
  const date = headers['x-ms-date'] === undefined ? headers.date : undefined;
  const text = `${request.method}\n${headers['content-md5'] ?? ''}\n${headers['content-type'] ?? ''}\n${date ?? ''}\n`;
  const comp = parametersOf(request.rawQuery, reading).find(([name]) => name === 'comp')?.[1][0];
  const resource = `/${account}${request.rawPath}${comp === undefined ? '' : `?comp=${comp}`}`;
  return `${text}${canonicalHeaders(request.rawHeaders, reading)}${resource}`;
}

/** Of tables: the date stands in its line, however it was sent. */
export function tableSharedKeyText(account: string, request: Signed): string {
  const { headers } = request;
  const lines = [request.method, headers['content-md5'] ?? '', headers['content-type'] ?? ''];
  return `${lines.join('\n')}\n${tableSharedKeyLiteText(account, request)}`;
}

export function tableSharedKeyLiteText(account: string, request: Signed): string {
  const { headers, rawPath, rawQuery } = request;
  const comp = parametersOf(rawQuery, {}).find(([name]) => name === 'comp')?.[1][0];
  const date = headers['x-ms-date'] ?? headers.date ?? '';
  return `${date}\n/${account}${rawPath}${comp === undefined ? '' : `?comp=${comp}`}`;
}

function isBefore({ headers }: Signed, version: string): boolean {
  const sent = headers['x-ms-version'];
  return typeof sent === 'string' && sent < version;
}

/** Node has taken off the space around a value. */
function canonicalHeaders(rawHeaders: readonly string[], reading: Reading): string {
  const order = reading.byWord ? byWord : byName;
  const found: [name: string, value: string][] = [];
  let isInOrder = true;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const raw = rawHeaders[at]!;
    if (!(raw.startsWith('x-ms-') || raw.slice(0, 5).toLowerCase() === 'x-ms-')) continue;
    const pair: [string, string] = [raw.toLowerCase(), rawHeaders[at + 1]!];
    if (found.length > 0 && order(found[found.length - 1]!, pair) > 0) isInOrder = false;
    found.push(pair);
  }
  if (!isInOrder) found.sort(order);
  let text = '';
  let last = '';
  for (const [name, value] of found) {
    const shown = reading.folded ? value.replace(/[ \t\r\n]+/g, ' ') : value;
    if (name === last) text += `,${shown}`;
    else text += last === '' ? `${name}:${shown}` : `\n${name}:${shown}`;
    last = name;
  }
  return last === '' ? '' : `${text}\n`;
}

function canonicalQuery(rawQuery: string, reading: Reading): string {
  const found = parametersOf(rawQuery, reading);
  found.sort(byName);
  let text = '';
  for (const [name, values] of found) text += `\n${name}:${values.length === 1 ? values[0] : values.sort().join(',')}`;
  return text;
}

function parametersOf(rawQuery: string, { bytes = false }: Reading): [name: string, values: string[]][] {
  const found: [name: string, values: string[]][] = [];
  if (rawQuery === '') return found;
  for (const part of rawQuery.split('&')) {
    if (part === '') continue;
    const equals = part.indexOf('=');
    const name = decode(equals < 0 ? part : part.slice(0, equals), bytes).toLowerCase();
    const value = equals < 0 ? '' : decode(part.slice(equals + 1), bytes);
    const same = found.find((pair) => pair[0] === name);
    if (same) same[1].push(value);
    else found.push([name, [value]]);
  }
  return found;
}

function decode(text: string, bytes: boolean): string {
  if (!text.includes('%') && !text.includes('+')) return text;
  const spaced = text.replaceAll('+', ' ');
  if (bytes)
    return spaced.replace(/%([\da-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  try {
    return decodeURIComponent(spaced);
  } catch {
    return text;
  }
}

/** By UTF-16 units; the order of a language would sort some names another way. */
function byName(one: readonly [string, unknown], other: readonly [string, unknown]): number {
  return one[0] === other[0] ? 0 : one[0] < other[0] ? -1 : 1;
}

/** What may stand in the name of a header, in the order of a dictionary; hyphens and apostrophes count only between equals. */
const RANKS = '!#$%&*.^_`|~+0123456789abcdefghijklmnopqrstuvwxyz';

/** The service sorts as .NET sorts words, and Microsoft's clients do as it does. */
function byWord([one]: readonly [string, unknown], [other]: readonly [string, unknown]): number {
  const oneWord = wordOf(one);
  const otherWord = wordOf(other);
  if (oneWord !== otherWord) return oneWord < otherWord ? -1 : 1;
  let at = 0;
  while (one[at] === other[at] && at < one.length) at++;
  return weightOf(one[at]) - weightOf(other[at]);
}

function wordOf(name: string): string {
  let word = '';
  for (const character of name) {
    const rank = RANKS.indexOf(character);
    if (rank >= 0) word += String.fromCharCode(rank + 1);
  }
  return word;
}

function weightOf(character: string | undefined): number {
  return character === '-' ? 2 : character === "'" ? 1 : 0;
}
