import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createRingAllocator, DATA_AT, DATA_BYTES } from './ring.ts';

describe('Room in the shared memory', () => {
  it('begins where places agree in their last three bits', () => {
    expect(DATA_AT % 8).toBe(0);
  });

  const claim = fc.record({
    length: fc.integer({ min: 0, max: DATA_BYTES >> 1 }),
    like: fc.nat(1000),
    release: fc.nat(2),
  });

  it('is never given to two at once, and lies as its source does', () => {
    fc.assert(
      fc.property(fc.array(claim, { maxLength: 200 }), (claims) => {
        const room = createRingAllocator();
        const held: { at: number; end: number }[] = [];
        for (const { length, like, release } of claims) {
          const at = room.allocate(length, like);
          if (at !== undefined) {
            const end = at + length;
            expect(at % 8).toBe(like % 8);
            expect(end).toBeLessThanOrEqual(DATA_BYTES);
            expect(held.filter((other) => at < other.end && other.at < end)).toEqual([]);
            held.push({ at, end });
          }
          for (let i = 0; i < release && held.length > 0; i++) {
            const { end } = held.shift()!;
            if (held.length > 0) room.release(end);
            else room.reset();
          }
        }
      }),
    );
  });

  it('is all there again once everything is released', () => {
    const room = createRingAllocator();
    expect(room.allocate(DATA_BYTES, 0)).toBe(0);
    expect(room.allocate(1, 0)).toBeUndefined();
    room.reset();
    expect(room.allocate(DATA_BYTES, 0)).toBe(0);
  });
});
