/** Reference counts of chunks and live bytes of extents, exact in every commit: a chunk row that reaches 0 is removed with it. */
import type { Key } from '../partition/keys.ts';
import type { Transaction } from '../partition/partition.ts';
import { DanglingReference, type UploadedContent } from './content.ts';
import { type ChunkRef, chunkKey, decodeChunk, encodeChunk, formatId, liveBytesKey } from './rows.ts';

/** Adds chunk rows, each with one reference. */
export function addChunks(
  tx: Transaction,
  account: bigint,
  { chunkRefs, locations }: Pick<UploadedContent, 'chunkRefs' | 'locations'>,
): void {
  for (const [i, { chunk }] of chunkRefs.entries()) {
    const place = locations[i]!;
    tx.put(chunkKey(account, chunk), encodeChunk({ place, refs: 1 }));
    tx.add(liveBytesKey(account, place.extent), BigInt(place.length));
  }
}

export async function changeRefcounts(
  tx: Transaction,
  account: bigint,
  chunkRefs: readonly ChunkRef[],
  by: 1 | -1,
): Promise<void> {
  // A block can be in a block list twice, which makes two references.
  const changes = new Map<Key, { readonly ref: ChunkRef; change: number }>();
  for (const ref of chunkRefs) {
    const key = chunkKey(account, ref.chunk);
    const known = changes.get(key);
    if (known) known.change += by;
    else changes.set(key, { ref, change: by });
  }
  const rows = await tx.getMany([...changes.keys()]);
  let next = 0;
  for (const [key, { ref, change }] of changes) {
    const row = rows[next++];
    if (!row) throw new DanglingReference(`chunk ${formatId(ref.chunk)} has no row`);
    const { place, refs } = decodeChunk(row);
    const left = refs + change;
    if (left < 0) throw new Error(`chunk ${formatId(ref.chunk)} has fewer references than users`);
    if (left > 0) {
      tx.put(key, encodeChunk({ place, refs: left }));
      continue;
    }
    tx.remove(key);
    tx.add(liveBytesKey(account, place.extent), BigInt(-place.length));
  }
}
