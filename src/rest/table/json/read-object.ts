/**
 * JSON parser for one flat object, which is what bodies of the Table service are. JSON.parse would silently take the last of two
 * members with one name, and make 1 of 1.0.
 */
import { isUtf8 } from 'node:buffer';
import { JSON_MEMBERS_MAX, JSON_NUMBER_MAX, JSON_SPACE_MAX, JSON_STRING_MAX } from '../../../base/input-limits.ts';
import { copyString, memoize } from '../../../base/memoize.ts';
import type { SlicedWork } from '../../../base/time-slices.ts';
import { jsonString, parseText, type SentValue } from '../../../services/table/entity-rows.ts';
import { fail } from '../../../services/table/errors.ts';

export interface Members {
  readonly names: Names;
  /** In the order of their names. */
  readonly values: readonly SentValue[];
}

/** In the order in which they were sent; each is unique. */
export interface Names {
  readonly all: readonly string[];
  /** The index of each name. */
  readonly positions: ReadonlyMap<string, number>;
  /** The next body with the same names in the same order gets this very object. */
  readonly isCached: boolean;
}

const TAB = 0x09;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const SPACE = 0x20;
const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const LETTER_F = 0x66;
const LETTER_N = 0x6e;
const LETTER_T = 0x74;
const OPENING = 0x7b;
const CLOSING = 0x7d;
const PLAIN_STRING = /"[\x20\x21\x23-\x5b\x5d-\x7f]*"/y;
const BYTE_ORDER_MARK = '\xef\xbb\xbf';
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?/y;

interface Cursor {
  /** Latin-1, one character per byte: only strings that are not ASCII are decoded. */
  readonly text: string;
  at: number;
  readonly values: SentValue[];
  /** All names so far; undefined: they are the first of `expectedNames`. */
  positions: Map<string, number> | undefined;
  /** No name needs escapes in JSON. */
  isPlain: boolean;
}

/** A slice ends with the member in which it has read this many bytes. */
export const SLICE_BYTES = 64 << 10;

/** Without slices: a generator would cost a small body a fifth more. */
export function readMembers(body: Buffer): Members {
  const cursor = openObject(body);
  readSlice(cursor, Number.POSITIVE_INFINITY);
  return finishObject(cursor);
}

export function* readMembersSliced(body: Buffer): SlicedWork<Members> {
  const cursor = openObject(body);
  while (!readSlice(cursor, cursor.at + SLICE_BYTES)) {
    // During the yield another body may replace the expected names.
    cursor.positions ??= positionsByName(expectedNames.all.slice(0, cursor.values.length));
    yield;
  }
  return finishObject(cursor);
}

function openObject(body: Buffer): Cursor {
  const text = body.toString('latin1');
  const at = text.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK.length : 0;
  const cursor: Cursor = { text, at, values: [], positions: undefined, isPlain: true };
  expectByte(cursor, OPENING);
  return cursor;
}

/** Whether the object ended. Otherwise another member follows. */
function readSlice(cursor: Cursor, sliceEnd: number): boolean {
  const { values } = cursor;
  if (values.length === 0 && acceptByte(cursor, CLOSING)) return true;
  do {
    if (values.length === JSON_MEMBERS_MAX) throw fail('TooManyProperties');
    readName(cursor, values.length);
    values.push(readValue(cursor));
    if (acceptByte(cursor, COMMA)) continue;
    expectByte(cursor, CLOSING);
    return true;
  } while (cursor.at < sliceEnd);
  return false;
}

function finishObject(cursor: Cursor): Members {
  const { text, values } = cursor;
  if (cursor.at < text.length) skipSpace(cursor);
  if (cursor.at < text.length) throw fail('InvalidEntity');
  return { names: finishNames(cursor, values.length), values };
}

/** The names of a body that was read before. All of them are plain. */
let expectedNames: Names & { readonly json: readonly string[] } = {
  all: [],
  positions: new Map(),
  isCached: true,
  json: [],
};
const EXPECTED_MAX = 512;

/**
 * An entity often has the names of the one before, in the same order. As long as it has, each name is compared with the expected
 * one only: it can then be no duplicate.
 */
function readName(cursor: Cursor, index: number): void {
  skipSpace(cursor);
  if (!cursor.positions) {
    const json = expectedNames.json[index];
    if (json !== undefined && acceptName(cursor, json)) return;
    cursor.positions = positionsByName(expectedNames.all.slice(0, index));
  }
  const sent = readString(cursor);
  const name = parseText(sent);
  if (cursor.positions.has(name)) throw fail('DuplicatePropertiesSpecified');
  cursor.positions.set(name, index);
  cursor.isPlain &&= sent.json.length === sent.length + 2;
  expectByte(cursor, COLON);
}

function positionsByName(names: readonly string[]): Map<string, number> {
  return new Map(names.map((name, index) => [name, index]));
}

const internName = memoize(copyString);

function finishNames({ positions, isPlain }: Cursor, count: number): Names {
  if (!positions && count === expectedNames.all.length) return expectedNames;
  const all = positions ? [...positions.keys()] : expectedNames.all.slice(0, count);
  if (!isPlain || count > EXPECTED_MAX) return { all, positions: positions!, isCached: false };
  const own = all.map(internName);
  expectedNames = { all: own, positions: positionsByName(own), isCached: true, json: own.map((name) => `"${name}":`) };
  return expectedNames;
}

function readValue(cursor: Cursor): SentValue {
  skipSpace(cursor);
  switch (cursor.text.charCodeAt(cursor.at)) {
    case QUOTE:
      return readString(cursor);
    case LETTER_T:
      return readWord(cursor, 'boolean', 'true');
    case LETTER_F:
      return readWord(cursor, 'boolean', 'false');
    case LETTER_N:
      return readWord(cursor, 'null', 'null');
    default:
      return readNumber(cursor);
  }
}

function readWord(cursor: Cursor, kind: SentValue['kind'], json: string): SentValue {
  if (!cursor.text.startsWith(json, cursor.at)) throw fail('InvalidEntity');
  cursor.at += json.length;
  return { kind, json, length: json.length };
}

function readNumber(cursor: Cursor): SentValue {
  const { text, at } = cursor;
  NUMBER.lastIndex = at;
  if (!NUMBER.test(text) || NUMBER.lastIndex - at > JSON_NUMBER_MAX) throw fail('InvalidEntity');
  cursor.at = NUMBER.lastIndex;
  return { kind: 'number', json: text.slice(at, cursor.at), length: cursor.at - at };
}

/** `json`: a name with its quotes and colon. */
function acceptName(cursor: Cursor, json: string): boolean {
  const end = cursor.at + json.length;
  // startsWith takes several times as long.
  if (cursor.text.slice(cursor.at, end) !== json) return false;
  cursor.at = end;
  return true;
}

function readString(cursor: Cursor): SentValue {
  const { text, at } = cursor;
  if (text.length > JSON_STRING_MAX && text.indexOf('"', at + 1) - at >= JSON_STRING_MAX) {
    throw fail('PropertyValueTooLarge');
  }
  PLAIN_STRING.lastIndex = at;
  if (!PLAIN_STRING.test(text)) return readEscapedString(cursor);
  cursor.at = PLAIN_STRING.lastIndex;
  return { kind: 'string', json: text.slice(at, cursor.at), length: cursor.at - at - 2 };
}

/** A string with escapes, or with other characters than ASCII. */
function readEscapedString(cursor: Cursor): SentValue {
  const { text, at } = cursor;
  if (text.charCodeAt(at) !== QUOTE) throw fail('InvalidEntity');
  let end = at + 1;
  for (; text.charCodeAt(end) !== QUOTE; end++) {
    if (text.charCodeAt(end) === BACKSLASH) end++;
    if (end >= text.length) throw fail('InvalidEntity');
    if (end - at >= JSON_STRING_MAX - 1) throw fail('PropertyValueTooLarge');
  }
  cursor.at = end + 1;
  return decodeString(text.slice(at, cursor.at));
}

/** `bytesText`: UTF-8 as Latin-1 text. */
function decodeString(bytesText: string): SentValue {
  const bytes = Buffer.from(bytesText, 'latin1');
  if (!isUtf8(bytes)) throw fail('InvalidEntity');
  try {
    const text = JSON.parse(bytes.toString()) as string;
    return { kind: 'string', json: jsonString(text), length: text.length };
  } catch {
    throw fail('InvalidEntity');
  }
}

function skipSpace(cursor: Cursor): void {
  const { text } = cursor;
  for (const end = cursor.at + JSON_SPACE_MAX; cursor.at < end; cursor.at++) {
    const unit = text.charCodeAt(cursor.at);
    if (unit !== SPACE && unit !== TAB && unit !== LINE_FEED && unit !== CARRIAGE_RETURN) return;
  }
  throw fail('InvalidEntity');
}

function acceptByte(cursor: Cursor, mark: number): boolean {
  skipSpace(cursor);
  if (cursor.text.charCodeAt(cursor.at) !== mark) return false;
  cursor.at++;
  return true;
}

function expectByte(cursor: Cursor, mark: number): void {
  if (!acceptByte(cursor, mark)) throw fail('InvalidEntity');
}
