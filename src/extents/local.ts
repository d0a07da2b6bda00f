/** Extents as files of a folder. */
import { fdatasync, read as readFile, writev } from 'node:fs';
import { stat, statfs, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { makeFolderDurably, syncFolder } from '../base/durable-files.ts';
import { watchDiskSpace } from './disk-space.ts';
import type { ExtentFiles } from './extent-files.ts';
import { CorruptChunk, type Extents, NoSpace } from './extents.ts';
import { FileCache } from './file-cache.ts';
import { makeFolderLister } from './folder-names.ts';
import { createPoolShare } from './pool-share.ts';
import { EXTENT_BYTES_MAX, findLastNumber, openSlotted, type SlottedOptions } from './slotted-extents.ts';

export interface LocalOptions extends Omit<SlottedOptions, 'lastNumber'> {
  readonly folder: string;
  /** Files that are open at the same time at most. */
  readonly filesMax?: number | undefined;
  /** Bytes of the disk that uploads leave free. */
  readonly reserveBytes?: number | undefined;
}

const FILES_MAX = 64;
const share = createPoolShare();
const writeSome = promisify(writev);
const readSome = promisify(readFile);
const syncData = promisify(fdatasync);

export async function openLocalExtents({
  folder,
  epoch,
  extentBytesMax,
  filesMax = FILES_MAX,
  reserveBytes,
  onCorruption,
}: LocalOptions): Promise<Extents> {
  makeFolderDurably(folder);
  const files = openFolderFiles(folder, `${epoch}-`, filesMax, reserveBytes);
  return openSlotted(files, {
    epoch,
    lastNumber: await findLastNumber(files, epoch),
    extentBytesMax: extentBytesMax ?? (await extentBytesFor(folder)),
    onCorruption,
  });
}

/** On a small disk extents are small: to be compacted, an extent must fit into the reserve. */
async function extentBytesFor(folder: string): Promise<number> {
  const { blocks, bsize } = await statfs(folder);
  return Math.min(EXTENT_BYTES_MAX, (blocks * bsize) / 32);
}

/** @param ownPrefix the start of the names of this process's files, the only ones it writes to */
function openFolderFiles(
  folder: string,
  ownPrefix: string,
  filesMax: number,
  reserveBytes: number | undefined,
): ExtentFiles {
  const handles = new FileCache(filesMax);
  const space = watchDiskSpace(folder, reserveBytes);
  /** Created, but the folder is not synced since: after a power cut the names might be missing. */
  const unsyncedNames = new Set<string>();
  const pathOf = (name: string): string => join(folder, name);
  const flagsOf = (name: string): string => (name.startsWith(ownPrefix) ? 'r+' : 'r');

  async function syncName(name: string): Promise<void> {
    if (!unsyncedNames.has(name)) return;
    await syncFolder(folder);
    unsyncedNames.delete(name);
  }

  return {
    checkSpace: space.check,
    isLowOnSpace: space.isLow,

    async make(name, header) {
      unsyncedNames.add(name);
      await asNoSpace(handles.use(pathOf(name), 'wx+', (descriptor) => writeAll(descriptor, [header], 0)));
    },

    async write(name, bytes, position, purpose) {
      await space.reserve(totalBytes(bytes), purpose);
      await asNoSpace(handles.use(pathOf(name), 'r+', (descriptor) => writeAll(descriptor, bytes, position)));
    },

    async read(name, position, length, into) {
      try {
        return await handles.use(pathOf(name), flagsOf(name), (descriptor) =>
          readAll(descriptor, position, length, into),
        );
      } catch (error) {
        if (errorCode(error) === 'ENOENT') throw new CorruptChunk(`Damaged: extent ${name} is missing.`);
        if (errorCode(error) === 'EIO')
          throw new CorruptChunk(`Damaged: extent ${name} cannot be read at ${position}.`);
        throw error;
      }
    },

    closeHandle: (name) => handles.evict(pathOf(name)),

    async sync(name) {
      await asNoSpace(
        Promise.all([
          handles.use(pathOf(name), 'r+', (descriptor) => share.run(() => syncData(descriptor))),
          syncName(name),
        ]),
      );
    },

    // A file that another process has removed occupies its space as long as this process has it open.
    list: makeFolderLister(folder, (names) => handles.evictOthers(new Set(names.map(pathOf)))),

    async bytesOf(name) {
      const stats = await stat(pathOf(name)).catch(ignoreMissing);
      if (!stats) return 0;
      return stats.blocks > 0 ? stats.blocks * 512 : stats.size;
    },

    async remove(name) {
      await unlink(pathOf(name)).catch(ignoreMissing);
      // Not before: a read that starts meanwhile would open it again.
      handles.evict(pathOf(name));
      unsyncedNames.delete(name);
    },

    close: () => handles.close(),
  };
}

async function writeAll(descriptor: number, bytes: readonly Uint8Array[], position: number): Promise<void> {
  let at = position;
  for (let rest = bytes; rest.length > 0; ) {
    const { bytesWritten } = await share.run(() => writeSome(descriptor, rest, at));
    if (bytesWritten === 0) throw new Error(`Nothing was written at ${at}.`);
    at += bytesWritten;
    rest = skipBytes(rest, bytesWritten);
  }
}

/** The pieces without the first `count` bytes, and without empty pieces. */
function skipBytes(bytes: readonly Uint8Array[], count: number): Uint8Array[] {
  let skip = count;
  const rest: Uint8Array[] = [];
  for (const piece of bytes) {
    if (piece.length > skip) rest.push(piece.subarray(skip));
    skip = Math.max(0, skip - piece.length);
  }
  return rest;
}

async function readAll(descriptor: number, position: number, length: number, into?: Buffer): Promise<Buffer> {
  const bytes = into && into.length >= length ? into : Buffer.allocUnsafeSlow(length);
  let at = 0;
  while (at < length) {
    const { bytesRead } = await readSome(descriptor, bytes, at, length - at, position + at);
    if (bytesRead === 0) break;
    at += bytesRead;
  }
  return bytes.subarray(0, at);
}

async function asNoSpace<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!['ENOSPC', 'EDQUOT'].includes(errorCode(error) ?? '')) throw error;
    throw new NoSpace(
      'The disk is full: writes are refused, reads and deletes go on. Free some space or delete blobs.',
      { cause: error },
    );
  }
}

function ignoreMissing(error: unknown): undefined {
  if (errorCode(error) !== 'ENOENT') throw error;
}

const errorCode = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code;
const totalBytes = (bytes: readonly Uint8Array[]): number => bytes.reduce((sum, piece) => sum + piece.length, 0);
