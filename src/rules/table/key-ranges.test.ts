import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { EdmValue } from './edm.ts';
import { compileFilter, type Filter, type KeyBounds, type KeyRange, keyRangesFrom, parseFilter } from './filter.ts';

const ANYWHERE: KeyRange = { partition: {}, row: {} };
const point = (value: string): KeyBounds => ({ from: value, to: value });

describe('Key ranges', () => {
  it('are one without bounds when there is no filter, or none on keys', () => {
    expect(keyRangesFrom(undefined)).toEqual([ANYWHERE]);
    for (const text of ['', 'true', 'a eq 1', "not (a eq 'b')", "PartitionKey eq 'a' or b eq 1", "PartitionKey ge ''"])
      expect(keyRangesFrom(parseFilter(text))).toEqual([ANYWHERE]);
  });

  it('are none when nothing can match', () => {
    for (const text of [
      'false',
      "PartitionKey eq 'a' and PartitionKey eq 'b'",
      "PartitionKey lt ''",
      "RowKey gt 'b' and RowKey le 'b'",
      "RowKey gt 'b' and not (RowKey gt 'b')",
      'PartitionKey eq 5',
      'not (RowKey ne 5)',
      "PartitionKey eq 'a' and (RowKey lt 'b' and RowKey gt 'c')",
    ])
      expect(keyRangesFrom(parseFilter(text))).toEqual([]);
  });

  it.each<[string, readonly KeyRange[]]>([
    ["PartitionKey eq 'a'", [{ partition: point('a'), row: {} }]],
    ["'a' eq PartitionKey and RowKey eq 'b'", [{ partition: point('a'), row: point('b') }]],
    ["PartitionKey eq '' and RowKey eq ''", [{ partition: { to: '' }, row: { to: '' } }]],
    ["RowKey eq 'b'", [{ partition: {}, row: point('b') }]],
    ["PartitionKey gt 'a'", [{ partition: { from: 'a', fromExcluded: true }, row: {} }]],
    ["PartitionKey ge 'a' and PartitionKey lt 'b'", [{ partition: { from: 'a', to: 'b', toExcluded: true }, row: {} }]],
    ["'a' le PartitionKey and 'b' gt PartitionKey", [{ partition: { from: 'a', to: 'b', toExcluded: true }, row: {} }]],
    ["not (PartitionKey lt 'a' or PartitionKey gt 'b')", [{ partition: { from: 'a', to: 'b' }, row: {} }]],
    [
      "PartitionKey eq 'p' and RowKey ge 'pre' and RowKey lt 'prf' and size gt 5",
      [{ partition: point('p'), row: { from: 'pre', to: 'prf', toExcluded: true } }],
    ],
    [
      "PartitionKey ne 'a'",
      [
        { partition: { to: 'a', toExcluded: true }, row: {} },
        { partition: { from: 'a', fromExcluded: true }, row: {} },
      ],
    ],
    [
      "PartitionKey eq 'p' and (RowKey eq 'c' or RowKey eq 'a' or RowKey eq 'b' and x eq 1)",
      ['a', 'b', 'c'].map((row) => ({ partition: point('p'), row: point(row) })),
    ],
    [
      "PartitionKey eq 'b' and RowKey eq '2' or PartitionKey eq 'a' and RowKey eq '1'",
      [
        { partition: point('a'), row: point('1') },
        { partition: point('b'), row: point('2') },
      ],
    ],
    [
      "PartitionKey ge 'a' and PartitionKey le 'c' or PartitionKey eq 'b' and RowKey eq '1'",
      [{ partition: { from: 'a', to: 'c' }, row: {} }],
    ],
    ["PartitionKey eq 'a' or not (PartitionKey eq 'a')", [ANYWHERE]],
    ["PartitionKey eq 'p' and (RowKey lt 'b' or RowKey ge 'b')", [{ partition: point('p'), row: {} }]],
    ["RowKey eq 'a' or RowKey eq 'c'", [{ partition: {}, row: { from: 'a', to: 'c' } }]],
  ])('of %s are exactly its ranges', (text, ranges) => expect(keyRangesFrom(parseFilter(text))).toEqual(ranges));

  it('stay few when partitions and rows are combined in every way', () => {
    const keys = (name: string, count: number) =>
      Array.from({ length: count }, (_, index) => `${name} eq '${index}'`).join(' or ');
    expect(keyRangesFrom(parseFilter(`(${keys('PartitionKey', 7)}) and (${keys('RowKey', 8)})`))).toHaveLength(56);
  });

  it('of a partition cover its rows as one when they would be too many', () => {
    const keys = (name: string): Filter => ({
      kind: 'or',
      parts: Array.from({ length: 20 }, (_, index) => ({
        kind: 'comparison',
        name,
        operator: 'eq',
        literal: { type: 'Edm.String', value: String.fromCharCode(97 + index) },
      })),
    });
    const ranges = keyRangesFrom({ kind: 'and', parts: [keys('PartitionKey'), keys('RowKey')] });
    expect(ranges).toHaveLength(20);
    expect(ranges[19]).toEqual({ partition: point('t'), row: { from: 'a', to: 't' } });
  });
});

/** With the successor of each key, so that every gap between two bounds is tested. */
const KEYS = ['', '\0', 'a', 'a\0', 'ab', 'ab\0', 'b', 'b\0', '\u{1F600}', '\u{1F600}\0', '\uffff', '\uffff\0'];
const literal: fc.Arbitrary<EdmValue> = fc.oneof(
  {
    weight: 9,
    arbitrary: fc
      .constantFrom('', 'a', 'ab', 'b', '\u{1F600}', '\uffff')
      .map((value): EdmValue => ({ type: 'Edm.String', value })),
  },
  { weight: 1, arbitrary: fc.constant<EdmValue>({ type: 'Edm.Int32', value: 5 }) },
);

function filterOn(...names: string[]): fc.Arbitrary<Filter> {
  return fc.letrec<{ filter: Filter }>((tie) => ({
    filter: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      fc.record({
        kind: fc.constant('comparison' as const),
        name: fc.constantFrom(...names),
        operator: fc.constantFrom('eq', 'ne', 'lt', 'le', 'gt', 'ge'),
        literal,
      }),
      fc.record({ kind: fc.constant('not' as const), part: tie('filter') }),
      fc.record({
        kind: fc.constantFrom('and' as const, 'or' as const),
        parts: fc.array(tie('filter'), { minLength: 2, maxLength: 3 }),
      }),
    ),
  })).filter;
}

function isWithin({ from, fromExcluded, to, toExcluded }: KeyBounds, key: string): boolean {
  const isAbove = from === undefined || from < key || (from === key && !fromExcluded);
  return isAbove && (to === undefined || key < to || (key === to && !toExcluded));
}

const has = (range: KeyRange, [partition, row]: readonly [string, string]) =>
  isWithin(range.partition, partition) && isWithin(range.row, row);
const ALL_KEYS = KEYS.flatMap((partition) => KEYS.map((row) => [partition, row] as const));

const isMet = (filter: Filter, [partition, row]: readonly [string, string], value?: EdmValue) =>
  compileFilter(filter)((name) => {
    if (name === 'other') return value;
    return { type: 'Edm.String', value: name === 'PartitionKey' ? partition : row };
  });

const VALUES: (EdmValue | undefined)[] = [
  undefined,
  { type: 'Edm.String', value: 'ab' },
  { type: 'Edm.Int32', value: 5 },
];

describe('Key ranges of any filter', () => {
  it('hold every match', () => {
    fc.assert(
      fc.property(filterOn('PartitionKey', 'RowKey', 'other'), (filter) => {
        const ranges = keyRangesFrom(filter);
        const outside = ALL_KEYS.filter((keys) => !ranges.some((range) => has(range, keys)));
        expect(outside.filter((keys) => VALUES.some((value) => isMet(filter, keys, value)))).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });

  it('lie one after the other', () => {
    fc.assert(
      fc.property(filterOn('PartitionKey', 'RowKey', 'other'), (filter) => {
        const order = keyRangesFrom(filter).map((range) =>
          ALL_KEYS.flatMap((keys, index) => (has(range, keys) ? [index] : [])),
        );
        // KEYS, and with them ALL_KEYS, are in order.
        expect(order.flat()).toEqual(order.flat().toSorted((one, other) => one - other));
        expect(new Set(order.flat()).size).toBe(order.flat().length);
      }),
      { numRuns: 500 },
    );
  });

  it('hold no partition without a match, and in a single partition nothing else, if the filter is about keys only', () => {
    fc.assert(
      fc.property(filterOn('PartitionKey', 'RowKey'), (filter) => {
        const ranges = keyRangesFrom(filter);
        const read = KEYS.filter((partition) => ranges.some((range) => isWithin(range.partition, partition)));
        expect(read).toEqual(KEYS.filter((partition) => KEYS.some((row) => isMet(filter, [partition, row]))));
        const single = ranges.filter(({ partition: { from, to } }) => from !== undefined && from === to);
        const found = ALL_KEYS.filter((keys) => single.some((range) => has(range, keys)));
        expect(found.filter((keys) => !isMet(filter, keys))).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });
});
