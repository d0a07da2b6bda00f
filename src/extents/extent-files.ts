/** The interface of an extent backend: named files, written at positions. The layout within the files is the same for all backends. */
import type { Purpose } from './extents.ts';

export interface ExtentFiles {
  /** Throws NoSpace if the bytes would not fit. */
  checkSpace(bytes: number, purpose: Purpose): Promise<void>;
  isLowOnSpace(): boolean;
  make(name: string, header: Buffer): Promise<void>;
  /** Writes all pieces, one after another from the position on. */
  write(name: string, bytes: readonly Uint8Array[], position: number, purpose: Purpose): Promise<void>;
  /** Fewer bytes than `length` where the file ends; in `into`, if they fit. Throws CorruptChunk if there is no such file. */
  read(name: string, position: number, length: number, into?: Buffer): Promise<Buffer>;
  /** The next read opens the file again. */
  closeHandle?(name: string): void;
  /** Resolves once all writes and the file's name are durable. */
  sync(name: string): Promise<void>;
  /** Also lists files that are no extents. */
  list(): Promise<readonly string[]>;
  /** Bytes that the file occupies on the disk; 0 if there is no such file. */
  bytesOf(name: string): Promise<number>;
  /** Reads that have started continue. */
  remove(name: string): Promise<void>;
  /** Waits for running reads and writes. */
  close(): Promise<void>;
}
