import { statfs } from 'node:fs/promises';
import { NoSpace, type Purpose } from './extents.ts';

/** What uploads leave free, on a small disk a quarter of it: one half for copies that free more, one for rows and deletes. */
const RESERVE_BYTES_MAX = 128 << 20;
/** The disk is looked at once for so many bytes; where much is free, for as many more. */
const LOOK_BYTES = 4 << 20;
const LOOK_BYTES_MAX = 64 << 20;

export interface Room {
  /** Throws NoSpace if so many bytes do not fit. */
  check(bytes: number, purpose: Purpose): Promise<void>;
  /** The same, and the bytes are going to be written. */
  take(bytes: number, purpose: Purpose): Promise<void>;
  /** Whether uploads were refused, or nearly so, when the disk was looked at last. */
  isShort(): boolean;
}

export function roomIn(folder: string, reserveBytes?: number): Room {
  /** What may be written before the next look. */
  let left = 0;
  let short = false;

  async function look(bytes: number, purpose: Purpose): Promise<number> {
    const { bavail, bsize, blocks } = await statfs(folder);
    const reserve = reserveBytes ?? Math.min(RESERVE_BYTES_MAX, (blocks * bsize) / 4);
    const spare = bavail * bsize - reserve;
    left = Math.min(spare, Math.max(LOOK_BYTES, Math.min(spare / 64, LOOK_BYTES_MAX)));
    short = spare < Math.max(bytes, LOOK_BYTES);
    return purpose === 'frees' ? spare + reserve / 2 : spare;
  }

  async function check(bytes: number, purpose: Purpose): Promise<void> {
    if (left < bytes && (await look(bytes, purpose)) < bytes) {
      throw new NoSpace('The disk is nearly full: no bytes are taken until there is space again.');
    }
  }

  return {
    check,
    async take(bytes, purpose) {
      await check(bytes, purpose);
      left -= bytes;
    },
    isShort: () => short,
  };
}
