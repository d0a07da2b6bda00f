/** Files and folders that are there, whole, after a power cut, and never a part of them. */
import { randomUUID } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';

export interface DurableFileOptions {
  readonly mode: number;
  /** Fails with EEXIST where the file exists: of several processes, one makes it. Otherwise it is replaced. */
  readonly exclusive?: boolean;
}

/** Written beside, synced, renamed, and the folder synced. A crash may leave the draft. */
export function writeFileDurably(
  file: string,
  content: string | Uint8Array,
  { mode, exclusive = false }: DurableFileOptions,
): void {
  const draft = exclusive ? `${file}.${randomUUID()}.new` : `${file}.new`;
  // A draft that a crash has left would keep its mode.
  rmSync(draft, { force: true });
  try {
    const descriptor = openSync(draft, 'wx', mode);
    try {
      const bytes = Buffer.from(content);
      for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    if (exclusive) linkSync(draft, file);
    else renameSync(draft, file);
  } finally {
    rmSync(draft, { force: true });
  }
  syncFolderSync(dirname(file));
}

/** With all folders above it. Node's own recursive mkdir never ends where one can be made neither here nor above, as in /proc. */
export function makeFolderDurably(path: string, mode?: number): void {
  if (existsSync(path)) return;
  const parent = dirname(resolve(path));
  makeFolderDurably(parent);
  mkdirSync(path, { mode });
  syncFolderSync(parent);
}

/** Windows cannot open a folder, and keeps names without being asked. */
const cannotSyncFolders = process.platform === 'win32';

/** Names that were made in the folder stay. */
export function syncFolderSync(folder: string): void {
  if (cannotSyncFolders) return;
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

export async function syncFolder(folder: string): Promise<void> {
  if (cannotSyncFolders) return;
  const handle = await open(folder, 'r');
  await handle.sync().finally(() => handle.close());
}
