/** Values as answers have them in JSON, which is how they are stored. Most are sent so already: then they are not read at all. */
import { isCanonicalDateTime } from './date-times.ts';
import { EDM_TYPES, type EdmType, type EdmValue, parseValue, type Scalar, type ValueFault } from './edm.ts';
import { formatValue, valueSize } from './edm-format.ts';

export interface CanonicalValue {
  readonly type: EdmType;
  /** All ASCII. */
  readonly text: string;
  /** By Azure's own count. */
  readonly size: number;
}

/** A value that holds no others, as it stands in a body. */
export interface SentValue {
  readonly kind: Scalar['kind'] | 'null';
  /** All ASCII: what is not is escaped, as in an answer. */
  readonly json: string;
  /** Of a string without its quotes and escapes. */
  readonly length: number;
}

export function canonicalize(value: EdmValue): CanonicalValue {
  return { type: value.type, text: formatValue(value), size: valueSize(value) };
}

const TYPES = new Map(EDM_TYPES.map((type) => [`"${type}"`, type]));

/** What an annotation says. */
export function parseType({ json }: SentValue): EdmType | 'unknown' {
  return TYPES.get(json) ?? 'unknown';
}

/** Without a type: as JSON shows it. A null is no value. */
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

/** Of fewer digits than the greatest has. */
const INT32 = /^(?:0|-?[1-9]\d{0,8})$/;
/** Of fewer digits than JavaScript and .NET write alike. */
const DOUBLE = /^-?(?:0|[1-9]\d{0,8})\.(?:0|\d{0,3}[1-9])$/;
const INT64 = /^"(?:0|-?[1-9]\d{0,17})"$/;
const GUID = /^"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"$/;

/** Undefined: it must be read in order to be written. */
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
