/**
 * JSON as the bodies of the Table service are: one object of values that hold no others. Not JSON.parse, which takes the last of
 * two members of one name, and makes 1 of 1.0.
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

/** In the order in which they were sent; none comes twice. */
export interface Names {
  readonly all: readonly string[];
  /** Which of them each is. */
  readonly positions: ReadonlyMap<string, number>;
  /** The next body that has the same ones in the same order comes with this very object. */
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
  /** One character a byte: only strings that are not ASCII are decoded. */
  readonly text: string;
  at: number;
  readonly values: SentValue[];
  /** All names so far, once they are not those that were expected. */
  positions: Map<string, number> | undefined;
  /** Whether all of them stand there as they are. */
  isPlain: boolean;
}

/** Reads so many bytes in one stretch, and the rest of the member that it is in. */
export const SLICE_BYTES = 64 << 10;

/** In one go: a generator would cost a small body a fifth more. */
export function readMembers(body: Buffer): Members {
  const reader = startReading(body);
  readUntil(reader, Infinity);
  return membersOf(reader);
}

export function* memberSteps(body: Buffer): SlicedWork<Members> {
  const reader = startReading(body);
  while (!readUntil(reader, reader.at + SLICE_BYTES)) {
    // Another body may change what is expected meanwhile.
    reader.positions ??= positionsByName(expectedNames.all.slice(0, reader.values.length));
    yield;
  }
  return membersOf(reader);
}

function startReading(body: Buffer): Cursor {
  const text = body.toString('latin1');
  const at = text.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK.length : 0;
  const reader: Cursor = { text, at, values: [], positions: undefined, isPlain: true };
  expectByte(reader, OPENING);
  return reader;
}

/** Whether the last member was read: otherwise the others are to be read from here on. */
function readUntil(reader: Cursor, sliceEnd: number): boolean {
  const { values } = reader;
  if (values.length === 0 && acceptByte(reader, CLOSING)) return true;
  do {
    if (values.length === JSON_MEMBERS_MAX) throw fail('TooManyProperties');
    readName(reader, values.length);
    values.push(readValue(reader));
    if (acceptByte(reader, COMMA)) continue;
    expectByte(reader, CLOSING);
    return true;
  } while (reader.at < sliceEnd);
  return false;
}

function membersOf(reader: Cursor): Members {
  const { text, values } = reader;
  if (reader.at < text.length) skipSpace(reader);
  if (reader.at < text.length) throw fail('InvalidEntity');
  return { names: finishNames(reader, values.length), values };
}

/** Those of a body that was read before; all of them are plain. */
let expectedNames: Names & { readonly json: readonly string[] } = {
  all: [],
  positions: new Map(),
  isCached: true,
  json: [],
};
const EXPECTED_MAX = 512;

/**
 * One entity often has the names of the one before it, in the same order. As long as it has, they are compared with the text
 * at once, and need not be compared with each other.
 */
function readName(reader: Cursor, place: number): void {
  skipSpace(reader);
  if (!reader.positions) {
    const json = expectedNames.json[place];
    if (json !== undefined && acceptName(reader, json)) return;
    reader.positions = positionsByName(expectedNames.all.slice(0, place));
  }
  const sent = readString(reader);
  const name = parseText(sent);
  if (reader.positions.has(name)) throw fail('DuplicatePropertiesSpecified');
  reader.positions.set(name, place);
  reader.isPlain &&= sent.json.length === sent.length + 2;
  expectByte(reader, COLON);
}

function positionsByName(names: readonly string[]): Map<string, number> {
  return new Map(names.map((name, place) => [name, place]));
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

function readValue(reader: Cursor): SentValue {
  skipSpace(reader);
  switch (reader.text.charCodeAt(reader.at)) {
    case QUOTE:
      return readString(reader);
    case LETTER_T:
      return readWord(reader, 'boolean', 'true');
    case LETTER_F:
      return readWord(reader, 'boolean', 'false');
    case LETTER_N:
      return readWord(reader, 'null', 'null');
    default:
      return readNumber(reader);
  }
}

function readWord(reader: Cursor, kind: SentValue['kind'], json: string): SentValue {
  if (!reader.text.startsWith(json, reader.at)) throw fail('InvalidEntity');
  reader.at += json.length;
  return { kind, json, length: json.length };
}

function readNumber(reader: Cursor): SentValue {
  const { text, at } = reader;
  NUMBER.lastIndex = at;
  if (!NUMBER.test(text) || NUMBER.lastIndex - at > JSON_NUMBER_MAX) throw fail('InvalidEntity');
  reader.at = NUMBER.lastIndex;
  return { kind: 'number', json: text.slice(at, reader.at), length: reader.at - at };
}

/** As `"name":` stands in the text. */
function acceptName(reader: Cursor, json: string): boolean {
  const end = reader.at + json.length;
  // startsWith would take several times as long.
  if (reader.text.slice(reader.at, end) !== json) return false;
  reader.at = end;
  return true;
}

function readString(reader: Cursor): SentValue {
  const { text, at } = reader;
  if (text.length > JSON_STRING_MAX && text.indexOf('"', at + 1) - at >= JSON_STRING_MAX) {
    throw fail('PropertyValueTooLarge');
  }
  PLAIN_STRING.lastIndex = at;
  if (!PLAIN_STRING.test(text)) return readEscapedString(reader);
  reader.at = PLAIN_STRING.lastIndex;
  return { kind: 'string', json: text.slice(at, reader.at), length: reader.at - at - 2 };
}

/** With escapes, or not in ASCII. */
function readEscapedString(reader: Cursor): SentValue {
  const { text, at } = reader;
  if (text.charCodeAt(at) !== QUOTE) throw fail('InvalidEntity');
  let end = at + 1;
  for (; text.charCodeAt(end) !== QUOTE; end++) {
    if (text.charCodeAt(end) === BACKSLASH) end++;
    if (end >= text.length) throw fail('InvalidEntity');
    if (end - at >= JSON_STRING_MAX - 1) throw fail('PropertyValueTooLarge');
  }
  reader.at = end + 1;
  return decodeString(text.slice(at, reader.at));
}

/** What is not ASCII is UTF-8. */
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

function skipSpace(reader: Cursor): void {
  const { text } = reader;
  for (const end = reader.at + JSON_SPACE_MAX; reader.at < end; reader.at++) {
    const unit = text.charCodeAt(reader.at);
    if (unit !== SPACE && unit !== TAB && unit !== LINE_FEED && unit !== CARRIAGE_RETURN) return;
  }
  throw fail('InvalidEntity');
}

function acceptByte(reader: Cursor, mark: number): boolean {
  skipSpace(reader);
  if (reader.text.charCodeAt(reader.at) !== mark) return false;
  reader.at++;
  return true;
}

function expectByte(reader: Cursor, mark: number): void {
  if (!acceptByte(reader, mark)) throw fail('InvalidEntity');
}
