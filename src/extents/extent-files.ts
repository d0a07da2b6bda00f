import type { Purpose } from './extents.ts';

/** Named files that are written at positions: all that an engine has to give. What lies in them is the same for all of them. */
export interface ExtentFiles {
  /** Throws NoSpace if so many bytes more would not fit. */
  checkSpace(bytes: number, purpose: Purpose): Promise<void>;
  isLowOnSpace(): boolean;
  make(name: string, header: Buffer): Promise<void>;
  /** All of the bytes, one after another from the position on. */
  write(name: string, bytes: readonly Uint8Array[], position: number, purpose: Purpose): Promise<void>;
  /** Fewer bytes than asked for where the file ends; in `into`, if they fit. Throws Damaged if there is no such file. */
  read(name: string, position: number, length: number, into?: Buffer): Promise<Buffer>;
  /** The next read opens it anew. */
  closeHandle?(name: string): void;
  /** Resolves once what was written is durable, and the file's name too. */
  sync(name: string): Promise<void>;
  /** Whatever else lies there is listed too. */
  list(): Promise<readonly string[]>;
  /** What the file takes from the disk; 0 if there is none. */
  bytesOf(name: string): Promise<number>;
  /** Reads that have begun go on. */
  remove(name: string): Promise<void>;
  /** Waits for what is under way. */
  close(): Promise<void>;
}
