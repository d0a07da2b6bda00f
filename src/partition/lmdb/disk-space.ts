/** Disk space: an upper estimate of what commits may take, and a guard that refuses them before LMDB meets a full disk. */
import { closeSync, existsSync, fstatSync, fsyncSync, openSync, rmSync, statfsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Commit, Write } from '../partition.ts';
import { COUNTER_BYTES } from '../values.ts';
import { isDiskFull, KEY_BYTES_MAX, PAGE_BYTES, writeAll } from './files.ts';

/** Free space below which writes are refused; on a small disk an eighth of it. */
const WATERMARK_MAX = 64 << 20;
const RESERVE_BYTES_MIN = 1 << 20;
/** Nobody takes so much before the next look. */
const AMPLE_BYTES = 8 * 2 ** 30;
const CHECK_MILLISECONDS = 50;
/** By how much the file is made to grow at once. */
const STEP = 1 << 20;

export interface LowSpace {
  readonly message: string;
}

export const LOW_SPACE: LowSpace = {
  message: 'The disk is nearly full: writes are refused, reads and deletes go on. Free some space or delete blobs.',
};

export interface SpaceGuard {
  /** Whether writes leave the disk far from full. @param bytes how many they may take, asked where that matters */
  hasAmpleSpace(bytes: () => number): boolean;
  /** Why writes that may take this many bytes cannot happen now; those that free space may take the last there is. */
  lowSpaceFor(bytes: number, kind: 'any' | 'frees'): LowSpace | undefined;
}

/**
 * LMDB must never meet a full disk: a failed write corrupts the memory of the process. So, when space gets short, the file is
 * filled with zeros ahead of its use, where running out of space is an ordinary error. The ballast is another file, given up
 * when somebody else has filled the disk, so that deletes still have the pages they need.
 * @param usage where the pages in use end, and how many bytes before that are free
 */
export function guardSpace(file: string, usage: () => { end: number; free: number }): SpaceGuard {
  const folder = dirname(file);
  const reserveFile = reserveFileIn(folder);
  let hasReserve = existsSync(reserveFile);
  let nextCheckAt = 0;

  function disk(): { free: number; watermark: number } {
    const { bavail, bsize, blocks } = statfsSync(folder);
    return { free: bavail * bsize, watermark: Math.floor(Math.min(WATERMARK_MAX, (blocks * bsize) / 8)) };
  }

  function writeReserve(bytes: number): void {
    const descriptor = openSync(reserveFile, 'w');
    try {
      hasReserve = writeZeros(descriptor, 0, bytes);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    if (!hasReserve) removeReserve();
  }

  function removeReserve(): void {
    removeReserveFile(folder);
    hasReserve = false;
  }

  /** Whether the file has this much ahead, or can be given it and leave `floor` on the disk. */
  function preallocate(bytes: number, free: number, floor: number): boolean {
    const { end } = usage();
    const descriptor = openSync(file, 'r+');
    try {
      const { size } = fstatSync(descriptor);
      const missing = bytes - Math.max(0, size - end);
      const spare = free - floor - missing;
      if (missing <= 0) return true;
      if (spare < 0) return false;
      const wanted = end + bytes + Math.min(STEP, spare);
      return writeZeros(descriptor, Math.max(size, end), wanted);
    } finally {
      closeSync(descriptor);
    }
  }

  function hasAmpleSpace(bytes: () => number): boolean {
    if (performance.now() < nextCheckAt) return true;
    const { free, watermark } = disk();
    if (free > AMPLE_BYTES) nextCheckAt = performance.now() + CHECK_MILLISECONDS;
    const reserveBytes = Math.max(RESERVE_BYTES_MIN, watermark >> 4);
    if (!hasReserve && free >= watermark + reserveBytes) writeReserve(reserveBytes);
    return free >= 2 * watermark + bytes();
  }

  return {
    hasAmpleSpace,
    lowSpaceFor(bytes, kind) {
      if (hasAmpleSpace(() => bytes)) return undefined;
      let { free, watermark } = disk();
      if (hasReserve && free < watermark >> 3) {
        removeReserve();
        ({ free } = disk());
      }
      // Pages that were given back may lie apart where a large row needs them together: then the file grows after all.
      const floor = kind === 'frees' ? 0 : usage().free >= 2 * bytes ? watermark >> 1 : watermark;
      return free < floor || !preallocate(bytes, free, floor) ? LOW_SPACE : undefined;
    },
  };
}

export function removeReserveFile(folder: string): void {
  rmSync(reserveFileIn(folder), { force: true });
}

const reserveFileIn = (folder: string): string => join(folder, 'ballast');

/** False when the disk is full. */
function writeZeros(descriptor: number, from: number, to: number): boolean {
  const zeros = Buffer.alloc(1 << 18);
  try {
    for (let at = from; at < to; at += zeros.length) writeAll(descriptor, zeros.subarray(0, to - at), at);
    return true;
  } catch (error) {
    if (isDiskFull(error)) return false;
    throw error;
  }
}

/** A row may lie on a page of its own, which a checkpoint copies with its parent. */
const PAGES_PER_ROW = 2;
/** The upper levels of the trees, the list of free pages, and what the engine itself remembers. */
const PAGES_PER_CHECKPOINT = 32;
const BYTES_PER_ROW = 32;

/** What a checkpoint of some rows may add to LMDB's file. */
export class SizeEstimate {
  private pages = 0;
  private bytes = 0;

  /** @param valueBytes undefined: the row is removed */
  add(keyBytes: number, valueBytes: number | undefined): this {
    this.pages += PAGES_PER_ROW + (valueBytes === undefined ? 0 : Math.ceil((valueBytes + 64) / PAGE_BYTES));
    this.bytes += BYTES_PER_ROW + keyBytes + (valueBytes ?? 0);
    return this;
  }

  addAll(commits: readonly Commit[]): this {
    for (const { writeSets } of commits) {
      for (const { writes } of writeSets) for (const write of writes) this.add(write.key.length, valueBytesOf(write));
    }
    return this;
  }

  /** @param used a transaction copies each page that is in use once; new ones are at least half full */
  bytesMax(used = Infinity): number {
    if (this.pages === 0) return 0;
    return PAGES_PER_CHECKPOINT * PAGE_BYTES + Math.min(this.pages * PAGE_BYTES, used + 2 * this.bytes);
  }
}

/** What a commit adds to the log. Throws a RangeError if a key is too long: LMDB would refuse it in the middle of a checkpoint. */
export function walBytes(commit: Commit): number {
  let bytes = 0;
  for (const { writes } of commit.writeSets) {
    for (const write of writes) {
      const keyBytes = write.key.length;
      if (keyBytes > KEY_BYTES_MAX) throw new RangeError(`a key of ${keyBytes} bytes`);
      bytes += BYTES_PER_ROW + keyBytes + (valueBytesOf(write) ?? 0);
    }
  }
  return bytes;
}

/** On a full disk only commits that give space back go on: no fewer rows are removed than written, counters aside. */
export function freesSpace(commit: Commit): boolean {
  const writes = commit.writeSets.flatMap((body) => body.writes).filter(({ kind }) => kind !== 'add');
  const removed = writes.filter(({ kind }) => kind === 'remove').length;
  return removed > 0 && removed * 2 >= writes.length;
}

function valueBytesOf(write: Write): number | undefined {
  return write.kind === 'put' ? write.value.length : write.kind === 'add' ? COUNTER_BYTES : undefined;
}
