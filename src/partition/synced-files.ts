/** What Node leaves to do by hand. */
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';

/** A name that was made in the folder stays. Windows has no such call, and keeps names by itself. */
export function syncFolder(folder: string): void {
  if (process.platform === 'win32') return;
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

export function writeAll(descriptor: number, bytes: Uint8Array, position: number): void {
  for (let done = 0; done < bytes.length; )
    done += writeSync(descriptor, bytes, done, bytes.length - done, position + done);
}

/** Whether there was no room, and all is as it was. A sync that failed is another matter: nobody knows what it left. */
export function isFull(error: unknown): boolean {
  const { code = '', syscall = '' } = error as NodeJS.ErrnoException;
  return ['ENOSPC', 'EDQUOT'].includes(code) && !syscall.endsWith('sync');
}
