/** Append-only extents over any backend: slots, group fsync, verified reads, sealing. */
import { acquireBuffer, releaseBuffer } from '../hashing/crc32.ts';
import { makeChunkWriter } from './chunk-writer.ts';
import type { ExtentFiles } from './extent-files.ts';
import { CHUNK_BYTES_MAX, CorruptChunk, EXTENT_NAME, type Extents, epochOfExtent } from './extents.ts';
import { groupIntoWindows, type RangeRequest, readWindow } from './read-many.ts';
import { assertUsable, OpenExtents } from './slot-allocation.ts';
import { walkSlots } from './slot-walk.ts';
import { HEADER_BYTES, slotBytes } from './slots.ts';
import { readVerified } from './verified-read.ts';

export interface SlottedOptions {
  /** Of this process: no other process ever has the same. */
  readonly epoch: bigint;
  /** The last number of the extents that have this epoch already. */
  readonly lastNumber?: number | undefined;
  /** An extent that would exceed this grows no more. */
  readonly extentBytesMax?: number | undefined;
  /** Called with all corruption that a read finds, also where the read succeeds. */
  readonly onCorruption?: ((error: CorruptChunk) => void) | undefined;
}

/** Eight chunks of the maximum length. */
export const EXTENT_BYTES_MAX = HEADER_BYTES + 8 * slotBytes(CHUNK_BYTES_MAX);

export function openSlotted(
  files: ExtentFiles,
  { epoch, lastNumber = 0, extentBytesMax = EXTENT_BYTES_MAX, onCorruption }: SlottedOptions,
): Extents {
  const open = new OpenExtents(files, epoch, lastNumber, extentBytesMax);
  let chunksBegun = 0;
  let isClosed = false;

  const readOne: Extents['read'] = async (name, place, from, to, into, sums) => {
    const read = () => readVerified(files, name, place, from, to, (error) => onCorruption?.(error), into, sums);
    try {
      return await read().catch((error: unknown) => {
        if (!(error instanceof CorruptChunk) || !files.closeHandle || epochOfExtent(place.extent) === epoch)
          throw error;
        // Another machine may have written here since the file was opened: some file systems show that only to a new descriptor.
        files.closeHandle(place.extent);
        if (sums) sums.table = undefined;
        return read();
      });
    } catch (error) {
      if (error instanceof CorruptChunk) onCorruption?.(error);
      throw error;
    }
  };

  /** After an error each chunk is read alone, which finds the corrupt one. */
  async function readBatch(window: readonly RangeRequest[], result: Buffer, memory: Buffer | undefined): Promise<void> {
    try {
      if (window.length > 1) return await readWindow(files, window, result, memory, (error) => onCorruption?.(error));
    } catch (error) {
      if (!(error instanceof CorruptChunk)) throw error;
    }
    for (const { name, place, from, to, at } of window) result.set(await readOne(name, place, from, to, memory), at);
  }

  return {
    async begin(name, length, purpose = 'any') {
      if (!(Number.isInteger(length) && length > 0 && length <= CHUNK_BYTES_MAX)) {
        throw new RangeError(`A chunk cannot have ${length} bytes.`);
      }
      await files.checkSpace(length, purpose);
      if (isClosed) throw new Error('The extents are closed.');
      chunksBegun++;
      const { extent, offset } = open.allocate(slotBytes(length));
      await extent.made.catch((error: unknown) => {
        open.release(extent);
        throw error;
      });
      const owner = {
        id: extent.id,
        async write(pieces: readonly Uint8Array[], position: number) {
          assertUsable(extent);
          await files.write(extent.name, pieces, position, purpose);
        },
        sync: extent.sync,
        release: () => open.release(extent),
      };
      return makeChunkWriter(owner, name, { extent: extent.name, offset, length });
    },

    read: readOne,

    async readMany(ranges) {
      const result = Buffer.allocUnsafe(ranges.reduce((sum, { from, to }) => sum + to - from, 0));
      const memory = acquireBuffer();
      try {
        for (const window of groupIntoWindows(ranges)) await readBatch(window, result, memory);
      } finally {
        if (memory) releaseBuffer(memory);
      }
      return result;
    },

    chunksBegun: () => chunksBegun,

    isLowOnSpace: () => files.isLowOnSpace(),

    walk: (extent) => walkSlots(files, extent),

    async list() {
      const found = (await files.list()).filter((name) => EXTENT_NAME.test(name));
      return found.map((name) => ({ name, open: open.get(name) !== undefined }));
    },

    bytesOf: (extent) => files.bytesOf(extent),

    async seal(name) {
      const extent = open.get(name);
      if (extent) open.seal(extent);
    },

    async remove(name) {
      const extent = open.get(name);
      if (extent && extent.writers > 0) throw new Error(`Extent ${name} is being written to.`);
      if (extent) open.seal(extent);
      await files.remove(name);
    },

    close() {
      isClosed = true;
      return files.close();
    },
  };
}

/** A restored backup of the rows may repeat an epoch; extent names must not repeat even then. */
export async function findLastNumber(files: ExtentFiles, epoch: bigint): Promise<number> {
  let last = 0;
  for (const name of await files.list()) {
    const number = EXTENT_NAME.exec(name)?.[2];
    if (number !== undefined && epochOfExtent(name) === epoch) last = Math.max(last, Number(number));
  }
  return last;
}
