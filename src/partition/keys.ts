/**
 * Order-preserving tuple encoding. A Key is a string with one byte per character: `<` on keys is the order of their bytes, keys
 * can be keys of a Map, and no engine needs a comparison function.
 */
declare const keyBrand: unique symbol;
export type Key = string & { readonly [keyBrand]: true };

/** From `from` up to but not including `to`. */
export interface Range {
  readonly from: Key;
  readonly to: Key;
}

/** Numbers are unsigned and at most 64 bits wide; they are decoded as bigint. */
export type Part = string | number | bigint | Uint8Array;

// The first byte of a part is its type, so parts of different types are ordered by type. No type is 0xFF: see `prefixEnd`.
const BYTES = '\x01';
const STRING = '\x02';
const NUMBER = '\x03';
// Before all parts, not a part: volatile keys are a key space of their own, after all other keys.
const VOLATILE = '\x04';
const END = '\x00';
// biome-ignore lint/suspicious/noControlCharactersInRegex: a name may hold any character
const PLAIN = /^[\x01-\x7f]*$/;

export function encodeKey(parts: readonly Part[]): Key {
  let key = '';
  for (const part of parts) {
    if (typeof part === 'string') key += STRING + encodeString(part) + END;
    else if (part instanceof Uint8Array) key += BYTES + escapeZeros(Buffer.from(part).toString('latin1')) + END;
    else key += NUMBER + encodeNumber(BigInt(part));
  }
  return key as Key;
}

/** A key whose row takes part in commits, checks and snapshots like any other, and is never on disk: it is gone with the process that owns it. */
export function volatileKey(parts: readonly Part[]): Key {
  return (VOLATILE + encodeKey(parts)) as Key;
}

const FIRST_VOLATILE = VOLATILE as Key;

export function isVolatile(key: Key): boolean {
  return key.charCodeAt(0) === VOLATILE.charCodeAt(0);
}

export function reachesVolatile({ to }: Range): boolean {
  return to > FIRST_VOLATILE;
}

/** The parts of the range before and within the volatile keys, in this order; none is empty. */
export function splitAtVolatile(range: Range): Range[] {
  if (range.from >= range.to) return [];
  if (range.from >= FIRST_VOLATILE || !reachesVolatile(range)) return [range];
  return [
    { from: range.from, to: FIRST_VOLATILE },
    { from: FIRST_VOLATILE, to: range.to },
  ];
}

export function decodeKey(key: Key): (string | bigint | Uint8Array)[] {
  const parts: (string | bigint | Uint8Array)[] = [];
  for (let at = isVolatile(key) ? 1 : 0; at < key.length; ) {
    const type = key[at++];
    if (type === NUMBER) {
      parts.push(Buffer.from(key.slice(at, at + 8), 'latin1').readBigUInt64BE());
      at += 8;
      continue;
    }
    const end = partEnd(key, at);
    const raw = key.slice(at, end);
    parts.push(type === STRING ? decodeString(raw) : new Uint8Array(Buffer.from(unescapeZeros(raw), 'latin1')));
    at = end + 1;
  }
  return parts;
}

/** The last part of a key that starts with `keyPrefix(parts, '')`, a string: cheaper than decoding the whole key. */
export function decodeKeySuffix(key: Key, prefix: Key): string {
  return decodeString(key.slice(prefix.length, -1));
}

/** All keys that start with these parts. */
export function keysUnder(parts: readonly Part[]): Range {
  const from = encodeKey(parts);
  return { from, to: prefixEnd(from) };
}

export function volatileKeysUnder(parts: readonly Part[]): Range {
  const from = volatileKey(parts);
  return { from, to: prefixEnd(from) };
}

/** The common prefix of all keys whose part after `parts` is a string that starts with `prefix`. */
export function keyPrefix(parts: readonly Part[], prefix: string): Key {
  return (encodeKey(parts) + STRING + encodeString(prefix)) as Key;
}

/** After every key that starts with these bytes: no part's type and no encoded character is 0xFF. */
export function prefixEnd(key: Key): Key {
  return `${key}\xff` as Key;
}

/** The smallest key after this one: where a scan continues. */
export function keyAfter(key: Key): Key {
  return `${key}\x00` as Key;
}

/** The encoding of a text within a string part. */
export function encodeKeyText(text: string): string {
  return encodeString(text);
}

/** Keys form a group if they are equal up to the end of the first `delimiter` at byte `from` or after it. */
export interface KeyGrouping {
  readonly from: number;
  readonly delimiter: string;
}

/** The common prefix of the key's group; undefined: the key is in no group. */
export function groupPrefix(key: Key, { from, delimiter }: KeyGrouping): Key | undefined {
  const found = key.indexOf(delimiter, from);
  return found < 0 ? undefined : (key.slice(0, found + delimiter.length) as Key);
}

/** Where a scan continues after this key and its group; undefined: no key can follow. */
export function keyAfterGroup(key: Key, grouping: KeyGrouping | undefined): Key | undefined {
  const group = grouping && groupPrefix(key, grouping);
  return group === undefined ? keyAfter(key) : bytePrefixEnd(group);
}

/** As `prefixEnd`, also for bytes that end in the middle of a part or of a character. */
export function bytePrefixEnd(bytes: Key): Key | undefined {
  let last = bytes.length - 1;
  while (last >= 0 && bytes.charCodeAt(last) === 0xff) last--;
  if (last < 0) return undefined;
  return (bytes.slice(0, last) + String.fromCharCode(bytes.charCodeAt(last) + 1)) as Key;
}

/** UTF-16 code units in one to three bytes each, in the order of the units; UTF-8 has another order above U+FFFF. */
function encodeString(text: string): string {
  if (PLAIN.test(text)) return text;
  let bytes = '';
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit === 0) bytes += '\x00\xff';
    else if (unit < 0x80) bytes += text[i];
    else if (unit < 0x800) bytes += String.fromCharCode(0xc0 | (unit >> 6), 0x80 | (unit & 0x3f));
    else bytes += String.fromCharCode(0xe0 | (unit >> 12), 0x80 | ((unit >> 6) & 0x3f), 0x80 | (unit & 0x3f));
  }
  return bytes;
}

function decodeString(raw: string): string {
  if (PLAIN.test(raw)) return raw;
  const bytes = unescapeZeros(raw);
  const units: number[] = [];
  for (let i = 0; i < bytes.length; i++) {
    const first = bytes.charCodeAt(i);
    if (first < 0x80) units.push(first);
    else if (first < 0xe0) units.push(((first & 0x1f) << 6) | (bytes.charCodeAt(++i) & 0x3f));
    else units.push(((first & 0x0f) << 12) | ((bytes.charCodeAt(++i) & 0x3f) << 6) | (bytes.charCodeAt(++i) & 0x3f));
  }
  let text = '';
  for (let i = 0; i < units.length; i += 4096) text += String.fromCharCode(...units.slice(i, i + 4096));
  return text;
}

const eight = new Uint8Array(8);
const number = new DataView(eight.buffer);

function encodeNumber(value: bigint): string {
  if (BigInt.asUintN(64, value) !== value) throw new RangeError(`not an unsigned 64-bit number: ${value}`);
  number.setBigUint64(0, value);
  // Spreading the array into the call costs ten times as much.
  const at = (i: number): number => eight[i]!;
  return String.fromCharCode(at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7));
}

function escapeZeros(bytes: string): string {
  return bytes.replaceAll('\x00', '\x00\xff');
}

function unescapeZeros(bytes: string): string {
  return bytes.replaceAll('\x00\xff', '\x00');
}

/** A zero byte followed by 0xFF is a zero inside the part; any other zero ends it. */
function partEnd(key: string, from: number): number {
  let end = key.indexOf(END, from);
  while (end >= 0 && key.charCodeAt(end + 1) === 0xff) end = key.indexOf(END, end + 2);
  if (end < 0) throw new RangeError('a key without an end');
  return end;
}
