/** The Entity Data Model's primitive types, and how their values are parsed from JSON. */
import { JSON_NUMBER_MAX } from '../../base/input-limits.ts';
import { ticksFromUnix } from '../../base/time.ts';
import { parseDateTime, YEAR_MIN } from './date-times.ts';

export type EdmType = EdmValue['type'];

/** In the form in which values are compared: instants in 100-ns ticks, GUIDs in lower case. */
export type EdmValue =
  | { readonly type: 'Edm.String'; readonly value: string }
  | { readonly type: 'Edm.Int32'; readonly value: number }
  | { readonly type: 'Edm.Int64'; readonly value: bigint }
  | { readonly type: 'Edm.Double'; readonly value: number }
  | { readonly type: 'Edm.Boolean'; readonly value: boolean }
  | { readonly type: 'Edm.DateTime'; readonly value: bigint }
  | { readonly type: 'Edm.Guid'; readonly value: string }
  | { readonly type: 'Edm.Binary'; readonly value: Buffer };

/** A JSON scalar. Numbers stay text: 1 and 1.0 are of different types. */
export interface Scalar {
  readonly kind: 'string' | 'number' | 'boolean';
  readonly text: string;
}

export const PROPERTY_NAME_MAX = 255;

export type ValueFault = 'not of this type' | 'out of range';

const INT32_MIN = -(2 ** 31);
const INT32_MAX = 2 ** 31 - 1;
const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;
const DATE_TIME_MIN = ticksFromUnix(Date.UTC(YEAR_MIN, 0, 1));
const DATE_TIME_END = ticksFromUnix(Date.UTC(10_000, 0, 1));

/** Without a type it follows from the form of the JSON. */
export function parseValue(scalar: Scalar, type?: string): EdmValue | ValueFault {
  if (type === undefined) return inferValue(scalar);
  const read = parsers.get(type);
  return read ? read(scalar) : notOfType();
}

const PARSERS: Readonly<Record<EdmType, (scalar: Scalar) => EdmValue | ValueFault>> = {
  'Edm.String': (scalar) => (scalar.kind === 'string' ? { type: 'Edm.String', value: scalar.text } : notOfType()),
  'Edm.Int32': (scalar) => {
    const value = parseInteger(scalar);
    return value === undefined || value < INT32_MIN || value > INT32_MAX
      ? notOfType()
      : { type: 'Edm.Int32', value: Number(value) };
  },
  'Edm.Int64': (scalar) => {
    const value = parseInteger(scalar);
    return value === undefined || value < INT64_MIN || value > INT64_MAX ? notOfType() : { type: 'Edm.Int64', value };
  },
  'Edm.Double': (scalar) => (scalar.kind === 'boolean' ? notOfType() : parseDouble(scalar.text.trim())),
  // The service accepts the words as strings, too, in upper and lower case.
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
const parsers = new Map<string, (scalar: Scalar) => EdmValue | ValueFault>(Object.entries(PARSERS));
export const EDM_TYPES = Object.keys(PARSERS) as EdmType[];

function notOfType(): ValueFault {
  return 'not of this type';
}

const INTEGER = /^[-+]?\d{1,99}$/;
const SHORT_INTEGER = /^-?\d{1,10}$/;

/** An integer beyond Int32 is a Double, like a number with a point or an exponent. */
function inferValue(scalar: Scalar): EdmValue | ValueFault {
  if (scalar.kind === 'string') return { type: 'Edm.String', value: scalar.text };
  if (scalar.kind === 'boolean') return { type: 'Edm.Boolean', value: scalar.text === 'true' };
  const value = SHORT_INTEGER.test(scalar.text) ? Number(scalar.text) : Number.NaN;
  if (value >= INT32_MIN && value <= INT32_MAX) return { type: 'Edm.Int32', value: value + 0 };
  return parseDouble(scalar.text);
}

function parseInteger(scalar: Scalar): bigint | undefined {
  if (scalar.kind === 'boolean') return undefined;
  const text = scalar.text.trim();
  return INTEGER.test(text) ? BigInt(text.startsWith('+') ? text.slice(1) : text) : undefined;
}

const DOUBLE = /^[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?$/i;

/** The length with braces. On long text the expressions below would take quadratic time. */
const GUID_LENGTH_MAX = 38;

function parseDouble(text: string): EdmValue | ValueFault {
  if (text === 'NaN' || text === 'Infinity' || text === '-Infinity') return { type: 'Edm.Double', value: Number(text) };
  const value = text.length <= JSON_NUMBER_MAX && DOUBLE.test(text) ? Number(text) : Number.NaN;
  return Number.isFinite(value) ? { type: 'Edm.Double', value } : notOfType();
}

const GUID = /^([0-9a-f]{8})(-?)([0-9a-f]{4})\2([0-9a-f]{4})\2([0-9a-f]{4})\2([0-9a-f]{12})$/;

export function parseGuid(text: string): string | undefined {
  if (text.length > GUID_LENGTH_MAX) return undefined;
  const bare = /^(?:\{.*-.*\}|\(.*-.*\))$/s.test(text) ? text.slice(1, -1) : text;
  const parts = GUID.exec(bare.toLowerCase());
  return parts ? `${parts[1]}-${parts[3]}-${parts[4]}-${parts[5]}-${parts[6]}` : undefined;
}

/** Ignores white space, as .NET does. */
function parseBase64(text: string): Buffer | undefined {
  const digits = /[ \t\r\n]/.test(text) ? text.replace(/[ \t\r\n]/g, '') : text;
  const padding = digits.endsWith('==') ? 2 : digits.endsWith('=') ? 1 : 0;
  if (digits.length % 4 !== 0 || /[^A-Za-z0-9+/]/.test(digits.slice(0, digits.length - padding))) return undefined;
  return Buffer.from(digits, 'base64');
}
