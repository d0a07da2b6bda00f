import { closeSync, existsSync, fsyncSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { join } from 'node:path';

/** Free space below which writes are refused; on a small disk an eighth of it. */
const WATERMARK_MAX = 64 << 20;
/** A commit copies the pages on its way to each row. */
const COPIED = 2;

export interface SpaceGuard {
  readonly message: string;
  /** Why this many bytes cannot be written now. */
  shortFor(bytes: number): { readonly unavailable: string } | undefined;
  isFull(failure: string): boolean;
}

/**
 * Turns writes away before LMDB meets a full disk, where it may end the process. The ballast is a file that is given up
 * when others have filled the disk, so that deletes still have the pages they need.
 */
export function guardSpace(location: string): SpaceGuard {
  const message =
    'The disk is nearly full: writes are refused, reads and deletes go on. Free some space or delete blobs.';
  const ballast = join(location, 'ballast');
  let aboard = existsSync(ballast);

  function free(): { bytes: number; watermark: number } {
    const { bavail, bsize, blocks } = statfsSync(location);
    return { bytes: bavail * bsize, watermark: Math.min(WATERMARK_MAX, (blocks * bsize) / 8) };
  }

  function load({ bytes, watermark }: { bytes: number; watermark: number }): void {
    if (aboard || bytes < 2 * watermark) return;
    try {
      const file = openSync(ballast, 'w');
      try {
        const piece = Buffer.alloc(1 << 16);
        for (let left = watermark / 32; left > 0; left -= piece.length) writeSync(file, piece);
        fsyncSync(file);
      } finally {
        closeSync(file);
      }
      aboard = true;
    } catch {
      drop();
    }
  }

  function drop(): void {
    rmSync(ballast, { force: true });
    aboard = false;
  }

  load(free());

  return {
    message,
    shortFor(bytes) {
      const now = free();
      if (now.bytes < now.watermark / 8 && aboard) drop();
      load(now);
      return now.bytes < now.watermark + COPIED * bytes ? { unavailable: message } : undefined;
    },
    isFull: (failure) => /No space left|ENOSPC|not enough space/i.test(failure),
  };
}
