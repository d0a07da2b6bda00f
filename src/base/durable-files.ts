/** Atomic, durable writes of files and folders: after a power cut they exist completely or not at all. */
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
  /** Fails with EEXIST if the file exists, so that only one of several processes creates it. Otherwise the file is replaced. */
  readonly exclusive?: boolean;
}

/** Writes a draft, syncs and renames it, and syncs the folder. A crash may leave the draft. */
export function writeFileDurably(
  file: string,
  content: string | Uint8Array,
  { mode, exclusive = false }: DurableFileOptions,
): void {
  const draft = exclusive ? `${file}.${randomUUID()}.new` : `${file}.new`;
  // A draft left by a crash would keep its old mode.
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

/** Creates the folder and its parents. Node's recursive mkdir does not end where a folder cannot be created, as in /proc. */
export function makeFolderDurably(path: string, mode?: number): void {
  if (existsSync(path)) return;
  const parent = dirname(resolve(path));
  makeFolderDurably(parent);
  mkdirSync(path, { mode });
  syncFolderSync(parent);
}

/** Windows cannot open a folder, and its names are durable without a sync. */
const cannotSyncFolders = process.platform === 'win32';

/** Makes the names in the folder durable. */
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
