import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type BlobSegment,
  type CopiedRange,
  cutRangeSlice,
  cutSlice,
  RANGE_SLICE_BYTES,
  SLICE_BYTES,
  writtenBytes,
} from './copy-slices.ts';

const segment = fc.record({
  label: fc.option(fc.string({ minLength: 1 }), { nil: undefined }),
  length: fc.oneof(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 1, max: 3 * SLICE_BYTES })),
});

/** Cuts everything, as a copy does that is resumed after every slice. */
function slicesOf(segments: readonly BlobSegment[]): BlobSegment[][] {
  const slices: BlobSegment[][] = [];
  let [at, skipped] = [0, 0];
  while (at < segments.length) {
    const slice = cutSlice(segments.slice(at), skipped);
    slices.push(slice);
    for (const { length } of slice) {
      skipped += length;
      if (skipped === segments[at]!.length) [at, skipped] = [at + 1, 0];
    }
  }
  return slices;
}

describe('The slices of a copy', () => {
  it('have all bytes in order, and every block once and whole', () => {
    fc.assert(
      fc.property(fc.array(segment, { maxLength: 900 }), (segments) => {
        const slices = slicesOf(segments);
        const sum = (all: readonly BlobSegment[]) => all.reduce((bytes, { length }) => bytes + length, 0);
        expect(sum(slices.flat())).toBe(sum(segments));
        const blocks = (all: readonly BlobSegment[]) => all.filter(({ label }) => label !== undefined);
        expect(blocks(slices.flat())).toEqual(blocks(segments));
        for (const slice of slices) {
          expect(slice.length).toBeGreaterThan(0);
          expect(slice.length).toBeLessThanOrEqual(400);
          expect(slice.every(({ length }) => length > 0)).toBe(true);
          if (slice.length > 1) expect(sum(slice)).toBeLessThanOrEqual(SLICE_BYTES);
        }
      }),
      { numRuns: 200 },
    );
  });

  it('divide bytes that are not blocks', () => {
    const length = SLICE_BYTES + 1;
    expect(cutSlice([{ length }], 0)).toEqual([{ length: SLICE_BYTES }]);
    expect(cutSlice([{ length }], SLICE_BYTES)).toEqual([{ length: 1 }]);
    expect(cutSlice([{ label: 'a', length }], 0)).toEqual([{ label: 'a', length }]);
  });
});

const aRange = fc.record({
  gap: fc.oneof(fc.nat(3), fc.nat(3 * RANGE_SLICE_BYTES)),
  length: fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 3 * RANGE_SLICE_BYTES })),
  isWritten: fc.boolean(),
});

describe('The slices of a copy of ranges', () => {
  it('have every byte once, in few pages, whatever part of the list is known', () => {
    fc.assert(
      fc.property(fc.array(aRange, { maxLength: 600 }), fc.integer({ min: 1, max: 400 }), (steps, known) => {
        let end = 0;
        const all = steps.map(({ gap, length, isWritten }): CopiedRange => {
          const from = end + gap;
          end = from + length;
          return { from, to: end, isWritten };
        });
        const length = end + 1_000;
        const taken: CopiedRange[] = [];
        for (let offset = 0; offset < length; ) {
          const rest = all
            .filter(({ to }) => to > offset)
            .map((range) => ({ ...range, from: Math.max(range.from, offset) }));
          const slice = cutRangeSlice(rest.slice(0, known), rest.length <= known, length);
          const [first] = slice.ranges;
          if (first && (slice.ranges.length > 1 || first.isWritten))
            expect(slice.ranges.at(-1)!.to - first.from).toBeLessThanOrEqual(RANGE_SLICE_BYTES);
          expect(slice.ranges.length).toBeLessThanOrEqual(250);
          expect(slice.end).toBeGreaterThan(offset);
          taken.push(...slice.ranges);
          offset = slice.end;
        }
        const joined: CopiedRange[] = [];
        const wholes = new Set(all.map(({ from }) => from));
        for (const range of taken) {
          const last = joined.at(-1);
          if (last?.to === range.from && !wholes.has(range.from)) joined[joined.length - 1] = { ...last, to: range.to };
          else joined.push(range);
        }
        expect(joined).toEqual(all);
        expect(writtenBytes(taken)).toBe(writtenBytes(all));
      }),
      { numRuns: 200 },
    );
  });

  it('take a long clear as a whole, and go past what is not there', () => {
    const long = { from: 512, to: 2 ** 43, isWritten: false };
    expect(cutRangeSlice([long], true, 2 ** 43)).toEqual({ ranges: [long], end: 2 ** 43 });
    expect(cutRangeSlice([], true, 2 ** 43)).toEqual({ ranges: [], end: 2 ** 43 });
  });
});
