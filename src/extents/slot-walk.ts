/** Scans an extent for slot headers; resynchronises at the next valid header after a gap. */
import type { ExtentFiles } from './extent-files.ts';
import type { ChunkLocation, ChunkName } from './extents.ts';
import { decodeExtentHeader, decodeSlotHeader, HEADER_BYTES, nextSlotAt, slotBytes } from './slots.ts';

const WINDOW_BYTES = 64 << 10;

/** Slots with a valid header. A slot without one (a crash before its first write, corruption) is skipped. */
export async function* walkSlots(
  files: ExtentFiles,
  extent: string,
): AsyncGenerator<{ readonly name: ChunkName; readonly place: ChunkLocation }> {
  const start = await files.read(extent, 0, 2 * HEADER_BYTES);
  // The first slot has the id, too, at a position that no upload can reach: it replaces a corrupt header of the extent.
  const id = decodeExtentHeader(start) ?? decodeSlotHeader(start.subarray(HEADER_BYTES))?.id;
  if (!id) return;
  for (let offset = HEADER_BYTES; ; ) {
    const from = offset;
    const window = await files.read(extent, from, WINDOW_BYTES);
    if (window.length < HEADER_BYTES) return;
    while (offset + HEADER_BYTES <= from + window.length) {
      const slot = decodeSlotHeader(window.subarray(offset - from));
      if (slot?.id.equals(id)) {
        yield { name: slot.name, place: { extent, offset, length: slot.length } };
        offset += slotBytes(slot.length);
      } else {
        offset = nextSlotAt(offset);
      }
    }
  }
}
