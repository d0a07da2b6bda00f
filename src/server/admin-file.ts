/** The file by which a command finds the server that runs on a folder; its token proves that the command can read the folder. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { StartError } from './config.ts';
import type { Origins } from './endpoints.ts';

export interface AdminFile {
  /** Of the service whose admin endpoints are called, without a path. */
  readonly url: string;
  /** Of all services. */
  readonly origins: Origins;
  /** Bearer token of the admin endpoints, new with each start. */
  readonly token: string;
}

const adminFilePath = (location: string): string => join(location, 'admin.json');

export function writeAdminFile(location: string, { url, origins, token }: AdminFile): void {
  // A file left by a killed server would keep its mode if it were overwritten.
  rmSync(adminFilePath(location), { force: true });
  writeFileSync(adminFilePath(location), `${JSON.stringify({ url, origins, token })}\n`, { mode: 0o600, flag: 'wx' });
}

/** Undefined if there is none or it is incomplete: the lock of the folder decides whether a server runs. */
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

/** Keeps the file of another server, which may have taken over the folder. */
export function removeAdminFile(location: string, token: string): void {
  if (readAdminFile(location)?.token === token) rmSync(adminFilePath(location), { force: true });
}
