import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseRange, resolveRange } from './byte-ranges.ts';

describe('A range', () => {
  it('has a beginning and may have an end', () => {
    expect(parseRange('bytes=0-')).toEqual({ from: 0 });
    expect(parseRange('bytes=5-9')).toEqual({ from: 5, to: 9 });
    expect(parseRange('bytes=7-7')).toEqual({ from: 7, to: 7 });
  });

  it.each([
    '',
    'bytes',
    'bytes=',
    'bytes=-',
    'bytes=-5',
    'bytes=9-5',
    'bytes=0--1',
    'bytes=0-1,3-4',
    'bytes=a-b',
    '0-1',
  ])('is ignored as %j', (text) => expect(parseRange(text)).toBeUndefined());

  it('must begin before the end', () => {
    expect(resolveRange({ from: 0, to: 0 }, 0)).toBe('InvalidRange');
    expect(resolveRange({ from: 0 }, 0)).toBe('InvalidRange');
    expect(resolveRange({ from: 10 }, 10)).toBe('InvalidRange');
    expect(resolveRange({ from: 9 }, 10)).toEqual({ from: 9, to: 9 });
  });

  it('may reach past the end, however far', () => {
    expect(resolveRange(parseRange('bytes=2-99999999999999999999')!, 10)).toEqual({ from: 2, to: 9 });
    expect(resolveRange(parseRange(`bytes=0-${'9'.repeat(400)}`)!, 10)).toEqual({ from: 0, to: 9 });
  });

  it('is what slicing an array gives', () => {
    const aNumber = fc.nat({ max: 40 });
    fc.assert(
      fc.property(aNumber, aNumber, fc.option(aNumber, { nil: undefined }), (length, from, more) => {
        const bytes = Array.from({ length }, (_, at) => at);
        const end = more === undefined ? '' : String(from + more);
        const expected = more === undefined ? bytes.slice(from) : bytes.slice(from, from + more + 1);
        const range = resolveRange(parseRange(`bytes=${from}-${end}`)!, length);
        if (range === 'InvalidRange') expect(expected).toEqual([]);
        else expect(bytes.filter((byte) => byte >= range.from && byte <= range.to)).toEqual(expected);
        expect(range === 'InvalidRange').toBe(expected.length === 0);
      }),
    );
  });
});
