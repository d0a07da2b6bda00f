/** Edm values → JSON. */
import { formatDateTime } from './date-times.ts';
import type { EdmValue } from './edm.ts';

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
