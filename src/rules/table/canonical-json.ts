/** Canonical JSON of values: the form of answers, in which they are stored. Most values are sent in it already, and then not parsed. */
import { formatDateTime, isCanonicalDateTime } from './date-times.ts';
import { EDM_TYPES, type EdmType, type EdmValue, parseValue, type Scalar, type ValueFault } from './edm.ts';

export interface CanonicalValue {
  readonly type: EdmType;
  /** All ASCII. */
  readonly text: string;
  /** In bytes, by Azure's formula. */
  readonly size: number;
}

/** A JSON scalar as it was sent. */
export interface SentValue {
  readonly kind: Scalar['kind'] | 'null';
  /** All ASCII: other characters are escaped, as in an answer. */
  readonly json: string;
  /** Of a string: in characters, without quotes and escapes. */
  readonly length: number;
}

export function canonicalize(value: EdmValue): CanonicalValue {
  return { type: value.type, text: formatValue(value), size: valueSize(value) };
}

const QUOTED_TYPES = EDM_TYPES.map((type) => `"${type}"`);

/** `json`: the value of an annotation. */
export function parseType({ json }: SentValue): EdmType | 'unknown' {
  // Compared, not hashed: the text is new in every request.
  return EDM_TYPES[QUOTED_TYPES.indexOf(json)] ?? 'unknown';
}

/** Without a type it follows from the form of the JSON. Not for nulls, which are no values. */
export function canonicalizeAs(sent: SentValue, type: EdmType | 'unknown' | undefined): CanonicalValue | ValueFault {
  const known = alreadyCanonical(sent, type);
  if (known) return known;
  const value = parseValue({ kind: sent.kind === 'null' ? 'string' : sent.kind, text: parseText(sent) }, type);
  return typeof value === 'string' ? value : canonicalize(value);
}

export function parseText({ kind, json, length }: SentValue): string {
  if (kind !== 'string') return json;
  return json.length === length + 2 ? json.slice(1, -1) : (JSON.parse(json) as string);
}

/** Fewer digits than the greatest Int32 has. */
const INT32 = /^(?:0|-?[1-9]\d{0,8})$/;
/** So few digits that JavaScript and .NET write them alike. */
const DOUBLE = /^-?(?:0|[1-9]\d{0,8})\.(?:0|\d{0,3}[1-9])$/;
const INT64 = /^"(?:0|-?[1-9]\d{0,17})"$/;
const GUID = /^"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"$/;

/** Undefined: it must be parsed and formatted. */
function alreadyCanonical({ kind, json, length }: SentValue, type: string | undefined): CanonicalValue | undefined {
  if (kind === 'string') {
    switch (type) {
      case undefined:
      case 'Edm.String':
        return { type: 'Edm.String', text: json, size: 2 * length + 4 };
      case 'Edm.Int64':
        return INT64.test(json) ? { type, text: json, size: 8 } : undefined;
      case 'Edm.DateTime':
        return isCanonicalDateTime(json.slice(1, -1)) ? { type, text: json, size: 8 } : undefined;
      case 'Edm.Guid':
        return GUID.test(json) ? { type, text: json, size: 16 } : undefined;
    }
  } else if (type === undefined) {
    if (kind === 'boolean') return { type: 'Edm.Boolean', text: json, size: 1 };
    if (INT32.test(json)) return { type: 'Edm.Int32', text: json, size: 4 };
    if (DOUBLE.test(json)) return { type: 'Edm.Double', text: json, size: 8 };
  }
  return undefined;
}

/** As in an answer: all ASCII. */
export function formatValue(value: EdmValue): string {
  switch (value.type) {
    case 'Edm.String':
      return formatJsonString(value.value);
    case 'Edm.Double':
      return Number.isFinite(value.value) ? formatDouble(value.value) : `"${value.value}"`;
    case 'Edm.Int32':
    case 'Edm.Boolean':
      return String(value.value);
    case 'Edm.Int64':
    case 'Edm.Guid':
      return `"${value.value}"`;
    case 'Edm.DateTime':
      return `"${formatDateTime(value.value)}"`;
    case 'Edm.Binary':
      return `"${value.value.toString('base64')}"`;
  }
}

/** Needs no escapes in JSON. */
const UNESCAPED = /^[\x20\x21\x23-\x5b\x5d-\x7f]*$/;

/** The service escapes all characters that are not ASCII, unpaired surrogates as well. */
export function formatJsonString(text: string): string {
  if (UNESCAPED.test(text)) return `"${text}"`;
  return escapeNonAscii(JSON.stringify(text));
}

const DIGITS = Buffer.from('0123456789abcdef');

/** A loop: a regular expression that calls a function for each code unit would take thirty times as long. */
function escapeNonAscii(json: string): string {
  const bytes = Buffer.allocUnsafe(6 * json.length);
  let at = 0;
  for (let i = 0; i < json.length; i++) {
    const unit = json.charCodeAt(i);
    if (unit < 0x80) {
      bytes[at++] = unit;
      continue;
    }
    bytes[at] = 0x5c;
    bytes[at + 1] = 0x75;
    bytes[at + 2] = DIGITS[unit >> 12]!;
    bytes[at + 3] = DIGITS[(unit >> 8) & 0xf]!;
    bytes[at + 4] = DIGITS[(unit >> 4) & 0xf]!;
    bytes[at + 5] = DIGITS[unit & 0xf]!;
    at += 6;
  }
  return bytes.toString('latin1', 0, at);
}

/**
 * The round-trip format ("R") of .NET Framework: 15 digits, or 17 where 15 do not suffice. It has a point even where none is needed,
 * so that it is not read as an Int32.
 */
export function formatDouble(value: number): string {
  if (value === 0) return Object.is(value, -0) ? '-0.0' : '0.0';
  const short = String(value);
  // Up to 15 digits JavaScript writes the same as .NET, and in this range without an exponent.
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

/** In bytes, by Azure's formula for the size of an entity. */
export function valueSize(value: EdmValue): number {
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
