import type { ExtentFiles } from './extent-files.ts';
import type { ChunkLocation, ChunkName } from './extents.ts';
import { decodeExtentHeader, decodeSlotHeader, HEADER_BYTES, nextSlotAt, slotBytes } from './slots.ts';

const WINDOW_BYTES = 64 << 10;

/** The slots whose header is whole. Where there is none (a crash before the first write, damage), on to the next there is. */
export async function* walkSlots(
  files: ExtentFiles,
  extent: string,
): AsyncGenerator<{ readonly name: ChunkName; readonly place: ChunkLocation }> {
  const start = await files.read(extent, 0, 2 * HEADER_BYTES);
  // The first slot has the id too, and what stands there was never uploaded: it serves when the extent's header is damaged.
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
