import { statfs } from 'node:fs/promises';
import { NoSpace, type Purpose } from './extents.ts';

/** What uploads leave free, on a small disk a quarter of it: one half for copies that free more, one for rows and deletes. */
const RESERVE_BYTES_MAX = 128 << 20;
/** The disk is looked at once for so many bytes; where much is free, for as many more. */
const MEASURE_BYTES = 4 << 20;
const MEASURE_BYTES_MAX = 64 << 20;

export interface DiskSpace {
  /** Throws NoSpace if so many bytes do not fit. */
  check(bytes: number, purpose: Purpose): Promise<void>;
  /** The same, and the bytes are going to be written. */
  reserve(bytes: number, purpose: Purpose): Promise<void>;
  /** Whether uploads were refused, or nearly so, when the disk was looked at last. */
  isLow(): boolean;
}

export function watchDiskSpace(folder: string, reserveBytes?: number): DiskSpace {
  /** What may be written before the next look. */
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
      throw new NoSpace('The disk is nearly full: no bytes are taken until there is space again.');
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
