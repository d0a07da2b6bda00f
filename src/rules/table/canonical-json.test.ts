import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  canonicalize,
  canonicalizeAs,
  formatJsonString,
  parseText,
  parseType,
  type SentValue,
} from './canonical-json.ts';
import { EDM_TYPES, type EdmType, parseValue } from './edm.ts';

const string = (text: string): SentValue => ({ kind: 'string', json: formatJsonString(text), length: text.length });
const bare = (kind: 'number' | 'boolean', json: string): SentValue => ({ kind, json, length: json.length });

const digits = (count: number) =>
  fc.string({ unit: fc.constantFrom(...'0012359'), minLength: count, maxLength: count });
const aDate = fc
  .tuple(digits(2), digits(2), fc.constantFrom('01', '02', '04', '11', '12', '13', '00'), digits(2), digits(2))
  .map(([century, year, month, day, hour]) => `${century}${year}-${month}-${day}T${hour}:10:20`);
const aDateTime = fc
  .tuple(aDate, fc.nat(9).chain(digits), fc.constantFrom('Z', '', 'z', '+01:00', 'Zx'))
  .map(([date, fraction, zone]) => `${date}${fraction === '' ? '' : `.${fraction}`}${zone}`);
const anInteger = fc
  .tuple(fc.constantFrom('', '-', '+'), fc.integer({ min: 1, max: 20 }).chain(digits))
  .map((parts) => parts.join(''));
const aText = fc.oneof(
  aDateTime,
  anInteger,
  fc.uuid(),
  fc.uuid().map((guid) => guid.toUpperCase()),
  fc.string({ unit: 'binary' }),
  fc.constantFrom('NaN', 'true', 'AAE=', ' 1', '1600-12-31T23:59:59Z', '2023-02-29T00:00:00Z', '2024-02-29T00:00:00Z'),
);
const aNumber = fc.oneof(
  fc.integer().map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
  fc
    .tuple(anInteger, fc.nat(6).chain(digits))
    .map(([whole, fraction]) => `${whole}.${fraction}`)
    .filter((text) => {
      return /^-?(?:0|[1-9]\d*)\.\d+$/.test(text);
    }),
  fc.constantFrom(
    '-0',
    '0',
    '1.0',
    '-0.0',
    '0.0',
    '0.0001',
    '0.0010',
    '999999999.9999',
    '2147483648',
    '-2147483649',
    '1e400',
  ),
);
const aSent = fc.oneof(
  aText.map(string),
  aNumber.map((json) => bare('number', json)),
  fc.boolean().map((value) => bare('boolean', String(value))),
);
const aType = fc.constantFrom<EdmType | 'unknown' | undefined>(...EDM_TYPES, 'unknown', undefined);

describe('A value as it is stored', () => {
  it('is what parsing and formatting make of it, also where it is not parsed', () => {
    fc.assert(
      fc.property(aSent, aType, (sent, type) => {
        const value = parseValue({ kind: sent.kind as 'string', text: parseText(sent) }, type);
        expect(canonicalizeAs(sent, type)).toEqual(typeof value === 'string' ? value : canonicalize(value));
      }),
      { numRuns: 10_000 },
    );
  });

  it('gives back its text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(parseText(string(text))).toBe(text);
      }),
    );
  });

  it('has a type by its annotation', () => {
    for (const type of EDM_TYPES) expect(parseType(string(type))).toBe(type);
    for (const text of ['', 'Edm.Unknown', 'edm.int64']) expect(parseType(string(text))).toBe('unknown');
  });
});
