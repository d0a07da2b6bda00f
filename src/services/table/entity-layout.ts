/**
 * Entity serialization: a fixed header, an index of the properties, and their JSON fragments, which are copied into answers undecoded.
 *
 * header: format (1), number of properties (2), size as Azure counts it (4), length of the keys' text (2)
 * index, per property: type (1), hash of the name (1), length of the name (2), length of the fragment (4)
 * text: `"PartitionKey":"...","RowKey":"..."`, then the fragments: `,"age@odata.type":"Edm.Int64","age":"39"`
 *
 * The text is ASCII. The Timestamp is not stored: it is the row's version.
 */
import { ticksFromUnix } from '../../base/time.ts';
import { UnknownFormat } from '../../partition/values.ts';
import type { CanonicalValue } from '../../rules/table/canonical-json.ts';
import type { EdmType, EdmValue } from '../../rules/table/edm.ts';
import { type PropertyName, propertyName } from './property-names.ts';

const FORMAT = 1;
const HEAD_BYTES = 9;
const ENTRY_BYTES = 8;

const BACKSLASH = 0x5c;
const LETTER_U = 0x75;

const STRING = 1;
const ESCAPED_STRING = 2;
const INT32 = 3;
const INT64 = 4;
const DOUBLE = 5;
/** NaN and the infinities, which are strings in JSON. */
const SPECIAL_DOUBLE = 6;
const BOOLEAN = 7;
const DATE_TIME = 8;
const GUID = 9;
const BINARY = 10;

/** Indexed by type code. */
const TYPES: readonly EdmType[] = [
  'Edm.String',
  'Edm.String',
  'Edm.String',
  'Edm.Int32',
  'Edm.Int64',
  'Edm.Double',
  'Edm.Double',
  'Edm.Boolean',
  'Edm.DateTime',
  'Edm.Guid',
  'Edm.Binary',
];
/** The length of `,"@odata.type":"Edm.Int64"`: an annotation without the name. Zero: the type needs none. */
const ANNOTATION_BYTES = TYPES.map((type, code) =>
  [INT64, SPECIAL_DOUBLE, DATE_TIME, GUID, BINARY].includes(code) ? `,"@odata.type":"${type}"`.length : 0,
);

function formatFragmentStart({ json }: PropertyName, code: number): string {
  const annotation = ANNOTATION_BYTES[code] === 0 ? '' : `,"${json}@odata.type":"${TYPES[code]}"`;
  return `${annotation},"${json}":`;
}

function typeCode(type: EdmType, text: string, size: number): number {
  // Azure counts two bytes per character and four more: equal to twice the length with quotes, if nothing is escaped.
  if (type === 'Edm.String') return size === 2 * text.length ? STRING : ESCAPED_STRING;
  if (type === 'Edm.Double') return text.startsWith('"') ? SPECIAL_DOUBLE : DOUBLE;
  return TYPES.indexOf(type);
}

/** Grows to the longest index so far. All entities share it, since none is encoded while another is. */
let index = Buffer.alloc(HEAD_BYTES + 256 * ENTRY_BYTES);

/** Encodes one entity without an object per property: garbage was a third of the cost of a batch. */
export class LayoutEncoder {
  private readonly keysLength: number;
  private text: string;
  private end = HEAD_BYTES;

  constructor(keysText: string) {
    this.keysLength = keysText.length;
    this.text = keysText;
  }

  add(name: PropertyName, { type, text, size }: CanonicalValue): void {
    const code = typeCode(type, text, size);
    name.starts[code] ??= formatFragmentStart(name, code);
    const start = name.starts[code];
    this.addEntry(name, code, start.length + text.length);
    this.text += start;
    this.text += text;
  }

  /** A fragment of another entity. */
  addFragment(name: PropertyName, code: number, text: string): void {
    this.addEntry(name, code, text.length);
    this.text += text;
  }

  private addEntry({ hash, json }: PropertyName, code: number, length: number): void {
    const at = this.end;
    this.end += ENTRY_BYTES;
    if (this.end > index.length) index = Buffer.concat([index, index]);
    index[at] = code;
    index[at + 1] = hash;
    write16(index, at + 2, json.length);
    write32(index, at + 4, length);
  }

  /** @param size of the entity, as Azure counts it */
  finish(size: number): Buffer {
    const { end, text } = this;
    index[0] = FORMAT;
    write16(index, 1, (end - HEAD_BYTES) / ENTRY_BYTES);
    write32(index, 3, size);
    write16(index, 7, this.keysLength);
    const bytes = Buffer.allocUnsafe(end + text.length);
    index.copy(bytes, 0, 0, end);
    bytes.write(text, end, 'latin1');
    return bytes;
  }
}

/** Little-endian; several times as fast as the methods of Buffer. */
function write16(bytes: Buffer, at: number, value: number): void {
  bytes[at] = value;
  bytes[at + 1] = value >>> 8;
}

function write32(bytes: Buffer, at: number, value: number): void {
  write16(bytes, at, value);
  write16(bytes, at + 2, value >>> 16);
}

export function propertyCount(value: Buffer): number {
  if (value[0] !== FORMAT) throw new UnknownFormat(`an entity of format ${value[0]}, which this version does not know`);
  return value[1]! | (value[2]! << 8);
}

export function storedSize(value: Buffer): number {
  return value.readUInt32LE(3);
}

/** Where the text begins: first the keys, then the fragments. */
export function keysOffset(value: Buffer): number {
  return HEAD_BYTES + ENTRY_BYTES * propertyCount(value);
}

export function keysLength(value: Buffer): number {
  return value[7]! | (value[8]! << 8);
}

/** Where a property stands within the value. */
export interface PropertyOffset {
  readonly code: number;
  readonly nameLength: number;
  readonly start: number;
  readonly end: number;
}

export function propertyOffsets(value: Buffer): PropertyOffset[] {
  const offsets: PropertyOffset[] = [];
  const count = propertyCount(value);
  let start = keysOffset(value) + keysLength(value);
  for (let entry = HEAD_BYTES; entry < HEAD_BYTES + ENTRY_BYTES * count; entry += ENTRY_BYTES) {
    const end = start + value.readUInt32LE(entry + 4);
    offsets.push({ code: value[entry]!, nameLength: value.readUInt16LE(entry + 2), start, end });
    start = end;
  }
  return offsets;
}

/** Reads the index alone, and compares one name in the end: a query calls this for every row that it scans. */
export function findProperty(value: Buffer, name: string): PropertyOffset | undefined {
  const { bytes, hash } = propertyName(name);
  const nameLength = bytes.length;
  const textAt = keysOffset(value);
  let start = textAt + keysLength(value);
  for (let entry = HEAD_BYTES; entry < textAt; entry += ENTRY_BYTES) {
    const length = value[entry + 4]! | (value[entry + 5]! << 8) | (value[entry + 6]! << 16) | (value[entry + 7]! << 24);
    if (value[entry + 1] === hash && (value[entry + 2]! | (value[entry + 3]! << 8)) === nameLength) {
      if (equalsAt(value, start + 2, bytes)) return { code: value[entry]!, nameLength, start, end: start + length };
    }
    start += length;
  }
  return undefined;
}

/** A set of names that are looked up together. */
export interface NameTable {
  readonly count: number;
  /** By hash: 1 if a name has it. */
  readonly hashes: Uint8Array;
  /** The index of each name, by its JSON. */
  readonly indexes: ReadonlyMap<string, number>;
}

export function makeNameTable(names: readonly string[]): NameTable {
  const known = names.map(propertyName);
  const hashes = new Uint8Array(256);
  for (const { hash } of known) hashes[hash] = 1;
  return { count: names.length, hashes, indexes: new Map(known.map(({ json }, index) => [json, index])) };
}

/** In the order of the names. One pass over the index, for any number of names with any hashes. */
export function findProperties(value: Buffer, { count, hashes, indexes }: NameTable): (PropertyOffset | undefined)[] {
  const found = new Array<PropertyOffset | undefined>(count).fill(undefined);
  const textAt = keysOffset(value);
  let start = textAt + keysLength(value);
  for (let entry = HEAD_BYTES; entry < textAt; entry += ENTRY_BYTES) {
    const end = start + value.readUInt32LE(entry + 4);
    if (hashes[value[entry + 1]!] === 1) {
      const nameLength = value.readUInt16LE(entry + 2);
      const index = indexes.get(ascii(value, start + 2, start + 2 + nameLength));
      if (index !== undefined) found[index] = { code: value[entry]!, nameLength, start, end };
    }
    start = end;
  }
  return found;
}

function equalsAt(value: Buffer, at: number, bytes: Buffer): boolean {
  for (let i = 0; i < bytes.length; i++) if (value[at + i] !== bytes[i]) return false;
  return true;
}

export function ascii(value: Buffer, from: number, to: number): string {
  return value.toString('latin1', from, to);
}

/** Where the fragment begins without its annotation. */
export function bareStart({ code, nameLength, start }: PropertyOffset): number {
  const annotation = ANNOTATION_BYTES[code]!;
  return annotation === 0 ? start : start + annotation + nameLength;
}

export function nameAt(value: Buffer, { start, nameLength }: PropertyOffset): string {
  const text = ascii(value, start + 2, start + 2 + nameLength);
  return text.includes('\\') ? parseEscaped(value, start + 2, start + 2 + nameLength) : text;
}

/** Strings and binary may be cut after `lengthMax` units. */
export function valueAt(value: Buffer, offset: PropertyOffset, lengthMax = Number.POSITIVE_INFINITY): EdmValue {
  const from = bareStart(offset) + offset.nameLength + 4;
  const to = offset.end;
  switch (offset.code) {
    case STRING:
      return { type: 'Edm.String', value: ascii(value, from + 1, Math.min(to - 1, from + 1 + lengthMax)) };
    case ESCAPED_STRING:
      return { type: 'Edm.String', value: parseEscaped(value, from + 1, unitsEnd(value, from + 1, to - 1, lengthMax)) };
    case INT32:
      return { type: 'Edm.Int32', value: int32At(value, from, to) };
    case INT64:
      return { type: 'Edm.Int64', value: BigInt(ascii(value, from + 1, to - 1)) };
    case DOUBLE:
      return { type: 'Edm.Double', value: Number(ascii(value, from, to)) };
    case SPECIAL_DOUBLE:
      return { type: 'Edm.Double', value: Number(ascii(value, from + 1, to - 1)) };
    case BOOLEAN:
      return { type: 'Edm.Boolean', value: value[from] === 0x74 };
    case DATE_TIME:
      return { type: 'Edm.DateTime', value: instantAt(value, from + 1, to - 1) };
    case GUID:
      return { type: 'Edm.Guid', value: ascii(value, from + 1, to - 1) };
    case BINARY:
      return { type: 'Edm.Binary', value: bytesAt(value, from + 1, to - 1, lengthMax) };
    default:
      throw new UnknownFormat(`a property of type ${offset.code}, which this version does not know`);
  }
}

function parseEscaped(value: Buffer, from: number, to: number): string {
  return JSON.parse(`"${ascii(value, from, to)}"`) as string;
}

/** The offset after that many units of escaped text, or its end. */
function unitsEnd(value: Buffer, from: number, to: number, units: number): number {
  if (units >= to - from) return to;
  let at = from;
  for (let left = units; left > 0 && at < to; left--) {
    if (value[at] !== BACKSLASH) at++;
    else at += value[at + 1] === LETTER_U ? 6 : 2;
  }
  return at;
}

function bytesAt(value: Buffer, from: number, to: number, bytesMax: number): Buffer {
  return Buffer.from(ascii(value, from, Math.min(to, from + 4 * Math.ceil(bytesMax / 3))), 'base64');
}

function int32At(value: Buffer, from: number, to: number): number {
  return value[from] === 0x2d ? -digitsAt(value, from + 1, to) : digitsAt(value, from, to);
}

/** 2017-11-10T02:47:54.9431592Z, with any number of digits after the point. */
function instantAt(value: Buffer, from: number, to: number): bigint {
  const time = Date.UTC(
    digitsAt(value, from, from + 4),
    digitsAt(value, from + 5, from + 7) - 1,
    digitsAt(value, from + 8, from + 10),
    digitsAt(value, from + 11, from + 13),
    digitsAt(value, from + 14, from + 16),
    digitsAt(value, from + 17, from + 19),
  );
  const fractionAt = from + 20;
  if (fractionAt >= to) return ticksFromUnix(time);
  const digits = to - 1 - fractionAt;
  return ticksFromUnix(time) + BigInt(digitsAt(value, fractionAt, to - 1) * 10 ** (7 - digits));
}

function digitsAt(value: Buffer, from: number, to: number): number {
  let number = 0;
  for (let at = from; at < to; at++) number = number * 10 + value[at]! - 0x30;
  return number;
}
