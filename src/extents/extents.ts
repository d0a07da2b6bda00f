/** Append-only, checksummed bytes in chunks: what every backend offers, and all that the layers above know of one. */

/** Who a chunk is. Written in front of its bytes and mixed into their checksums, so that no chunk passes for another. */
export interface ChunkName {
  readonly account: bigint;
  /** Of the process that wrote it. */
  readonly epoch: bigint;
  readonly number: bigint;
}

/** Where the bytes of a chunk lie. */
export interface ChunkLocation {
  readonly extent: string;
  readonly offset: number;
  readonly length: number;
}

export const CHUNK_BYTES_MAX = 8 << 20;
/** One checksum for so many bytes. */
export const CHECKSUM_BLOCK_BYTES = 64 << 10;
/** At most so many bytes are read around those that are asked for, if these begin and end where a checksum does. */
export const OVERREAD_BYTES_MAX = 128 << 10;

export interface ChunkWriter {
  readonly place: ChunkLocation;
  /** Takes the next bytes; resolves once it can take more. They must not be changed until then. */
  write(bytes: readonly Uint8Array[]): Promise<void>;
  /** Resolves once all bytes are durable. Chunks that finish at one time share a sync. */
  finish(): Promise<void>;
  /** The rest will not come: the room is lost until the extent goes. */
  abandon(): void;
}

/** The checksums of one chunk, once they were read. */
export interface ChecksumCache {
  table?: Buffer | undefined;
}

/** Bytes of one chunk, counted from its beginning. */
export interface ChunkRange {
  readonly name: ChunkName;
  readonly place: ChunkLocation;
  readonly from: number;
  readonly to: number;
}

export interface ExtentInfo {
  readonly name: string;
  /** Whether it may still grow, or a chunk in it is being written. */
  readonly open: boolean;
}

/** Names begin with the epoch of the process that made the extent, so that no two of them ever make the same. */
export const extentName = (epoch: bigint, number: number): string => `${epoch}-${number}`;
/** 0, which no process has, if the name is none. */
export function epochOfExtent(name: string): bigint {
  return BigInt(EXTENT_NAME.exec(name)?.[1] ?? 0);
}
export const EXTENT_NAME = /^(\d+)-(\d+)$/;

/** Why bytes are written: those that replace others which then go may take space that is kept from all else. */
export type Purpose = 'any' | 'frees';

export interface Extents {
  /** Room for a chunk of just this many bytes, at most CHUNK_BYTES_MAX. */
  begin(name: ChunkName, length: number, purpose?: Purpose): Promise<ChunkWriter>;
  /** How many chunks this process has begun. */
  chunksBegun(): number;
  /** Whether there is no space for uploads, or hardly any. */
  isLowOnSpace(): boolean;
  /**
   * The bytes from `from` up to but not including `to`, counted from the chunk's beginning; checked. Throws Damaged.
   * They may lie in `into`, if there is room for them and what surrounds them: then they are good until it is used again.
   * Whoever reads a chunk piece by piece gives the same `sums` each time, so that its checksums are read once.
   */
  read(
    name: ChunkName,
    place: ChunkLocation,
    from: number,
    to: number,
    into?: Buffer,
    sums?: ChecksumCache,
  ): Promise<Buffer>;
  /**
   * The bytes of several chunks, one after another, each checked as `read` does it. For small ones: those that lie close
   * to each other are read from the disk together.
   */
  readMany(ranges: readonly ChunkRange[]): Promise<Buffer>;
  /** Every chunk whose beginning can be made out, finished or not, in order. */
  walk(extent: string): AsyncIterable<{ readonly name: ChunkName; readonly place: ChunkLocation }>;
  list(): Promise<readonly ExtentInfo[]>;
  /** What it takes from the disk, 0 if it is gone. Of an extent that is not open it does not change, so nobody need ask twice. */
  bytesOf(extent: string): Promise<number>;
  /** It grows no more; chunks that are being written are still finished. */
  seal(extent: string): Promise<void>;
  /** Gone with all that is in it. */
  remove(extent: string): Promise<void>;
  close(): Promise<void>;
}

/** What was read is not what was written. */
export class CorruptChunk extends Error {
  override readonly name = 'Damaged';
}

/** There is no room for these bytes. Nothing was written. */
export class NoSpace extends Error {
  override readonly name = 'NoSpace';
}
