/** Disk space: an upper bound of what commits take, and a guard that refuses them before LMDB meets a full disk. */
import { closeSync, existsSync, fstatSync, fsyncSync, openSync, rmSync, statfsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isVolatile } from '../keys.ts';
import type { Commit, Write } from '../partition.ts';
import { COUNTER_BYTES, isCommutative } from '../values.ts';
import { isDiskFull, KEY_BYTES_MAX, PAGE_BYTES, writeAll } from './files.ts';

/** Free space below which writes are refused; on a small disk an eighth of the disk. */
const WATERMARK_MAX = 64 << 20;
const RESERVE_BYTES_MIN = 1 << 20;
/** With more free space than this, the disk is checked at intervals: no disk takes so much between two checks. */
const AMPLE_BYTES = 8 * 2 ** 30;
const CHECK_MILLISECONDS = 50;
const PREALLOCATION_STEP = 1 << 20;

export const LOW_SPACE =
  'The disk is nearly full: writes are refused, reads and deletes go on. Free some space or delete blobs.';

/**
 * LMDB must never meet a full disk: a failed write corrupts the memory of the process. So, when space gets low, LMDB's file is filled with
 * zeros ahead of its use, where running out of space is an ordinary error. The reserve file is deleted when other programs have filled the
 * disk, so that deletes still have the pages they need.
 */
export class SpaceGuard {
  private readonly file: string;
  private readonly folder: string;
  private readonly usage: () => { end: number; free: number };
  private hasReserve: boolean;
  private nextCheckAt = 0;

  /** @param usage the end of the pages in use, and the free bytes before it */
  constructor(file: string, usage: () => { end: number; free: number }) {
    this.file = file;
    this.folder = dirname(file);
    this.usage = usage;
    this.hasReserve = existsSync(reserveFileIn(this.folder));
  }

  /** Whether writes leave the disk far from full. @param bytes an upper bound of what they take */
  hasAmpleSpace(bytes: () => number): boolean {
    if (performance.now() < this.nextCheckAt) return true;
    const { free, watermark } = this.disk();
    if (free > AMPLE_BYTES) this.nextCheckAt = performance.now() + CHECK_MILLISECONDS;
    const reserveBytes = Math.max(RESERVE_BYTES_MIN, watermark >> 4);
    if (!this.hasReserve && free >= watermark + reserveBytes) this.writeReserve(reserveBytes);
    return free >= 2 * watermark + bytes();
  }

  /** Whether LMDB's file has room for this much, preallocated where space is low. Writes that free space may take the last. */
  hasSpaceFor(bytes: number, kind: 'any' | 'frees'): boolean {
    if (this.hasAmpleSpace(() => bytes)) return true;
    let { free, watermark } = this.disk();
    if (this.hasReserve && free < watermark >> 3) {
      this.removeReserve();
      ({ free } = this.disk());
    }
    // Free pages may be scattered where a large row needs adjacent ones: then the file grows after all.
    const floor = kind === 'frees' ? 0 : this.usage().free >= 2 * bytes ? watermark >> 1 : watermark;
    return free >= floor && this.preallocate(bytes, free - floor);
  }

  private disk(): { free: number; watermark: number } {
    const { bavail, bsize, blocks } = statfsSync(this.folder);
    return { free: bavail * bsize, watermark: Math.floor(Math.min(WATERMARK_MAX, (blocks * bsize) / 8)) };
  }

  private writeReserve(bytes: number): void {
    const descriptor = openSync(reserveFileIn(this.folder), 'w');
    try {
      this.hasReserve = writeZeros(descriptor, 0, bytes);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    if (!this.hasReserve) this.removeReserve();
  }

  private removeReserve(): void {
    removeReserveFile(this.folder);
    this.hasReserve = false;
  }

  /** Whether the file has this much after the pages in use, or can grow by at most `available` to have it. */
  private preallocate(bytes: number, available: number): boolean {
    const { end } = this.usage();
    const descriptor = openSync(this.file, 'r+');
    try {
      const { size } = fstatSync(descriptor);
      const missing = bytes - Math.max(0, size - end);
      if (missing <= 0) return true;
      if (missing > available) return false;
      const wanted = end + bytes + Math.min(PREALLOCATION_STEP, available - missing);
      return writeZeros(descriptor, Math.max(size, end), wanted);
    } finally {
      closeSync(descriptor);
    }
  }
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

/**
 * Random rows are in a page each, and a sync of the log waits for the pages that the disk is writing. LMDB holds the pages of a transaction in memory,
 * too, and keeps that memory: for 5,000 random rows 27 MB. But rows that are neighbours share pages, and each transaction has two syncs of its own.
 */
export const ROWS_PER_TRANSACTION = 400;
/** A checkpoint may copy a leaf page and its parent for every row. */
const PAGES_PER_ROW = 2;
/** The upper levels of the trees, the list of free pages, and the engine's metadata. */
const PAGES_PER_TRANSACTION = 32;
const BYTES_PER_ROW = 32;

/** An upper bound of what a checkpoint adds to LMDB's file. */
export class SizeEstimate {
  private rows = 0;
  private pages = 0;
  /** About as many as in the log. */
  bytes = 0;

  /** @param valueBytes undefined: the row is removed */
  add(keyBytes: number, valueBytes: number | undefined): this {
    this.rows++;
    this.pages += PAGES_PER_ROW + (valueBytes === undefined ? 0 : Math.ceil((valueBytes + 64) / PAGE_BYTES));
    this.bytes += BYTES_PER_ROW + keyBytes + (valueBytes ?? 0);
    return this;
  }

  /** Nothing is written to disk. */
  get isZero(): boolean {
    return this.rows === 0;
  }

  addAll(others: readonly SizeEstimate[]): this {
    for (const { rows, pages, bytes } of others) {
      this.rows += rows;
      this.pages += pages;
      this.bytes += bytes;
    }
    return this;
  }

  /** @param used bytes in use: the sorted rows copy each of these leaf pages at most once, and new pages are at least half full */
  bytesMax(used = Infinity): number {
    if (this.isZero) return 0;
    const transactions = Math.ceil(this.rows / ROWS_PER_TRANSACTION);
    return transactions * PAGES_PER_TRANSACTION * PAGE_BYTES + Math.min(this.pages * PAGE_BYTES, used + 2 * this.bytes);
  }
}

/**
 * Volatile rows take none. Throws a RangeError if a key is too long: LMDB would refuse it in the middle of a checkpoint, and volatile keys have
 * the same limit.
 */
export function estimateCommit({ writeSets }: Commit): SizeEstimate {
  const estimate = new SizeEstimate();
  for (const { writes } of writeSets) {
    for (const write of writes) {
      if (write.key.length > KEY_BYTES_MAX) throw new RangeError(`a key of ${write.key.length} bytes`);
      if (!isVolatile(write.key)) estimate.add(write.key.length, valueBytesOf(write));
    }
  }
  return estimate;
}

/** Whether it needs no disk. A commit without writes waits for the log, as the clock does by it; one with a key that is too long is refused. */
export function isVolatileAlone({ writeSets }: Commit): boolean {
  for (const { writes } of writeSets) {
    for (const { key } of writes) if (!isVolatile(key) || key.length > KEY_BYTES_MAX) return false;
  }
  return writeSets.length > 0;
}

/** Whether at least as many rows are removed as written, counters aside: only such commits are accepted on a full disk. */
export function freesSpace(commit: Commit): boolean {
  const writes = commit.writeSets.flatMap((writeSet) => writeSet.writes).filter(takesSpace);
  const removed = writes.filter(({ kind }) => kind === 'remove').length;
  return removed > 0 && removed * 2 >= writes.length;
}

const takesSpace = (write: Write): boolean => !isCommutative(write) && !isVolatile(write.key);

function valueBytesOf(write: Write): number | undefined {
  return write.kind === 'put' ? write.value.length : isCommutative(write) ? COUNTER_BYTES : undefined;
}
