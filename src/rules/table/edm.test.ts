import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatDouble, formatJsonString, formatValue } from './canonical-json.ts';
import { formatDateTime, parseDateTime } from './date-times.ts';
import { parseValue, type Scalar } from './edm.ts';

const string = (text: string): Scalar => ({ kind: 'string', text });
const number = (text: string): Scalar => ({ kind: 'number', text });
const boolean = (value: boolean): Scalar => ({ kind: 'boolean', text: String(value) });

/** Type and text as they would come back. */
function answered(scalar: Scalar, type?: string): string {
  const value = parseValue(scalar, type);
  return typeof value === 'string' ? value : `${value.type.slice(4)} ${formatValue(value)}`;
}

describe('Values of properties', () => {
  it.each([
    [number('1'), 'Int32 1'],
    [number('-0'), 'Int32 0'],
    [number('2147483647'), 'Int32 2147483647'],
    [number('-2147483648'), 'Int32 -2147483648'],
    [number('2147483648'), 'Double 2147483648.0'],
    [number('1.0'), 'Double 1.0'],
    [number('1e3'), 'Double 1000.0'],
    [number('1e400'), 'not of this type'],
    [boolean(true), 'Boolean true'],
    [string('2020-01-01T00:00:00Z'), 'String "2020-01-01T00:00:00Z"'],
    [string(''), 'String ""'],
  ])('without a type are what JSON shows: %j is %s', (scalar, answer) => expect(answered(scalar)).toBe(answer));

  it.each([
    ['Edm.Int32', number('23'), 'Int32 23'],
    ['Edm.Int32', string('23'), 'Int32 23'],
    ['Edm.Int32', number('23.0'), 'not of this type'],
    ['Edm.Int32', number('2147483648'), 'not of this type'],
    ['Edm.Int32', string(''), 'not of this type'],
    ['Edm.Int32', boolean(true), 'not of this type'],
    ['Edm.Int64', string('9223372036854775807'), 'Int64 "9223372036854775807"'],
    ['Edm.Int64', string('-9223372036854775808'), 'Int64 "-9223372036854775808"'],
    ['Edm.Int64', string('9223372036854775808'), 'not of this type'],
    ['Edm.Int64', string('007'), 'Int64 "7"'],
    ['Edm.Int64', string('0x10'), 'not of this type'],
    ['Edm.Int64', string('abc'), 'not of this type'],
    ['Edm.Int64', number('12'), 'Int64 "12"'],
    ['Edm.Double', number('5'), 'Double 5.0'],
    ['Edm.Double', string('0'), 'Double 0.0'],
    ['Edm.Double', string('NaN'), 'Double "NaN"'],
    ['Edm.Double', string('Infinity'), 'Double "Infinity"'],
    ['Edm.Double', string('-Infinity'), 'Double "-Infinity"'],
    ['Edm.Double', string('infinity'), 'not of this type'],
    ['Edm.Double', string('0x10'), 'not of this type'],
    ['Edm.Double', string(''), 'not of this type'],
    ['Edm.Double', boolean(false), 'not of this type'],
    ['Edm.Boolean', string('false'), 'Boolean false'],
    ['Edm.Boolean', string('True'), 'Boolean true'],
    ['Edm.Boolean', string('not a bool'), 'not of this type'],
    ['Edm.Boolean', number('1'), 'not of this type'],
    ['Edm.String', string('42'), 'String "42"'],
    ['Edm.String', number('42'), 'not of this type'],
    ['Edm.Guid', string('C9DA6455-213D-42C9-9A79-3E9149A57833'), 'Guid "c9da6455-213d-42c9-9a79-3e9149a57833"'],
    ['Edm.Guid', string('c9da6455213d42c99a793e9149a57833'), 'Guid "c9da6455-213d-42c9-9a79-3e9149a57833"'],
    ['Edm.Guid', string('{c9da6455-213d-42c9-9a79-3e9149a57833}'), 'Guid "c9da6455-213d-42c9-9a79-3e9149a57833"'],
    ['Edm.Guid', string('c9da6455-213d42c9-9a79-3e9149a57833'), 'not of this type'],
    ['Edm.Guid', string('c9da6455'), 'not of this type'],
    ['Edm.Binary', string(''), 'Binary ""'],
    ['Edm.Binary', string('dGVzdA=='), 'Binary "dGVzdA=="'],
    ['Edm.Binary', string('dGVz\r\n dA=='), 'Binary "dGVzdA=="'],
    ['Edm.Binary', string('dGVzdA'), 'not of this type'],
    ['Edm.Binary', string('dGV-dA=='), 'not of this type'],
    ['Edm.Binary', string('='), 'not of this type'],
    ['Edm.Binary', string('===='), 'not of this type'],
    ['Edm.Decimal', number('1'), 'not of this type'],
    ['toString', string('x'), 'not of this type'],
  ])('of %s: %j is %s', (type, scalar, answer) => expect(answered(scalar, type)).toBe(answer));

  it.each([
    ['2008-07-10T00:00:00', '2008-07-10T00:00:00Z'],
    ['2008-07-10', '2008-07-10T00:00:00Z'],
    ['2008-07-10T01:02Z', '2008-07-10T01:02:00Z'],
    ['1973-10-04T00:00:00.000000Z', '1973-10-04T00:00:00Z'],
    ['2021-12-09T08:25:12.337950Z', '2021-12-09T08:25:12.33795Z'],
    ['2013-08-22T01:12:06.2608595Z', '2013-08-22T01:12:06.2608595Z'],
    ['2013-08-22T01:12:06.26085954Z', '2013-08-22T01:12:06.2608595Z'],
    ['2013-08-22T23:59:59.99999995Z', '2013-08-23T00:00:00Z'],
    ['2020-02-29T12:00:00+02:00', '2020-02-29T10:00:00Z'],
    ['2020-12-31T23:30:00.5-01:00', '2021-01-01T00:30:00.5Z'],
    ['1969-12-31T23:59:59.999001Z', '1969-12-31T23:59:59.999001Z'],
    ['1601-01-01T00:00:00Z', '1601-01-01T00:00:00Z'],
    ['9999-12-31T23:59:59.9999999Z', '9999-12-31T23:59:59.9999999Z'],
    ['1600-12-31T23:59:59.9999999Z', 'out of range'],
    ['0001-01-01T00:00:00Z', 'out of range'],
    ['0099-01-01T00:00:00Z', 'out of range'],
    ['1601-01-01T00:00:00+00:01', 'out of range'],
    ['9999-12-31T23:59:59-00:01', 'out of range'],
    ['0000-01-01T00:00:00Z', 'not of this type'],
    ['2021-02-29T00:00:00Z', 'not of this type'],
    ['2021-13-01T00:00:00Z', 'not of this type'],
    ['2021-01-01T24:00:00Z', 'not of this type'],
    ['2021-01-01T00:60:00Z', 'not of this type'],
    ['2021-01-01T00:00:00+15:00', 'not of this type'],
    ['2021-01-01 00:00:00Z', 'not of this type'],
    ['Mon, 01 Jan 2021 00:00:00 GMT', 'not of this type'],
    ['', 'not of this type'],
  ])('of Edm.DateTime: %s is %s', (text, answer) =>
    expect(answered(string(text), 'Edm.DateTime')).toBe(answer.endsWith('Z') ? `DateTime "${answer}"` : answer),
  );

  it.each([
    ['Edm.Guid', '{', '-', ''],
    ['Edm.Guid', '(', '-', 'x'],
    ['Edm.Double', '', '1', 'x'],
    ['Edm.Double', '1.', '1', 'x'],
    ['Edm.Int64', '', '1', 'x'],
    ['Edm.DateTime', '2008-07-10T00:00:00.', '1', 'x'],
    ['Edm.Boolean', '', 't', ''],
    ['Edm.Binary', '', 'A', '*'],
  ])(
    'of %s are refused in time that grows with their length only: %s and 200,000 %s, then %s',
    (type, start, unit, end) => {
      expect(answered(string(start + unit.repeat(200_000) + end), type)).toBe('not of this type');
    },
  );

  it('of Edm.DateTime keep every tick between 1601 and 9999', () => {
    const ticks = fc.bigInt(504911232000000000n, 3155378975999999999n);
    fc.assert(
      fc.property(ticks, (instant) => {
        const value = parseValue(string(formatDateTime(instant)), 'Edm.DateTime');
        expect(value).toEqual({ type: 'Edm.DateTime', value: instant });
      }),
    );
  });
});

describe('An instant', () => {
  const FORM = /^(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?)?(?:Z|([-+])(\d\d):(\d\d))?$/;

  /** By a regular expression and by Date, which knows the calendar. */
  function instantOf(text: string): bigint | undefined {
    const parts = FORM.exec(text);
    if (!parts) return undefined;
    const [year, month, day, hour, minute, second] = parts.slice(1, 7).map((part) => Number(part ?? 0));
    const [, , , , , , , fraction = '', sign = '+', hours = '0', minutes = '0'] = parts;
    const offset = Number(`${sign}1`) * (Number(hours) * 60 + Number(minutes));
    if (Math.abs(offset) > 840 || Number(minutes) > 59 || hour! > 23 || minute! > 59 || second! > 59) return undefined;
    const date = new Date(0);
    date.setUTCFullYear(year!, month! - 1, day);
    if (year === 0 || date.getUTCMonth() !== month! - 1 || date.getUTCDate() !== day) return undefined;
    const seconds = BigInt(date.setUTCHours(hour!, minute!, second!) / 1_000 - offset * 60);
    const ticks = BigInt(fraction.slice(0, 7).padEnd(7, '0')) + (fraction[7]! >= '5' ? 1n : 0n);
    return 621355968000000000n + seconds * 10_000_000n + ticks;
  }

  const two = (max: number) => fc.nat(max).map((number) => String(number).padStart(2, '0'));
  const year = fc.oneof(fc.nat(9_999), fc.constantFrom(0, 1, 99, 100, 400, 1600, 1900, 2000, 2024));
  const wellFormed = fc
    .tuple(
      year.map((number) => String(number).padStart(4, '0')),
      ...([two(13), two(32), two(25), two(61), two(61)] as const),
      fc.stringMatching(/^\d{0,9}$/),
      fc.constantFrom('', 'Z', '+01:00', '-14:00', '+14:01', '-00:60', '+9:00'),
      fc.nat(3),
    )
    .map(([y, month, day, hour, minute, second, fraction, zone, precision]) => {
      const times = [
        '',
        `T${hour}:${minute}`,
        `T${hour}:${minute}:${second}`,
        `T${hour}:${minute}:${second}.${fraction}`,
      ];
      return `${y}-${month}-${day}${times[precision]}${zone}`;
    });
  const damaged = fc
    .tuple(wellFormed, fc.nat(30), fc.nat(2), fc.constantFrom('', '0', ':', '-', 'T', '.', ' ', '٣'))
    .map(([text, at, length, instead]) => text.slice(0, at) + instead + text.slice(at + length));

  it('is read as the calendar has it, or not at all', () => {
    fc.assert(
      fc.property(fc.oneof(wellFormed, damaged), (text) => {
        expect(parseDateTime(text)).toBe(instantOf(text));
      }),
      { numRuns: 20_000 },
    );
  });
});

describe('A Double', () => {
  it.each([
    [1, '1.0'],
    [4444, '4444.0'],
    [-0, '-0.0'],
    [3.1, '3.1'],
    [0.1, '0.1'],
    [0.1 + 0.2, '0.30000000000000004'],
    [0.0001, '0.0001'],
    [0.00001, '1E-05'],
    [-1.5e-7, '-1.5E-07'],
    [100000000000000, '100000000000000.0'],
    [1e15, '1E+15'],
    [123456789012345.6, '123456789012345.59'],
    [2 ** 53, '9007199254740992.0'],
    [12345678901234568, '12345678901234568.0'],
    [1.5e300, '1.5E+300'],
    [5e-324, '4.94065645841247E-324'],
    [1.7976931348623157e308, '1.7976931348623157E+308'],
  ])('%d is written %s', (value, text) => expect(formatDouble(value)).toBe(text));

  it('is read again as the same, and never as an Int32', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        const text = formatDouble(value);
        expect(JSON.parse(text)).toBe(value);
        expect(text).toMatch(/[.E]/);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('Text in answers', () => {
  it('is ASCII, and is read again as the same, whatever it holds', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: fc.nat(0xffff).map(unitOf) }), (one, other) => {
        for (const text of [one, other]) {
          expect(formatJsonString(text)).toMatch(/^[\x20-\x7f]*$/);
          expect(JSON.parse(formatJsonString(text))).toBe(text);
        }
      }),
    );
  });

  it('escapes as the service does', () =>
    expect(formatJsonString('a"\\/\n\u001fé\ua015')).toBe('"a\\"\\\\/\\n\\u001f\\u00e9\\ua015"'));
});

function unitOf(unit: number): string {
  return String.fromCharCode(unit);
}
