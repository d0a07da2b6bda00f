/** Canonicalized headers and query of Shared Key, and HMAC-SHA256 (RFC 2104) with precomputed key blocks, compared in constant time. */
import { hash } from 'node:crypto';
import { memoize } from '../../base/memoize.ts';
import { QUERY_OFTEN_LENGTH_MAX } from '../request.ts';

/** The parts of a request that are signed. */
export interface SignedRequest {
  readonly method: string;
  readonly rawPath: string;
  readonly rawQuery: string;
  readonly rawHeaders: readonly string[];
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** Clients canonicalize in different ways; none of the variants changes the meaning of a request. */
export interface CanonicalVariant {
  /** White space inside a value is folded to one space, as documented; most clients keep it. */
  readonly folded?: boolean;
  /** Names in dictionary order, as Azure sorts them, instead of the order of their characters. */
  readonly byWord?: boolean;
  /** Bytes beyond ASCII are signed as sent; other clients sign UTF-8 and send Latin-1. */
  readonly bytes?: boolean;
}

type Header = readonly [name: string, value: string];

/** The parts that the variants of one request share are computed once, since a wrong signature is verified against all variants. */
export class CanonicalRequest {
  readonly #request: SignedRequest;
  #byName: readonly Header[] | undefined;
  #byWord: readonly Header[] | undefined;
  readonly #parameters: { utf8?: Parameters; bytes?: Parameters } = {};
  readonly #queries: { utf8?: string; bytes?: string } = {};

  constructor(request: SignedRequest) {
    this.#request = request;
  }

  /** One line per name that begins with x-ms-. Node has trimmed the values. */
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

  /** One line per name, each after a line break. */
  query({ bytes = false }: CanonicalVariant): string {
    const { rawQuery } = this.#request;
    if (rawQuery === '') return '';
    const kind = bytes ? 'bytes' : 'utf8';
    this.#queries[kind] ??= bytes ? queryText(parseParameters(rawQuery, true)) : utf8Query(rawQuery);
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

/** Most clients send their headers sorted already. */
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

const utf8Query = memoize((rawQuery) => queryText(parseParameters(rawQuery, false)), QUERY_OFTEN_LENGTH_MAX);

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

/** By UTF-16 code units; a locale would order some names differently. */
function byName(one: readonly [string, unknown], other: readonly [string, unknown]): number {
  return one[0] === other[0] ? 0 : one[0] < other[0] ? -1 : 1;
}

interface KeyedHeader {
  readonly header: Header;
  readonly word: string;
}

/** The characters of header names in dictionary order; hyphens and apostrophes count only between names that are equal otherwise. */
const RANKS = new Map(
  [...'!#$%&*.^_`|~+0123456789abcdefghijklmnopqrstuvwxyz'].map((character, rank) => [
    character,
    String.fromCharCode(rank + 1),
  ]),
);

/** Azure sorts as .NET sorts words, and so do Microsoft's clients. */
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

const BLOCK_BYTES = 64;
const DIGEST_BYTES = 32;
/** Nearly all texts are shorter: they need no allocation. */
const PREALLOCATED_BYTES = 4_096;
const UTF8_BYTES_MAX = 3;

export type Encoding = 'utf8' | 'latin1';

/** Keys are in base64. The inner and outer block of each key are computed once. */
const signerFor = memoize(makeSigner);

export function sign(text: string, key: string, encoding: Encoding = 'utf8'): string {
  return signerFor(key)(text, encoding);
}

/** Whether this key made this signature of the text. */
export function verifySignature(sent: string, key: string, text: string, encoding?: Encoding): boolean {
  return constantTimeEqual(sent, sign(text, key, encoding));
}

/** The time does not depend on which character differs, so it reveals nothing about the signature. */
function constantTimeEqual(sent: string, expected: string): boolean {
  let difference = sent.length ^ expected.length;
  for (let at = 0; at < expected.length; at++) difference |= sent.charCodeAt(at) ^ expected.charCodeAt(at);
  return difference === 0;
}

/** Composed of two plain hashes: Node's Hmac allocates an object per text, which costs twice as much as the hashing. */
function makeSigner(base64: string): (text: string, encoding: Encoding) => string {
  const key = Buffer.from(base64, 'base64');
  // One scratch buffer of each per key: shared by all calls, which is safe because signing is synchronous.
  const inner = Buffer.alloc(BLOCK_BYTES + PREALLOCATED_BYTES);
  const outer = Buffer.alloc(BLOCK_BYTES + DIGEST_BYTES);
  const block = key.length > BLOCK_BYTES ? hash('sha256', key, 'buffer') : key;
  for (let at = 0; at < BLOCK_BYTES; at++) {
    inner[at] = 0x36 ^ (block[at] ?? 0);
    outer[at] = 0x5c ^ (block[at] ?? 0);
  }
  const innerBlock = inner.subarray(0, BLOCK_BYTES);
  return (text, encoding) => {
    const message =
      text.length * UTF8_BYTES_MAX <= PREALLOCATED_BYTES
        ? inner.subarray(0, BLOCK_BYTES + inner.write(text, BLOCK_BYTES, encoding))
        : Buffer.concat([innerBlock, Buffer.from(text, encoding)]);
    outer.write(hash('sha256', message, 'binary'), BLOCK_BYTES, 'latin1');
    return hash('sha256', outer, 'base64');
  };
}
