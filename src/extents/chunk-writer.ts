/** Writes one chunk into its slot, in order: the header goes with the first bytes, the checksums with the last. */
import { makeChecksumBuilder } from './checksums.ts';
import type { ChunkLocation, ChunkName, ChunkWriter } from './extents.ts';
import { encodeSlotHeader, HEADER_BYTES } from './slots.ts';

/** The extent, as the writer of one of its slots sees it. */
export interface SlotOwner {
  readonly id: Buffer;
  write(bytes: readonly Uint8Array[], position: number): Promise<void>;
  sync(): Promise<void>;
  /** Nothing more is written into the slot. */
  release(): void;
}

export function makeChunkWriter(owner: SlotOwner, name: ChunkName, place: ChunkLocation): ChunkWriter {
  const { length } = place;
  const sums = makeChecksumBuilder(name, length);
  let written = 0;
  let ended = false;
  /** The last write; rejected once one failed, since every write waits for the one before. */
  let last: Promise<void> = Promise.resolve();

  async function put(bytes: readonly Uint8Array[]): Promise<void> {
    const size = bytes.reduce((sum, piece) => sum + piece.length, 0);
    if (size === 0) return;
    if (written + size > length) throw new RangeError(`A chunk of ${length} bytes was given ${written + size}.`);
    const all = written === 0 ? [encodeSlotHeader({ id: owner.id, name, length }), ...bytes] : [...bytes];
    const position = place.offset + (written === 0 ? 0 : HEADER_BYTES + written);
    for (const piece of bytes) sums.add(piece);
    written += size;
    if (written === length) all.push(sums.table());
    await owner.write(all, position);
  }

  function abandon(): void {
    if (ended) return;
    ended = true;
    last.then(owner.release, owner.release);
  }

  /** An earlier failure is the better error. */
  const refuse = (): Promise<never> =>
    last.then(() => {
      throw new Error('The chunk was finished or abandoned before.');
    });

  return {
    place,
    write(bytes) {
      if (ended) return refuse();
      last = last.then(() => put(bytes));
      last.catch(abandon);
      return last;
    },
    async finish() {
      if (ended) return refuse();
      ended = true;
      try {
        await last;
        if (written < length) throw new RangeError(`A chunk of ${length} bytes was finished after ${written}.`);
        await owner.sync();
      } finally {
        owner.release();
      }
    },
    abandon,
  };
}
