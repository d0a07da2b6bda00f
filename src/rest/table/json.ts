/**
 * JSON as the bodies of the Table service are: one object of values that hold no others. Not JSON.parse, which takes the last of
 * two members of one name, and makes 1 of 1.0.
 */
import { isUtf8 } from 'node:buffer';
import type { Scalar } from '../../services/table/entity-rows.ts';
import { fail } from '../../services/table/errors.ts';

/** Undefined: null. */
export type Members = ReadonlyMap<string, Scalar | undefined>;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const BYTE_ORDER_MARK = 0xfeff;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?/y;
const WORD = /true|false|null/y;

/** In the order in which they were sent. */
export function readMembers(body: Uint8Array): Members {
  const reader = { text: textOf(body), at: 0 };
  const members = new Map<string, Scalar | undefined>();
  if (reader.text.charCodeAt(0) === BYTE_ORDER_MARK) reader.at = 1;
  take(reader, '{');
  if (!takes(reader, '}')) {
    do readMember(reader, members);
    while (takes(reader, ','));
    take(reader, '}');
  }
  passSpace(reader);
  if (reader.at < reader.text.length) throw fail('InvalidEntity');
  return members;
}

interface Reader {
  readonly text: string;
  at: number;
}

function textOf(body: Uint8Array): string {
  if (!isUtf8(body)) throw fail('InvalidEntity');
  return Buffer.from(body.buffer, body.byteOffset, body.length).toString();
}

function readMember(reader: Reader, members: Map<string, Scalar | undefined>): void {
  passSpace(reader);
  const name = readString(reader);
  if (members.has(name)) throw fail('DuplicatePropertiesSpecified');
  take(reader, ':');
  passSpace(reader);
  members.set(name, readScalar(reader));
}

function readScalar(reader: Reader): Scalar | undefined {
  if (reader.text.charCodeAt(reader.at) === QUOTE) return { kind: 'string', text: readString(reader) };
  const word = readMatch(reader, WORD);
  if (word === 'null') return undefined;
  if (word !== undefined) return { kind: 'boolean', value: word === 'true' };
  const number = readMatch(reader, NUMBER);
  if (number === undefined) throw fail('InvalidEntity');
  return { kind: 'number', text: number };
}

function readMatch(reader: Reader, form: RegExp): string | undefined {
  form.lastIndex = reader.at;
  const text = form.exec(reader.text)?.[0];
  if (text !== undefined) reader.at += text.length;
  return text;
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
  if (reader.text[reader.at] !== mark) return false;
  reader.at++;
  return true;
}

function take(reader: Reader, mark: string): void {
  if (!takes(reader, mark)) throw fail('InvalidEntity');
}
