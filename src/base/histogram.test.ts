import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Histogram } from './histogram.ts';

describe('A histogram', () => {
  it('counts a value at its bound among those up to it', () => {
    const histogram = new Histogram([1, 2]);
    for (const value of [0.5, 1, 1.5, 2, 2.5, 100]) histogram.observe(value);
    expect(histogram.counts).toEqual([2, 2, 2]);
    expect(histogram.sum).toBe(107.5);
  });

  it('counts every value once, in the first bound that it does not exceed', () => {
    const bounds = [1, 5, 10];
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 20, noNaN: true })), (values) => {
        const histogram = new Histogram(bounds);
        for (const value of values) histogram.observe(value);
        const upTo = (bound: number) => values.filter((value) => value <= bound).length;
        const cumulative = histogram.counts.map((_, i) => histogram.counts.slice(0, i + 1).reduce((a, b) => a + b));
        expect(cumulative).toEqual([...bounds.map(upTo), values.length]);
      }),
    );
  });
});
