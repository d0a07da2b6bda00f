import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TAG_COMPARISONS_MAX } from '../base/input-limits.ts';
import {
  meetsTagCondition,
  parseTagCondition,
  parseTagQuery,
  type TagComparison,
  TagFilterError,
  type TagOperator,
} from './tag-filter.ts';

const text = fc.string({ unit: fc.constantFrom(...'ab1 +-./:=_'), maxLength: 4 });
const comparison = fc.record<TagComparison>({
  key: text,
  operator: fc.constantFrom<TagOperator>('=', '<>', '<', '<=', '>', '>='),
  value: text,
});
const condition = fc.array(fc.array(comparison, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 3 });
const gap = fc.constantFrom('', ' ', '\t  ');
const word = (lower: string) => fc.constantFrom(` ${lower} `, ` ${lower.toUpperCase()} `);

describe('A condition on tags', () => {
  it('means what it says, however it is spaced', () => {
    fc.assert(
      fc.property(condition, gap, word('and'), word('or'), (groups, space, and, or) => {
        const written = groups
          .map((group) =>
            group.map(({ key, operator, value }) => `"${key}"${space}${operator}${space}'${value}'`).join(and),
          )
          .join(or);
        expect(parseTagCondition(`${space}${written}${space}`)).toEqual(groups);
      }),
    );
  });

  it.each<[string, boolean]>([
    [`"b" = '2'`, true],
    [`b='2'`, true],
    [`"b" <> '2'`, false],
    [`"b" > '1' AND "b" < '3'`, true],
    [`"b" >= '2' AND "b" <= '2'`, true],
    [`"b" > '2'`, false],
    [`"b" < '2'`, false],
    [`"B" = '2'`, false],
    [`"none" = ''`, false],
    [`"none" <> 'x'`, true],
    [`"none" < 'x' OR "b" = '2'`, true],
    [`"b" = '2' OR "b" = '3' AND "none" = 'x'`, true],
    [`"a" = '1' AND "b" = '3' OR "b" = '4'`, false],
  ])('of the tags a=1 and b=2: %s is %s', (written, verdict) => {
    const tags = [
      ['a', '1'],
      ['b', '2'],
    ] as const;
    expect(meetsTagCondition(tags, parseTagCondition(written))).toBe(verdict);
  });

  it('is met by no blob that does not exist', () => {
    expect(meetsTagCondition(undefined, parseTagCondition(`"a" <> '1'`))).toBe(false);
  });

  it.each([
    '',
    `"a"`,
    `"a" =`,
    `"a" = b`,
    `"a" == 'b'`,
    `"a" = 'b' AND`,
    `"a" = 'b' XOR "a" = 'b'`,
    `'a' = 'b'`,
    `"a='b'`,
  ])('is refused: %j', (written) => expect(() => parseTagCondition(written)).toThrow(TagFilterError));

  it('names no container', () => {
    expect(() => parseTagCondition(`@container = 'c'`)).toThrow('position 1');
  });

  it('has keys and values that a tag can have', () => {
    expect(parseTagCondition(`"${'k'.repeat(128)}" = '${'v'.repeat(256)}'`)).toHaveLength(1);
    expect(() => parseTagCondition(`"${'k'.repeat(129)}" = ''`)).toThrow('at most');
    expect(() => parseTagCondition(`"k" = '${'v'.repeat(257)}'`)).toThrow('at most');
  });

  it('has a bounded number of comparisons', () => {
    const of = (count: number) => Array.from({ length: count }, () => `"a" = 'b'`).join(' AND ');
    expect(parseTagCondition(of(TAG_COMPARISONS_MAX))[0]).toHaveLength(TAG_COMPARISONS_MAX);
    expect(() => parseTagCondition(of(TAG_COMPARISONS_MAX + 1))).toThrow('at most');
  });
});

describe('A query for tags', () => {
  it('may be in one container', () => {
    expect(parseTagQuery(`@Container='c' and a='1'`)).toEqual({
      comparisons: [{ key: 'a', operator: '=', value: '1' }],
      containers: ['c'],
    });
    expect(parseTagQuery(`a='1' and "@container"='c'`)).toMatchObject({ containers: ['c'] });
    expect(parseTagQuery(`a='1'`)).toMatchObject({ containers: undefined });
  });

  it.each([`a='1' OR a='2'`, `a<>'1'`, `@container='c'`, `@container>'c' AND a='1'`])('is refused: %s', (written) => {
    expect(() => parseTagQuery(written)).toThrow(TagFilterError);
  });
});
