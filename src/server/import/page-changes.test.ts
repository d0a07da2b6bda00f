import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { pageChanges, type WrittenRange, writtenRanges } from './page-changes.ts';

const PAGES = 24;

/** Of each page, where its bytes are; undefined: it was not written. */
type Pages = readonly (readonly [id: string, page: number] | undefined)[];

const somePages: fc.Arbitrary<Pages> = fc.array(
  fc.option(fc.tuple(fc.constantFrom('a', 'b'), fc.integer({ min: 0, max: 3 })), { nil: undefined }),
  { minLength: PAGES, maxLength: PAGES },
);

/** Neighbours whose bytes are neighbours, too, are one range or two. */
function rangesOf(pages: Pages, joins: boolean): WrittenRange[] {
  const ranges: WrittenRange[] = [];
  for (const [i, place] of pages.entries()) {
    if (!place) continue;
    const next = { start: i * 512, end: (i + 1) * 512, id: place[0], offset: place[1] * 512 };
    const last = ranges.at(-1);
    const follows =
      last?.end === next.start && last.id === next.id && last.offset + last.end - last.start === next.offset;
    if (joins && follows) ranges[ranges.length - 1] = { ...last, end: next.end };
    else ranges.push(next);
  }
  return ranges;
}

describe('The changes between two states of a page blob', () => {
  it('turn one into the other, and touch no page that is the same in both', () => {
    fc.assert(
      fc.property(somePages, somePages, fc.boolean(), fc.boolean(), (before, after, joinsBefore, joinsAfter) => {
        const pages = [...before];
        for (const { start, end, bytes } of pageChanges(rangesOf(before, joinsBefore), rangesOf(after, joinsAfter))) {
          if (bytes) expect(bytes.count).toBe(end - start);
          for (let at = start; at < end; at += 512) {
            const next = bytes && ([bytes.id, (bytes.offset + at - start) / 512] as const);
            expect(next).not.toEqual(pages[at / 512]);
            pages[at / 512] = next;
          }
        }
        expect(pages).toEqual(after);
      }),
    );
  });

  it.each([
    [
      'overlap',
      [
        [0, 1_023],
        [512, 1_535],
      ],
    ],
    ['are empty', [[512, 511]]],
  ])('are not taken from ranges that %s', (_, ranges) => {
    const bytes = { id: 'a', offset: 0, count: 1_024 };
    const pageRangesInOrder = ranges.map(([start, end]) => ({ start, end, persistency: bytes }));
    expect(() => writtenRanges({ pageRangesInOrder })).toThrow('not in order');
  });
});
