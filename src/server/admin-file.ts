/** How a command finds the server that works on a folder, and shows that it may read the folder. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { StartError } from './config.ts';
import type { Origins } from './endpoints.ts';

export interface AdminFile {
  /** Of the service that takes commands, without a path. */
  readonly url: string;
  /** Of all services. */
  readonly origins: Origins;
  /** Of this start. */
  readonly token: string;
}

const adminFilePath = (location: string): string => join(location, 'admin.json');

export function writeAdminFile(location: string, { url, origins, token }: AdminFile): void {
  // A file that a killed server has left keeps its mode when it is written again.
  rmSync(adminFilePath(location), { force: true });
  writeFileSync(adminFilePath(location), `${JSON.stringify({ url, origins, token })}\n`, { mode: 0o600, flag: 'wx' });
}

/** Undefined if there is none, or none that can be read: whoever asks learns from the folder's lock whether a server runs. */
export function readAdminFile(location: string): AdminFile | undefined {
  try {
    const { url, origins, token } = JSON.parse(readFileSync(adminFilePath(location), 'utf8')) as Record<
      string,
      unknown
    >;
    const isComplete = typeof url === 'string' && URL.canParse(url) && typeof token === 'string';
    return isComplete ? { url, origins: (origins ?? { blob: url }) as Origins, token } : undefined;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EACCES' && code !== 'EPERM') return undefined;
    throw new StartError(`Cannot read ${adminFilePath(location)} (${code}): only who runs the server can ask it.`);
  }
}

/** Leaves that of another server, which may have taken the folder. */
export function removeAdminFile(location: string, token: string): void {
  if (readAdminFile(location)?.token === token) rmSync(adminFilePath(location), { force: true });
}
