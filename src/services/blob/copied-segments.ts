/** The segments of a slice, over the chunks that its bytes were uploaded to. */
import { type ChunkRef, formatId, type Segment, sliceRef } from '../../content/rows.ts';
import type { BlobSegment } from '../../rules/copy-slices.ts';

export interface AssignedChunks {
  readonly segments: readonly Segment[];
  /** A chunk has a reference for each segment: these are the ones besides the first, which an upload counts. */
  readonly repeated: readonly ChunkRef[];
}

/** @param chunkRefs the bytes of all segments, in order */
export function assignChunks(segments: readonly BlobSegment[], chunkRefs: readonly ChunkRef[]): AssignedChunks {
  const counted = new Set<string>();
  const repeated: ChunkRef[] = [];
  const assigned: Segment[] = [];
  let [at, used] = [0, 0];
  for (const { label, length } of segments) {
    const refs: ChunkRef[] = [];
    for (let missing = length; missing > 0; ) {
      const whole = chunkRefs[at]!;
      const size = Math.min(missing, whole.length - used);
      const ref = sliceRef(whole, used, used + size);
      const name = formatId(ref.chunk);
      if (counted.has(name)) repeated.push(ref);
      counted.add(name);
      refs.push(ref);
      missing -= size;
      used += size;
      if (used === whole.length) [at, used] = [at + 1, 0];
    }
    assigned.push({ label, length, chunkRefs: refs });
  }
  return { segments: assigned, repeated };
}
