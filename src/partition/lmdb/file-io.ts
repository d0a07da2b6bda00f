/** What Node leaves to do by hand. */
import { writeSync } from 'node:fs';

export { syncFolderSync as syncFolder } from '../../base/durable-files.ts';

export function writeAll(descriptor: number, bytes: Uint8Array, position: number): void {
  for (let done = 0; done < bytes.length; )
    done += writeSync(descriptor, bytes, done, bytes.length - done, position + done);
}

/** Whether there was no room, and all is as it was. A sync that failed is another matter: nobody knows what it left. */
export function isDiskFull(error: unknown): boolean {
  const { code = '', syscall = '' } = error as NodeJS.ErrnoException;
  return ['ENOSPC', 'EDQUOT'].includes(code) && !syscall.endsWith('sync');
}
