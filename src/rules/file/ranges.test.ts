import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  divideClear,
  isFileLength,
  parseLastWriteMode,
  parseWriteRange,
  SECTOR_BYTES,
  sectorsAround,
} from './ranges.ts';

describe('The range of a write', () => {
  it.each([
    ['bytes=0-511', { from: 0, to: 512 }],
    ['bytes=5-5', { from: 5, to: 6 }],
    ['Bytes=7-10', { from: 7, to: 11 }],
    ['bytes=5-', undefined],
    ['bytes=-5', undefined],
    ['bytes=6-5', undefined],
    ['bytes=0-1,3-4', undefined],
    ['0-5', undefined],
    ['', undefined],
  ])('%s', (text, expected) => expect(parseWriteRange(text)).toEqual(expected));
});

describe('A clear', () => {
  it.each([
    [0, 512, { from: 0, to: 512 }, []],
    [0, 513, { from: 0, to: 512 }, [{ from: 512, to: 513 }]],
    [1, 9, undefined, [{ from: 1, to: 9 }]],
    [
      511,
      513,
      undefined,
      [
        { from: 511, to: 512 },
        { from: 512, to: 513 },
      ],
    ],
    [
      100,
      2_000,
      { from: 512, to: 1_536 },
      [
        { from: 100, to: 512 },
        { from: 1_536, to: 2_000 },
      ],
    ],
  ])('from %d to %d', (from, to, cleared, zeros) => expect(divideClear({ from, to })).toEqual({ cleared, zeros }));

  it('reaches every byte once, releases whole sectors, and writes at most two sectors', () => {
    fc.assert(
      fc.property(fc.nat(5_000), fc.integer({ min: 1, max: 5_000 }), (from, length) => {
        const { cleared, zeros } = divideClear({ from, to: from + length });
        const parts = [...zeros, ...(cleared ? [cleared] : [])].sort((one, other) => one.from - other.from);
        expect(parts[0]!.from).toBe(from);
        expect(parts.at(-1)!.to).toBe(from + length);
        for (const [i, part] of parts.entries()) {
          expect(part.to).toBeGreaterThan(part.from);
          if (i > 0) expect(part.from).toBe(parts[i - 1]!.to);
        }
        if (cleared) expect([cleared.from % SECTOR_BYTES, cleared.to % SECTOR_BYTES]).toEqual([0, 0]);
        for (const { from: begin, to } of zeros) expect(to - begin).toBeLessThan(SECTOR_BYTES);
      }),
    );
  });
});

describe('A list', () => {
  it('looks at the sectors that have bytes of the range', () => {
    expect(sectorsAround({ from: 0, to: 511 })).toEqual({ from: 0, to: 512 });
    expect(sectorsAround({ from: 511, to: 512 })).toEqual({ from: 0, to: 1_024 });
  });
});

describe('A file', () => {
  it('has at most 4 TiB', () => {
    expect([0, 1, 4 * 2 ** 40, 4 * 2 ** 40 + 1, -1, 0.5].map(isFileLength)).toEqual([
      true,
      true,
      true,
      false,
      false,
      false,
    ]);
  });

  it.each([
    [undefined, 'now'],
    ['Now', 'now'],
    ['Preserve', 'preserve'],
    ['later', undefined],
  ])('keeps its last write time as %s says', (text, mode) => expect(parseLastWriteMode(text)).toBe(mode));
});
