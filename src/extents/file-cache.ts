/** A bounded number of open files. The one that was used least recently is closed for another, but none that is in use. */
import { close as closeFile, open as openFile } from 'node:fs';
import { promisify } from 'node:util';

const openDescriptor = promisify(openFile);
const closeDescriptor = promisify(closeFile);

export interface FileCache {
  /** Opens the file, unless it is open, and keeps it so until the work is done. */
  use<T>(path: string, flags: string, work: (descriptor: number) => Promise<T>): Promise<T>;
  /** The next one to use it opens it anew. */
  evict(path: string): void;
  /** Forgets all others. */
  evictOthers(paths: ReadonlySet<string>): void;
  /** Waits for those who use one. */
  close(): Promise<void>;
}

interface OpenFile {
  readonly path: string;
  readonly descriptor: Promise<number>;
  users: number;
}

export function makeFileCache(max: number): FileCache {
  /** The least recently used one first. */
  const files = new Map<string, OpenFile>();
  const closings = new Set<Promise<void>>();
  const waiting: (() => void)[] = [];
  /** Of files that were forgotten while in use, too. */
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
      // Who was woken and found the place taken by another stays the next.
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
    // All that was written is synced before it counts: an error here is of no use to anybody.
    const closing = file.descriptor.then(closeDescriptor).catch(() => {});
    closings.add(closing);
    closing.then(() => closings.delete(closing));
  }

  function forget(path: string): void {
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
    evict: forget,
    evictOthers(paths) {
      for (const path of [...files.keys()]) if (!paths.has(path)) forget(path);
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
