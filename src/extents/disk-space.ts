/** Disk-space admission with a reserve; the cost of statfs is spread over many bytes. */
import { statfs } from 'node:fs/promises';
import { NoSpace, type Purpose } from './extents.ts';

/** Uploads leave this free, on a small disk a quarter: one half for copies that free more than they take, one for rows and deletes. */
const RESERVE_BYTES_MAX = 128 << 20;
/** Bytes that are admitted per statfs: the minimum, and the maximum where much is free. */
const MEASURE_BYTES = 4 << 20;
const MEASURE_BYTES_MAX = 64 << 20;

export interface DiskSpace {
  /** Throws NoSpace if the bytes do not fit. */
  check(bytes: number, purpose: Purpose): Promise<void>;
  /** As `check`, and counts the bytes as written. */
  reserve(bytes: number, purpose: Purpose): Promise<void>;
  /** Whether at the last statfs there was no space for uploads, or hardly any. */
  isLow(): boolean;
}

export function watchDiskSpace(folder: string, reserveBytes?: number): DiskSpace {
  /** Bytes that may be written before the next statfs. */
  let left = 0;
  let isLow = false;

  async function measure(bytes: number, purpose: Purpose): Promise<number> {
    const { bavail, bsize, blocks } = await statfs(folder);
    const reserve = reserveBytes ?? Math.min(RESERVE_BYTES_MAX, (blocks * bsize) / 4);
    const spare = bavail * bsize - reserve;
    left = Math.min(spare, Math.max(MEASURE_BYTES, Math.min(spare / 64, MEASURE_BYTES_MAX)));
    isLow = spare < Math.max(bytes, MEASURE_BYTES);
    return purpose === 'frees' ? spare + reserve / 2 : spare;
  }

  async function check(bytes: number, purpose: Purpose): Promise<void> {
    if (left < bytes && (await measure(bytes, purpose)) < bytes) {
      throw new NoSpace(
        'The disk is nearly full: uploads are refused, reads and deletes go on. Free some space or delete blobs.',
      );
    }
  }

  return {
    check,
    async reserve(bytes, purpose) {
      await check(bytes, purpose);
      left -= bytes;
    },
    isLow: () => isLow,
  };
}
