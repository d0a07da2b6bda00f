/** Canonical JSON of values: the form of answers, in which they are stored. Most values are sent in it already, and then not parsed. */
import { isCanonicalDateTime } from './date-times.ts';
import { EDM_TYPES, type EdmType, type EdmValue, parseValue, type Scalar, type ValueFault } from './edm.ts';
import { formatValue, valueSize } from './edm-format.ts';

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

const TYPES = new Map(EDM_TYPES.map((type) => [`"${type}"`, type]));

/** `json`: the value of an annotation. */
export function parseType({ json }: SentValue): EdmType | 'unknown' {
  return TYPES.get(json) ?? 'unknown';
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
