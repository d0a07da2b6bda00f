import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type BlobSegment, cutSlice, SLICE_BYTES } from './copy-slices.ts';

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
