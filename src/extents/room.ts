import { statfs } from 'node:fs/promises';
import { NoSpace } from './extents.ts';

/** What rows and deletes are left to live on; on a small disk an eighth of it. */
const RESERVE_BYTES_MAX = 64 << 20;
/** The disk is looked at once for so many bytes. */
const LOOK_BYTES = 4 << 20;

export interface Room {
  /** Throws NoSpace if so many bytes do not fit. */
  check(bytes: number): Promise<void>;
  /** The same, and the bytes are going to be written. */
  take(bytes: number): Promise<void>;
}

export function roomIn(folder: string, reserveBytes?: number): Room {
  /** What may be written before the next look. */
  let left = 0;

  async function look(): Promise<number> {
    const { bavail, bsize, blocks } = await statfs(folder);
    const spare = bavail * bsize - (reserveBytes ?? Math.min(RESERVE_BYTES_MAX, (blocks * bsize) / 8));
    left = Math.min(spare, LOOK_BYTES);
    return spare;
  }

  async function check(bytes: number): Promise<void> {
    if (left < bytes && (await look()) < bytes) {
      throw new NoSpace('The disk is nearly full: no bytes are taken until there is space again.');
    }
  }

  return {
    check,
    async take(bytes) {
      await check(bytes);
      left -= bytes;
    },
  };
}
