/**
 * JSON as the bodies of the Table service are: one object of values that hold no others. Not JSON.parse, which takes the last of
 * two members of one name, and makes 1 of 1.0.
 */
import { isUtf8 } from 'node:buffer';
import { ownTextOf } from '../../base/kept.ts';
import type { Scalar } from '../../services/table/entity-rows.ts';
import { fail } from '../../services/table/errors.ts';

/** Of a null, which is no value, only the name counts. */
export interface Member extends Scalar {
  readonly name: string;
  readonly isNull: boolean;
  /** What its annotation says, once somebody has looked for it. */
  type: string | undefined;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const LETTER_F = 0x66;
const LETTER_N = 0x6e;
const LETTER_T = 0x74;
const BYTE_ORDER_MARK = 0xfeff;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?/y;

/** In the order in which they were sent; no name comes twice. */
export function readMembers(body: Uint8Array): readonly Member[] {
  const members: Member[] = [];
  const reader: Reader = { text: textOf(body), at: 0, members, names: undefined, escaped: false };
  if (reader.text.charCodeAt(0) === BYTE_ORDER_MARK) reader.at = 1;
  take(reader, '{');
  if (!takes(reader, '}')) {
    do {
      passSpace(reader);
      const name = readName(reader);
      take(reader, ':');
      passSpace(reader);
      members.push(readMember(reader, name));
    } while (takes(reader, ','));
    take(reader, '}');
  }
  passSpace(reader);
  if (reader.at < reader.text.length) throw fail('InvalidEntity');
  learnNames(reader);
  return members;
}

/** The names of a body that was read before; none was written with escapes. */
let expected: readonly string[] = [];
const EXPECTED_MAX = 512;

/**
 * One entity often has the names of the one before it, in the same order. As long as it has, they are compared with the text
 * at once, and need not be compared with each other.
 */
function readName(reader: Reader): string {
  if (!reader.names) {
    const name = expected[reader.members.length];
    if (name !== undefined && takesString(reader, name)) return name;
    reader.names = new Set(reader.members.map((member) => member.name));
  }
  const from = reader.at;
  const name = readString(reader);
  if (reader.names.has(name)) throw fail('DuplicatePropertiesSpecified');
  reader.names.add(name);
  // In quotes.
  reader.escaped ||= reader.at - from !== name.length + 2;
  return name;
}

function learnNames({ names, escaped, members }: Reader): void {
  if (names && !escaped && members.length <= EXPECTED_MAX) expected = members.map(({ name }) => ownTextOf(name));
}

interface Reader {
  readonly text: string;
  at: number;
  readonly members: readonly Member[];
  /** All so far, once they are not those that were expected. */
  names: Set<string> | undefined;
  /** Whether a name was written with escapes. */
  escaped: boolean;
}

function textOf(body: Uint8Array): string {
  if (!isUtf8(body)) throw fail('InvalidEntity');
  return Buffer.from(body.buffer, body.byteOffset, body.length).toString();
}

function readMember(reader: Reader, name: string): Member {
  switch (reader.text.charCodeAt(reader.at)) {
    case QUOTE:
      return { name, isNull: false, kind: 'string', text: readString(reader), type: undefined };
    case LETTER_T:
      return { name, isNull: false, kind: 'boolean', text: readWord(reader, 'true'), type: undefined };
    case LETTER_F:
      return { name, isNull: false, kind: 'boolean', text: readWord(reader, 'false'), type: undefined };
    case LETTER_N:
      return { name, isNull: true, kind: 'string', text: readWord(reader, 'null'), type: undefined };
    default:
      return { name, isNull: false, kind: 'number', text: readNumber(reader), type: undefined };
  }
}

function readWord(reader: Reader, word: string): string {
  if (!reader.text.startsWith(word, reader.at)) throw fail('InvalidEntity');
  reader.at += word.length;
  return word;
}

function readNumber(reader: Reader): string {
  const { text, at } = reader;
  NUMBER.lastIndex = at;
  if (!NUMBER.test(text)) throw fail('InvalidEntity');
  reader.at = NUMBER.lastIndex;
  return text.slice(at, reader.at);
}

/** A string that needs no escapes. */
function takesString(reader: Reader, expectedText: string): boolean {
  const { text, at } = reader;
  const end = at + 1 + expectedText.length;
  if (text.charCodeAt(at) !== QUOTE || text.charCodeAt(end) !== QUOTE) return false;
  // startsWith would take several times as long.
  if (text.slice(at + 1, end) !== expectedText) return false;
  reader.at = end + 1;
  return true;
}

function readString(reader: Reader): string {
  const { text, at } = reader;
  if (text.charCodeAt(at) !== QUOTE) throw fail('InvalidEntity');
  let escaped = false;
  let end = at + 1;
  for (; end < text.length; end++) {
    const unit = text.charCodeAt(end);
    if (unit === QUOTE) break;
    if (unit < 0x20) throw fail('InvalidEntity');
    if (unit === BACKSLASH) {
      escaped = true;
      end++;
    }
  }
  if (end >= text.length) throw fail('InvalidEntity');
  reader.at = end + 1;
  if (!escaped) return text.slice(at + 1, end);
  try {
    return JSON.parse(text.slice(at, end + 1)) as string;
  } catch {
    throw fail('InvalidEntity');
  }
}

function passSpace(reader: Reader): void {
  const { text } = reader;
  for (;;) {
    const unit = text.charCodeAt(reader.at);
    if (unit !== 0x20 && unit !== 0x09 && unit !== 0x0a && unit !== 0x0d) return;
    reader.at++;
  }
}

function takes(reader: Reader, mark: string): boolean {
  passSpace(reader);
  if (reader.text.charCodeAt(reader.at) !== mark.charCodeAt(0)) return false;
  reader.at++;
  return true;
}

function take(reader: Reader, mark: string): void {
  if (!takes(reader, mark)) throw fail('InvalidEntity');
}
