/** Append-only extents of checksummed chunks: the interface for the layers above. */

/** The identity of a chunk: written before its bytes and part of their checksums, so that no chunk is taken for another. */
export interface ChunkName {
  readonly account: bigint;
  /** Of the process that wrote the chunk. */
  readonly epoch: bigint;
  readonly number: bigint;
}

/** Where the slot of a chunk is. */
export interface ChunkLocation {
  readonly extent: string;
  readonly offset: number;
  readonly length: number;
}

export const CHUNK_BYTES_MAX = 8 << 20;
/** Bytes that one checksum covers. */
export const CHECKSUM_BLOCK_BYTES = 64 << 10;
/** Bytes that a read of whole checksum blocks may read in addition. */
export const OVERREAD_BYTES_MAX = 128 << 10;

export interface ChunkWriter {
  readonly place: ChunkLocation;
  /** Writes the next bytes; resolves once more can be written. The bytes must not change until then. */
  write(bytes: readonly Uint8Array[]): Promise<void>;
  /** Resolves once all bytes are durable. Chunks that finish at the same time share a sync. */
  finish(): Promise<void>;
  /** No more bytes follow: the slot's space is lost until the extent is removed. */
  abandon(): void;
}

/** The checksums of one chunk, after the first read. */
export interface ChecksumCache {
  table?: Buffer | undefined;
}

/** Bytes of one chunk, counted from its start. */
export interface ChunkRange {
  readonly name: ChunkName;
  readonly place: ChunkLocation;
  readonly from: number;
  readonly to: number;
}

export interface ExtentInfo {
  readonly name: string;
  /** Whether the extent grows, or a chunk in it is being written. */
  readonly open: boolean;
}

/** Names start with the epoch of the process that made the extent, so that no two processes use the same name. */
export const extentName = (epoch: bigint, number: number): string => `${epoch}-${number}`;
/** 0, which no process has, if this is no name of an extent. */
export function epochOfExtent(name: string): bigint {
  return BigInt(EXTENT_NAME.exec(name)?.[1] ?? 0);
}
export const EXTENT_NAME = /^(\d+)-(\d+)$/;

/** Why bytes are written: a copy that frees more than it takes may use space of the reserve. */
export type Purpose = 'any' | 'frees';

export interface Extents {
  /** Reserves a slot for a chunk of exactly this length, at most CHUNK_BYTES_MAX. */
  begin(name: ChunkName, length: number, purpose?: Purpose): Promise<ChunkWriter>;
  /** How many chunks this process has started. */
  chunksBegun(): number;
  /** Whether there is no space for uploads, or hardly any. */
  isLowOnSpace(): boolean;
  /**
   * The bytes from `from` up to but not including `to`, counted from the chunk's start, verified. Throws CorruptChunk.
   * The result may be in `into`, if the whole blocks fit: then it is valid until `into` is used again.
   * A caller that reads a chunk in several parts passes the same `sums` each time, so that the checksums are read once.
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
   * The bytes of several chunks, one after another, each verified as in `read`. For small chunks: adjacent ones are read from the
   * disk together.
   */
  readMany(ranges: readonly ChunkRange[]): Promise<Buffer>;
  /** Every chunk with a valid header, finished or not, in order. */
  walk(extent: string): AsyncIterable<{ readonly name: ChunkName; readonly place: ChunkLocation }>;
  list(): Promise<readonly ExtentInfo[]>;
  /** Bytes on the disk; 0 if the extent is removed. For an extent that is not open the number does not change. */
  bytesOf(extent: string): Promise<number>;
  /** The extent grows no more; chunks that are being written are still finished. */
  seal(extent: string): Promise<void>;
  remove(extent: string): Promise<void>;
  close(): Promise<void>;
}

/** The bytes that were read are not those that were written. */
export class CorruptChunk extends Error {
  override readonly name = 'Damaged';
}

/** There is no space for these bytes. Nothing was written. */
export class NoSpace extends Error {
  override readonly name = 'NoSpace';
}
