import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  isPageBlobLength,
  judgeSequence,
  nextSequence,
  PAGE_BLOB_BYTES_MAX,
  pageRange,
  pagesAround,
  SEQUENCE_NUMBER_MAX,
} from './page.ts';

describe('The conditions of a sequence number', () => {
  it.each([
    [{}, 5n, true],
    [{ le: 5n }, 5n, true],
    [{ le: 4n }, 5n, false],
    [{ lt: 6n }, 5n, true],
    [{ lt: 5n }, 5n, false],
    [{ eq: 5n }, 5n, true],
    [{ eq: 4n }, 5n, false],
    [{ le: 5n, lt: 6n, eq: 5n }, 5n, true],
    [{ le: 5n, lt: 5n, eq: 5n }, 5n, false],
    [{ le: 9n, lt: 9n, eq: 4n }, 5n, false],
    [{ lt: SEQUENCE_NUMBER_MAX }, SEQUENCE_NUMBER_MAX - 1n, true],
    [{ lt: SEQUENCE_NUMBER_MAX }, SEQUENCE_NUMBER_MAX, false],
  ])('%o of %d', (conditions, number, isMet) => {
    expect(judgeSequence(number, conditions)).toBe(isMet ? 'proceed' : 'SequenceNumberConditionNotMet');
  });
});

describe('A sequence number', () => {
  it('changes by its three actions', () => {
    expect(nextSequence(5n, { action: 'max', number: 7n })).toBe(7n);
    expect(nextSequence(5n, { action: 'max', number: 3n })).toBe(5n);
    expect(nextSequence(5n, { action: 'update', number: 3n })).toBe(3n);
    expect(nextSequence(5n, { action: 'increment' })).toBe(6n);
    expect(nextSequence(SEQUENCE_NUMBER_MAX, { action: 'increment' })).toBe('SequenceNumberIncrementTooLarge');
  });
});

describe('Pages', () => {
  it('are 512 bytes, and a blob has at most 8 TiB of them', () => {
    expect([0, 512, PAGE_BLOB_BYTES_MAX].every(isPageBlobLength)).toBe(true);
    expect([1, 511, 513, PAGE_BLOB_BYTES_MAX + 512].some(isPageBlobLength)).toBe(false);
  });

  it('are named by ranges that begin and end with a page', () => {
    expect(pageRange({ from: 0, to: 511 })).toEqual({ from: 0, to: 512 });
    expect(pageRange({ from: 512, to: 2047 })).toEqual({ from: 512, to: 2048 });
    for (const range of [undefined, { from: 0 }, { from: 1, to: 511 }, { from: 0, to: 512 }, { from: 0, to: 510 }])
      expect(pageRange(range)).toBeUndefined();
  });

  it('around a range are the fewest that have all its bytes', () => {
    fc.assert(
      fc.property(fc.nat(1e12), fc.integer({ min: 1, max: 1e9 }), (from, length) => {
        const pages = pagesAround(from, from + length);
        expect([pages.from % 512, pages.to % 512]).toEqual([0, 0]);
        expect(pages.from <= from && from - pages.from < 512).toBe(true);
        expect(pages.to >= from + length && pages.to - from - length < 512).toBe(true);
      }),
    );
  });
});
