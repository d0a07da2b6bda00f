import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createRingAllocator, DATA_AT, DATA_BYTES } from './ring.ts';

describe('The allocator of the ring', () => {
  it('begins at an aligned offset', () => {
    expect(DATA_AT % 8).toBe(0);
  });

  const allocation = fc.record({
    length: fc.integer({ min: 0, max: DATA_BYTES >> 1 }),
    like: fc.nat(1000),
    release: fc.nat(2),
  });

  it('never gives room twice, and aligns it like its source', () => {
    fc.assert(
      fc.property(fc.array(allocation, { maxLength: 200 }), (allocations) => {
        const allocator = createRingAllocator();
        const allocated: { at: number; end: number }[] = [];
        for (const { length, like, release } of allocations) {
          const at = allocator.allocate(length, like);
          if (at !== undefined) {
            const end = at + length;
            expect(at % 8).toBe(like % 8);
            expect(end).toBeLessThanOrEqual(DATA_BYTES);
            expect(allocated.filter((other) => at < other.end && other.at < end)).toEqual([]);
            allocated.push({ at, end });
          }
          for (let i = 0; i < release && allocated.length > 0; i++) {
            const { end } = allocated.shift()!;
            if (allocated.length > 0) allocator.release(end);
            else allocator.reset();
          }
        }
      }),
    );
  });

  it('has all room again once everything is released', () => {
    const allocator = createRingAllocator();
    expect(allocator.allocate(DATA_BYTES, 0)).toBe(0);
    expect(allocator.allocate(1, 0)).toBeUndefined();
    allocator.reset();
    expect(allocator.allocate(DATA_BYTES, 0)).toBe(0);
  });
});
