import { describe, expect, it } from 'vitest';
import { ticksFromUnix } from '../../base/time.ts';
import type { EdmValue } from './edm.ts';
import { compileFilter, FilterError, parseFilter } from './filter.ts';

const GUID = '6bc44494-d2b7-4738-8f87-acd692226a5c';
const NOON = ticksFromUnix(Date.UTC(2024, 1, 29, 12));

const ENTITY: Record<string, EdmValue> = {
  PartitionKey: { type: 'Edm.String', value: 'part' },
  RowKey: { type: 'Edm.String', value: "o'clock" },
  Timestamp: { type: 'Edm.DateTime', value: NOON },
  text: { type: 'Edm.String', value: 'b' },
  empty: { type: 'Edm.String', value: '' },
  int: { type: 'Edm.Int32', value: 5 },
  least: { type: 'Edm.Int32', value: -2147483648 },
  long: { type: 'Edm.Int64', value: 9007199254740993n },
  small: { type: 'Edm.Int64', value: 5n },
  double: { type: 'Edm.Double', value: 5.5 },
  whole: { type: 'Edm.Double', value: 5 },
  nan: { type: 'Edm.Double', value: Number.NaN },
  infinite: { type: 'Edm.Double', value: Number.POSITIVE_INFINITY },
  yes: { type: 'Edm.Boolean', value: true },
  no: { type: 'Edm.Boolean', value: false },
  date: { type: 'Edm.DateTime', value: NOON + 1n },
  guid: { type: 'Edm.Guid', value: GUID },
  binary: { type: 'Edm.Binary', value: Buffer.from('62ff', 'hex') },
  größe_2: { type: 'Edm.Int32', value: 1 },
  eq: { type: 'Edm.Int32', value: 1 },
  datetime: { type: 'Edm.Int32', value: 1 },
};

const isMet = (text: string) => compileFilter(parseFilter(text))((name) => ENTITY[name]);

describe('A filter is met by', () => {
  it.each([
    '',
    '  ',
    'true',
    'TRUE',
    '(true)',
    'not false',
    "PartitionKey eq 'part'",
    "RowKey eq 'o''clock'",
    "'part' eq PartitionKey",
    "text eq 'b'",
    "text ne 'B'",
    "text gt 'a'",
    "text gt 'B'",
    "text lt 'ba'",
    "text ge 'b' and text le 'b'",
    "empty eq ''",
    "text gt ''",
    "'a' lt text",
    'int eq 5',
    'int eq 005',
    '4 lt int',
    '6 ge int',
    'int ne 6',
    'int gt -5',
    'least eq -2147483648',
    'int lt 5.5',
    'int eq 5.0',
    'int eq 5e0',
    'int eq 0.5E+1',
    'int eq 50e-1',
    'int eq 5D',
    'small eq 5',
    'small eq 5.0',
    'small eq 5L',
    'small eq 5l',
    'long eq 9007199254740993L',
    'long gt 9007199254740992L',
    'long gt 9007199254740992.0',
    'long gt -9223372036854775808L',
    'double eq 5.5',
    'double gt 5',
    'double lt 6',
    'whole eq 5',
    'infinite eq INF',
    'infinite gt 1e308',
    'double gt -INF',
    'nan ne NaN',
    'nan ne 1.0',
    'not (nan lt 1.0)',
    'yes eq true',
    'yes eq True',
    'yes ne false',
    'no eq false',
    'no lt true',
    'yes',
    'not no',
    'yes and not no',
    'yes eq true or missing eq true',
    "Timestamp eq datetime'2024-02-29T12:00:00Z'",
    "Timestamp eq datetime'2024-02-29T12:00:00'",
    "Timestamp eq datetime'2024-02-29T12:00'",
    "Timestamp eq DateTime'2024-02-29T13:30:00.000+01:30'",
    "Timestamp gt datetime'2024-02-29'",
    "Timestamp gt datetime'0001-01-01T00:00:00Z'",
    "date eq datetime'2024-02-29T12:00:00.0000001Z'",
    "date gt datetime'2024-02-29T12:00:00Z'",
    "date lt datetime'2024-02-29T12:00:00.0000002Z'",
    `guid eq guid'${GUID}'`,
    `guid eq Guid'${GUID.toUpperCase()}'`,
    `guid eq guid'${GUID.replaceAll('-', '')}'`,
    "guid gt guid'6bc44494-d2b7-4738-8f87-acd692226a5b'",
    "binary eq X'62fF'",
    "binary eq x'62ff'",
    "binary eq binary'62ff'",
    "binary gt X'62'",
    "binary gt X'62fe'",
    "binary gt X''",
    'größe_2 eq 1',
    'eq eq 1',
    'datetime eq 1',
    '(((int) eq (5)))',
    "(int eq 5)and(text eq'b')",
    "int eq 5\tand\ntext eq 'b'",
    'no or yes and yes',
    'yes or yes and no',
    'not no and yes',
    'not (no and yes)',
    'not not yes',
    'not int eq 6',
    'no or false or yes',
  ])('an entity of which %s is true', (text) => expect(isMet(text)).toBe(true));

  it.each([
    'false',
    'not true',
    'true and false',
    "PartitionKey eq 'Part'",
    "partitionkey eq 'part'",
    "text eq 'b '",
    "text lt 'B'",
    "empty gt ''",
    "empty lt ''",
    'int eq 6',
    'int gt 5',
    '5 lt int',
    'long eq 9007199254740992.0',
    'long lt 9007199254740992.0',
    'nan eq NaN',
    'nan lt 1.0',
    'nan ge 1.0',
    'infinite lt INF',
    'no',
    'text',
    'yes and no',
    "date eq datetime'2024-02-29T12:00:00Z'",
    "binary lt X'62ff'",
    'not yes',
  ])('no entity of which %s is false', (text) => expect(isMet(text)).toBe(false));

  it.each(['eq', 'ne', 'lt', 'le', 'gt', 'ge'])('no entity without the property, by %s', (operator) => {
    for (const literal of ["''", '0', '0L', '0.0', 'true', "X''", `guid'${GUID}'`, "datetime'2000-01-01T00:00:00Z'"])
      expect(isMet(`missing ${operator} ${literal}`)).toBe(false);
    expect(isMet(`not (missing ${operator} 1)`)).toBe(true);
    expect(isMet('missing')).toBe(false);
    expect(isMet('not missing')).toBe(true);
  });

  it('a value of another type by ne only', () => {
    const of = (name: string, literal: string) =>
      ['eq', 'ne', 'lt', 'le', 'gt', 'ge'].filter((operator) => isMet(`${name} ${operator} ${literal}`));
    expect(of('guid', 'true')).toEqual(['ne']);
    expect(of('text', '5')).toEqual(['ne']);
    expect(of('text', `guid'${GUID}'`)).toEqual(['ne']);
    expect(of('date', '5L')).toEqual(['ne']);
    expect(of('yes', '1')).toEqual(['ne']);
    expect(of('binary', "datetime'2000-01-01'")).toEqual(['ne']);
    expect(of('int', '5L')).toEqual(['ne']);
    expect(of('whole', '5L')).toEqual(['ne']);
  });

  it('a value of another type also by being below every string', () => {
    for (const name of ['int', 'long', 'double', 'yes', 'date', 'guid', 'binary']) {
      expect(isMet(`${name} lt ''`)).toBe(true);
      expect(isMet(`${name} ne ''`)).toBe(true);
      expect(isMet(`${name} gt ''`)).toBe(false);
      expect(isMet(`${name} eq '5'`)).toBe(false);
    }
  });
});

describe('A text is no filter', () => {
  it.each([
    'a eq',
    'eq 1',
    'a eq b',
    '1 eq 1',
    'a eq null',
    'null',
    '1',
    "'text'",
    '1.5 or yes',
    'a EQ 1',
    'a = 1',
    'a eq 1 AND b eq 2',
    'a eq 1 b eq 2',
    'a eq 1 and',
    'and a eq 1',
    'NOT (a eq 1)',
    'not',
    '(a eq 1',
    'a eq 1)',
    '()',
    'a eq 1 eq true',
    '(a eq 1) eq true',
    "a eq 'unterminated",
    "a eq 'one' 'two'",
    'a eq "text"',
    'a eq +1',
    'a eq - 1',
    'a eq .5',
    'a eq 5.',
    'a eq 1x',
    'a eq 1e',
    'a eq 1.5L',
    'a eq 1F',
    'a eq 1M',
    'a eq 1e400',
    'a eq 2147483648',
    'a eq -2147483649',
    'a eq 5454161346626',
    'a eq 9223372036854775808L',
    'a eq -9223372036854775809L',
    'a eq nan',
    "a eq datetime'2024-02-30T00:00:00Z'",
    "a eq datetime'2024-13-01T00:00:00Z'",
    "a eq datetime'2024-01-01T24:00:00Z'",
    "a eq datetime'0000-01-01T00:00:00Z'",
    "a eq datetime'yesterday'",
    "a eq datetime '2024-01-01T00:00:00Z'",
    "a eq datetime''",
    "a eq datetime'2024-01-01T00:00:00Z",
    "a eq guid'6bc44494'",
    "a eq guid'6bc44494-d2b74738-8f87-acd692226a5c'",
    "a eq guid''",
    "a eq X'6'",
    "a eq X'6g'",
    "a eq time'PT1H'",
    'a add 1 eq 2',
    "startswith(a, 'b')",
    'a/b eq 1',
    'a-b eq 1',
    'a eq 1; drop',
    '$a eq 1',
    '\0',
  ])('as %j', (text) => expect(() => parseFilter(text)).toThrow(FilterError));

  it('with more than 15 comparisons, bare properties among them', () => {
    const of = (count: number) => [...new Array(count - 1).fill('a eq 1'), 'flag'].join(' or ');
    expect(() => parseFilter(of(15))).not.toThrow();
    expect(() => parseFilter(of(16))).toThrow(FilterError);
  });

  it('that nests deeper than any client writes it', () => {
    const of = (depth: number) => `${'('.repeat(depth)}a eq 1${')'.repeat(depth)}`;
    expect(() => parseFilter(of(100))).not.toThrow();
    expect(() => parseFilter(of(101))).toThrow(FilterError);
    expect(() => parseFilter(`${'not '.repeat(101)}a`)).toThrow(FilterError);
    expect(() => parseFilter(`${'(true) and '.repeat(200)}(not no)`)).not.toThrow();
  });

  it('and is told where it goes wrong', () => {
    expect(() => parseFilter('a eq 1 b')).toThrow('Syntax error at position 7.');
    expect(() => parseFilter('a eq 5454161346626')).toThrow("Unrecognized 'Edm.Int32' literal '5454161346626'.");
  });
});
