/** The values of the Table service: what types there are, how they are read from JSON, and how they are written. */
import { millisecondsOf, TICKS_PER_SECOND, ticksOf } from '../../base/time.ts';

export type EdmType = EdmValue['type'];

/** In the form in which they are compared: instants in 100-ns ticks, GUIDs in lower case. */
export type EdmValue =
  | { readonly type: 'Edm.String'; readonly value: string }
  | { readonly type: 'Edm.Int32'; readonly value: number }
  | { readonly type: 'Edm.Int64'; readonly value: bigint }
  | { readonly type: 'Edm.Double'; readonly value: number }
  | { readonly type: 'Edm.Boolean'; readonly value: boolean }
  | { readonly type: 'Edm.DateTime'; readonly value: bigint }
  | { readonly type: 'Edm.Guid'; readonly value: string }
  | { readonly type: 'Edm.Binary'; readonly value: Buffer };

/** A value of JSON that holds no others. Numbers stay as they were written: 1 and 1.0 are of different types. */
export interface Scalar {
  readonly kind: 'string' | 'number' | 'boolean';
  readonly text: string;
}

export type ValueFault = 'not of this type' | 'out of range';

const INT32_MIN = -(2 ** 31);
const INT32_MAX = 2 ** 31 - 1;
const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;
/** 1601-01-01: where the file times of Windows begin. */
const DATE_TIME_MIN = ticksOf(Date.UTC(1601, 0, 1));
const DATE_TIME_END = ticksOf(Date.UTC(10_000, 0, 1));

/** Without a type: as JSON shows it. */
export function readValue(scalar: Scalar, type?: string): EdmValue | ValueFault {
  if (type === undefined) return inferred(scalar);
  const read = readerOf.get(type);
  return read ? read(scalar) : notOfType();
}

const READERS: Readonly<Record<EdmType, (scalar: Scalar) => EdmValue | ValueFault>> = {
  'Edm.String': (scalar) => (scalar.kind === 'string' ? { type: 'Edm.String', value: scalar.text } : notOfType()),
  'Edm.Int32': (scalar) => {
    const value = integerOf(scalar);
    return value === undefined || value < INT32_MIN || value > INT32_MAX
      ? notOfType()
      : { type: 'Edm.Int32', value: Number(value) };
  },
  'Edm.Int64': (scalar) => {
    const value = integerOf(scalar);
    return value === undefined || value < INT64_MIN || value > INT64_MAX ? notOfType() : { type: 'Edm.Int64', value };
  },
  'Edm.Double': (scalar) => (scalar.kind === 'boolean' ? notOfType() : doubleOf(scalar.text.trim())),
  // The service takes the words as text, too, in any case.
  'Edm.Boolean': (scalar) => {
    const word = scalar.text.trim().toLowerCase();
    if (scalar.kind === 'number' || (word !== 'true' && word !== 'false')) return notOfType();
    return { type: 'Edm.Boolean', value: word === 'true' };
  },
  'Edm.DateTime': (scalar) => {
    const value = scalar.kind === 'string' ? parseDateTime(scalar.text) : undefined;
    if (value === undefined) return notOfType();
    return value < DATE_TIME_MIN || value >= DATE_TIME_END ? 'out of range' : { type: 'Edm.DateTime', value };
  },
  'Edm.Guid': (scalar) => {
    const value = scalar.kind === 'string' ? parseGuid(scalar.text) : undefined;
    return value === undefined ? notOfType() : { type: 'Edm.Guid', value };
  },
  'Edm.Binary': (scalar) => {
    const value = scalar.kind === 'string' ? parseBase64(scalar.text) : undefined;
    return value === undefined ? notOfType() : { type: 'Edm.Binary', value };
  },
};
const readerOf = new Map<string, (scalar: Scalar) => EdmValue | ValueFault>(Object.entries(READERS));

function notOfType(): ValueFault {
  return 'not of this type';
}

const INTEGER = /^[-+]?\d{1,99}$/;
const SHORT_INTEGER = /^-?\d{1,10}$/;

/** A whole number that an Int32 cannot hold is a Double, as one with a point or an exponent is. */
function inferred(scalar: Scalar): EdmValue | ValueFault {
  if (scalar.kind === 'string') return { type: 'Edm.String', value: scalar.text };
  if (scalar.kind === 'boolean') return { type: 'Edm.Boolean', value: scalar.text === 'true' };
  const value = SHORT_INTEGER.test(scalar.text) ? Number(scalar.text) : Number.NaN;
  if (value >= INT32_MIN && value <= INT32_MAX) return { type: 'Edm.Int32', value: value + 0 };
  return doubleOf(scalar.text);
}

function integerOf(scalar: Scalar): bigint | undefined {
  if (scalar.kind === 'boolean') return undefined;
  const text = scalar.text.trim();
  return INTEGER.test(text) ? BigInt(text.startsWith('+') ? text.slice(1) : text) : undefined;
}

const DOUBLE = /^[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?$/i;

function doubleOf(text: string): EdmValue | ValueFault {
  if (text === 'NaN' || text === 'Infinity' || text === '-Infinity') return { type: 'Edm.Double', value: Number(text) };
  const value = DOUBLE.test(text) ? Number(text) : Number.NaN;
  return Number.isFinite(value) ? { type: 'Edm.Double', value } : notOfType();
}

const MINUTE_MILLISECONDS = 60_000;
const OFFSET_MINUTES_MAX = 14 * 60;
const DAYS_OF_MONTHS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
/** The calendar repeats itself. Date.UTC takes the years below 100 for those of the last century. */
const CYCLE_YEARS = 400;
const CYCLE_MILLISECONDS = 146_097 * 24 * 60 * MINUTE_MILLISECONDS;

/**
 * 2017-11-10T02:47:54.9431592Z; the time, the seconds, their fraction and the zone may be missing, and the zone may be +01:00.
 * Without one it is UTC. Undefined: no such instant. By hand, since a regular expression takes several times as long.
 */
export function parseDateTime(text: string): bigint | undefined {
  const year = digitsAt(text, 0, 4);
  const month = markedAt(text, 4, '-');
  const day = markedAt(text, 7, '-');
  let hour = 0;
  let minute = 0;
  let second = 0;
  let fraction = '';
  let offset = 0;
  let at = 10;
  if (text[at] === 'T') {
    hour = digitsAt(text, 11, 2);
    minute = markedAt(text, 13, ':');
    at = 16;
    if (text[at] === ':') {
      second = digitsAt(text, 17, 2);
      at = 19;
      if (text[at] === '.') {
        const from = ++at;
        while (isDigit(text.charCodeAt(at))) at++;
        if (at === from) return undefined;
        fraction = text.slice(from, at);
      }
    }
  }
  if (text[at] === 'Z') at++;
  else if (text[at] === '+' || text[at] === '-') {
    const minutes = markedAt(text, at + 3, ':');
    offset = (digitsAt(text, at + 1, 2) * 60 + minutes) * (text[at] === '-' ? -1 : 1);
    if (!(minutes <= 59 && Math.abs(offset) <= OFFSET_MINUTES_MAX)) return undefined;
    at += 6;
  }
  if (at !== text.length || !(hour <= 23 && minute <= 59 && second <= 59)) return undefined;
  if (!(year >= 1 && month >= 1 && month <= 12 && day >= 1 && day <= DAYS_OF_MONTHS[month - 1]!)) return undefined;
  if (day === 29 && month === 2 && !isLeap(year)) return undefined;
  const time = Date.UTC(year + CYCLE_YEARS, month - 1, day, hour, minute - offset, second) - CYCLE_MILLISECONDS;
  return ticksOf(time) + fractionTicks(fraction);
}

function isLeap(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
}

function isDigit(unit: number): boolean {
  return unit >= 0x30 && unit <= 0x39;
}

/** NaN: they are not all digits. */
function digitsAt(text: string, from: number, count: number): number {
  let number = 0;
  for (let at = from; at < from + count; at++) {
    const unit = text.charCodeAt(at);
    if (!isDigit(unit)) return Number.NaN;
    number = number * 10 + unit - 0x30;
  }
  return number;
}

/** Two digits behind this mark. */
function markedAt(text: string, at: number, mark: string): number {
  return text[at] === mark ? digitsAt(text, at + 1, 2) : Number.NaN;
}

/** The eighth digit rounds. */
function fractionTicks(fraction: string): bigint {
  if (fraction === '') return 0n;
  return BigInt(fraction.slice(0, 7).padEnd(7, '0')) + (fraction.charCodeAt(7) >= 0x35 ? 1n : 0n);
}

const GUID = /^([0-9a-f]{8})(-?)([0-9a-f]{4})\2([0-9a-f]{4})\2([0-9a-f]{4})\2([0-9a-f]{12})$/;

export function parseGuid(text: string): string | undefined {
  const bare = /^(?:\{.*-.*\}|\(.*-.*\))$/s.test(text) ? text.slice(1, -1) : text;
  const parts = GUID.exec(bare.toLowerCase());
  return parts ? `${parts[1]}-${parts[3]}-${parts[4]}-${parts[5]}-${parts[6]}` : undefined;
}

/** White space is passed over, as .NET does. */
function parseBase64(text: string): Buffer | undefined {
  const digits = /[ \t\r\n]/.test(text) ? text.replace(/[ \t\r\n]/g, '') : text;
  const padding = digits.endsWith('==') ? 2 : digits.endsWith('=') ? 1 : 0;
  if (digits.length % 4 !== 0 || /[^A-Za-z0-9+/]/.test(digits.slice(0, digits.length - padding))) return undefined;
  return Buffer.from(digits, 'base64');
}

/** The value as JSON has it in an answer, all ASCII. */
export function valueText(value: EdmValue): string {
  switch (value.type) {
    case 'Edm.String':
      return jsonText(value.value);
    case 'Edm.Double':
      return Number.isFinite(value.value) ? doubleText(value.value) : `"${value.value}"`;
    case 'Edm.Int32':
    case 'Edm.Boolean':
      return String(value.value);
    case 'Edm.Int64':
    case 'Edm.Guid':
      return `"${value.value}"`;
    case 'Edm.DateTime':
      return `"${dateTimeText(value.value)}"`;
    case 'Edm.Binary':
      return `"${value.value.toString('base64')}"`;
  }
}

/** Whether JSON alone does not tell the type, so that an annotation must. */
export function isAnnotated(value: EdmValue): boolean {
  switch (value.type) {
    case 'Edm.String':
    case 'Edm.Int32':
    case 'Edm.Boolean':
      return false;
    case 'Edm.Double':
      return !Number.isFinite(value.value);
    default:
      return true;
  }
}

/** What JSON has as it is. */
const UNESCAPED = /^[\x20\x21\x23-\x5b\x5d-\x7f]*$/;

/** The service escapes all that is not ASCII, halves of surrogate pairs as well. */
export function jsonText(text: string): string {
  if (UNESCAPED.test(text)) return `"${text}"`;
  return JSON.stringify(text).replace(
    /[\u0080-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

let lastSecond = -1n;
let lastText = '';

/** Without zeros that end the fraction. Instants that are shown together often share a second. */
export function dateTimeText(ticks: bigint): string {
  const second = ticks / TICKS_PER_SECOND;
  if (second !== lastSecond) {
    lastText = new Date(millisecondsOf(second * TICKS_PER_SECOND)).toISOString().slice(0, 19);
    lastSecond = second;
  }
  let fraction = Number(ticks - second * TICKS_PER_SECOND);
  if (fraction === 0) return `${lastText}Z`;
  let digits = 7;
  for (; fraction % 10 === 0; digits--) fraction /= 10;
  return `${lastText}.${String(fraction).padStart(digits, '0')}Z`;
}

/**
 * As .NET Framework writes a Double that is to be read again ("R"): 15 digits, or 17 where these are not enough; and a point
 * even where none is needed, so that it is no Int32.
 */
export function doubleText(value: number): string {
  if (value === 0) return Object.is(value, -0) ? '-0.0' : '0.0';
  const short = String(value);
  // Up to 15 digits both write the same, and JavaScript needs no exponent for these.
  const magnitude = Math.abs(value);
  if (short.length <= 15 && magnitude >= 1e-4 && magnitude < 1e15) return short.includes('.') ? short : `${short}.0`;
  let digitsMax = 15;
  let text = value.toExponential(digitsMax - 1);
  if (Number(text) !== value) {
    digitsMax = 17;
    text = value.toExponential(digitsMax - 1);
  }
  const [mantissa, power] = text.split('e') as [string, string];
  const sign = value < 0 ? '-' : '';
  const digits = mantissa.replace(/[-.]/g, '').replace(/0+$/, '');
  const exponent = Number(power);
  if (exponent < -4 || exponent >= digitsMax) return sign + scientific(digits, exponent);
  if (exponent < 0) return `${sign}0.${'0'.repeat(-exponent - 1)}${digits}`;
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, '0');
  return `${sign}${whole}.${digits.slice(exponent + 1) || '0'}`;
}

function scientific(digits: string, exponent: number): string {
  const mantissa = digits.length > 1 ? `${digits[0]}.${digits.slice(1)}` : digits;
  return `${mantissa}E${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;
}

/** By Azure's own count of what an entity takes. */
export function sizeOf(value: EdmValue): number {
  switch (value.type) {
    case 'Edm.String':
      return 2 * value.value.length + 4;
    case 'Edm.Binary':
      return value.value.length + 4;
    case 'Edm.Guid':
      return 16;
    case 'Edm.Int32':
      return 4;
    case 'Edm.Boolean':
      return 1;
    default:
      return 8;
  }
}
