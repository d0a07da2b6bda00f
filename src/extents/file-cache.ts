/** LRU cache of file descriptors. The least recently used file is closed for another, but none that is in use. */
import { close as closeFile, open as openFile } from 'node:fs';
import { promisify } from 'node:util';

const openDescriptor = promisify(openFile);
const closeDescriptor = promisify(closeFile);

interface OpenFile {
  readonly path: string;
  readonly descriptor: Promise<number>;
  users: number;
}

export class FileCache {
  private readonly max: number;
  /** In the order of their last use. A file in use that is not here was evicted: its last user closes it. */
  private readonly files = new Map<string, OpenFile>();
  private readonly closings = new Set<Promise<void>>();
  /** Uses that wait for room, in their order. */
  private readonly waiting: (() => void)[] = [];
  /** Also of files that were evicted while in use. */
  private users = 0;
  private isClosed = false;
  private onIdle: () => void = () => {};

  /** @param max files that are open at the same time, not counting evicted ones in use */
  constructor(max: number) {
    this.max = max;
  }

  /** Opens the file, unless it is open, and keeps it open until the work is done. */
  async use<T>(path: string, flags: string, work: (descriptor: number) => Promise<T>): Promise<T> {
    const file = await this.acquire(path, flags);
    try {
      return await work(await file.descriptor);
    } finally {
      this.release(file);
    }
  }

  /** The next use opens the file again. */
  evict(path: string): void {
    const file = this.files.get(path);
    this.files.delete(path);
    if (file?.users === 0) this.closeEntry(file);
  }

  evictOthers(paths: ReadonlySet<string>): void {
    for (const path of [...this.files.keys()]) if (!paths.has(path)) this.evict(path);
  }

  /** Waits for running work. */
  async close(): Promise<void> {
    this.isClosed = true;
    for (const wake of this.waiting.splice(0)) wake();
    if (this.users > 0) {
      await new Promise<void>((resolve) => {
        this.onIdle = resolve;
      });
    }
    for (const file of [...this.files.values()]) this.closeEntry(file);
    await Promise.all(this.closings);
  }

  private async acquire(path: string, flags: string): Promise<OpenFile> {
    const { files, waiting } = this;
    for (let isFirst = true; ; isFirst = false) {
      if (this.isClosed) throw new Error('The extents are closed.');
      const file = files.get(path) ?? (this.makeRoom() ? this.openEntry(path, flags) : undefined);
      if (file) {
        files.delete(path);
        files.set(path, file);
        file.users++;
        this.users++;
        return file;
      }
      // A waiter that was woken too late keeps its position.
      await new Promise<void>((wake) => (isFirst ? waiting.push(wake) : waiting.unshift(wake)));
    }
  }

  private makeRoom(): boolean {
    if (this.files.size < this.max) return true;
    for (const file of this.files.values()) {
      if (file.users > 0) continue;
      this.closeEntry(file);
      return true;
    }
    return false;
  }

  private openEntry(path: string, flags: string): OpenFile {
    const file: OpenFile = { path, descriptor: openDescriptor(path, flags, 0o600), users: 0 };
    file.descriptor.catch(() => this.files.get(path) === file && this.files.delete(path));
    return file;
  }

  private closeEntry(file: OpenFile): void {
    if (this.files.get(file.path) === file) this.files.delete(file.path);
    // Writes count only once they are synced, so an error of close has no meaning.
    const closing = file.descriptor.then(closeDescriptor).catch(() => {});
    this.closings.add(closing);
    closing.then(() => this.closings.delete(closing));
  }

  private release(file: OpenFile): void {
    file.users--;
    this.users--;
    if (file.users === 0 && this.files.get(file.path) !== file) this.closeEntry(file);
    if (this.users === 0) this.onIdle();
    this.waiting.shift()?.();
  }
}
