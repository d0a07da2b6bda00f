import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cutSegments, type MapSegment, withSegment } from './map-page.ts';
import { gapsInSectors, joinSectors, SECTOR_BYTES } from './sectors.ts';

const LENGTH = 6 * SECTOR_BYTES;
const JOINED = { chunk: { epoch: 9n, number: 9n }, length: LENGTH };

/** The bytes of a short write are the number of its piece. */
const aChange = fc.record({
  from: fc.nat(LENGTH - 1),
  length: fc.integer({ min: 1, max: 700 }),
  born: fc.integer({ min: 1, max: 3 }),
  isClear: fc.boolean(),
});

function segmentsOf(changes: readonly (typeof aChange extends fc.Arbitrary<infer T> ? T : never)[]): MapSegment[] {
  let segments: MapSegment[] = [];
  for (const [i, { from, length, born, isClear }] of changes.entries()) {
    const to = Math.min(from + length, LENGTH);
    const bytes = Buffer.alloc(to - from, i + 1);
    if (isClear) segments = cutSegments(segments, from, to, born);
    else segments = withSegment(segments, { from, to, born, source: { piece: i, length: bytes.length, bytes }, at: 0 });
  }
  return segments;
}

function bytesOf(segments: readonly MapSegment[]): Buffer {
  const bytes = Buffer.alloc(LENGTH);
  for (const { from, to, source, at } of segments)
    if (source && 'piece' in source) source.bytes!.copy(bytes, from, at, at + to - from);
  return bytes;
}

const sectorOf = (place: number): number => Math.floor(place / SECTOR_BYTES);

/** The sectors that change after each generation, and those with written bytes. */
function sectorsOf(segments: readonly MapSegment[]) {
  const changed = Array.from({ length: 6 }, () => 0);
  const written = new Set<number>();
  for (const { from, to, born, source } of segments)
    for (let sector = sectorOf(from); sector <= sectorOf(to - 1); sector++) {
      changed[sector] = Math.max(changed[sector]!, born);
      if (source) written.add(sector);
    }
  return { changed, written: [...written].sort() };
}

describe('Joined sectors', () => {
  it('show the same bytes, and the same sectors as written and as changed, in at most one segment for each', () => {
    fc.assert(
      fc.property(fc.array(aChange, { maxLength: 40, size: 'max' }), (changes) => {
        const segments = segmentsOf(changes);
        let at = 0;
        const fillers = gapsInSectors(segments).map(({ from, to }) => {
          at += to - from;
          return { from, to, at: at - (to - from) };
        });
        const joined = joinSectors(segments, JOINED, fillers);
        expect(bytesOf(joined).equals(bytesOf(segments))).toBe(true);
        expect(sectorsOf(joined)).toEqual(sectorsOf(segments));
        for (const [i, { from, to }] of joined.entries()) {
          expect(from).toBeLessThan(to);
          expect(from).toBeGreaterThanOrEqual(joined[i - 1]?.to ?? 0);
        }
        // If all bytes were of one source, neighbours would be one segment: nothing is left between them.
        for (const [i, { from, source }] of joined.entries()) {
          const last = joined[i - 1];
          if (last?.source && source && sectorOf(last.to - 1) === sectorOf(from)) expect(last.to).toBe(from);
        }
      }),
    );
  });

  it('keep what the fillers do not reach', () => {
    const bytes = Buffer.from('ab');
    const segments = [0, 10].map((from, piece) => {
      return { from, to: from + 2, born: 1, source: { piece, length: 2, bytes }, at: 0 };
    });
    expect(joinSectors(segments, JOINED, [])).toEqual(segments);
  });
});
