/** How much of the disk the extents of a data folder take, as `du` would say. */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

const MIB = 2 ** 20;

/** @param {string} location */
export async function extentBytes(location) {
  const folder = join(location, 'extents');
  const sizes = await Promise.all((await readdir(folder)).map((name) => takenBy(join(folder, name))));
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** Bytes that the folder may use for these bytes of blobs. @param {number} live */
export function bound(live) {
  return 1.3 * live + 256 * MIB;
}

/**
 * Waits until the folder is small enough, a minute at most.
 * @param {string} location
 * @param {number} live
 */
export async function settle(location, live) {
  const started = performance.now();
  for (;;) {
    const bytes = await extentBytes(location);
    const seconds = (performance.now() - started) / 1000;
    if (bytes <= bound(live) || seconds > 60) return { bytes, seconds, settled: bytes <= bound(live) };
    await pause(250);
  }
}

/** Gone meanwhile counts as nothing. @param {string} path */
async function takenBy(path) {
  try {
    const { blocks } = await stat(path);
    return blocks * 512;
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'ENOENT') return 0;
    throw error;
  }
}
