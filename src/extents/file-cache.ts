/** LRU cache of file descriptors. The least recently used file is closed for another, but none that is in use. */
import { close as closeFile, open as openFile } from 'node:fs';
import { promisify } from 'node:util';

const openDescriptor = promisify(openFile);
const closeDescriptor = promisify(closeFile);

export interface FileCache {
  /** Opens the file, unless it is open, and keeps it open until the work is done. */
  use<T>(path: string, flags: string, work: (descriptor: number) => Promise<T>): Promise<T>;
  /** The next use opens the file again. */
  evict(path: string): void;
  /** Evicts all other files. */
  evictOthers(paths: ReadonlySet<string>): void;
  /** Waits for running work. */
  close(): Promise<void>;
}

interface OpenFile {
  readonly path: string;
  readonly descriptor: Promise<number>;
  users: number;
}

export function makeFileCache(max: number): FileCache {
  /** In the order of their last use. A file in use that is not here was evicted: its last user closes it. */
  const files = new Map<string, OpenFile>();
  const closings = new Set<Promise<void>>();
  const waiting: (() => void)[] = [];
  /** Also of files that were evicted while in use. */
  let users = 0;
  let closed = false;
  let onIdle: () => void = () => {};

  async function acquire(path: string, flags: string): Promise<OpenFile> {
    for (let isFirst = true; ; isFirst = false) {
      if (closed) throw new Error('The extents are closed.');
      const file = files.get(path) ?? (hasRoom() ? openEntry(path, flags) : undefined);
      if (file) {
        files.delete(path);
        files.set(path, file);
        file.users++;
        users++;
        return file;
      }
      // A waiter that was woken too late keeps its position.
      await new Promise<void>((wake) => (isFirst ? waiting.push(wake) : waiting.unshift(wake)));
    }
  }

  function hasRoom(): boolean {
    if (files.size < max) return true;
    for (const file of files.values()) {
      if (file.users > 0) continue;
      closeEntry(file);
      return true;
    }
    return false;
  }

  function openEntry(path: string, flags: string): OpenFile {
    const file: OpenFile = { path, descriptor: openDescriptor(path, flags, 0o600), users: 0 };
    file.descriptor.catch(() => files.get(path) === file && files.delete(path));
    return file;
  }

  function closeEntry(file: OpenFile): void {
    if (files.get(file.path) === file) files.delete(file.path);
    // Writes count only once they are synced, so an error of close has no meaning.
    const closing = file.descriptor.then(closeDescriptor).catch(() => {});
    closings.add(closing);
    closing.then(() => closings.delete(closing));
  }

  function evict(path: string): void {
    const file = files.get(path);
    files.delete(path);
    if (file?.users === 0) closeEntry(file);
  }

  function release(file: OpenFile): void {
    file.users--;
    users--;
    if (file.users === 0 && files.get(file.path) !== file) closeEntry(file);
    if (users === 0) onIdle();
    waiting.shift()?.();
  }

  return {
    async use(path, flags, work) {
      const file = await acquire(path, flags);
      try {
        return await work(await file.descriptor);
      } finally {
        release(file);
      }
    },
    evict,
    evictOthers(paths) {
      for (const path of [...files.keys()]) if (!paths.has(path)) evict(path);
    },
    async close() {
      closed = true;
      for (const wake of waiting.splice(0)) wake();
      if (users > 0) {
        await new Promise<void>((resolve) => {
          onIdle = resolve;
        });
      }
      for (const file of [...files.values()]) closeEntry(file);
      await Promise.all(closings);
    },
  };
}
