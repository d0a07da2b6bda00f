/** Reference counts of chunks and live bytes of extents, exact in every commit: a chunk row that reaches 0 is removed with it. */
import type { Transaction } from '../partition/partition.ts';
import { DanglingReference, type UploadedContent } from './content.ts';
import { type ChunkId, type ChunkRef, chunkKey, decodeChunk, encodeChunk, formatId, liveBytesKey } from './rows.ts';

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
  const changes = new RefcountChanges();
  // A block can be in a block list twice, which makes two references.
  for (const { chunk } of chunkRefs) changes.add(chunk, by);
  await changes.apply(tx, account);
}

/** Changes of several rows that name the same chunks: only the sums are written. */
export class RefcountChanges {
  /** Most writes in place change none. */
  private changes: Map<string, { readonly chunk: ChunkId; change: number }> | undefined;

  add(chunk: ChunkId, by: number): void {
    this.changes ??= new Map();
    const name = formatId(chunk);
    const known = this.changes.get(name);
    if (known) known.change += by;
    else this.changes.set(name, { chunk, change: by });
  }

  async apply(tx: Transaction, account: bigint): Promise<void> {
    if (!this.changes) return;
    const changes = [...this.changes.values()].filter(({ change }) => change !== 0);
    const rows = await tx.getMany(changes.map(({ chunk }) => chunkKey(account, chunk)));
    for (const [i, { chunk, change }] of changes.entries()) {
      const row = rows[i];
      if (!row) throw new DanglingReference(`chunk ${formatId(chunk)} has no row`);
      const { place, refs } = decodeChunk(row);
      const left = refs + change;
      if (left < 0) throw new Error(`chunk ${formatId(chunk)} has fewer references than users`);
      if (left > 0) {
        tx.put(row.key, encodeChunk({ place, refs: left }));
        continue;
      }
      tx.remove(row.key);
      tx.add(liveBytesKey(account, place.extent), BigInt(-place.length));
    }
  }
}
