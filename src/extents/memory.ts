/** Extents that are gone with the process. */
import { Damaged, type Extents } from './extents.ts';
import type { Files } from './files.ts';
import { openSlotted, type SlottedOptions } from './slotted.ts';

const PAGE_BYTES = 64 << 10;

interface MemoryFile {
  /** By number; where nothing was written there is none. */
  readonly pages: Map<number, Buffer>;
  size: number;
}

export function openMemoryExtents(options: SlottedOptions): Extents {
  return openSlotted(memoryFiles(), options);
}

export function memoryFiles(): Files {
  const files = new Map<string, MemoryFile>();

  function existing(name: string): MemoryFile {
    const file = files.get(name);
    if (!file) throw new Damaged(`Damaged: extent ${name} is missing.`);
    return file;
  }

  async function write(name: string, bytes: readonly Uint8Array[], position: number): Promise<void> {
    const file = existing(name);
    let at = position;
    for (const piece of bytes) {
      eachPage(at, piece.length, (page, from, to, start) => {
        const kept = file.pages.get(page) ?? Buffer.alloc(PAGE_BYTES);
        kept.set(piece.subarray(start, start + to - from), from);
        file.pages.set(page, kept);
      });
      at += piece.length;
    }
    file.size = Math.max(file.size, at);
  }

  return {
    roomFor: async () => {},
    isShort: () => false,
    async make(name, header) {
      files.set(name, { pages: new Map(), size: 0 });
      await write(name, [header], 0);
    },
    write,
    async read(name, position, length) {
      const { pages, size } = existing(name);
      const bytes = Buffer.alloc(Math.max(0, Math.min(length, size - position)));
      eachPage(position, bytes.length, (page, from, to, start) => pages.get(page)?.copy(bytes, start, from, to));
      return bytes;
    },
    sync: async () => {},
    list: async () => [...files].map(([name, { pages }]) => ({ name, bytes: pages.size * PAGE_BYTES })),
    async remove(name) {
      files.delete(name);
    },
    async close() {
      files.clear();
    },
  };
}

/** @param visit is given the page, the bytes of it from `from` to before `to`, and where in the whole stretch they begin */
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
