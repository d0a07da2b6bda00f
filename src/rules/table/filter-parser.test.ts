import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileFilter, FilterError, keyRangesFrom, parseFilter } from './filter.ts';

/** Throws any error but a FilterError. */
function parses(text: string): boolean {
  try {
    const filter = parseFilter(text);
    compileFilter(filter)(() => undefined);
    keyRangesFrom(filter);
    return true;
  } catch (error) {
    if (error instanceof FilterError) return false;
    throw error;
  }
}

const VALID = [
  "PartitionKey eq 'a''b' and (RowKey ge 'x' or not flag)",
  "d eq datetime'2024-02-29T12:00:00.1234567Z' or g ne guid'6bc44494-d2b7-4738-8f87-acd692226a5c'",
  "not (b eq X'0aff') and 1.5e-3 lt e and i eq -5 and l eq 99L and n ne NaN or -INF eq z",
];

const piece = fc.constantFrom(
  ...[
    "'",
    "''",
    '(',
    ')',
    ' ',
    'a',
    'PartitionKey',
    'RowKey',
    'eq',
    'ne',
    'lt',
    'and',
    'or',
    'not',
    'true',
    'null',
    '1',
  ],
  ...[
    '1.5',
    '-',
    '.',
    'e',
    'L',
    'X',
    "X'00'",
    'datetime',
    "'a'",
    'guid',
    'INF',
    '\0',
    '\u{1F600}',
    '\ud800',
    '"',
    '\\',
    '%27',
  ],
);

describe('Whatever text is sent', () => {
  it('is a filter or a FilterError', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' })), (text) => {
        parses(text);
      }),
      { numRuns: 1_000 },
    );
  });

  it('is a filter or a FilterError when it is made of pieces of filters', () => {
    let filters = 0;
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), fc.constantFrom('', ' '), (pieces, space) => {
        if (parses(pieces.join(space))) filters++;
      }),
      { numRuns: 5_000 },
    );
    expect(filters).toBeGreaterThan(0);
  });

  it('is a filter or a FilterError when it was a filter before it was damaged', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...VALID),
        fc.array(fc.tuple(fc.nat(120), fc.nat(4), piece), { minLength: 1, maxLength: 3 }),
        (text, damages) => {
          const damaged = damages.reduce((all, [at, cut, put]) => all.slice(0, at) + put + all.slice(at + cut), text);
          parses(damaged);
        },
      ),
      { numRuns: 5_000 },
    );
    expect(VALID.map(parses)).toEqual([true, true, true]);
  });

  it.each([
    ['parentheses', '('],
    ['closing parentheses', ')'],
    ['negations', 'not '],
    ['quotes', "'"],
    ['digits', '1'],
    ['minus signs', '-'],
    ['letters', 'a'],
    ['spaces', ' '],
    ['line ends', '\n'],
    ['exponents', '1e'],
    ['constants', 'true and '],
    ['constants in parentheses', '(true) or '],
    ['comparisons', 'a eq 1 or '],
    ['marks that are no letters', '\u0301'],
    ['halves of characters', '\ud800'],
  ])('takes no longer than its length allows, be it 64 KiB of %s', (_, unit) => {
    const text = unit.repeat(Math.floor(65_536 / unit.length));
    for (const [before, after] of [
      ['', ''],
      ["a eq '", "'"],
      ["a eq X'", "'"],
      ["a eq datetime'2024-01-01T00:00:00.", "Z'"],
      ["a eq guid'", "'"],
      ["a eq guid'{", "}x'"],
      ['a eq 1', 'L'],
      ['a eq 1.', ''],
      ['a eq 1e', ''],
      ['', 'true'],
    ] as const)
      parses(before + text.slice(before.length + after.length) + after);
  });

  it('is refused unread beyond 64 KiB', () => {
    expect(parses(`a eq '${'x'.repeat(65_529)}'`)).toBe(true);
    expect(parses(`a eq '${'x'.repeat(65_530)}'`)).toBe(false);
  });

  it('is refused with more words than comparisons and parentheses can need', () => {
    expect(parses(`${'true and '.repeat(2_499)}true`)).toBe(true);
    expect(parses(`${'true and '.repeat(2_500)}true`)).toBe(false);
  });

  it('is a constant where it compares what no property can be named', () => {
    const longest = 'é'.repeat(255);
    expect(parseFilter(`${longest} eq 1`)).toMatchObject({ kind: 'comparison', name: longest });
    for (const comparison of [`${longest}é eq 1`, `1 lt ${longest}é`, `${longest}é`]) {
      expect(parseFilter(comparison)).toEqual({ kind: 'constant', value: false });
      expect(parseFilter(`not (${comparison})`)).toEqual({ kind: 'constant', value: true });
      expect(parseFilter(`a eq 1 or ${comparison}`)).toEqual(parseFilter('a eq 1'));
    }
  });

  it('costs a row no more than its comparisons, whatever constants are among them', () => {
    expect(parseFilter(`${'true and '.repeat(2_000)}a eq 1 and not (false or (not true))`)).toEqual(
      parseFilter('a eq 1'),
    );
    expect(parseFilter(`${'a eq 1 and '.repeat(10)}false`)).toEqual(parseFilter('false'));
  });
});
