/** What Node leaves to do by hand. */
import { closeSync, fdatasyncSync, openSync, readSync, writeSync } from 'node:fs';

export { syncFolderSync as syncFolder } from '../../base/durable-files.ts';

export function writeAll(descriptor: number, bytes: Uint8Array, position: number): void {
  for (let done = 0; done < bytes.length; )
    done += writeSync(descriptor, bytes, done, bytes.length - done, position + done);
}

/** The beginning of a file, into this memory, as far as the file goes. */
export function readBeginning(file: string, into: Buffer): Buffer {
  const descriptor = openSync(file, 'r');
  try {
    let end = 0;
    for (let read = 1; read > 0 && end < into.length; end += read) {
      read = readSync(descriptor, into, end, into.length - end, end);
    }
    return into.subarray(0, end);
  } finally {
    closeSync(descriptor);
  }
}

/** On disk when it returns. */
export function writeBeginning(file: string, bytes: Buffer): void {
  const descriptor = openSync(file, 'r+');
  try {
    writeAll(descriptor, bytes, 0);
    fdatasyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Whether there was no room, and all is as it was. A sync that failed is another matter: nobody knows what it left. */
export function isDiskFull(error: unknown): boolean {
  const { code = '', syscall = '' } = error as NodeJS.ErrnoException;
  return ['ENOSPC', 'EDQUOT'].includes(code) && !syscall.endsWith('sync');
}
