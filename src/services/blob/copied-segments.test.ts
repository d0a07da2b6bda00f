import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ChunkRef } from '../../content/rows.ts';
import { assignChunks } from './copied-segments.ts';

const lengths = fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 30 });

/** Every byte by its chunk and its place in the chunk. */
const bytesOf = (refs: readonly ChunkRef[]) =>
  refs.flatMap(({ chunk, length, offset = 0 }) => Array.from({ length }, (_, at) => `${chunk.number}:${offset + at}`));

describe('The chunks of a slice', () => {
  it('are assigned to its segments in order, and counted once for each segment that has bytes of them', () => {
    fc.assert(
      fc.property(lengths, lengths, (segmentLengths, chunkLengths) => {
        const total = Math.min(
          segmentLengths.reduce((sum, length) => sum + length, 0),
          chunkLengths.reduce((sum, length) => sum + length, 0),
        );
        const segments = cutTo(segmentLengths, total).map((length, at) => ({ label: `${at}`, length }));
        const chunks = cutTo(chunkLengths, total).map((length, at) => ({
          chunk: { epoch: 1n, number: BigInt(at) },
          length,
        }));
        const assigned = assignChunks(segments, chunks);
        expect(assigned.segments.map(({ label, length }) => ({ label, length }))).toEqual(segments);
        for (const { length, chunkRefs } of assigned.segments) expect(bytesOf(chunkRefs)).toHaveLength(length);
        expect(assigned.segments.flatMap(({ chunkRefs }) => bytesOf(chunkRefs))).toEqual(bytesOf(chunks));
        const named = assigned.segments.flatMap(({ chunkRefs }) => chunkRefs.map(({ chunk }) => chunk.number));
        const counted = [...chunks, ...assigned.repeated].map(({ chunk }) => chunk.number);
        expect(counted.sort()).toEqual(named.sort());
      }),
    );
  });
});

function cutTo(lengths: readonly number[], total: number): number[] {
  const cut: number[] = [];
  for (let rest = total, at = 0; rest > 0; at++) {
    cut.push(Math.min(lengths[at]!, rest));
    rest -= cut.at(-1)!;
  }
  return cut;
}
