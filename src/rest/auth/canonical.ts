/** The headers and the query of a request in the form in which they are signed. */

/** What is signed of a request. */
export interface SignedRequest {
  readonly method: string;
  readonly rawPath: string;
  readonly rawQuery: string;
  readonly rawHeaders: readonly string[];
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** Clients disagree about these; none of them changes what a request means. */
export interface CanonicalVariant {
  /** White space inside a value is one space, as documented; most clients leave it as it is. */
  readonly folded?: boolean;
  /** Names in the order of a dictionary, as the service sorts them, instead of that of their characters. */
  readonly byWord?: boolean;
  /** Bytes beyond ASCII were signed as they were sent; others sign UTF-8 and send Latin-1. */
  readonly bytes?: boolean;
}

type Header = readonly [name: string, value: string];

/** Of one request. What its readings share is worked out once, since a signature that is wrong is tried in all of them. */
export class CanonicalRequest {
  readonly #request: SignedRequest;
  #byName: readonly Header[] | undefined;
  #byWord: readonly Header[] | undefined;
  readonly #parameters: { utf8?: Parameters; bytes?: Parameters } = {};
  readonly #queries: { utf8?: string; bytes?: string } = {};

  constructor(request: SignedRequest) {
    this.#request = request;
  }

  /** A line for each name that begins with x-ms-. Node has taken off the space around a value. */
  headers({ byWord = false, folded = false }: CanonicalVariant): string {
    let text = '';
    let last = '';
    for (const [name, value] of byWord ? this.#headersByWord() : this.#headersByName()) {
      const shown = folded ? value.replace(/[ \t\r\n]+/g, ' ') : value;
      if (name === last) text += `,${shown}`;
      else text += last === '' ? `${name}:${shown}` : `\n${name}:${shown}`;
      last = name;
    }
    return last === '' ? '' : `${text}\n`;
  }

  /** Behind a line break, a line for each name. */
  query(variant: CanonicalVariant): string {
    if (this.#request.rawQuery === '') return '';
    const kind = variant.bytes ? 'bytes' : 'utf8';
    this.#queries[kind] ??= queryText(this.parameters(variant));
    return this.#queries[kind];
  }

  parameters(variant: CanonicalVariant): Parameters {
    const kind = variant.bytes ? 'bytes' : 'utf8';
    this.#parameters[kind] ??= parseParameters(this.#request.rawQuery, kind === 'bytes');
    return this.#parameters[kind];
  }

  #headersByName(): readonly Header[] {
    this.#byName ??= sorted(storageHeaders(this.#request.rawHeaders), byName);
    return this.#byName;
  }

  #headersByWord(): readonly Header[] {
    this.#byWord ??= sorted(
      this.#headersByName().map((header) => ({ header, word: dictionaryKey(header[0]) })),
      byWord,
    ).map(({ header }) => header);
    return this.#byWord;
  }
}

function storageHeaders(rawHeaders: readonly string[]): Header[] {
  const found: Header[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const raw = rawHeaders[at]!;
    if (!(raw.startsWith('x-ms-') || raw.slice(0, 5).toLowerCase() === 'x-ms-')) continue;
    found.push([raw.toLowerCase(), rawHeaders[at + 1]!]);
  }
  return found;
}

/** Most clients send their headers in order. */
function sorted<Item>(items: Item[], order: (one: Item, other: Item) => number): Item[] {
  for (let at = 1; at < items.length; at++) if (order(items[at - 1]!, items[at]!) > 0) return items.sort(order);
  return items;
}

type Parameters = ReadonlyMap<string, readonly string[]>;

function parseParameters(rawQuery: string, bytes: boolean): Parameters {
  const found = new Map<string, string[]>();
  if (rawQuery === '') return found;
  for (const part of rawQuery.split('&')) {
    if (part === '') continue;
    const equals = part.indexOf('=');
    const name = decode(equals < 0 ? part : part.slice(0, equals), bytes).toLowerCase();
    const value = equals < 0 ? '' : decode(part.slice(equals + 1), bytes);
    const same = found.get(name);
    if (same) same.push(value);
    else found.set(name, [value]);
  }
  return found;
}

function queryText(parameters: Parameters): string {
  let text = '';
  for (const [name, values] of sorted([...parameters], byName))
    text += `\n${name}:${values.length === 1 ? values[0] : values.toSorted().join(',')}`;
  return text;
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

interface KeyedHeader {
  readonly header: Header;
  readonly word: string;
}

/** What may stand in the name of a header, in the order of a dictionary; hyphens and apostrophes count only between equals. */
const RANKS = new Map(
  [...'!#$%&*.^_`|~+0123456789abcdefghijklmnopqrstuvwxyz'].map((character, rank) => [
    character,
    String.fromCharCode(rank + 1),
  ]),
);

/** The service sorts as .NET sorts words, and Microsoft's clients do as it does. */
function byWord({ header: [one], word }: KeyedHeader, { header: [other], word: otherWord }: KeyedHeader): number {
  if (word !== otherWord) return word < otherWord ? -1 : 1;
  let at = 0;
  while (one[at] === other[at] && at < one.length) at++;
  return punctuationWeight(one[at]) - punctuationWeight(other[at]);
}

function dictionaryKey(name: string): string {
  let word = '';
  for (const character of name) word += RANKS.get(character) ?? '';
  return word;
}

function punctuationWeight(character: string | undefined): number {
  return character === '-' ? 2 : character === "'" ? 1 : 0;
}
