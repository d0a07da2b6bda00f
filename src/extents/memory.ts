/** Extents in memory. */
import type { ExtentFiles } from './extent-files.ts';
import { CorruptChunk, type Extents, NoSpace, type Purpose } from './extents.ts';
import { EXTENT_BYTES_MAX, openSlotted, type SlottedOptions } from './slotted-extents.ts';

const PAGE_BYTES = 64 << 10;
/** Of the limit: above this share, garbage collection is urgent. */
const LOW_SPACE_SHARE = 0.9;
const FREEING_SHARE = 1.1;

interface MemoryFile {
  /** By number; only pages that were written to. */
  readonly pages: Map<number, Buffer>;
  size: number;
}

export interface MemoryExtentsOptions extends SlottedOptions {
  /** Writes beyond this fail, as on a full disk. */
  readonly bytesMax?: number | undefined;
}

export function openMemoryExtents({ bytesMax, ...options }: MemoryExtentsOptions): Extents {
  // As on a small disk: compaction copies extents in steps for which the limit has room.
  const extentBytesMax = options.extentBytesMax ?? Math.min(EXTENT_BYTES_MAX, (bytesMax ?? Infinity) / 32);
  return openSlotted(makeMemoryFiles(bytesMax), { ...options, extentBytesMax });
}

export function makeMemoryFiles(bytesMax = Number.POSITIVE_INFINITY): ExtentFiles {
  const files = new Map<string, MemoryFile>();
  let usedBytes = 0;

  /** Copies that free more than they take may exceed the limit by a little, for a short time. */
  async function checkSpace(bytes: number, purpose: Purpose): Promise<void> {
    if (usedBytes + bytes > (purpose === 'frees' ? bytesMax * FREEING_SHARE : bytesMax)) {
      throw new NoSpace(
        'The memory for data is full: uploads are refused, reads and deletes go on. Delete blobs, or raise --extentMemoryLimit.',
      );
    }
  }

  function fileNamed(name: string): MemoryFile {
    const file = files.get(name);
    if (!file) throw new CorruptChunk(`Damaged: extent ${name} is missing.`);
    return file;
  }

  async function write(name: string, bytes: readonly Uint8Array[], position: number): Promise<void> {
    const file = fileNamed(name);
    let at = position;
    for (const piece of bytes) {
      eachPage(at, piece.length, (page, from, to, start) => {
        let bytesOfPage = file.pages.get(page);
        if (!bytesOfPage) {
          bytesOfPage = Buffer.alloc(PAGE_BYTES);
          usedBytes += PAGE_BYTES;
        }
        bytesOfPage.set(piece.subarray(start, start + to - from), from);
        file.pages.set(page, bytesOfPage);
      });
      at += piece.length;
    }
    file.size = Math.max(file.size, at);
  }

  return {
    checkSpace,
    isLowOnSpace: () => usedBytes > bytesMax * LOW_SPACE_SHARE,
    async make(name, header) {
      files.set(name, { pages: new Map(), size: 0 });
      await write(name, [header], 0);
    },
    async write(name, bytes, position, purpose) {
      const size = bytes.reduce((sum, { length }) => sum + length, 0);
      await checkSpace(size, purpose);
      await write(name, bytes, position);
    },
    async read(name, position, length) {
      const { pages, size } = fileNamed(name);
      const bytes = Buffer.alloc(Math.max(0, Math.min(length, size - position)));
      eachPage(position, bytes.length, (page, from, to, start) => pages.get(page)?.copy(bytes, start, from, to));
      return bytes;
    },
    sync: async () => {},
    list: async () => [...files.keys()],
    bytesOf: async (name) => (files.get(name)?.pages.size ?? 0) * PAGE_BYTES,
    async remove(name) {
      usedBytes -= (files.get(name)?.pages.size ?? 0) * PAGE_BYTES;
      files.delete(name);
    },
    async close() {
      files.clear();
    },
  };
}

/** @param visit called with the page, the range of bytes in it, and the start of that range relative to `position` */
function eachPage(
  position: number,
  length: number,
  visit: (page: number, from: number, to: number, start: number) => void,
): void {
  for (let start = 0; start < length; ) {
    const page = Math.floor((position + start) / PAGE_BYTES);
    const from = (position + start) % PAGE_BYTES;
    const to = Math.min(PAGE_BYTES, from + length - start);
    visit(page, from, to, start);
    start += to - from;
  }
}
