/** How a command finds the server that works on a folder, and shows that it may read the folder. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { StartError } from './config.ts';
import type { Origins } from './endpoints.ts';

export interface Admin {
  /** Of the service that takes commands, without a path. */
  readonly url: string;
  /** Of all services. */
  readonly origins: Origins;
  /** Of this start. */
  readonly token: string;
}

const fileIn = (location: string): string => join(location, 'admin.json');

export function writeAdmin(location: string, { url, origins, token }: Admin): void {
  // A file that a killed server has left keeps its mode when it is written again.
  rmSync(fileIn(location), { force: true });
  writeFileSync(fileIn(location), `${JSON.stringify({ url, origins, token })}\n`, { mode: 0o600, flag: 'wx' });
}

/** Undefined if there is none, or none that can be read: whoever asks learns from the folder's lock whether a server runs. */
export function readAdmin(location: string): Admin | undefined {
  try {
    const { url, origins, token } = JSON.parse(readFileSync(fileIn(location), 'utf8')) as Record<string, unknown>;
    const isWhole = typeof url === 'string' && URL.canParse(url) && typeof token === 'string';
    return isWhole ? { url, origins: (origins ?? { blob: url }) as Origins, token } : undefined;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EACCES' && code !== 'EPERM') return undefined;
    throw new StartError(`Cannot read ${fileIn(location)} (${code}): only who runs the server can ask it.`);
  }
}

/** Leaves that of another server, which may have taken the folder. */
export function removeAdmin(location: string, token: string): void {
  if (readAdmin(location)?.token === token) rmSync(fileIn(location), { force: true });
}
